/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of what a thread's poll of the engine sends, and what its posts send. */
#ifndef POLL_FIXTURE_H
#define POLL_FIXTURE_H

#include "engine_link.h"
#include "test_clock.h"

#define QPS 2

static struct engine_link fixture;
static struct link_qp a[QPS], b[QPS];
static uint64_t wr;

static inline struct engine *
engine(void)
{
	return fixture.a.dev->engines[0];
}

static inline void
link_open(const struct engine_link_conf *conf, const struct link_qp_conf *qp)
{
	engine_link_init(&fixture, conf);
	test_clock = &fixture.now;
	link_qps_create(&fixture, a, b, QPS, qp);
	wr = 0;
}

/* Returns how many frames the poll has sent. */
static inline unsigned
poll(void)
{
	unsigned before = fake_sent_count(&fixture.a.port);

	engine_poll(engine());
	return fake_sent_count(&fixture.a.port) - before;
}

#endif
