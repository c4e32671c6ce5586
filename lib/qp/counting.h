/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/*
 * Completion counters (ibv_create_comp_cntr(3) of rdma-core 65): a QP that has some adds each
 * operation that completes to the counter of its kind, whether it makes a completion or not. QPs of
 * any engines may have the same counter.
 *
 * A QP without counters pays nothing for its requests, which are marked by the post (WQE_COUNTED),
 * and a test of resp.counts for each message that arrives. An XRC QP has none.
 */
#ifndef ROCADE_QP_COUNTING_H
#define ROCADE_QP_COUNTING_H

#include "qp/qp.h"

/* The bits of enum ibv_qp_attach_comp_cntr_op. */
enum counted_op {
	COUNTED_SEND,
	COUNTED_RECV,
	COUNTED_READ,
	COUNTED_REMOTE_READ,
	COUNTED_WRITE,
	COUNTED_REMOTE_WRITE,
	COUNTED_OPS
};
#define COUNTED_ALL ((1u << COUNTED_OPS) - 1)

struct comp_cntr {
	/* Added to by engines (release), read by the application (acquire): it then sees the data of
	 * what was counted. */
	uint64_t done, failed;
	uint32_t
		attached; /* QP and kind, each pair once; changed with the engine's lock */
	bool bytes;       /* done counts bytes, not operations */
};

#define COUNTING_QPS 65536 /* QPs of this process that may have counters */

/* From now on the operations of ops, bits of enum counted_op, are added to the counter. With the
 * engine's lock, in RESET or INIT. Returns 0; -EINVAL: the state; -EBUSY: the QP has a counter for one of
 * ops; -EOPNOTSUPP: the type; -ENOMEM: too many QPs have counters. */
int qp_count_by(struct qp *qp, struct comp_cntr *cntr, uint32_t ops);
/* The QP ends: its counters are no longer attached. */
void qp_counting_end(struct qp *qp);

/* Whether the QP has counters. */
static inline bool
qp_counts(const struct qp *qp)
{
	return (qp->sq.always & WQE_COUNTED) != 0;
}

/* For a QP that has counters: */

/* Request idx has completed, or has failed. */
void qp_count_send(struct qp *qp, uint32_t idx, bool failed);
/* A receive of a message of that many bytes has completed, or has failed. */
void qp_count_recv(struct qp *qp, uint32_t bytes, bool failed);
/* A READ or WRITE of the peer was executed. */
void qp_count_remote(struct qp *qp, enum counted_op op, uint32_t bytes);

#endif
