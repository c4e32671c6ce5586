/* SPDX-License-Identifier: BSD-3-Clause */
/* Both ends together when frames are lost or reordered, and when numbers wrap. Each
 * operation completes once, with the right bytes. */
#include <string.h>

#include <rte_byteorder.h>

#include "qp_link.h"

#define REMOTE 0x8000
#define TIMEOUT_NS (UINT64_C(4096) << 14)

static struct qp_link p;

static void
open_pair(uint32_t psn, uint8_t depth)
{
	struct qp_link_conf conf = qp_link_defaults_rdma();

	conf.psn[0] = psn;
	conf.max_rd = conf.max_dest_rd = depth;
	qp_link_init(&p, &conf);
	bytes_fill(p.a.mem, 0x8000, 1);
	bytes_fill(p.b.mem + REMOTE, 0x8000, 2);
}

enum { SEND, WRITE, READ, ADD, KINDS };

static uint64_t
mem_word(const struct host *h, uint32_t offset)
{
	uint64_t value;

	memcpy(&value, h->mem + offset, 8);
	return value;
}

/* Posts one operation of a kind, and the receive of a SEND. */
static void
operation_post(unsigned kind, uint64_t wr_id, uint32_t len)
{
	switch (kind) {
	case SEND:
		host_recv(&p.b, wr_id, 0, 0x2000);
		host_send(&p.a, wr_id, 0, len, IBV_SEND_SIGNALED);
		break;
	case WRITE:
		host_write(&p.a, wr_id, 0, 0x4000, len);
		break;
	case READ:
		host_read(&p.a, wr_id, 0x4000, REMOTE, len);
		break;
	default:
		host_atomic(
			&p.a, wr_id, IBV_WR_ATOMIC_FETCH_AND_ADD, 0x6000, REMOTE, 1, 0);
		break;
	}
}

/* Checks that the operation completed once. before: the word that the atomic found. */
static void
operation_check(unsigned kind, uint64_t wr_id, uint32_t len, uint64_t before)
{
	expect_sent(&p.a, wr_id, IBV_WC_SUCCESS);
	if (kind == SEND) {
		expect_received(&p.b, wr_id, len);
		assert_memory_equal(p.b.mem, p.a.mem, len);
	} else if (kind == WRITE) {
		assert_memory_equal(p.b.mem + 0x4000, p.a.mem, len);
	} else if (kind == READ) {
		assert_memory_equal(p.a.mem + 0x4000, p.b.mem + REMOTE, len);
	} else {
		assert_int_equal(mem_word(&p.a, 0x6000), before);
		assert_int_equal(mem_word(&p.b, REMOTE), before + 1);
	}
	expect_idle(&p.a);
	expect_idle(&p.b);
}

/* A QP without tail-loss probes loses the last packet of its only message, or the last
 * response packet. The message is resent exactly one timeout later. */
TEST(lost_last_packet_costs_one_timeout)
{
	for (unsigned kind = 0; kind < KINDS; kind++) {
		for (unsigned answer = 0; answer < 2; answer++) {
			uint64_t before, begin;

			open_pair(PSN_A, 4);
			p.a.shared.tlp_off = true;
			before = mem_word(&p.b, REMOTE);
			begin = p.now;
			operation_post(kind, 1, 3000);
			host_pull(&p.a, PULL_ALL);
			if (!answer)
				wire_drop(&p.a, p.a.wire_count - 1);
			wire_deliver_all(&p.a);
			host_pull(&p.b, PULL_ALL);
			if (answer)
				wire_drop(&p.b, p.b.wire_count - 1);
			wire_deliver_all(&p.b);
			expect_idle(&p.a);
			assert_int_equal(qp_deadline(&p.a.qp), begin + TIMEOUT_NS);
			qp_link_advance(&p, TIMEOUT_NS - 1);
			assert_int_equal(host_pull(&p.a, PULL_ALL), 0);
			qp_link_advance(&p, 1);
			assert_true(host_pull(&p.a, PULL_ALL) != 0);
			qp_link_drain(&p);
			operation_check(kind, 1, 3000, before);
			assert_int_equal(p.a.stats.ack_timeouts, 1);
			qp_link_fini(&p);
		}
	}
}

/* Each of four READ responses is moved to each other position. The missing one is
 * requested again, a response that came too early is dropped, and at most one timeout is
 * needed. */
TEST(reordered_read_responses)
{
	for (unsigned from = 0; from < 4; from++) {
		for (unsigned to = 0; to < 4; to++) {
			open_pair(PSN_A, 4);
			operation_post(READ, 1, 3 * 1024 + 100);
			host_pull(&p.a, PULL_ALL);
			wire_deliver_all(&p.a);
			assert_int_equal(host_pull(&p.b, PULL_ALL), 4);
			wire_move(&p.b, from, to);
			wire_deliver_all(&p.b);
			qp_link_drain(&p);
			/* the last response came too early */
			if (p.a.qp.req.una_idx != 1) {
				qp_link_advance(&p, TIMEOUT_NS);
				qp_link_drain(&p);
			}
			operation_check(READ, 1, 3 * 1024 + 100, 0);
			assert_true(p.a.stats.ack_timeouts <= 1);
			qp_link_fini(&p);
		}
	}
}

/* The responses of three READs and an atomic arrive in reverse order; then also each
 * twice. */
TEST(responses_in_reverse_order)
{
	for (unsigned twice = 0; twice < 2; twice++) {
		open_pair(PSN_A, 4);
		for (unsigned i = 0; i < 3; i++)
			host_read(&p.a, i, 0x4000 + 16 * i, REMOTE + 64 * i, 16);
		host_atomic(
			&p.a, 3, IBV_WR_ATOMIC_FETCH_AND_ADD, 0x6000, REMOTE + 512, 1, 0);
		host_pull(&p.a, PULL_ALL);
		wire_deliver_all(&p.a);
		assert_int_equal(host_pull(&p.b, PULL_ALL), 4);
		for (unsigned i = 0; i < 3; i++)
			wire_move(&p.b, 0, 3 - i);
		for (unsigned i = 0; i < 4 && twice != 0; i++)
			wire_dup(&p.b, 2 * i);
		wire_deliver_all(&p.b);
		for (unsigned i = 0; i < 8 && p.a.qp.req.una_idx != 4; i++) {
			qp_link_drain(&p);
			if (p.a.qp.req.una_idx != 4)
				qp_link_advance(&p, TIMEOUT_NS);
		}
		for (unsigned i = 0; i < 4; i++)
			expect_sent(&p.a, i, IBV_WC_SUCCESS);
		for (unsigned i = 0; i < 3; i++)
			assert_memory_equal(
				p.a.mem + 0x4000 + 16 * i, p.b.mem + REMOTE + 64 * i, 16);
		assert_int_equal(
			mem_word(&p.b, REMOTE + 512), mem_word(&p.a, 0x6000) + 1);
		qp_link_fini(&p);
	}
}

/* PSNs wrap inside each operation, and one frame of it or of its response is lost. */
static void
wrap_case(unsigned kind, uint32_t psn, unsigned lost, bool answer)
{
	uint64_t before;

	open_pair(psn, 4);
	before = mem_word(&p.b, REMOTE);
	operation_post(kind, 1, 3000);
	operation_post(kind == ADD ? READ : kind, 2, 8); /* a request behind it */
	host_pull(&p.a, PULL_ALL);
	if (!answer && lost < p.a.wire_count)
		wire_drop(&p.a, lost);
	wire_deliver_all(&p.a);
	host_pull(&p.b, PULL_ALL);
	if (answer && lost < p.b.wire_count)
		wire_drop(&p.b, lost);
	wire_deliver_all(&p.b);
	for (unsigned i = 0; i < 4; i++) {
		qp_link_drain(&p);
		if (p.a.qp.req.una_idx != 2)
			qp_link_advance(&p, TIMEOUT_NS);
	}
	expect_sent(&p.a, 1, IBV_WC_SUCCESS);
	if (kind == SEND)
		expect_received(&p.b, 1, 3000);
	operation_check(kind == ADD ? READ : kind, 2, 8, before);
	if (kind == ADD)
		assert_int_equal(mem_word(&p.b, REMOTE), before + 1);
	assert_int_equal(p.a.qp.req.una_psn, p.b.qp.resp.epsn);
	assert_true(p.a.qp.req.una_psn < 0x10);
	qp_link_fini(&p);
}

TEST(psn_wraps_inside_operation)
{
	for (unsigned kind = 0; kind < KINDS; kind++) {
		for (uint32_t before = 1; before < 4 && (kind != ADD || before < 3);
			before++) {
			for (unsigned lost = 0; lost < 5; lost++) {
				wrap_case(kind, PSN_MASK + 1 - before, lost, false);
				wrap_case(kind, PSN_MASK + 1 - before, lost, true);
			}
		}
	}
}

/* The MSN wraps: responses name 0 after 0xFFFFFF, and the requester completes. */
TEST(msn_wraps)
{
	open_pair(PSN_A, 4);
	p.b.qp.resp.msn = PSN_MASK - 1;
	for (unsigned i = 0; i < 6; i++) {
		unsigned kind = i % KINDS;
		uint64_t before = mem_word(&p.b, REMOTE);
		struct pkt_view v;

		operation_post(kind, i, 8);
		host_pull(&p.a, PULL_ALL);
		wire_deliver_all(&p.a);
		assert_int_equal(host_pull(&p.b, PULL_ALL), 1);
		v = wire_view(&p.b, 0);
		assert_int_equal(be24_get(view_aeth(&v)->msn), (PSN_MASK + i) & PSN_MASK);
		wire_deliver_all(&p.b);
		operation_check(kind, i, 8, before);
	}
	/* The response to a duplicate has the current MSN. */
	inject_request(&p.b, OPCODE_RC_SEND_ONLY, PSN_A, 8);
	assert_int_equal(host_pull(&p.b, PULL_ALL), 1);
	expect_ack(&p.b, 0, AETH_ACK, PSN_A + 1, 4);
	wire_drop_all(&p.b);
	qp_link_fini(&p);
}

/* More READs and atomics than responder resources: a duplicate of a forgotten one is
 * dropped, a duplicate of a remembered one is answered each time. */
TEST(forgotten_duplicate_is_dropped)
{
	struct pkt_spec c = {.ack_req = true, .dma_len = 8, .swap_add = 1};

	open_pair(PSN_A, 2);
	c.va = (uintptr_t)p.b.mem + REMOTE;
	c.rkey = p.b.rkey;
	for (unsigned i = 0; i < 5; i++) {
		c.psn = PSN_A + i;
		c.opcode = i % 2 ? OPCODE_RC_FETCH_ADD : OPCODE_RC_READ_REQUEST;
		inject(&p.b, &c);
		assert_int_equal(host_pull(&p.b, PULL_ALL), 1);
		wire_drop_all(&p.b);
	}
	for (unsigned round = 0; round < 3; round++) {
		for (unsigned i = 0; i < 5; i++) {
			uint64_t value = mem_word(&p.b, REMOTE);

			c.psn = PSN_A + i;
			c.opcode = i % 2 ? OPCODE_RC_FETCH_ADD : OPCODE_RC_READ_REQUEST;
			inject(&p.b, &c);
			assert_int_equal(host_pull(&p.b, PULL_ALL), i >= 3);
			if (i == 3) /* the value that the first one found */
				expect_response(&p.b, 0, OPCODE_RC_ATOMIC_ACKNOWLEDGE,
					c.psn, 5, value - 1);
			wire_drop_all(&p.b);
			assert_int_equal(mem_word(&p.b, REMOTE), value);
		}
	}
	assert_int_equal(qp_state(&p.b.qp), IBV_QPS_RTS);
	qp_link_fini(&p);
}

/* READ responses, atomic responses and all NAKs are sent without AckReq, too. A SEND or
 * WRITE without AckReq is not acknowledged. */
TEST(responses_without_ackreq)
{
	struct pkt_spec c = {.dma_len = 8, .swap_add = 1};

	open_pair(PSN_A, 4);
	host_recv(&p.b, 0, 0, 100);
	c.va = (uintptr_t)p.b.mem + REMOTE;
	c.rkey = p.b.rkey;
	c.psn = PSN_A;
	c.payload_len = 8;
	c.opcode = OPCODE_RC_WRITE_ONLY;
	inject(&p.b, &c);
	c.psn++;
	c.opcode = OPCODE_RC_SEND_ONLY;
	inject(&p.b, &c);
	assert_int_equal(host_pull(&p.b, PULL_ALL), 0);
	expect_received(&p.b, 0, 8);
	c.payload_len = 0;
	c.psn++;
	c.opcode = OPCODE_RC_READ_REQUEST;
	inject(&p.b, &c);
	c.psn++;
	c.opcode = OPCODE_RC_FETCH_ADD;
	inject(&p.b, &c);
	assert_int_equal(host_pull(&p.b, PULL_ALL), 2);
	expect_frame(&p.b, 0, OPCODE_RC_READ_RESPONSE_ONLY, PSN_A + 2, 0);
	expect_frame(&p.b, 1, OPCODE_RC_ATOMIC_ACKNOWLEDGE, PSN_A + 3, 0);
	wire_drop_all(&p.b);
	c.opcode = OPCODE_RC_SEND_ONLY;
	c.psn = PSN_A + 5;
	inject(&p.b, &c);
	assert_int_equal(host_pull(&p.b, PULL_ALL), 1);
	expect_ack(&p.b, 0, AETH_NAK_SEQ, PSN_A + 4, 4);
	wire_drop_all(&p.b);
	c.psn = PSN_A + 4; /* no receive */
	inject(&p.b, &c);
	assert_int_equal(host_pull(&p.b, PULL_ALL), 1);
	expect_ack(&p.b, 0, AETH_RNR_NAK | 12, PSN_A + 4, 4);
	wire_drop_all(&p.b);
	c.opcode = OPCODE_RC_SEND_MIDDLE;
	inject(&p.b, &c);
	assert_int_equal(host_pull(&p.b, PULL_ALL), 1);
	expect_ack(&p.b, 0, AETH_NAK_INV_REQ, PSN_A + 4, 4);
	wire_drop_all(&p.b);
	expect_event(&p.b, IBV_EVENT_QP_REQ_ERR);
	qp_link_fini(&p);
}
