/* SPDX-License-Identifier: BSD-3-Clause */
/* Two QPs that spread their packets over several UDP source ports (docs/protocol.md 20.7). */
#ifndef ROCADE_TEST_MULTIPATH_FIXTURE_H
#define ROCADE_TEST_MULTIPATH_FIXTURE_H

#include "qp/multipath.h"
#include "sack_fixture.h"

#define PATHS 4
#define RTT (10 * NS_PER_US)
#define LATE (4 * RTT)

static struct multipaths multipaths;

static inline void
time_set(void)
{
	p.a.shared.now = p.b.shared.now = p.now;
}

static inline void
pass(uint64_t ns)
{
	qp_link_advance(&p, ns);
	time_set();
}

static inline void
attach(struct host *h)
{
	h->shared.multipaths = &multipaths;
	multipath_attach(&h->qp);
	assert_int_not_equal(h->qp.multipath, 0);
	multipath_reset(&h->qp);
}

/* Opens the pair with several paths at both ends. */
static inline void
open_unmeasured(const struct qp_link_conf *conf)
{
	open_pair(conf);
	assert_int_equal(multipaths_init(&multipaths, PATHS), 0);
	time_set();
	attach(&p.a);
	if (p.b.qp.type == IBV_QPT_RC)
		attach(&p.b);
}

/* The same, and a has measured a round trip of 10 us. Its next packet takes path 1. */
static inline void
open_paths(void)
{
	struct qp_link_conf conf = qp_link_defaults_rdma();

	open_unmeasured(&conf);
	send_and_lose(1, 0);
	respond(1);
	expect_all();
	assert_int_equal(p.a.qp.req.srtt_ns, RTT);
}

static inline void
close_paths(void)
{
	multipath_detach(&p.a.qp);
	multipath_detach(&p.b.qp);
	multipaths_fini(&multipaths);
	close_pair();
}

/* The source port of the frame. */
static inline uint16_t
port_of(const struct host *h, unsigned index)
{
	const uint8_t *udp = h->wire[index].data + h->qp.hdr.len - 8;

	return (uint16_t)(udp[0] << 8 | udp[1]);
}

static inline uint16_t
path_port(const struct host *h, unsigned path)
{
	const uint8_t *udp = h->qp.hdr.bytes + h->qp.hdr.len - 8;

	return (uint16_t)((udp[0] << 8 | udp[1]) ^
			  multipath_of(&h->qp)->path[path].flip.port);
}

/* Posts n SENDs and receives. They are sent, and are on the wire. */
static inline void
send_some(unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		host_recv(&p.b, posted, 0, 1024);
		host_send(&p.a, posted++, 0, 8, i + 1 == n ? IBV_SEND_SIGNALED : 0);
	}
	assert_int_equal(host_pull(&p.a, PULL_ALL), n);
}

/* Delivers the frames of the mask a round trip later. The others stay on the wire. */
static inline void
deliver_only(uint32_t mask)
{
	unsigned gone = 0;

	pass(RTT);
	for (unsigned i = 0; i < 32; i++) {
		if (mask >> i & 1)
			wire_deliver(&p.a, i - gone++);
	}
}

/* Drops what a has sent. */
static inline void
lose(unsigned n)
{
	assert_int_equal(p.a.wire_count, n);
	wire_drop_all(&p.a);
}

#endif
