/* SPDX-License-Identifier: BSD-3-Clause */
/* The congestion window of TCP CUBIC (RFC 9438): how many segments may be in flight. */
#ifndef ROCADE_FABRIC_CUBIC_H
#define ROCADE_FABRIC_CUBIC_H

#include <stdint.h>

#define CUBIC_FIRST 10 /* segments of the first window (RFC 6928) */
#define CUBIC_C 0.4    /* segments per cubic second */
#define CUBIC_BETA 0.7 /* what a loss leaves of the window */

struct cubic {
	double cwnd, ssthresh; /* segments */
	double w_max; /* where the curve is flat; 0: where the next stage begins */
	double prior; /* the window before the last loss */
	/* Congestion avoidance: a stage lasts from one loss to the next. */
	uint64_t epoch; /* its begin, in picoseconds; 0: not begun */
	double k;       /* seconds from there until the curve is at w_max */
	double w_est;   /* what Reno's window would be */
};

void cubic_init(struct cubic *c);
/* This number of segments was acknowledged, while the window was full. rtt: picoseconds. */
void cubic_acked(struct cubic *c, double segments, uint64_t rtt, uint64_t now);
/* The first loss of a round trip. */
void cubic_lost(struct cubic *c);
/* A retransmission timeout. */
void cubic_timeout(struct cubic *c);

#endif
