/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
#include "qp/congestion.h"
#include "qp/flight.h"
#include "qp/multipath.h"
#include "qp/sack.h"
#include "qp/tlp.h"

/* Returns the QP's scoreboard, which it takes if it has none; NULL: none is free. */
static struct txmap *
board_get(struct qp *qp)
{
	bool fresh = !qp->req.missing;
	struct txmap *map = loss_begin(qp, false);

	/* A NAK that came before the first SACK has asked for it. */
	if (fresh && map != NULL && qp->req.loss_state == LOSS_REPAIR_DUE)
		txmap_set_lost(map, qp->req.una_psn);
	return map;
}

/* Returns the first PSN from una_psn on that no scoreboard may cover. Packets are
 * outstanding. */
static uint32_t
board_limit(const struct qp *qp)
{
	const struct requester *req = &qp->req;
	uint32_t limit =
		psn_add(req->una_psn, RTE_MIN(req_outstanding(qp), QP_MAX_UNACKED + 0u));

	/* Not by its first PSN, which may be 2^23 packets before una_psn. */
	if (req_oldest_needs_response(qp))
		return req->una_psn;
	for (uint32_t idx = req->una_idx + 1; idx != req->started_idx; idx++) {
		const struct psn_range *range = sq_psn_range(&qp->sq, idx);

		if (psn_diff(range->first_psn, limit) >= 0)
			break;
		if (psn_range_needs_response(range))
			return range->first_psn;
	}
	return limit;
}

/* ---- What the peer says ---- */

/* Returns false if the QP knew that the peer has this packet. */
static bool
set_held(struct qp *qp, struct txmap *map, uint32_t psn)
{
	bool fresh = txmap_set_arrived(map, psn);

	if (fresh && unlikely(qp->multipath != 0))
		multipath_arrived(qp, psn);
	return fresh;
}

/* Notes which packets before limit the peer has. Those before ePSN have been received, but
 * their acknowledgement has not come yet. Returns whether the QP did not know of some. */
static bool
seth_note(struct qp *qp, struct txmap *map, const struct pkt_view *v, uint32_t limit)
{
	const uint8_t *held = view_seth(v)->map;
	bool fresh = false;
	uint32_t psn;

	for (psn = qp->req.una_psn; psn != v->psn; psn = psn_add(psn, 1))
		fresh |= set_held(qp, map, psn);
	for (unsigned i = 0; i < 8 * sizeof(view_seth(v)->map); i++) {
		psn = psn_add(v->psn, i + 1);
		if (psn_diff(psn, limit) >= 0)
			break;
		if (held[i / 8] >> i % 8 & 1)
			fresh |= set_held(qp, map, psn);
	}
	return fresh;
}

/* True if the QP takes selective acknowledgements: they are agreed on, or not switched off.
 * Those of a host that has not been asked yet show that it understands them. */
static bool
sack_may_agree(const struct qp *qp)
{
	const struct peers *peers = qp->shared->peers;

	return qp->peer != NULL &&
	       (peer_sacks(qp->peer) || (peers != NULL && !peers->ext_off));
}

/* Checks what a selective acknowledgement says against what was sent. */
static enum drop_reason
sack_check(const struct qp *qp, const struct pkt_view *v, uint32_t echo)
{
	const struct requester *req = &qp->req;
	int32_t ahead = psn_diff(v->psn, req->una_psn);

	if (!sack_may_agree(qp) || view_seth(v)->version >> 4 != SETH_VERSION ||
		v->payload_len != 0)
		return DROP_sack;
	if (ahead < 0)
		return DROP_stale_response;
	if (psn_diff(v->psn, req->sent_psn) >= 0 || psn_diff(echo, req->sent_psn) >= 0)
		return DROP_ghost;
	/* The requester went back to resend everything, or the packet named does not come
	 * from the window. */
	if (psn_diff(v->psn, req->next_psn) >= 0 || psn_diff(echo, req->next_psn) >= 0 ||
		ahead >= QP_MAX_UNACKED || psn_diff(echo, v->psn) < -QP_MAX_UNACKED ||
		req->rnr_deadline != TIME_NEVER)
		return DROP_stale_response;
	return DROP_none;
}

enum drop_reason RARE
sack_rx(struct qp *qp, const struct pkt_view *v, uint64_t now)
{
	uint32_t echo = be24_get(view_seth(v)->echo), limit;
	enum drop_reason why = qp_admit_sack(qp, v);
	struct txmap *map;
	unsigned lost;
	bool fresh;

	if (why == DROP_none)
		why = sack_check(qp, v, echo);
	if (why != DROP_none)
		return why;
	qp->shared->stats->sack_received++;
	qp->peer->extensions |= EXT_SACK;
	qp->sacks = true;
	limit = board_limit(qp);
	if (psn_diff(v->psn, limit) >= 0)
		return DROP_none;
	map = board_get(qp);
	if (map == NULL)
		return DROP_none;
	fresh = seth_note(qp, map, v, limit);
	lost = loss_find(qp, map->end, echo, now);
	if (unlikely(qp->shared->flight_on))
		flight_write(
			qp, FLIGHT_SACK, v->psn, flight_pair(missing_arrived(qp), lost));
	if (map->end == qp->req.una_psn) {
		loss_end(qp);
		return DROP_none;
	}
	loss_update(qp);
	req_account(qp);
	if (lost != 0) {
		req_lost(qp, SLOW_nak);
		congestion_loss(qp, &qp->peer->send, now);
	}
	if (fresh)
		tlp_sacked(qp, psn_bit(&map->arrived, qp->req.rtt_psn), now);
	return DROP_none;
}

bool RARE
sack_nak(struct qp *qp, bool *lost)
{
	uint32_t psn = qp->req.una_psn;
	struct txmap *map;
	bool dropped = qp->req.missing && psn_bit(&missing_of(qp)->arrived, psn);

	if (!dropped && multipath_reorders(qp) && multipath_nak(qp)) {
		*lost = false;
		return true;
	}
	/* Without SACKs one packet a round trip would be sent again. */
	if (!qp->sacks)
		return false;
	/* The peer has dropped what it held. */
	if (dropped) {
		loss_end(qp);
		loss_step(&qp->req.loss_state, LOSS_EV_OVER);
		req_account(qp);
	}
	map = board_get(qp);
	if (map == NULL)
		return false;
	*lost = !psn_bit(&map->lost, psn) && txmap_again_of(map, psn) == NULL;
	if (*lost)
		txmap_set_lost(map, psn);
	return true;
}

bool RARE
sack_next_lost(const struct qp *qp, uint32_t *psn)
{
	const struct txmap *map = missing_of(qp);
	uint32_t next = psn_bits_next(&map->lost, qp->req.una_psn, map->end);

	if (next == map->end)
		return false;
	*psn = next;
	return true;
}
