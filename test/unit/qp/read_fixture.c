/* SPDX-License-Identifier: BSD-3-Clause */
#include <endian.h>
#include <string.h>

#include "read_fixture.h"

struct qp_link p;

void
read_init(uint8_t max_rd, uint8_t max_dest)
{
	struct qp_link_conf conf = qp_link_defaults_rdma();

	conf.max_rd = max_rd;
	conf.max_dest_rd = max_dest;
	qp_link_init(&p, &conf);
	bytes_fill(p.b.mem + REMOTE, 0x8000, 1);
}

void
read_init_receives(uint8_t depth)
{
	read_init(depth, depth);
	for (unsigned i = 0; i < 8; i++)
		host_recv(&p.b, i, 0x1000, 8);
}

void
inject_read(uint32_t psn, uint64_t va, uint32_t rkey, uint32_t len)
{
	inject(&p.b, &(struct pkt_spec){.opcode = OPCODE_RC_READ_REQUEST,
			     .psn = psn,
			     .ack_req = true,
			     .va = va,
			     .rkey = rkey,
			     .dma_len = len});
}

uint64_t
read_va(uint32_t offset)
{
	return (uintptr_t)p.b.mem + REMOTE + offset;
}

/* ---- Selective repeat ---- */

static struct hold_arena arena;

void
sr_open(uint8_t max_rd)
{
	read_init_receives(max_rd);
	assert_int_equal(hold_arena_init(&arena), 0);
	p.a.shared.hold = p.b.shared.hold = &arena;
	memset(p.a.mem, UNTOUCHED, REMOTE);
}

void
sr_fini(void)
{
	qp_link_fini_discard(&p);
	hold_arena_fini(&arena);
}

void
sr_close(void)
{
	assert_false(p.a.qp.req.read_gap);
	assert_int_equal(p.a.qp.sq.read_placed[0] | p.a.qp.sq.read_placed[1], 0);
	sr_fini();
}

void
read_post(uint64_t wr_id, unsigned first, unsigned packets)
{
	host_read(&p.a, wr_id, 1024 * first, REMOTE + 1024 * first, 1024 * packets);
}

void
requests_pull(unsigned n)
{
	assert_int_equal(host_pull(&p.a, PULL_ALL), n);
	wire_deliver_all(&p.a);
}

void
responses_deliver(unsigned n, unsigned lost)
{
	assert_int_equal(host_pull(&p.b, PULL_ALL), n);
	for (unsigned i = 0; i < n; i++) {
		if (lost >> i & 1)
			wire_drop(&p.b, 0);
		else
			wire_deliver(&p.b, 0);
	}
}

void
expect_request(unsigned first, unsigned packets)
{
	struct pkt_view v;

	assert_int_equal(host_pull(&p.a, PULL_ALL), 1);
	expect_frame(&p.a, 0, OPCODE_RC_READ_REQUEST, psn_add(PSN_A, first), 1);
	v = wire_view(&p.a, 0);
	assert_int_equal(be64toh(view_reth(&v)->va), read_va(1024 * first));
	assert_int_equal(be32toh(view_reth(&v)->len), 1024 * packets);
	wire_deliver_all(&p.a);
}

void
expect_silence(void)
{
	assert_int_equal(host_pull(&p.a, PULL_ALL), 0);
}

void
expect_data(unsigned packets)
{
	assert_memory_equal(p.a.mem, p.b.mem + REMOTE, 1024 * packets);
	assert_int_equal(p.a.mem[1024 * packets], UNTOUCHED);
}

void
expect_request_at(unsigned n, unsigned first, unsigned packets)
{
	struct pkt_view v = wire_view(&p.a, n);

	expect_frame(&p.a, n, OPCODE_RC_READ_REQUEST, psn_add(PSN_A, first), 1);
	assert_int_equal(be64toh(view_reth(&v)->va), read_va(1024 * first));
	assert_int_equal(be32toh(view_reth(&v)->len), 1024 * packets);
}
