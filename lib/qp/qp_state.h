/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/* For every file of lib/qp: properties of a QP, cursors over the SGEs of its requests
 * and receives, verdicts, completions, events. */
#ifndef ROCADE_QP_QP_STATE_H
#define ROCADE_QP_QP_STATE_H

#include "qp/qp.h"
#include "wire/psn.h"

/* Encodes a pending response: AETH syndrome + 1, as 0 means that none is pending. */
#define AETH_PENDING(syndrome) ((uint8_t)((syndrome) + 1))
#define AETH_PENDING_ACK AETH_PENDING(AETH_ACK)
#define AETH_PENDING_SEQ_NAK AETH_PENDING(AETH_NAK_SEQ)

/* Tr = 4.096 us * 2^timeout (C9-141). */
static inline uint64_t
req_timeout_ns(const struct qp *qp)
{
	return UINT64_C(4096) << qp->params.timeout;
}

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

/* True if responses of READs, atomics and the like are to be sent. */
static inline bool
resp_res_pending(const struct qp *qp)
{
	return qp->resp.res_next != qp->resp.res_end;
}

/* Call after every write of res_next, res_end, cnp_due or sack_due: updates qp->resp_due, which is
 * read far more often. */
static inline void
resp_due_changed(struct qp *qp)
{
	qp->resp_due = resp_res_pending(qp) | qp->resp.cnp_due | qp->resp.sack_due;
}

/* admit.c: rows 3 to 6 of docs/protocol.md 8.2. Returns DROP_none if the QP accepts the
 * packet. */
enum drop_reason qp_admit(const struct qp *qp, const struct pkt_view *view);
/* The same for a CNP, which qp_admit() does not accept: the state is one that sends, and
 * the addresses are those of the path. A UD QP has no path to compare. */
enum drop_reason qp_admit_cnp(const struct qp *qp, const struct pkt_view *view);
/* The same for a selective acknowledgement. */
enum drop_reason qp_admit_sack(const struct qp *qp, const struct pkt_view *view);

/* For QPs whose round trip is not known: the wait for the first probe, and the like. */
#define QP_SRTT_UNKNOWN_NS (250 * NS_PER_US)

/* Returns the smoothed round trip of the QP, or else that of its peer, which it has; 0: neither
 * is known. */
static inline uint32_t
qp_srtt_ns(const struct qp *qp)
{
	return likely(qp->req.srtt_ns != 0) ? qp->req.srtt_ns : qp->peer->srtt_ns;
}

/* Which extensions the peer understands matters now: a packet between the QP and its peer was
 * lost, or the QP has several paths. */
static inline void
qp_ext_ask(const struct qp *qp)
{
	struct peers *peers = qp->shared->peers;

	if (peers != NULL && qp->peer != NULL && !peer_sacks(qp->peer))
		peer_ext_ask(peers, qp->peer, qp->path.sgid);
}

/* ---- verdict.c ---- */

/*
 * A handler of packets returns a verdict: what it found. The calls of the engine
 * (qp_io.c) apply it; no handler moves the QP to an error state.
 */
enum verdict {
	VERDICT_GO, /* no fault so far; at the end: executed */
	/* Not executed: dropped and counted, or a NAK is pending that keeps the
	 * connection, or packets are resent. */
	VERDICT_DROP,
	VERDICT_FILLED, /* responder: executed, and the QP holds packets behind it */
	VERDICT_LOCAL,  /* requester: executed a request without packets */
#define FAULT(name, syndrome, status, vendor) FAULT_##name,
#define SEND_FAULT(name, status, vendor) FAULT_##name,
#include "qp/fault.def"
	FAULT_SEND_CQ_FULL, /* the event says so; what is outstanding is flushed */
};

/* Packets built, and a fault found with them, or VERDICT_GO. Returned in a register. */
struct burst {
	uint32_t built;
	enum verdict verdict;
};

/* Applies any verdict. A fault of the request packet psn sends the NAK, and completes the
 * current receive in error or raises an event. Another one completes the oldest send
 * request in error. Then the QP goes to ERR, or to SQE. */
void verdict_apply(struct qp *qp, uint32_t psn, enum verdict verdict);

/* ---- qp_cqe.c ---- */

/* Raises the event for the QP and for all its event listeners. Out of line: inlined it
 * costs its callers registers even when they raise nothing. */
void qp_event(struct qp *qp, enum ibv_event_type event);
/* Raises QP_FATAL, once: a completion found no room, and the QP is about to fail. */
void qp_raise_fatal(struct qp *qp);

/* Each puts a CQE. They return false if the CQ overflowed; QP_FATAL has been raised. */

/* For send request idx. Polling the CQE frees the SQ slots up to idx. */
bool qp_complete_send(
	struct qp *qp, uint32_t idx, enum ibv_wc_status status, uint32_t vendor);
/* For the oldest send request, which has succeeded: only if it is signaled. */
bool qp_complete_oldest(struct qp *qp);
/* For a receive, with an error. */
bool qp_complete_recv_error(
	struct qp *qp, uint64_t wr_id, enum ibv_wc_status status, uint32_t vendor);

/* ---- flush.c, for files above the handlers: verdict.c, qp_io.c, modify.c, qp_init.c ---- */

/* Moves the QP to ERR: everything outstanding completes with WR_FLUSH_ERR, in order. */
void qp_error(struct qp *qp);
/* Moves the QP to SQE: the send queue completes with WR_FLUSH_ERR, in order. */
void qp_sq_error(struct qp *qp);
/* In ERR and SQE: flushes requests posted since the QP entered the state. */
void qp_flush(struct qp *qp);
/* Resets the attributes that ibv_modify_qp(3) sets (IBA 10.3.1.1). */
void qp_attr_default(struct qp *qp);

#endif
