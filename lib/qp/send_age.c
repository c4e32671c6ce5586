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
mark_time(const struct qp *qp, unsigned i, uint64_t now)
{
	uint32_t now_tick = (uint32_t)(now >> SEND_AGE_TICK_SHIFT);
	uint32_t ticks = now_tick - qp->sq.mark_tick[i];

	/* One that was set in this tick is at its end. */
	if ((int32_t)ticks < 0)
		return now;
	return ((now >> SEND_AGE_TICK_SHIFT) - ticks) << SEND_AGE_TICK_SHIFT;
}

static void
mark_set(struct qp *qp, unsigned i, uint32_t end, uint64_t when)
{
	qp->sq.mark_end[i] = end;
	qp->sq.mark_tick[i] =
		(uint32_t)((when + (UINT64_C(1) << SEND_AGE_TICK_SHIFT) - 1) >>
			   SEND_AGE_TICK_SHIFT);
}

/* Returns the first time known at which request idx was there; now: none is. */
static uint64_t
posted_since(const struct qp *qp, uint32_t idx, uint64_t now)
{
	for (unsigned i = 0; i < 2; i++) {
		if (mark_covers(qp, i, idx))
			return mark_time(qp, i, now);
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

/* The oldest unacknowledged request, and all before it, were there at `when`. */
static void
oldest_mark(struct qp *qp, uint64_t when)
{
	uint32_t freed = __atomic_load_n(&qp->sq.freed, __ATOMIC_ACQUIRE);
	uint32_t idx = qp->req.una_idx;
	uint64_t now = qp->shared->now;
	bool older[2];

	for (unsigned i = 0; i < 2; i++) {
		older[i] = mark_time(qp, i, now) <= when;
		if (older[i] && mark_covers(qp, i, idx))
			return;
	}
	mark_set(qp, older[0] && mark_covers(qp, 0, freed) ? 1 : 0, idx + 1, when);
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
		oldest_mark(qp, stands_since(qp, qp->shared->now));
}

void RARE
send_age_untimed(struct qp *qp, uint64_t now)
{
	oldest_mark(qp, now);
}

static uint64_t
unacked_since(const struct qp *qp, uint64_t now)
{
	return RTE_MIN(stands_since(qp, now), posted_since(qp, qp->req.una_idx, now));
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
	if (idx == qp->req.una_idx)
		since = RTE_MIN(since, unacked_since(qp, now));
	ages->unsignaled_ns = age(since, now);
}
