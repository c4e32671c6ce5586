/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/*
 * How long a QP's send requests have been there. No request has a timestamp, and no packet pays for
 * one: while the ACK timer has not expired, it shows when una_psn became the oldest unacknowledged
 * packet, and the QP's timer, which fires a while after each burst, notes how far the program had
 * posted. Both give a time at which a request was there already, so the ages are lower bounds.
 * docs/verbs.md, "Unsignaled sends", has what a program may conclude. With the engine lock held.
 */
#ifndef ROCADE_QP_SEND_AGE_H
#define ROCADE_QP_SEND_AGE_H

#include "qp/qp.h"

/* In nanoseconds; 0: there is no such request. */
struct send_ages {
	/* of the oldest unacknowledged request: at least as long as una_psn has not moved */
	uint64_t unacked_ns;
	/* of the oldest unsignaled request that holds its slot */
	uint64_t unsignaled_ns;
};

/* Marks are rounded up to a tick of 1.05 ms. An age wraps around after 26 days. */
#define SEND_AGE_TICK_SHIFT 20

/* Of more requests than this that hold their slots only the oldest ones are looked at: a report looks
 * at all QPs, with the engine locks held. */
#define SEND_AGE_SCAN 256

/* The ACK timer is about to be stopped or moved although una_psn has not advanced. */
void send_age_keep(struct qp *qp);
/* Notes how far the program has posted. */
void send_age_mark(struct qp *qp, uint64_t now);

/* The QP's timer has fired. While it goes on, it will again. */
static inline void
send_age_timer(struct qp *qp, uint64_t now)
{
	if (qp_deadline(qp) == TIME_NEVER ||
		(int32_t)((uint32_t)(now >> SEND_AGE_TICK_SHIFT) - qp->sq.mark_tick[1]) >
			0)
		send_age_mark(qp, now);
}

/* Also notes that: a request that has met no timer yet counts from the first call that finds it. */
void send_ages(struct qp *qp, uint64_t now, struct send_ages *ages);

#endif
