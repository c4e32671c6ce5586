/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
#include "qp/congestion.h"
#include "qp/flight.h"
#include "qp/nak.h"
#include "qp/sack.h"
#include "qp/send_age.h"
#include "qp/tlp.h"

/* Charges a retry to retry_cnt. Returns true if none is left. */
static bool
retry_spent(struct qp *qp)
{
	struct requester *req = &qp->req;

	if (req->retry_left == 0)
		return true;
	req->retry_left--;
	return false;
}

/* For the flight recorder: the number of this retry, and how many there are. */
static uint32_t
retries_note(const struct qp *qp)
{
	return flight_pair(
		qp->params.retry_cnt - qp->req.retry_left, qp->params.retry_cnt);
}

enum verdict
nak_resend(struct qp *qp, enum verdict fault)
{
	struct requester *req = &qp->req;

	if (retry_spent(qp))
		return fault;
	flight_note(qp, FLIGHT_RESEND_ALL, req->una_psn, retries_note(qp));
	if (fault != FAULT_ACK_TIMEOUT)
		req_lost(qp, SLOW_nak);
	req_rollback(qp, req->una_psn);
	send_age_keep(qp);
	req->ack_deadline = TIME_NEVER;
	tlp_cancel(qp);
	return VERDICT_DROP;
}

/* A later response shows that the one to una_psn is lost (C9-137). Each loss is resent
 * once; in_recovery marks it. */
static enum verdict RARE
implied_nak(struct qp *qp, uint64_t now)
{
	if (qp->req.in_recovery || qp->req.rnr_deadline != TIME_NEVER)
		return VERDICT_DROP;
	qp->req.in_recovery = true;
	flight_note(qp, FLIGHT_RESPONSES_MISSING, qp->req.una_psn, 0);
	congestion_loss(qp, &qp->peer->read, now);
	return nak_resend(qp, FAULT_NO_RESPONSE);
}

enum verdict RARE
nak_behind_missing(struct qp *qp, enum read_gap_found found, uint64_t now)
{
	struct requester *req = &qp->req;

	if (found == READ_GAP_UNFIT) {
		/* The loss has been charged already. */
		if (missing_reads(qp) && req->in_recovery) {
			req_lost(qp, SLOW_nak);
			req_rollback(qp, req->una_psn);
			tlp_cancel(qp);
		}
		return implied_nak(qp, now);
	}
	if (found == READ_GAP_KNOWN)
		return VERDICT_DROP;
	flight_note(qp, FLIGHT_RESPONSES_MISSING, req->una_psn, 0);
	qp_ext_ask(qp);
	congestion_loss(qp, &qp->peer->read, now);
	if (!req->in_recovery && retry_spent(qp))
		return FAULT_NO_RESPONSE;
	req_lost(qp, SLOW_nak);
	req->in_recovery = true;
	return VERDICT_DROP;
}

static enum verdict
rnr_nak(struct qp *qp, uint32_t psn, unsigned timer, uint64_t now)
{
	struct requester *req = &qp->req;

	qp->stats.rnr_nak_received++;
	qp->shared->stats->rnr_nak_received++;
	if (req->rnr_left == 0)
		return FAULT_RNR_RETRIES;
	if (qp->params.rnr_retry != 7) /* 7: without end (C9-146) */
		req->rnr_left--;
	flight_note(qp, FLIGHT_NAK_RNR, psn,
		timer | (qp->params.rnr_retry - req->rnr_left + 0u) << 8 |
			(uint32_t)qp->params.rnr_retry << 16);
	/* The peer did receive the request: a long wait for a receive must not use up the
	 * retries for lost packets. */
	req->retry_left = qp->params.retry_cnt;
	req_rollback(qp, psn);
	send_age_keep(qp);
	req->ack_deadline = TIME_NEVER;
	req->rnr_deadline = now + rnr_timer_ns[timer];
	req_time_wait(qp, SLOW_rnr);
	tlp_cancel(qp);
	return VERDICT_DROP;
}

/* Resends packet una_psn and maybe a few after it, charged to retry_cnt. */
static enum verdict
resend_few(struct qp *qp)
{
	if (retry_spent(qp))
		return FAULT_SEQ_RETRIES;
	flight_note(qp, FLIGHT_RESEND_FEW, qp->req.una_psn, retries_note(qp));
	req_lost(qp, SLOW_nak);
	tlp_cancel(qp);
	loss_step(&qp->req.loss_state, LOSS_EV_FOUND);
	return VERDICT_DROP;
}

/* True if not all packets from una_psn on are to be sent again for a NAK. una_psn has to be
 * of a SEND or WRITE, and sent since the requester last went back. */
static bool
resends_few(struct qp *qp)
{
	const struct requester *req = &qp->req;
	unsigned shift;

	if (req->next_psn == req->una_psn || qp->peer == NULL ||
		qp->shared->hold == NULL || req_oldest_needs_response(qp))
		return false;
	shift = peer_resend_shift(qp->peer);
	qp->resend_shift = shift & 3;
	return shift < RESEND_ALL_SHIFT;
}

/* Returns whether the scoreboard decides what is sent again for a NAK, as it does for a peer
 * that sends selective acknowledgements. una_psn then is one of those packets. */
static bool
resends_lost(struct qp *qp, uint64_t now, enum verdict *verdict)
{
	struct requester *req = &qp->req;
	bool lost;

	if (req->next_psn == req->una_psn || req_oldest_needs_response(qp) ||
		!sack_nak(qp, &lost))
		return false;
	*verdict = VERDICT_DROP;
	if (!lost)
		return true;
	congestion_loss(qp, &qp->peer->send, now);
	if (retry_spent(qp)) {
		*verdict = FAULT_SEQ_RETRIES;
		return true;
	}
	flight_note(qp, FLIGHT_RESEND_FEW, req->una_psn, retries_note(qp));
	req_lost(qp, SLOW_nak);
	loss_step(&req->loss_state, LOSS_EV_FOUND);
	return true;
}

static enum verdict
seq_nak(struct qp *qp, bool rnr_waits, uint64_t now)
{
	struct requester *req = &qp->req;
	/* They find what is still missing if only a few packets are sent again. */
	bool probes = req_probes(qp);
	enum verdict verdict;

	qp->stats.seq_nak_received++;
	qp->shared->stats->seq_nak_received++;
	flight_note(qp, FLIGHT_NAK_SEQ, req->una_psn, 0);
	/* During an RNR wait the peer may NAK packets that were in flight after the
	 * refused one (rxe does). One loss is resent once. */
	if ((rnr_waits && req->rnr_deadline != TIME_NEVER) || req->in_recovery)
		return VERDICT_DROP;
	req->in_recovery = true;
	qp_ext_ask(qp);
	if (probes && resends_lost(qp, now, &verdict))
		return verdict;
	/* A lost READ request does not count: it takes another way than its response. */
	if (!req_oldest_needs_response(qp))
		congestion_loss(qp, &qp->peer->send, now);
	return probes && resends_few(qp) ? resend_few(qp)
					 : nak_resend(qp, FAULT_SEQ_RETRIES);
}

static enum verdict
fatal_nak(unsigned syndrome)
{
	switch (syndrome) {
	case AETH_NAK_INV_REQ:
		return FAULT_NAK_INV_REQ;
	case AETH_NAK_ACCESS:
		return FAULT_NAK_ACCESS;
	case AETH_NAK_REM_OP:
		return FAULT_NAK_REM_OP;
	default:
		return FAULT_BAD_SYNDROME;
	}
}

enum verdict
nak_apply(struct qp *qp, uint32_t psn, unsigned syndrome, bool rnr_waits, uint64_t now)
{
	qp_answer_came(qp);
	if ((syndrome & AETH_TYPE_MASK) == AETH_TYPE_RNR)
		return rnr_nak(qp, psn, syndrome & AETH_VALUE_MASK, now);
	return syndrome == AETH_NAK_SEQ ? seq_nak(qp, rnr_waits, now)
					: fatal_nak(syndrome);
}
