/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
#include "qp/req_time.h"
#include "qp/wr_row.h"
#include "wire/psn.h"

static_assert(LATENCY_OP_send == 0 && LATENCY_OP_read == WR_READ - WR_SEND &&
		      LATENCY_OP_flush == WR_FLUSH - WR_SEND,
	"operations are in the order of enum wr_kind");

static inline enum latency_type
type_of(const struct qp *qp)
{
	return qp->type == IBV_QPT_RC   ? LATENCY_TYPE_RC
	       : qp->type == IBV_QPT_UC ? LATENCY_TYPE_UC
					: LATENCY_TYPE_XRC;
}

static inline uint64_t
since(uint64_t then, uint64_t now)
{
	/* The pass of a post may begin before an earlier one that read the clock
	 * later. */
	return likely(now > then) ? now - then : 0;
}

/* The part of a request that waits for nothing else that is known. No peer answers UC
 * requests. */
static inline enum slow_part
usual_part(const struct qp *qp, const struct req_place *place)
{
	return place->start_ns != 0 && qp->type != IBV_QPT_UC ? SLOW_answer : SLOW_queue;
}

/* ---- The split ---- */

/* The port may have taken nothing while the request had something to send, or something
 * on the way. */
static bool
port_counts(enum slow_part part)
{
	return part != SLOW_window && part != SLOW_rnr && part != SLOW_neighbour;
}

/* Charges the time up to then to a part. */
static void
part_charge(
	const struct qp *qp, struct req_place *place, enum slow_part part, uint64_t until)
{
	uint64_t took = since(place->mark_ns, until);
	uint64_t full = *qp->shared->times->port_full_ns;
	uint64_t port = port_counts(part) ? RTE_MIN(full - place->port_ns, took) : 0;

	place->request.spent_ns[SLOW_port] += port;
	place->request.spent_ns[part] += took - port;
	/* The rest of it may be in what is charged next. */
	place->port_ns = port_counts(part) ? place->port_ns + port : full;
	place->mark_ns = RTE_MAX(until, place->mark_ns);
}

static void
split_begin(struct req_place *place)
{
	if (!place->split)
		place->request = (struct slow_request){0};
	place->split = true;
}

/* Charges the time up to now. The port's time that is left was before it. */
static void RARE
place_charge(const struct qp *qp, struct req_place *place)
{
	split_begin(place);
	part_charge(qp, place, (enum slow_part)place->part, qp->shared->now);
	place->port_ns = *qp->shared->times->port_full_ns;
}

void RARE
req_time_wait(struct qp *qp, enum slow_part part)
{
	struct req_place *place;

	req_time_look(qp);
	if (!qp->timed)
		return;
	place = req_time_place(qp);
	place_charge(qp, place);
	place->part = (uint8_t)part;
	place->request.rnr_naks += part == SLOW_rnr;
}

void RARE
req_time_over(struct qp *qp, enum slow_part part)
{
	struct req_place *place;

	if (!qp->timed)
		return;
	place = req_time_place(qp);
	if (place->part != part)
		return;
	place_charge(qp, place);
	place->part = (uint8_t)usual_part(qp, place);
}

void RARE
req_time_lost(struct qp *qp, enum slow_part part, uint64_t stuck_ns)
{
	struct req_place *place;

	if (!qp->timed)
		return;
	place = req_time_place(qp);
	split_begin(place);
	part_charge(qp, place, (enum slow_part)place->part,
		RTE_MIN(stuck_ns, qp->shared->now));
	/* A window is full because of the loss. */
	if (place->part == SLOW_answer || place->part == SLOW_queue ||
		(place->part == SLOW_window && place->start_ns != 0))
		part_charge(qp, place, part, qp->shared->now);
	place_charge(qp, place);
	place->request.naks += part == SLOW_nak;
	place->request.timers += part == SLOW_timer;
}

/* Returns whether all packets of the measured request have been sent. */
static bool
is_sent(const struct qp *qp, const struct req_place *place)
{
	return place->start_ns != 0 && (int32_t)(qp->req.next_idx - place->idx) > 0;
}

void
req_time_blocked(struct qp *qp)
{
	struct req_place *place;

	req_time_look(qp);
	if (!qp->timed)
		return;
	place = req_time_place(qp);
	if (place->part != SLOW_window && place->part != SLOW_rnr && !is_sent(qp, place))
		req_time_wait(qp, SLOW_window);
}

/* ---- A request ---- */

/* When the engine finds the request. The place is free. */
static void
place_take(struct qp *qp, struct req_place *place)
{
	const struct req_times *times = qp->shared->times;
	uint64_t woke = __atomic_load_n(&times->woke_ns, __ATOMIC_RELAXED);
	uint64_t before = times->before_ns;

	place->seen_ns = place->mark_ns = RTE_MAX(qp->shared->now, UINT64_C(1));
	place->start_ns = 0;
	place->port_ns = *times->port_full_ns;
	place->resent = qp->stats.retransmitted;
	place->part = SLOW_queue;
	place->split = false;
	place->before_ns = before != 0 ? since(RTE_MAX(before, woke), place->seen_ns) : 0;
	qp->timed = true;
}

void RARE
req_time_queued(struct qp *qp)
{
	struct req_place *place;

	/* In an error state a request is flushed, and no datagram ends a measurement. */
	if (unlikely(qp->shared->times == NULL) || qp->type == IBV_QPT_UD ||
		(qp->state != IBV_QPS_RTS && qp->state != IBV_QPS_SQD))
		return;
	place = req_time_place(qp);
	if (place->seen_ns != 0)
		return;
	place_take(qp, place);
	if (qp->req.rnr_deadline != TIME_NEVER)
		place->part = SLOW_rnr;
}

uint32_t
req_time_start(struct qp *qp)
{
	struct req_place *place;

	qp->untimed = REQ_TIME_EVERY;
	if (unlikely(qp->shared->times == NULL))
		return 0;
	place = req_time_place(qp);
	if (!qp->timed) {
		if (place->seen_ns != 0)
			return 0; /* that of another QP */
		place_take(qp, place);
	} else {
		if (place->start_ns != 0)
			return 0; /* an earlier one is under way */
		place_charge(qp, place);
	}
	place->start_ns = RTE_MAX(qp->shared->now, UINT64_C(1));
	place->idx = qp->req.next_idx;
	place->part = (uint8_t)usual_part(qp, place);
	return PSN_RANGE_TIMED;
}

static void
place_free(struct qp *qp, struct req_place *place)
{
	place->seen_ns = 0;
	qp->timed = false;
}

/* Of what was charged to the peer, the end without a pass is taken off: the packets of
 * this pass came after the last one that emptied the receive queue, or when a thread woke
 * up for them. */
static void
engine_part_take(struct qp *qp, struct req_place *place, uint64_t mark_ns)
{
	const struct qp_shared *shared = qp->shared;
	uint64_t woke = __atomic_load_n(&shared->times->woke_ns, __ATOMIC_RELAXED);
	uint64_t looked = RTE_MAX(RTE_MAX(shared->polled_ns, woke), mark_ns);
	uint64_t *spent = place->request.spent_ns;
	uint64_t part = RTE_MIN(since(looked, shared->now), spent[SLOW_answer]);

	spent[SLOW_answer] -= part;
	spent[SLOW_engine] += part;
}

/* Keeps it among the slowest ones, if it is one of them. */
static void RARE
slow_end(struct qp *qp, struct req_place *place, struct slowest_row *row,
	const struct send_wqe *wqe)
{
	struct slow_request *r = &place->request;
	uint64_t mark_ns = place->mark_ns;
	bool answered = place->part == SLOW_answer;

	place_charge(qp, place);
	if (answered)
		engine_part_take(qp, place, mark_ns);
	r->ended_ns = RTE_MAX(qp->shared->now, UINT64_C(1));
	r->before_ns = place->before_ns;
	r->qpn = qp->qpn;
	r->bytes = wqe->len;
	r->resent = qp->stats.retransmitted - place->resent;
	slowest_add(row, r);
}

void
req_time_end(struct qp *qp)
{
	const struct send_wqe *wqe = sq_slot(&qp->sq, qp->req.una_idx);
	unsigned op = wr_row(wqe)->kind - (unsigned)WR_SEND;
	struct req_times *times = qp->shared->times;
	struct req_place *place = req_time_place(qp);
	enum latency_type type = type_of(qp);
	uint64_t now = qp->shared->now;
	struct slowest_row *row;

	assert(op < LATENCY_OPS);
	latency_count(&times->latencies->of[type][op], since(place->start_ns, now));
	row = &times->slowest->of[type][op];
	if (unlikely(slowest_takes(row, since(place->seen_ns, now), now)))
		slow_end(qp, place, row, wqe);
	place_free(qp, place);
}

void RARE
req_time_skip(struct qp *qp)
{
	struct req_place *place;

	if (!qp->timed)
		return;
	place = req_time_place(qp);
	/* The request that was found may have been this one. */
	if (place->start_ns == 0 &&
		sq_posted(&qp->sq) - qp->req.started_idx - 1 < qp->untimed)
		place_free(qp, place);
}

void
req_time_drop(struct qp *qp)
{
	qp->untimed = 1;
	if (qp->timed)
		place_free(qp, req_time_place(qp));
}

bool
req_times_idle(const struct req_times *times)
{
	for (unsigned i = 0; i < REQ_TIMES; i++)
		if (times->places[i].seen_ns != 0)
			return false;
	return true;
}
