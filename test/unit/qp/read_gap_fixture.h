/* SPDX-License-Identifier: BSD-3-Clause */
/* Two QPs, the first of which keeps READ responses behind a missing one (docs/protocol.md
 * 7.10). */
#ifndef ROCADE_TEST_QP_READ_GAP_FIXTURE_H
#define ROCADE_TEST_QP_READ_GAP_FIXTURE_H

#include <endian.h>
#include <string.h>

#include "qp/read_gap.h"
#include "read_fixture.h"

#define MTU 1024
#define US NS_PER_US

static struct txmaps maps;

/* any: the peer sends selective acknowledgements, so several ranges are requested at once. */
static inline void
gap_open(uint8_t depth, bool any)
{
	read_init_receives(depth);
	memset(p.a.mem, UNTOUCHED, 0x7000);
	assert_int_equal(txmaps_init(&maps), 0);
	p.a.shared.txmaps = p.b.shared.txmaps = &maps;
	p.a.peer.extensions = any ? EXT_SACK : 0;
}

/* a reads this many packets of b to the start of its memory. */
static inline void
gap_read(unsigned packets)
{
	host_read(&p.a, 0, 0, REMOTE, packets * MTU);
	host_pull(&p.a, PULL_ALL);
	wire_deliver_all(&p.a);
}

/* Delivers what b sends 10 us later, but for the packets of the mask. */
static inline void
gap_respond(unsigned n, uint64_t lost)
{
	assert_int_equal(host_pull(&p.b, PULL_ALL), n);
	for (unsigned i = n; i-- != 0;) {
		if ((lost >> i & 1) != 0)
			wire_drop(&p.b, i);
	}
	qp_link_advance(&p, 10 * US);
	wire_deliver_all(&p.b);
}

/* The frame at this position is a request of a for these packets of the READ. */
static inline void
expect_request(unsigned index, unsigned from, unsigned packets)
{
	struct pkt_view v = wire_view(&p.a, index);

	expect_frame(&p.a, index, OPCODE_RC_READ_REQUEST, PSN_A + from, 1);
	assert_int_equal(be64toh(view_reth(&v)->va), read_va(from * MTU));
	assert_int_equal(be32toh(view_reth(&v)->len), packets * MTU);
}

/* All of the READ has come, and nothing is under way. */
static inline void
expect_read(unsigned packets)
{
	expect_sent(&p.a, 0, IBV_WC_SUCCESS);
	assert_memory_equal(p.a.mem, p.b.mem + REMOTE, packets * MTU);
	assert_int_equal(p.a.mem[packets * MTU], UNTOUCHED);
	assert_false(p.a.qp.req.missing);
	assert_int_equal(p.a.qp.req.reads, 0);
	assert_int_equal(p.a.qp.req.reading, 0);
	assert_int_equal(p.a.peer.read.inflight + p.a.peer.send.inflight, 0);
	assert_int_equal(p.a.stats.ack_timeouts, 0);
}

static inline void
gap_close(void)
{
	qp_link_fini_discard(&p);
	txmaps_fini(&maps);
}

#endif
