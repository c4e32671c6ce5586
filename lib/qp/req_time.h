/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/*
 * Which requests are measured for the histograms of latencies (base/latencies.h): of each RC, UC and XRC QP the first
 * one and then every REQ_TIME_EVERYth, unless an earlier one is under way, from the pass in which the engine gives it
 * PSNs to the one in which it completes. Time is that of the passes: no request reads a clock; one that is
 * not measured decrements a counter. A datagram has no row: it completes in the pass that takes it up. With the engine lock
 * held.
 */
#ifndef ROCADE_QP_REQ_TIME_H
#define ROCADE_QP_REQ_TIME_H

#include "base/latencies.h"
#include "qp/qp.h"

/* A prime: a program that repeats a few operations in turn has all of them measured. */
#define REQ_TIME_EVERY 17
/* A QP whose place another one has is not measured meanwhile. */
#define REQ_TIMES 512

/* Of an engine. */
struct req_times {
	struct latencies *latencies; /* where they are counted */
	struct latencies own;        /* there, unless the device has a better place */
	/* by QPN: when the measured request of a QP was started; 0: none has the place */
	uint64_t since_ns[REQ_TIMES];
};

/* Returns PSN_RANGE_TIMED if the request that starts is measured, else 0. qp->untimed has come to 0. */
uint32_t req_time_start(struct qp *qp);
/* The oldest request, which has PSN_RANGE_TIMED, completes with success. */
void req_time_end(struct qp *qp);
/* The QP's requests are flushed. */
void req_time_drop(struct qp *qp);

/* Returns whether no QP is measured. */
bool req_times_idle(const struct req_times *times);

#endif
