/* SPDX-License-Identifier: BSD-3-Clause */
/* Steps of the tests of congestion control on the object alone. Time is an argument. */
#ifndef CC_FIXTURE_H
#define CC_FIXTURE_H

#include <errno.h>
#include <math.h>
#include <stdint.h>

#include "case.h"
#include "qp/cc_target.h"

#define US 1000u
#define CAP 512
#define BASE_US 9 /* round trip of an empty network, unless a test says otherwise */

static struct cc cc;
static uint64_t now;

/* A measured packet is sent. */
static inline void
packet_sent(void)
{
	cc_resume(&cc, now);
	cc.active_at = now;
}

static inline void
init(const struct cc_conf *conf)
{
	now = NS_PER_SEC;
	cc_init(&cc, conf, CAP);
	packet_sent();
}

static inline int
setup(void **state)
{
	init(&(struct cc_conf){.on = true});
	return 0;
}

/* A round trip, in which the whole window was used. */
static inline enum cc_cut
round_trip_ns(uint32_t delay_ns)
{
	struct cc_sample s = {
		.delay_ns = delay_ns, .rtt_ns = delay_ns, .packets = cc_window(&cc)};

	now += delay_ns;
	return cc_sample(&cc, &s, now);
}

static inline enum cc_cut
round_trip(uint32_t us)
{
	return round_trip_ns(us * US);
}

static inline void
round_trips(unsigned n, uint32_t us)
{
	for (unsigned i = 0; i < n; i++)
		round_trip(us);
}

/* Slow start has ended, and the window is this. */
static inline void
window_set(double packets)
{
	cc.slow_start = false;
	cc.cwnd = (uint32_t)lround(packets * CC_ONE);
}

static inline void
expect_window(double packets)
{
	assert_in_range(cc.cwnd, lround((packets - 0.02) * CC_ONE),
		lround((packets + 0.02) * CC_ONE));
}

#endif
