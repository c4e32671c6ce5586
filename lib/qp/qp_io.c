/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/* The calls by which the engine drives a QP. */
#include "qp/congestion.h"
#include "qp/cnp.h"
#include "qp/flight.h"
#include "qp/hold.h"
#include "qp/qp_state.h"
#include "qp/read_gap.h"
#include "qp/req.h"
#include "qp/resp.h"
#include "qp/sack.h"
#include "qp/send_age.h"
#include "qp/tlp.h"
#include "qp/transport.h"

#define ECN_CE 3 /* RFC 3168 5: ECN bits of the traffic class */

static enum verdict
rx_other(struct qp *qp, const struct pkt_view *view, uint64_t now)
{
	if (qp->type == IBV_QPT_UD)
		return ud_rx(qp, view);
	if (qp->type == IBV_QPT_UC)
		return uc_rx(qp, view);
	if (qp->type == IBV_QPT_XRC_RECV)
		return xrc_rx(qp, view);
	return comp_rx(qp, view, now);
}

/* Missing packet psn has come: executes the held ones that are next. If another packet is
 * missing behind them, its NAK is due. */
static void RARE
held_rx(struct qp *qp, uint32_t psn)
{
	enum verdict verdict = VERDICT_GO;
	struct held_packet *packet;

	while ((verdict == VERDICT_GO || verdict == VERDICT_FILLED) &&
		(packet = hold_take(qp)) != NULL) {
		verdict = qp->type == IBV_QPT_RC ? resp_rx(qp, &packet->view)
						 : xrc_rx(qp, &packet->view);
		verdict_apply(qp, packet->view.psn, verdict);
		hold_put(qp, packet);
	}
	/* The acknowledgement covers those without AckReq, too: the requester need not ask
	 * whether they have arrived. */
	if (qp->aeth_pending == AETH_PENDING_ACK)
		qp->resp.ack_psn = psn_add(qp->resp.epsn, PSN_MASK);
	if (qp->resp.hold != 0 && qp->resp.wait == RESP_OPEN)
		resp_hole(qp);
	hold_sack_owe(qp, psn);
}

/* A packet that qp_admit() does not accept may be of a kind that any QP can get. why: the
 * reason. Returns DROP_none, or the reason to drop it. */
static enum drop_reason RARE
unadmitted_rx(
	struct qp *qp, const struct pkt_view *view, enum drop_reason why, uint64_t now)
{
	if (view->op->kind == OP_CNP)
		return cnp_rx(qp, view);
	return view->op->kind == OP_SACK ? sack_rx(qp, view, now) : why;
}

void
qp_rx(struct qp *qp, const struct pkt_view *view, uint64_t now)
{
	/* Direct placement has admitted it. */
	enum drop_reason why =
		unlikely(view->payload_placed) ? DROP_none : qp_admit(qp, view);
	enum verdict verdict;

	if (unlikely(why != DROP_none)) {
		why = unadmitted_rx(qp, view, why, now);
		if (why != DROP_none) {
			qp->shared->stats->drop[why]++;
			flight_note(qp, FLIGHT_DROPPED, view->psn, why);
		}
		return;
	}
	if (unlikely(qp->shared->flight_on))
		flight_received(qp, view);
	if (unlikely((view->tclass & ECN_CE) == ECN_CE))
		cnp_owe(qp);
	qp->stats.rx_packets++;
	qp->shared->stats->rx_roce++;
	if (unlikely(qp->type != IBV_QPT_RC))
		verdict = rx_other(qp, view, now);
	else if (op_is_response(view->op))
		verdict = comp_rx(qp, view, now);
	else
		verdict = resp_rx(qp, view);
	if (unlikely(verdict != VERDICT_GO)) {
		verdict_apply(qp, view->psn, verdict);
		if (verdict == VERDICT_FILLED)
			held_rx(qp, view->psn);
	}
}

/* True if qp_flush() would complete requests. */
static bool
qp_has_flush(const struct qp *qp)
{
	if (qp->req.una_idx != sq_posted(&qp->sq))
		return true;
	return qp->state == IBV_QPS_ERR && qp->rq != NULL &&
	       recv_ring_outstanding(qp->rq) != 0;
}

static bool
req_wants_tx(const struct qp *qp)
{
	const struct requester *req = &qp->req;

	if (unlikely(qp->state == IBV_QPS_ERR || qp->state == IBV_QPS_SQE))
		return qp_has_flush(qp);
	if (qp->type == IBV_QPT_UD)
		return qp_next_dest(qp) != NULL;
	if ((qp->state != IBV_QPS_RTS && qp->state != IBV_QPS_SQD) ||
		req->rnr_deadline != TIME_NEVER)
		return false;
	if (unlikely(qp_copy_due(qp)))
		return true;
	return req_below_max_unacked(qp) && req_has_next(qp);
}

/* Builds what qp->resp_due says. */
static __rte_noinline struct burst
resp_due_tx(struct qp *qp, struct pkt *pkts, unsigned n)
{
	unsigned cnps = 0;
	struct burst burst = {0, VERDICT_GO};

	if (unlikely(qp->resp.cnp_due))
		cnp_build(qp, &pkts[cnps++]);
	if (resp_res_pending(qp))
		burst = resp_res_tx(qp, pkts + cnps, n - cnps);
	burst.built += cnps;
	return burst;
}

/* Builds a CNP, if one is due, and responses in PSN order: those of READs and atomics, and
 * the pending acknowledgement. Then a selective acknowledgement, if one is due. n is not
 * 0. */
static unsigned
resp_tx(struct qp *qp, struct pkt *pkts, unsigned n)
{
	struct burst burst = {0, VERDICT_GO};

	assert(qp->resp_due >= resp_res_pending(qp));
	if (unlikely(qp->resp_due))
		burst = resp_due_tx(qp, pkts, n);
	if (unlikely(burst.verdict != VERDICT_GO))
		verdict_apply(qp, qp->resp.ack_psn, burst.verdict);
	/* A pending acknowledgement comes after the responses of all READs before it. */
	if (qp->aeth_pending != 0 && burst.built < n &&
		(likely(!qp->resp_due) || !resp_res_pending(qp)))
		resp_ack_build(qp, &pkts[burst.built++]);
	if (unlikely(qp->resp_due) && burst.built < n && qp->resp.sack_due)
		resp_sack_build(qp, &pkts[burst.built++]);
	return burst.built;
}

static struct burst
datagrams_tx(struct qp *qp, struct pkt *pkts, unsigned n)
{
	struct burst burst = ud_tx(qp, pkts, n);

	if (burst.built != 0)
		flight_note(qp, FLIGHT_UD_SENT, 0, burst.built);
	return burst;
}

/* Builds requests, and completes what needs no acknowledgement. */
static unsigned
requests_tx(struct qp *qp, struct pkt *pkts, unsigned n, uint64_t now)
{
	struct burst burst;

	if (unlikely(qp->type == IBV_QPT_UD)) {
		burst = datagrams_tx(qp, pkts, n);
	} else {
		burst = req_tx(qp, pkts, n, now);
		req_time_look(qp);
	}
	if (unlikely(qp->type == IBV_QPT_UC))
		burst = uc_sent(qp, burst);
	if (unlikely(burst.verdict != VERDICT_GO))
		verdict_apply(qp, 0, burst.verdict);
	return burst.built;
}

unsigned
qp_tx(struct qp *qp, struct pkt *pkts, unsigned n, uint64_t now)
{
	unsigned built = 0;
	bool requests = true;

	/* Responses first: a CNP, READ responses, the pending acknowledgement. Requests get
	 * at least half of n, if there are any and n is not 1. */
	if (qp_has_response_pending(qp) && n != 0) {
		requests = req_wants_tx(qp);
		built = resp_tx(qp, pkts, requests ? RTE_MAX(n / 2, 1u) : n);
		flight_note(qp, FLIGHT_RESPONDED, qp->resp.epsn, built);
	}
	if (unlikely(qp->state == IBV_QPS_ERR || qp->state == IBV_QPS_SQE))
		qp_flush(qp);
	else if (requests && built < n)
		built += requests_tx(qp, pkts + built, n - built, now);
	qp->stats.tx_packets += built;
	return built;
}

unsigned
qp_tx_requests(struct qp *qp, struct pkt *pkts, unsigned n, uint64_t now)
{
	unsigned built = requests_tx(qp, pkts, n, now);

	qp->stats.tx_packets += built;
	return built;
}

bool
qp_wants_tx(const struct qp *qp)
{
	return qp_has_response_pending(qp) || req_wants_tx(qp);
}

/* Returns whether the answer for packet una_psn may still be on its way, on this machine. A peer that
 * makes it wait for ANSWER_WAIT_NS is waited for no more until it has answered. */
static bool
answer_waits(struct qp *qp, uint64_t now)
{
	const struct qp_shared *shared = qp->shared;
	struct answer_wait *wait = qp_answer_wait(qp);
	bool first = !wait->on || wait->psn != qp->req.una_psn;

	if (first)
		*wait = (struct answer_wait){
			.since_ns = now, .psn = qp->req.una_psn, .on = true};
	else if (now - wait->since_ns >= shared->answer_wait_ns)
		return false;
	if (shared->answer_wait_ns == 0 ||
		!shared->answer_waits(shared->answer_arg, qp, wait, now)) {
		wait->on = false;
		return false;
	}
	if (first) {
		shared->stats->timeouts_waited++;
		flight_note(qp, FLIGHT_TIMEOUT_WAITED, qp->req.una_psn, 0);
	}
	return true;
}

/* If the ACK timer or that of the probe has expired, and the answer may still be on its way, the timer
 * goes on. Returns false if those that have expired are to be handled. */
static bool RARE
timers_go_on(struct qp *qp, uint64_t now)
{
	struct requester *req = &qp->req;
	uint64_t waited;

	if (RTE_MIN(req->ack_deadline, req->tlp_deadline) > now || !answer_waits(qp, now))
		return false;
	waited = now - qp_answer_wait(qp)->since_ns;
	send_age_keep(qp);
	if (req->ack_deadline <= now)
		req->ack_deadline = now + answer_ask_ns(req_timeout_ns(qp), waited);
	if (req->tlp_deadline <= now)
		tlp_restart(qp, waited, now);
	congestion_waits(qp);
	/* The round trip contains the wait, which says nothing about the path. */
	req_measure_end(req);
	return true;
}

void
qp_timeout(struct qp *qp, uint64_t now)
{
	bool resend = false;

	if (qp->req.rnr_deadline <= now) {
		qp->req.rnr_deadline = TIME_NEVER;
		req_time_over(qp, SLOW_rnr);
	}
	if (qp->shared->answer_waits != NULL && timers_go_on(qp, now))
		return;
	if (qp->req.tlp_deadline <= now)
		resend = tlp_timeout(qp, now);
	if (resend && (!missing_reads(qp) || !read_gap_probe(qp)))
		req_rollback(qp, qp->req.una_psn);
	if (qp->req.ack_deadline <= now)
		verdict_apply(qp, 0, comp_ack_timeout(qp));
}
