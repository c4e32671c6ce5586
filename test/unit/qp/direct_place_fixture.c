/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "direct_place_fixture.h"

#define UNTOUCHED 0xC3

struct qp_link p;
struct host *from, *to;
uint32_t mtu, len;

static uint32_t first_sge; /* bytes of the first SGE */
static uint8_t expected_mem[1 << 16];

int
direct_off(void **state)
{
	icrc_copy_min = UINT32_MAX;
	return 0;
}

int
direct_on(void **state)
{
	icrc_copy_min = ICRC_COPY_MIN;
	return 0;
}

/* Offset in the memory of `to` of the byte at this offset of the message. */
static uint32_t
mem_offset(uint32_t offset)
{
	return AT + offset + (offset < first_sge ? 0 : GUARD);
}

void
expect_changed(uint32_t offset, uint32_t n)
{
	uint32_t end = offset + n;

	for (; offset < end; offset++)
		expected_mem[mem_offset(offset)] = to->mem[mem_offset(offset)];
	assert_memory_equal(to->mem, expected_mem, sizeof(expected_mem));
}

/* Posts the requests of the message. */
static void
message_post(enum way way)
{
	struct sge list[2] = {host_sge(to, AT, first_sge),
		host_sge(to, mem_offset(first_sge), len - first_sge)};
	struct send_req req;
	struct sge sge;

	if (way == WAY_WRITE) {
		host_write(&p.a, 1, FROM, AT, len);
		return;
	}
	if (way == WAY_READ) {
		req = host_rdma(&p.a, &sge, 1, IBV_WR_RDMA_READ, AT, FROM, len);
		req.sge = list;
		req.num_sge = first_sge < len ? 2 : 1;
		assert_int_equal(host_post_send(&p.a, &req), 0);
		return;
	}
	list[0].lkey = list[1].lkey = to->recv_key;
	assert_int_equal(host_post_recv(&p.b, 2, list, first_sge < len ? 2 : 1), 0);
	host_send(&p.a, 1, FROM, len, IBV_SEND_SIGNALED);
}

void
direct_open(enum way way, const struct qp_link_conf *conf, uint32_t bytes, uint32_t cut)
{
	struct qp_link_conf own = *conf;

	own.srq = own.srq_pd = way == WAY_SRQ;
	qp_link_init(&p, &own);
	assert_int_equal(own.mem_bytes, sizeof(expected_mem));
	mtu = mtu_bytes(own.mtu);
	len = bytes;
	first_sge = cut != 0 ? cut : len;
	from = way == WAY_READ ? &p.b : &p.a;
	to = from->other;
	bytes_fill(from->mem + FROM, len, KEY);
	memset(to->mem, UNTOUCHED, sizeof(expected_mem));
	memset(expected_mem, UNTOUCHED, sizeof(expected_mem));
	message_post(way);
	host_pull(&p.a, PULL_ALL);
	if (way == WAY_READ) {
		wire_deliver_all(&p.a);
		host_pull(&p.b, PULL_ALL);
	}
	assert_int_equal(from->wire_count, (len + mtu - 1) / mtu);
}

void
direct_open_default(enum way way)
{
	struct qp_link_conf conf = qp_link_defaults_rdma();

	direct_open(way, &conf, (PACKETS - 1) * mtu_bytes(conf.mtu) + 100, 0);
}

void
direct_finish(enum way way)
{
	qp_link_drain(&p);
	qp_link_advance(&p, NS_PER_SEC);
	qp_link_drain(&p);
	expect_sent(&p.a, 1, IBV_WC_SUCCESS);
	if (way == WAY_SEND || way == WAY_SRQ)
		expect_received(&p.b, 2, len);
	for (uint32_t i = 0; i < len; i++)
		assert_int_equal(to->mem[mem_offset(i)], from->mem[FROM + i]);
	expect_changed(0, len);
	qp_link_fini(&p);
}

struct check_result
frame_check(const struct frame *frame)
{
	struct pkt pkt = {.data = malloc(frame->len),
		.len = (uint16_t)frame->len,
		.room = (uint16_t)frame->len};
	static struct qp before;
	struct pkt_view view;
	struct check_result result;

	assert_non_null(pkt.data);
	memcpy(pkt.data, frame->data, frame->len);
	memcpy(&before, &to->qp, sizeof(before));
	assert_int_equal(pkt_parse_headers(&pkt, 0, &view), DROP_none);
	assert_false(view.payload_placed);
	result.icrc_ok = qp_icrc_check(&to->qp, &view);
	result.payload_placed = view.payload_placed;
	assert_memory_equal(&before, &to->qp, sizeof(before));
	assert_memory_equal(pkt.data, frame->data, frame->len);
	free(pkt.data);
	return result;
}
