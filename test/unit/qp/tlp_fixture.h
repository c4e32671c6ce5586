/* SPDX-License-Identifier: BSD-3-Clause */
/* Steps of the tests of the tail-loss probe. */
#ifndef TLP_FIXTURE_H
#define TLP_FIXTURE_H

#include "qp_link.h"

static struct qp_link p;

#define TIMEOUT_NS (UINT64_C(4096) << 14)
#define US NS_PER_US

static inline void
init(void)
{
	struct qp_link_conf conf = qp_link_defaults_rdma();

	qp_link_init(&p, &conf);
	for (unsigned i = 0; i < 32; i++)
		host_recv(&p.b, i, 0x1000, 100);
}

/* Sends n SENDs with wr_ids from first on, which stay on the wire. */
static inline void
send_signaled(uint64_t first, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		host_send(&p.a, first + i, 0, 8, IBV_SEND_SIGNALED);
	assert_int_equal(host_pull(&p.a, PULL_ALL), n);
}

/* Delivers what is on the wire, and the answers. */
static inline void
deliver(void)
{
	wire_deliver_all(&p.a);
	host_pull(&p.b, PULL_ALL);
	wire_deliver_all(&p.b);
}

/* Sends one SEND and delivers its ACK rtt_ns later. */
static inline void
round_trip(uint64_t wr_id, uint64_t rtt_ns)
{
	send_signaled(wr_id, 1);
	p.now += rtt_ns;
	deliver();
	expect_sent(&p.a, wr_id, IBV_WC_SUCCESS);
}

/* Sends a SEND, which is lost. */
static inline void
send_lost(uint64_t wr_id)
{
	send_signaled(wr_id, 1);
	wire_drop_all(&p.a);
}

/* Expects no frame until wait has passed. */
static inline void
expect_silence(uint64_t wait)
{
	qp_link_advance(&p, wait);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 0);
}

/* Expects no frame until wait has passed, and then one frame with this PSN. */
static inline void
expect_resend(uint64_t wait, uint32_t psn)
{
	expect_silence(wait - 1);
	qp_link_advance(&p, 1);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 1);
	expect_frame(&p.a, 0, OPCODE_RC_SEND_ONLY, psn, 1);
}

#endif
