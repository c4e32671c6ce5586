/* SPDX-License-Identifier: BSD-3-Clause */
/* A link with congestion control at host a. */
#ifndef CONGESTION_FIXTURE_H
#define CONGESTION_FIXTURE_H

#include "qp/congestion.h"
#include "qp/window.h"
#include "qp_link.h"

#define US NS_PER_US
#define MTU 1024

static struct qp_link p;

/* max_rd: max_rd_atomic; 0: the default */
static inline void
init_reads(uint8_t max_rd)
{
	struct qp_link_conf conf = qp_link_defaults_rdma();

	if (max_rd != 0)
		conf.max_rd = conf.max_dest_rd = max_rd;
	conf.cc = true;
	conf.peer_window = 512;
	qp_link_init(&p, &conf);
	for (unsigned i = 0; i < 32; i++)
		host_recv(&p.b, i, 0x1000, 100);
}

static inline void
init(void)
{
	init_reads(0);
}

static inline double
window(void)
{
	return (double)p.a.peer.send_cc.cwnd / CC_ONE;
}

static inline void
writes_post(unsigned n, uint32_t packets)
{
	for (unsigned i = 0; i < n; i++)
		host_write(&p.a, i, 0, 0, packets * MTU);
}

/* The ACKs of what a has sent come back after this time, all of it in the network. */
static inline void
acks_return(uint64_t rtt_ns)
{
	p.now += rtt_ns;
	p.a.shared.polled_ns = p.now;
	wire_deliver_all(&p.a);
	host_pull(&p.b, PULL_ALL);
	wire_deliver_all(&p.b);
}

static inline void
fini(void)
{
	struct cqe cqe;

	while (host_poll(&p.a, &p.a.send_cq, &cqe))
		;
	qp_link_fini_discard(&p);
}

#endif
