/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/*
 * Which requests are measured for the histograms of latencies (base/latencies.h): of each
 * RC, UC and XRC QP the first one and then every REQ_TIME_EVERYth, unless an earlier one
 * is under way, from the pass in which the engine gives it PSNs to the one in which it
 * completes. Time is that of the passes: no request reads a clock; one that is not
 * measured decrements a counter. A datagram has no row: it completes in the pass that
 * takes it up. With the engine lock held.
 *
 * The time of a measured request is also split (base/slowest.h), from the pass that first
 * finds it in the queue, or that ends the one that was measured before it. The code that
 * makes a request wait says so, and when that is over: both are rare.
 */
#ifndef ROCADE_QP_REQ_TIME_H
#define ROCADE_QP_REQ_TIME_H

#include "base/slowest.h"
#include "qp/qp.h"

/* A prime: a program that repeats a few operations in turn has all of them measured. */
#define REQ_TIME_EVERY 17
/* A QP whose place another one has is not measured meanwhile. */
#define REQ_TIMES 512

/* The request of a QP that is measured, or is to be measured and waits in the queue. */
struct req_place {
	uint64_t seen_ns;   /* when the engine found it; 0: the place is free */
	uint64_t start_ns;  /* when it got its first packet; 0: it is in the queue */
	uint64_t mark_ns;   /* its time up to then is split */
	uint64_t port_ns;   /* of *port_full_ns: split up to there */
	uint64_t before_ns; /* as in struct slow_request */
	uint32_t idx;
	uint32_t resent; /* the QP's stats.retransmitted before it */
	uint8_t part;    /* enum slow_part: of the time from mark_ns on */
	bool split;      /* request is in use */
	struct slow_request request LINE_ALIGNED;
};

/* Of an engine. */
struct req_times {
	struct latencies *latencies; /* where they are counted */
	struct slowest *slowest;     /* and the slowest ones kept */
	const uint64_t *
		port_full_ns; /* for how long the port has taken no packets, all in all */
	/* When the last pass began; 0: there was none. */
	uint64_t pass_ns;
	/* When the pass before this one began; 0: not known. While a post sends at once:
	 * now. */
	uint64_t before_ns;
	/* When a thread woke up that packets wake up, perhaps for something else. Written
	 * by such threads, without the engine lock. */
	uint64_t woke_ns;
	struct latencies own; /* there, unless the device has a better place */
	struct slowest own_slowest;
	struct req_place places[REQ_TIMES]; /* by QPN */
};

static inline struct req_place *
req_time_place(const struct qp *qp)
{
	return &qp->shared->times->places[qp->qpn % REQ_TIMES];
}

/* Returns PSN_RANGE_TIMED if the request that starts is measured, else 0. qp->untimed has
 * come to 0. */
uint32_t req_time_start(struct qp *qp);
/* The oldest request, which has PSN_RANGE_TIMED, completes with success. */
void req_time_end(struct qp *qp);
/* The QP's requests are flushed. */
void req_time_drop(struct qp *qp);

/* The next request that is to be measured is posted, and has not started. */
void req_time_queued(struct qp *qp);
/* The QP has been served. */
static inline void
req_time_look(struct qp *qp)
{
	if (unlikely(sq_posted(&qp->sq) - qp->req.started_idx >= qp->untimed) &&
		!qp->timed)
		req_time_queued(qp);
}

/* From now on the measured request of the QP, if there is one, waits for SLOW_window,
 * SLOW_rnr or SLOW_neighbour. */
void req_time_wait(struct qp *qp, enum slow_part part);
/* That wait is over, if it was one for this. */
void req_time_over(struct qp *qp, enum slow_part part);
/* Packets are to be sent again. The time since then, when the oldest one became that,
 * counts as SLOW_nak or SLOW_timer. */
void req_time_lost(struct qp *qp, enum slow_part part, uint64_t stuck_ns);
/* The QP is blocked on a window of its peer. */
void req_time_blocked(struct qp *qp);
/* A request starts that has no packet, and is not measured. */
void req_time_skip(struct qp *qp);

/* Returns whether no QP is measured. */
bool req_times_idle(const struct req_times *times);

#endif
