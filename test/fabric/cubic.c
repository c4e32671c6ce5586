/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>

#include "cubic.h"

#define PS_PER_S 1e12
#define LEAST 2 /* segments, after a loss */
/* Growth of Reno's window in a round trip, with which it takes as much as one that is halved. */
#define ALPHA (3 * (1 - CUBIC_BETA) / (1 + CUBIC_BETA))

void
cubic_init(struct cubic *c)
{
	*c = (struct cubic){.cwnd = CUBIC_FIRST, .ssthresh = INFINITY};
}

static double
larger(double a, double b)
{
	return a > b ? a : b;
}

static void
stage_begin(struct cubic *c, uint64_t now)
{
	c->epoch = now;
	c->w_max = larger(c->w_max, c->cwnd);
	c->k = cbrt((c->w_max - c->cwnd) / CUBIC_C);
	c->w_est = c->cwnd;
}

static double
curve(const struct cubic *c, double seconds)
{
	double t = seconds - c->k;

	return CUBIC_C * t * t * t + c->w_max;
}

void
cubic_acked(struct cubic *c, double segments, uint64_t rtt, uint64_t now)
{
	double t, target;

	if (c->cwnd < c->ssthresh) { /* slow start */
		c->cwnd += segments;
		return;
	}
	if (c->epoch == 0)
		stage_begin(c, now);
	t = (double)(now - c->epoch) / PS_PER_S;
	c->w_est += (c->w_est < c->prior ? ALPHA : 1) * segments / c->cwnd;
	if (curve(c, t) < c->w_est) {
		c->cwnd = larger(c->cwnd, c->w_est);
		return;
	}
	target = curve(c, t + (double)rtt / PS_PER_S);
	target = fmin(larger(target, c->cwnd), 1.5 * c->cwnd);
	c->cwnd += segments * (target - c->cwnd) / c->cwnd;
}

void
cubic_lost(struct cubic *c)
{
	/* A window that has not come back to w_max leaves room for a new flow. */
	c->w_max = c->cwnd < c->w_max ? c->cwnd * (1 + CUBIC_BETA) / 2 : c->cwnd;
	c->prior = c->cwnd;
	c->cwnd = c->ssthresh = larger(c->cwnd * CUBIC_BETA, LEAST);
	c->epoch = 0;
}

void
cubic_timeout(struct cubic *c)
{
	c->prior = c->cwnd;
	c->ssthresh = larger(c->cwnd * CUBIC_BETA, LEAST);
	c->cwnd = 1;
	c->w_max = 0;
	c->epoch = 0;
}
