/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/* Parts of a READ that are requested again while the responder sends another one. For
 * resp_read.c. */
#ifndef ROCADE_QP_READ_PARTS_H
#define ROCADE_QP_READ_PARTS_H

#include "qp/qp_state.h"

/* Bytes of a READ up to packet `end`. */
static inline uint32_t
part_stop(const struct qp *qp, const struct resp_res *res, uint32_t end)
{
	return (uint32_t)RTE_MIN((uint64_t)end << qp->pmtu_shift, (uint64_t)res->len);
}

/* A part of a READ waits while another one is being sent, if either does not reach the end:
 * then the peer keeps responses behind a missing one. */
static inline bool
part_queue(const struct qp *qp, struct resp_res *res, uint32_t from, uint32_t end,
	uint32_t stop)
{
	if (res->kind != OP_READ || res->next == res->end || end > RES_PARTS ||
		(end == res->packets && res->end == end) ||
		stop != part_stop(qp, res, end))
		return false;
	res->parts |= UINT64_MAX >> (64 - (end - from)) << from;
	return true;
}

/* A range has been sent: goes on with the first part that waits. */
static inline bool
part_next(const struct qp *qp, struct resp_res *res)
{
	uint64_t rest;

	if (res->kind != OP_READ || res->parts == 0)
		return false;
	res->start = res->next = (uint32_t)__builtin_ctzll(res->parts);
	rest = ~(res->parts >> res->start);
	res->end = res->start + (rest != 0 ? (uint32_t)__builtin_ctzll(rest) : 64);
	res->stop = part_stop(qp, res, res->end);
	res->parts &= res->end < 64 ? UINT64_MAX << res->end : 0;
	res->msn = qp->resp.msn;
	return true;
}

#endif
