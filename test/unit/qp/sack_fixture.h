/* SPDX-License-Identifier: BSD-3-Clause */
/* Two QPs that have agreed on selective acknowledgements (docs/protocol.md 20.4 to 20.6). */
#ifndef ROCADE_TEST_SACK_FIXTURE_H
#define ROCADE_TEST_SACK_FIXTURE_H

#include "hold_fixture.h"
#include "qp/sack.h"

static struct txmaps maps;

static inline void
open_pair(const struct qp_link_conf *conf)
{
	hold_open(conf);
	assert_int_equal(txmaps_init(&maps), 0);
	p.a.shared.txmaps = p.b.shared.txmaps = &maps;
	p.a.shared.read_gap_off = true;
	p.a.peer.extensions = p.b.peer.extensions = EXT_SACK;
	p.a.qp.sacks = true;
}

static inline void
open_default(void)
{
	struct qp_link_conf conf = qp_link_defaults_rdma();

	open_pair(&conf);
}

static inline void
close_pair(void)
{
	assert_false(p.a.qp.req.missing);
	hold_close();
	txmaps_fini(&maps);
}

/* As close_pair(), with requests under way. */
static inline void
close_discard(void)
{
	qp_link_fini_discard(&p);
	hold_arena_fini(&arena);
	txmaps_fini(&maps);
}

/* The frame at this position is a SACK of b with this ePSN, echo and map of the first 64
 * packets. The others are not held. */
static inline void
expect_sack_at(unsigned index, uint32_t epsn, uint32_t echo, uint64_t map)
{
	static const uint8_t none[8];
	struct pkt_view v = wire_view(&p.b, index);
	const struct seth *seth;

	assert_int_equal(v.opcode, OPCODE_SACK);
	assert_int_equal(v.dest_qpn, p.a.qp.qpn);
	assert_int_equal(v.psn, epsn);
	assert_int_equal(v.payload_len, 0);
	assert_false(v.ack_req || v.solicited);
	seth = view_seth(&v);
	assert_int_equal(seth->version, SETH_VERSION << 4);
	assert_int_equal(be24_get(seth->echo), echo);
	for (unsigned i = 0; i < 8; i++)
		assert_int_equal(seth->map[i], (uint8_t)(map >> 8 * i));
	assert_memory_equal(seth->map + 8, none, sizeof(none));
}

#endif
