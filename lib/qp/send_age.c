/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
#include "qp/qp_state.h"
#include "qp/send_age.h"

/* True if a started request is not acknowledged. Of UC and UD QPs none is. */
static bool
any_unacked(const struct qp *qp)
{
	return qp->req.una_idx != qp->req.started_idx;
}

/* ---- Marks: at a time the requests before an index had been posted ---- */

/* True if request idx was posted before the mark. A mark that is further back than the queue is long
 * says nothing of the requests that are in it now. */
static bool
mark_covers(const struct qp *qp, unsigned i, uint32_t idx)
{
	uint32_t behind = qp->sq.mark_end[i] - idx;

	return behind != 0 && behind <= qp->sq.max_wr;
}

static uint64_t
tick_time(uint32_t tick, uint64_t now)
{
	uint32_t ticks = (uint32_t)(now >> SEND_AGE_TICK_SHIFT) - tick;

	/* One that was set in this tick is at its end. */
	if ((int32_t)ticks < 0)
		return now;
	return ((now >> SEND_AGE_TICK_SHIFT) - ticks) << SEND_AGE_TICK_SHIFT;
}

/* Rounds up. */
static uint32_t
tick_of(uint64_t when)
{
	return (uint32_t)((when + (UINT64_C(1) << SEND_AGE_TICK_SHIFT) - 1) >>
			  SEND_AGE_TICK_SHIFT);
}

static void
mark_set(struct qp *qp, unsigned i, uint32_t end, uint64_t when)
{
	qp->sq.mark_end[i] = end;
	qp->sq.mark_tick[i] = tick_of(when);
}

/* Returns the first time known at which request idx was there; now: none is. */
static uint64_t
posted_since(const struct qp *qp, uint32_t idx, uint64_t now)
{
	for (unsigned i = 0; i < 2; i++) {
		if (mark_covers(qp, i, idx))
			return tick_time(qp->sq.mark_tick[i], now);
	}
	return now;
}

void RARE
send_age_mark(struct qp *qp, uint64_t now)
{
	struct sq *sq = &qp->sq;
	uint32_t freed, posted;

	/* freed first: it never exceeds what is posted then. Pairs with the release in
	 * sq_free(). */
	freed = __atomic_load_n(&sq->freed, __ATOMIC_ACQUIRE);
	posted = sq_posted(sq);
	if (posted == freed || sq->mark_end[1] == posted)
		return;
	/* The older mark is kept while it covers the oldest request. */
	if (!mark_covers(qp, 0, freed)) {
		if (mark_covers(qp, 1, freed)) {
			sq->mark_end[0] = sq->mark_end[1];
			sq->mark_tick[0] = sq->mark_tick[1];
		} else {
			mark_set(qp, 0, posted, now);
		}
	}
	mark_set(qp, 1, posted, now);
}

/* ---- The oldest unacknowledged request alone: its time holds until una_idx advances ---- */

static bool
oldest_is_known(const struct qp *qp)
{
	return qp->sq.oldest_end == qp->req.una_idx + 1;
}

static void
oldest_note(struct qp *qp, uint64_t when)
{
	if (oldest_is_known(qp))
		return;
	qp->sq.oldest_end = qp->req.una_idx + 1;
	qp->sq.oldest_tick = tick_of(when);
}

/* ---- The ACK timer ---- */

/* Returns when una_psn became the oldest unacknowledged packet, if the ACK timer shows that. */
static uint64_t
stands_since(const struct qp *qp, uint64_t now)
{
	if (!any_unacked(qp) || qp->req.ack_deadline == TIME_NEVER)
		return now;
	return qp->req.ack_deadline - req_timeout_ns(qp);
}

void RARE
send_age_keep(struct qp *qp)
{
	/* The timer does not run while packets that were acknowledged late are to be sent again:
	 * una_psn has just advanced. */
	if (any_unacked(qp))
		oldest_note(qp, stands_since(qp, qp->shared->now));
}

static uint64_t
unacked_since(const struct qp *qp, uint64_t now)
{
	uint64_t since =
		RTE_MIN(stands_since(qp, now), posted_since(qp, qp->req.una_idx, now));

	return oldest_is_known(qp) ? RTE_MIN(since, tick_time(qp->sq.oldest_tick, now))
				   : since;
}

/* ---- Ages ---- */

static bool
is_signaled(const struct qp *qp, uint32_t idx)
{
	/* The program may overwrite a WQE as soon as a completion has been polled. */
	if ((int32_t)(idx - qp->req.started_idx) < 0)
		return (sq_psn_range(&qp->sq, idx)->end & PSN_RANGE_SIGNALED) != 0;
	return (sq_slot(&qp->sq, idx)->flags & IBV_SEND_SIGNALED) != 0;
}

/* Returns an age that shows that there is a request. */
static uint64_t
age(uint64_t since, uint64_t now)
{
	return since < now ? now - since : 1;
}

void
send_ages(struct qp *qp, uint64_t now, struct send_ages *ages)
{
	uint32_t idx, posted;
	uint64_t since;

	*ages = (struct send_ages){0};
	send_age_mark(qp, now);
	if (any_unacked(qp)) /* without an ACK timer it counts from the first look */
		oldest_note(qp, stands_since(qp, now));
	idx = __atomic_load_n(&qp->sq.freed, __ATOMIC_ACQUIRE);
	posted = sq_posted(&qp->sq);
	if (qp->req.una_idx != posted)
		ages->unacked_ns = age(unacked_since(qp, now), now);
	if ((qp->sq.always & IBV_SEND_SIGNALED) != 0)
		return;
	posted = RTE_MIN(posted - idx, (uint32_t)SEND_AGE_SCAN) + idx;
	while (idx != posted && is_signaled(qp, idx))
		idx++;
	if (idx == posted)
		return;
	since = posted_since(qp, idx, now);
	/* It was posted before the oldest unacknowledged one, or is that. */
	if (ages->unacked_ns != 0 && (int32_t)(idx - qp->req.una_idx) <= 0)
		since = RTE_MIN(since, unacked_since(qp, now));
	ages->unsignaled_ns = age(since, now);
}
