/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
#include <errno.h>
#include <string.h>

#include "base/base_alloc.h"
#include "qp/congestion.h"
#include "qp/flight.h"
#include "qp/multipath.h"
#include "qp/sack.h"
#include "qp/tlp.h"

#define BOARDS_BYTES (SACK_BOARDS * sizeof(struct sack_board))

/* Control path. */

int
sack_boards_init(struct sack_boards *boards)
{
	/* Most engines never use this memory. */
	TAILQ_INIT(&boards->free);
	boards->boards = alloc_get(&alloc_demand, "scoreboards", BOARDS_BYTES);
	if (boards->boards == NULL)
		return -ENOMEM;
	for (unsigned i = SACK_BOARDS; i-- != 0;)
		TAILQ_INSERT_HEAD(&boards->free, &boards->boards[i], link);
	return 0;
}

void
sack_boards_fini(struct sack_boards *boards)
{
	struct sack_board *board;
	unsigned free = 0;

	if (boards->boards == NULL)
		return;
	TAILQ_FOREACH (board, &boards->free, link)
		free++;
	assert(free == SACK_BOARDS);
	alloc_put(&alloc_demand, boards->boards, BOARDS_BYTES);
}

/* Data path. */

static void
set_due(struct sack_board *board, uint32_t psn)
{
	psn_bit_set(&board->due, psn);
	board->due_count++;
}

/* Packet una_psn is lost. */
static void
oldest_lost(const struct qp *qp, struct sack_board *board)
{
	if (board->end == qp->req.una_psn)
		board->end = psn_add(board->end, 1);
	set_due(board, qp->req.una_psn);
}

/* Returns the QP's scoreboard, which it takes if it has none; NULL: none is free. */
static struct sack_board *
board_get(struct qp *qp)
{
	struct sack_boards *boards = qp->shared->sack;
	struct sack_board *board;

	if (qp->req.sacked)
		return sack_board_of(qp);
	board = boards != NULL ? TAILQ_FIRST(&boards->free) : NULL;
	if (board == NULL)
		return NULL;
	TAILQ_REMOVE(&boards->free, board, link);
	memset(board, 0, sizeof(*board));
	board->end = qp->req.una_psn;
	qp->sack_board = (uint8_t)(board - boards->boards);
	qp->req.sacked = true;
	/* A NAK that came before the first SACK has asked for it. */
	if (qp->req.tlp_state == TLP_HOLE_DUE)
		oldest_lost(qp, board);
	return board;
}

void RARE
sack_drop(struct qp *qp)
{
	TAILQ_INSERT_HEAD(&qp->shared->sack->free, sack_board_of(qp), link);
	qp->req.sacked = false;
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

/* ---- The order of transmissions ---- */

/* The last copy of the packet; NULL: it was sent once only. */
static const struct sack_copy *
last_copy(const struct sack_board *board, uint32_t psn)
{
	const struct sack_copy *copy = &board->copy[psn % QP_MAX_UNACKED];

	return copy->number != 0 && copy->psn == psn ? copy : NULL;
}

/* True if packet a was sent, the last time, before packet b was. */
static bool
sent_before(const struct sack_board *board, uint32_t a, uint32_t b)
{
	const struct sack_copy *copy_a = last_copy(board, a),
			       *copy_b = last_copy(board, b);

	if (copy_a != NULL && copy_b != NULL)
		return (int32_t)(copy_a->number - copy_b->number) < 0;
	if (copy_a != NULL)
		return psn_diff(copy_a->sent_psn, b) <= 0;
	if (copy_b != NULL)
		return psn_diff(a, copy_b->sent_psn) < 0;
	return psn_diff(a, b) < 0;
}

/* Whatever a peer says, a packet is sent again at most twice in a round trip, or once in
 * QP_SRTT_UNKNOWN_NS while that is not known. An answer that takes note of a copy takes a whole
 * round trip. */
static bool
copied_lately(
	const struct qp *qp, const struct sack_board *board, uint32_t psn, uint64_t now)
{
	const struct sack_copy *copy = last_copy(board, psn);
	uint32_t srtt_ns = qp_srtt_ns(qp);
	uint32_t least = srtt_ns != 0 ? srtt_ns / 2 : (uint32_t)QP_SRTT_UNKNOWN_NS;

	return copy != NULL && (uint32_t)now - copy->copied_ns < least;
}

/* ---- What the peer says ---- */

static void
set_held(struct qp *qp, struct sack_board *board, uint32_t psn)
{
	if (psn_bit(&board->held, psn))
		return;
	psn_bit_set(&board->held, psn);
	board->held_count++;
	if (unlikely(qp->multipath != 0))
		multipath_arrived(qp, psn);
	if (psn_bit(&board->due, psn)) {
		psn_bits_clear(&board->due, psn, 1);
		board->due_count--;
	}
	if (psn_diff(psn, board->end) >= 0)
		board->end = psn_add(psn, 1);
}

/* Notes which packets before limit the peer has. Those before ePSN have been received, but
 * their acknowledgement has not come yet. */
static void
map_note(
	struct qp *qp, struct sack_board *board, const struct pkt_view *v, uint32_t limit)
{
	const uint8_t *map = view_seth(v)->map;
	uint32_t psn;

	for (psn = qp->req.una_psn; psn != v->psn; psn = psn_add(psn, 1))
		set_held(qp, board, psn);
	for (unsigned i = 0; i < 8 * sizeof(view_seth(v)->map); i++) {
		psn = psn_add(v->psn, i + 1);
		if (psn_diff(psn, limit) >= 0)
			break;
		if (map[i / 8] >> i % 8 & 1)
			set_held(qp, board, psn);
	}
}

/* Packets that are missing before `end` are lost if they were sent before `echo`, which has
 * arrived; on several paths, see multipath.h. Returns their number. */
static unsigned
losses_find(struct qp *qp, struct sack_board *board, uint32_t echo, uint64_t now)
{
	bool reorders = multipath_reorders(qp);
	unsigned lost = 0;

	if (reorders)
		multipath_acknowledged(qp);
	for (uint32_t psn = qp->req.una_psn; psn != board->end; psn = psn_add(psn, 1)) {
		if (psn_bit(&board->held, psn) || psn_bit(&board->due, psn) ||
			!(reorders ? multipath_lost(qp, psn)
				   : sent_before(board, psn, echo)) ||
			copied_lately(qp, board, psn, now))
			continue;
		set_due(board, psn);
		lost++;
		if (reorders)
			multipath_note_lost(qp, psn);
	}
	if (reorders && lost != 0)
		multipath_repair(qp);
	return lost;
}

/* Without a probe that is to be sent first, copies of the scoreboard are due if, and only if,
 * the state says so. */
static void
state_update(struct qp *qp, const struct sack_board *board)
{
	if (board->due_count != 0)
		qp->req.tlp_state = TLP_HOLE_DUE;
	else if (qp->req.tlp_state == TLP_HOLE_DUE)
		qp->req.tlp_state = TLP_OFF;
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
	struct sack_board *board;
	uint16_t held;
	unsigned lost;

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
	board = board_get(qp);
	if (board == NULL)
		return DROP_none;
	held = board->held_count;
	map_note(qp, board, v, limit);
	lost = losses_find(qp, board, echo, now);
	flight_note(qp, FLIGHT_SACK, v->psn, flight_pair(board->held_count, lost));
	if (board->end == qp->req.una_psn) {
		sack_drop(qp);
		return DROP_none;
	}
	state_update(qp, board);
	req_account(qp);
	if (lost != 0)
		congestion_loss(qp, &qp->peer->send, now);
	if (board->held_count != held)
		tlp_sacked(qp, psn_bit(&board->held, qp->req.rtt_psn), now);
	return DROP_none;
}

bool RARE
sack_nak(struct qp *qp, bool *lost)
{
	uint32_t psn = qp->req.una_psn;
	struct sack_board *board;
	bool dropped = qp->req.sacked && psn_bit(&sack_board_of(qp)->held, psn);

	if (!dropped && multipath_reorders(qp) && multipath_nak(qp)) {
		*lost = false;
		return true;
	}
	/* Without SACKs one packet a round trip would be sent again. */
	if (!qp->sacks)
		return false;
	/* The peer has dropped what it held. */
	if (dropped) {
		sack_drop(qp);
		qp->req.tlp_state = TLP_OFF;
		req_account(qp);
	}
	board = board_get(qp);
	if (board == NULL)
		return false;
	*lost = !psn_bit(&board->due, psn) && last_copy(board, psn) == NULL;
	if (*lost)
		oldest_lost(qp, board);
	return true;
}

/* ---- For the requester ---- */

void RARE
sack_advanced(struct qp *qp, uint32_t before)
{
	struct sack_board *board = sack_board_of(qp);
	uint32_t una = qp->req.una_psn, psn;

	if (psn_diff(una, board->end) >= 0) {
		sack_drop(qp);
		return;
	}
	for (psn = before; psn != una; psn = psn_add(psn, 1)) {
		board->held_count -= psn_bit(&board->held, psn);
		board->due_count -= psn_bit(&board->due, psn);
	}
	psn_bits_clear(&board->held, before, (una - before) & PSN_MASK);
	psn_bits_clear(&board->due, before, (una - before) & PSN_MASK);
}

bool RARE
sack_next_lost(const struct qp *qp, uint32_t *psn)
{
	const struct sack_board *board = sack_board_of(qp);

	if (board->due_count == 0)
		return false;
	*psn = qp->req.una_psn;
	while (!psn_bit(&board->due, *psn))
		*psn = psn_add(*psn, 1);
	return true;
}

void RARE
sack_copied(struct qp *qp, uint32_t psn, uint64_t now)
{
	struct sack_board *board = sack_board_of(qp);
	struct requester *req = &qp->req;

	if (psn_bit(&board->due, psn)) {
		psn_bits_clear(&board->due, psn, 1);
		board->due_count--;
	}
	/* An answer would not tell which of both has arrived (Karn). */
	if (psn == req->rtt_psn) {
		req->rtt_start = TIME_NEVER;
		req->rtt_counts = false;
	}
	board->copy[psn % QP_MAX_UNACKED] = (struct sack_copy){
		.psn = psn,
		.sent_psn = req->sent_psn,
		.number = ++board->copies,
		.copied_ns = (uint32_t)now,
	};
}
