/* SPDX-License-Identifier: BSD-3-Clause */
/* Two QPs whose responders hold packets behind a missing one (docs/protocol.md 8.10). */
#ifndef ROCADE_TEST_HOLD_FIXTURE_H
#define ROCADE_TEST_HOLD_FIXTURE_H

#include <string.h>

#include "qp/hold.h"
#include "qp_link.h"

static struct qp_link p;
static struct hold_arena arena;
static unsigned posted, received; /* SENDs of a */

static inline void
hold_open(const struct qp_link_conf *conf)
{
	qp_link_init(&p, conf);
	assert_int_equal(hold_arena_init(&arena), 0);
	p.a.shared.hold = p.b.shared.hold = &arena;
	bytes_fill(p.a.mem, 0x8000, 1);
	posted = received = 0;
}

static inline void
hold_close(void)
{
	assert_true(TAILQ_EMPTY(&arena.waiting));
	qp_link_fini(&p);
	hold_arena_fini(&arena);
}

/* ---- The responder ---- */

static inline void
post_receives(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		host_recv(&p.b, i, 1024 * i, 1024);
}

/* Injects a SEND of 8 bytes, the nth packet. */
static inline void
inject_nth(unsigned n, bool ack_req)
{
	inject(&p.b, &(struct pkt_spec){.opcode = OPCODE_RC_SEND_ONLY,
			     .psn = psn_add(p.conf.psn[0], n),
			     .payload_len = 8,
			     .payload_key = n,
			     .ack_req = ack_req});
}

/* ---- Both ---- */

/* Delivers what a has sent 10 us later, but for the packets of the mask. */
static inline void
deliver_but(uint64_t lost)
{
	for (unsigned i = p.a.wire_count; i-- != 0;) {
		if (i < 64 && (lost >> i & 1) != 0)
			wire_drop(&p.a, i);
	}
	qp_link_advance(&p, 10 * NS_PER_US);
	wire_deliver_all(&p.a);
}

/* Posts n SENDs of 8 bytes and their receives, and loses those of the mask. */
static inline void
send_and_lose(unsigned n, uint64_t lost)
{
	for (unsigned i = 0; i < n; i++) {
		host_recv(&p.b, posted, 0, 1024);
		host_send(&p.a, posted++, 0, 8, i + 1 == n ? IBV_SEND_SIGNALED : 0);
	}
	assert_int_equal(host_pull(&p.a, PULL_ALL), n);
	deliver_but(lost);
}

/* Delivers b's n responses. */
static inline void
respond(unsigned n)
{
	assert_int_equal(host_pull(&p.b, PULL_ALL), n);
	wire_deliver_all(&p.b);
}

/* All that was sent has been received, once and in order, and completed. */
static inline void
expect_all(void)
{
	struct cqe cqe;

	while (received != posted)
		expect_received(&p.b, received++, 8);
	while (host_poll(&p.a, &p.a.send_cq, &cqe))
		assert_int_equal(cqe.status, IBV_WC_SUCCESS);
	assert_int_equal(p.a.qp.req.una_idx, posted);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 0);
	assert_false(p.a.qp.req.missing);
	assert_int_equal(p.a.peer.send.inflight, 0);
	assert_int_equal(p.a.stats.ack_timeouts, 0);
}

#endif
