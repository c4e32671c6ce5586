/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/* Properties of a QP, and cursors over the SGEs of its requests and receives. For every file
 * of lib/qp. */
#ifndef ROCADE_QP_QP_STATE_H
#define ROCADE_QP_QP_STATE_H

#include "qp/qp.h"
#include "wire/psn.h"

/* Encodes a pending response: AETH syndrome + 1, as 0 means that none is pending. */
#define AETH_PENDING(syndrome) ((uint8_t)((syndrome) + 1))
#define AETH_PENDING_ACK AETH_PENDING(AETH_ACK)
#define AETH_PENDING_SEQ_NAK AETH_PENDING(AETH_NAK_SEQ)

static inline uint32_t
qp_pmtu(const struct qp *qp)
{
	return 1u << qp->pmtu_shift;
}

/* The BTH of a packet that the QP sends. opcode: that of RC. */
static inline struct bth_fields
qp_bth(const struct qp *qp, uint32_t psn, uint8_t opcode)
{
	return (struct bth_fields){.dest_qpn = qp->dest_qpn,
		.psn = psn,
		.pkey = qp->pkey,
		.opcode = opcode | qp->op_base};
}

/* Cursor over a request with SGEs. */
static inline struct sge_cursor
request_cursor(const struct qp *qp, const struct send_wqe *wqe, struct sge_pos *pos)
{
	return (struct sge_cursor){qp->shared->keys, wqe->sge, wqe->num_sge, qp->pd, pos};
}

/* Cursor over the receive that the QP has taken. */
static inline struct sge_cursor
receive_cursor(const struct qp *qp, struct sge_pos *pos)
{
	return (struct sge_cursor){qp->shared->keys, qp->wqe->sge, qp->wqe->num_sge,
		qp->srq != NULL ? qp->srq->pd : qp->pd, pos};
}

/* admit.c: rows 3 to 6 of docs/protocol.md 8.2. Returns DROP_none if the QP accepts the
 * packet. */
enum drop_reason qp_admit(const struct qp *qp, const struct pkt_view *view);

#endif
