/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies of the frames of a queue. The test plays the port and the reader. */
#include <stdlib.h>
#include <string.h>

#include <infiniband/opcode.h>
#include <netinet/in.h>
#include <rte_ip.h>

#include "base/answer_wait.h"
#include "case.h"
#include "dump/frame_copies.h"
#include "wire/hdr.h"

#define SLOTS 64
#define LEN 100

struct queue {
	unsigned rx_ready; /* frames that the next burst has */
	unsigned tx_take;  /* frames that the next burst takes */
	unsigned released, allocated, freed;
	bool cut;        /* received frames end within their BTH */
	uint32_t number; /* of the next received frame */
	uint8_t bytes[PKT_BURST][LEN];
};

static struct queue q;

/* A RoCEv2 packet over IPv4 or IPv6, to this QP; the number is in its PSN. */
static uint16_t
frame_fill(uint8_t *f, uint32_t qpn, uint32_t number, bool v6)
{
	uint8_t *ip = f + 14, *udp = ip + (v6 ? 40 : 20), *bth = udp + 8;
	uint8_t *end = bth + 12 + 4; /* the ICRC is not looked at */
	uint16_t cksum;

	memset(f, 0, LEN);
	f[12] = v6 ? 0x86 : 0x08;
	f[13] = v6 ? 0xDD : 0x00;
	ip[0] = v6 ? 0x60 : 0x45;
	ip[v6 ? 5 : 3] = (uint8_t)(end - (v6 ? udp : ip));
	ip[v6 ? 6 : 9] = IPPROTO_UDP;
	ip[v6 ? 7 : 8] = 64;
	if (!v6) {
		cksum = rte_ipv4_cksum((struct rte_ipv4_hdr *)ip);
		memcpy(ip + 10, &cksum, sizeof(cksum));
	}
	udp[2] = ROCE_UDP_PORT >> 8;
	udp[3] = ROCE_UDP_PORT & 0xFF;
	udp[5] = (uint8_t)(end - udp);
	bth[0] = IBV_OPCODE_RC_SEND_ONLY;
	bth[2] = bth[3] = 0xFF; /* the default partition */
	bth[5] = (uint8_t)(qpn >> 16);
	bth[6] = (uint8_t)(qpn >> 8);
	bth[7] = (uint8_t)qpn;
	bth[11] = (uint8_t)number;
	return (uint16_t)(end - f);
}

static unsigned
queue_rx_burst(void *queue, struct pkt *pkts, unsigned n)
{
	assert_ptr_equal(queue, &q);
	n = RTE_MIN(n, q.rx_ready);
	q.rx_ready -= n;
	for (unsigned i = 0; i < n; i++)
		pkts[i] = (struct pkt){.data = q.bytes[i],
			.len = frame_fill(
				q.bytes[i], 0x11 + q.number % 2, q.number, false)},
		pkts[i].len = q.cut ? 14 + 20 + 8 + 4 : pkts[i].len, q.number++;
	return n;
}

static void
queue_rx_release(void *queue, struct pkt *pkts, unsigned n)
{
	assert_ptr_equal(queue, &q);
	assert_non_null(pkts);
	q.released += n;
}

static unsigned
queue_tx_alloc(void *queue, struct pkt *pkts, unsigned n)
{
	assert_ptr_equal(queue, &q);
	assert_non_null(pkts);
	q.allocated += n;
	return n;
}

static void
queue_tx_release(void *queue, struct pkt *pkts, unsigned n)
{
	assert_ptr_equal(queue, &q);
	assert_non_null(pkts);
	q.freed += n;
}

/* A sent frame belongs to the port, which overwrites it. */
static unsigned
queue_tx_burst(void *queue, struct pkt *pkts, unsigned n)
{
	assert_ptr_equal(queue, &q);
	n = RTE_MIN(n, q.tx_take);
	for (unsigned i = 0; i < n; i++)
		memset(pkts[i].data, 0xEE, LEN);
	return n;
}

static int
queue_wait_fd(void *queue)
{
	assert_ptr_equal(queue, &q);
	return 17;
}

static struct answer_wait wait_of_qp;
static unsigned answered;

static void
queue_rx_answered(void *queue)
{
	assert_ptr_equal(queue, &q);
	answered++;
}

static bool
queue_tx_waits(void *queue, uint32_t qpn, struct answer_wait *wait, uint64_t when)
{
	assert_ptr_equal(wait, &wait_of_qp);
	assert_ptr_equal(queue, &q);
	assert_int_equal(when, 5);
	return qpn == 7;
}

static struct port_ops ops = {.rx_burst = queue_rx_burst,
	.rx_release = queue_rx_release,
	.tx_alloc = queue_tx_alloc,
	.tx_release = queue_tx_release,
	.tx_burst = queue_tx_burst,
	.wait_fd = queue_wait_fd,
	.tx_waits = queue_tx_waits,
	.rx_answered = queue_rx_answered};

static struct frame_copies *copies;
static struct port_queue outer;
static uint64_t now = 1000; /* of the engine's pass */

static void
wrap(const struct frame_filter *filter)
{
	const struct port_queue inner = {.ops = &ops, .queue = &q};

	memset(&q, 0, sizeof(q));
	assert_int_equal(
		frame_copies_wrap(&inner, filter, &now, SLOTS, &copies, &outer), 0);
}

static unsigned
receive(unsigned n)
{
	struct pkt pkts[PKT_BURST];

	q.rx_ready = n;
	return outer.ops->rx_burst(outer.queue, pkts, PKT_BURST);
}

/* Sends n frames of QP 7, numbered from 0, of which the port takes as many. */
static unsigned
transmit(unsigned n, unsigned take)
{
	struct pkt pkts[PKT_BURST];

	q.tx_take = take;
	for (unsigned i = 0; i < n; i++)
		pkts[i] = (struct pkt){.data = q.bytes[i],
			.len = frame_fill(q.bytes[i], 0x99, i, true),
			.flags = 7 << PKT_TX_QPN_SHIFT | PKT_TX_IPV4_CKSUM};
	return outer.ops->tx_burst(outer.queue, pkts, n);
}

static uint8_t
number_of(const struct frame_copy *copy)
{
	return copy->data[copy->len - 5];
}

static const struct frame_filter everything = {.snap = LEN, .in = true, .out = true};

TEST(both_directions_are_copied)
{
	struct frame_copy copy;

	wrap(&everything);
	assert_false(frame_copies_peek(copies, &copy));
	now = 1000;
	assert_int_equal(receive(3), 3);
	now++;
	assert_int_equal(transmit(2, 2), 2);
	for (unsigned i = 0; i < 5; i++) {
		assert_true(frame_copies_peek(copies, &copy));
		assert_int_equal(copy.out, i >= 3);
		assert_int_equal(copy.qpn, i >= 3 ? 7 : 0x11 + i % 2);
		assert_int_equal(copy.len, i >= 3 ? 78 : 58);
		assert_int_equal(copy.kept, copy.len);
		assert_int_equal(copy.lost, 0);
		assert_int_equal(copy.when, i >= 3 ? 1001 : 1000);
		assert_int_equal(number_of(&copy), i >= 3 ? i - 3 : i);
		frame_copies_release(copies);
	}
	assert_false(frame_copies_peek(copies, &copy));
	assert_int_equal(frame_copies_lost(copies), 0);
	frame_copies_free(copies);
}

TEST(refused_frames_are_not_copied)
{
	struct frame_copy copy;

	wrap(&everything);
	assert_int_equal(transmit(8, 5), 5);
	for (unsigned i = 0; i < 5; i++) {
		assert_true(frame_copies_peek(copies, &copy));
		assert_int_equal(number_of(&copy), i);
		frame_copies_release(copies);
	}
	assert_false(frame_copies_peek(copies, &copy));
	assert_int_equal(transmit(8, 0), 0);
	assert_false(frame_copies_peek(copies, &copy));
	frame_copies_free(copies);
}

/* A copy that the reader was too late for is counted, in front of the next frame too. */
TEST(lost_copies_are_counted)
{
	struct frame_copy copy;

	wrap(&everything);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(receive(PKT_BURST), PKT_BURST);
	assert_int_equal(frame_copies_lost(copies), 3 * PKT_BURST - SLOTS);
	/* Lost frames that the port refuses are not lost. */
	assert_int_equal(transmit(4, 1), 1);
	assert_int_equal(frame_copies_lost(copies), 3 * PKT_BURST - SLOTS + 1);
	for (unsigned i = 0; i < SLOTS; i++) {
		assert_true(frame_copies_peek(copies, &copy));
		assert_int_equal(number_of(&copy), i);
		assert_int_equal(copy.lost, 0);
		frame_copies_release(copies);
	}
	assert_false(frame_copies_peek(copies, &copy));
	assert_int_equal(receive(1), 1);
	assert_true(frame_copies_peek(copies, &copy));
	assert_int_equal(number_of(&copy), 3 * PKT_BURST);
	assert_int_equal(copy.lost, 3 * PKT_BURST - SLOTS + 1);
	frame_copies_free(copies);
}

static unsigned
count(const struct frame_filter *filter, unsigned *in)
{
	struct frame_copy copy;
	unsigned n = 0;

	*in = 0;
	wrap(filter);
	assert_int_equal(receive(6), 6);
	assert_int_equal(transmit(4, 4), 4);
	while (frame_copies_peek(copies, &copy)) {
		n++;
		*in += !copy.out;
		assert_int_equal(copy.kept, RTE_MIN(copy.len, filter->snap));
		frame_copies_release(copies);
	}
	frame_copies_free(copies);
	return n;
}

TEST(filters_choose)
{
	struct frame_filter f = everything;
	unsigned in;

	f.out = false;
	assert_int_equal(count(&f, &in), 6);
	assert_int_equal(in, 6);
	f.out = true;
	f.in = false;
	assert_int_equal(count(&f, &in), 4);
	assert_int_equal(in, 0);
	f.in = true;
	f.qpn = 0x12;
	f.snap = 20;
	assert_int_equal(count(&f, &in), 3);
	assert_int_equal(in, 3);
	f.qpn = 7;
	f.snap = 1;
	assert_int_equal(count(&f, &in), 4);
	assert_int_equal(in, 0);
	f.qpn = 0x99; /* the peer's */
	assert_int_equal(count(&f, &in), 0);
}

/* A frame that is no RoCEv2 packet, or one of another VLAN, belongs to no QP. */
TEST(other_frames_have_no_qpn)
{
	struct frame_filter f = everything;
	struct frame_copy copy;
	struct pkt pkts[PKT_BURST];

	wrap(&f);
	q.cut = true; /* the frame ends within its BTH */
	q.rx_ready = 1;
	assert_int_equal(outer.ops->rx_burst(outer.queue, pkts, PKT_BURST), 1);
	assert_true(frame_copies_peek(copies, &copy));
	assert_int_equal(copy.qpn, 0);
	frame_copies_free(copies);
	f.vlan = 5;
	wrap(&f);
	assert_int_equal(receive(1), 1);
	assert_true(frame_copies_peek(copies, &copy));
	assert_int_equal(copy.qpn, 0);
	frame_copies_free(copies);
}

TEST(copies_take_whole_cache_lines)
{
	struct frame_filter filter = {.snap = 1};

	assert_int_equal(frame_copies_slot_size(&filter), 64);
	filter.snap = 64;
	assert_int_equal(frame_copies_slot_size(&filter), 128);
}

TEST(the_rest_is_passed_on)
{
	struct pkt pkts[4];

	wrap(&everything);
	assert_int_equal(outer.ops->tx_alloc(outer.queue, pkts, 4), 4);
	outer.ops->tx_release(outer.queue, pkts, 3);
	outer.ops->rx_release(outer.queue, pkts, 2);
	assert_int_equal(outer.ops->wait_fd(outer.queue), 17);
	assert_int_equal(q.allocated, 4);
	assert_int_equal(q.freed, 3);
	assert_int_equal(q.released, 2);
	assert_ptr_equal(frame_copies_inner(copies)->queue, &q);
	assert_true(outer.ops->tx_waits(outer.queue, 7, &wait_of_qp, 5));
	assert_false(outer.ops->tx_waits(outer.queue, 8, &wait_of_qp, 5));
	ops.tx_waits = NULL;
	assert_false(outer.ops->tx_waits(outer.queue, 7, &wait_of_qp, 5));
	ops.tx_waits = queue_tx_waits;
	outer.ops->rx_answered(outer.queue);
	ops.rx_answered = NULL;
	outer.ops->rx_answered(outer.queue);
	ops.rx_answered = queue_rx_answered;
	assert_int_equal(answered, 1);
	frame_copies_free(copies);
}
