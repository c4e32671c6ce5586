/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
#include <errno.h>
#include <string.h>

#include "base/base_alloc.h"
#include "qp/hold.h"
#include "qp/resp.h"

#define HOLD_ARENA_BYTES (HOLD_PACKETS * sizeof(struct held_packet))

/* Control path. */

int
hold_arena_init(struct hold_arena *arena)
{
	memset(arena, 0, sizeof(*arena));
	/* Most engines hold a few packets at a time, or none ever. */
	arena->packets = alloc_get(&alloc_demand, "held packets", HOLD_ARENA_BYTES);
	if (arena->packets == NULL)
		return -ENOMEM;
	TAILQ_INIT(&arena->free);
	TAILQ_INIT(&arena->waiting);
	TAILQ_INIT(&arena->unused);
	for (unsigned i = 0; i < HOLD_QPS; i++)
		TAILQ_INSERT_TAIL(&arena->unused, &arena->holds[i], link);
	return 0;
}

void
hold_arena_fini(struct hold_arena *arena)
{
	if (arena->packets == NULL)
		return;
	assert(TAILQ_EMPTY(&arena->waiting));
	alloc_put(&alloc_demand, arena->packets, HOLD_ARENA_BYTES);
}

/* Data path. */

/* NULL: it holds nothing. */
static struct hold *
hold_of(const struct qp *qp)
{
	return qp->resp.hold != 0 ? &qp->shared->hold->holds[qp->resp.hold - 1] : NULL;
}

/* The QP that has waited longest gives up what it holds. Its peer has to send that again:
 * a NAK that is still to be sent remains so. */
static bool
oldest_drop(struct hold_arena *arena, const struct qp *except)
{
	struct hold *oldest = TAILQ_FIRST(&arena->waiting);
	uint32_t last;

	if (oldest != NULL && oldest->qp == except)
		oldest = TAILQ_NEXT(oldest, link);
	if (oldest == NULL)
		return false;
	last = TAILQ_LAST(&oldest->packets, held_packets)->view.psn;
	if (psn_diff(last, oldest->qp->resp.nak_high_psn) > 0)
		oldest->qp->resp.nak_high_psn = last;
	oldest->qp->shared->stats->hold_evicted++;
	hold_drop(oldest->qp);
	return true;
}

static struct held_packet *
packet_get(struct hold_arena *arena, const struct qp *qp)
{
	struct held_packet *packet;

	if (TAILQ_EMPTY(&arena->free) && arena->touched < HOLD_PACKETS)
		return &arena->packets[arena->touched++];
	if (TAILQ_EMPTY(&arena->free) && !oldest_drop(arena, qp))
		return NULL;
	packet = TAILQ_FIRST(&arena->free);
	TAILQ_REMOVE(&arena->free, packet, link);
	return packet;
}

static struct hold *
hold_get(struct hold_arena *arena, struct qp *qp)
{
	struct hold *hold;

	if (TAILQ_EMPTY(&arena->unused))
		(void)oldest_drop(arena, qp);
	hold = TAILQ_FIRST(&arena->unused);
	TAILQ_REMOVE(&arena->unused, hold, link);
	TAILQ_INSERT_TAIL(&arena->waiting, hold, link);
	TAILQ_INIT(&hold->packets);
	hold->qp = qp;
	qp->resp.hold = (hold - arena->holds + 1) & 0x3F;
	return hold;
}

/* The QP holds nothing any more. */
static void
hold_end(struct hold_arena *arena, struct qp *qp)
{
	struct hold *hold = hold_of(qp);

	TAILQ_REMOVE(&arena->waiting, hold, link);
	TAILQ_INSERT_HEAD(&arena->unused, hold, link);
	qp->resp.hold = 0;
	qp->resp.sack_due = false;
	resp_due_changed(qp);
}

static const uint8_t *
moved(const uint8_t *from, const struct pkt_view *view, const struct held_packet *packet)
{
	return packet->bytes + (from - view->ip);
}

/* The length of the headers from the IP header on. */
static size_t
headers_len(const struct pkt_view *view)
{
	return (size_t)(view->ext + view->op->ext_len - view->ip);
}

static void
packet_fill(struct held_packet *packet, const struct pkt_view *view)
{
	size_t headers = headers_len(view);

	memcpy(packet->bytes, view->ip, headers);
	memcpy(packet->bytes + headers, view->payload, view->payload_len);
	packet->view = *view;
	packet->view.ip = packet->bytes;
	packet->view.bth =
		(const struct bth *)moved((const uint8_t *)view->bth, view, packet);
	packet->view.ext = moved(view->ext, view, packet);
	packet->view.payload = packet->bytes + headers;
}

/* The last held packet with this PSN or one before it; NULL: there is none. Packets mostly
 * arrive in order, so the search begins at the end. */
static struct held_packet *
packet_before(const struct hold *hold, uint32_t psn)
{
	struct held_packet *packet;

	TAILQ_FOREACH_REVERSE(packet, &hold->packets, held_packets, link)
	{
		if (psn_diff(packet->view.psn, psn) <= 0)
			break;
	}
	return packet;
}

bool
hold_add(struct qp *qp, const struct pkt_view *view)
{
	struct hold_arena *arena = qp->shared->hold;
	struct hold *hold = hold_of(qp);
	struct held_packet *packet, *before;
	size_t len = headers_len(view) + view->payload_len;

	if (arena == NULL || len > HOLD_BYTES ||
		psn_diff(view->psn, qp->resp.epsn) >= QP_MAX_UNACKED)
		return false;
	before = hold != NULL ? packet_before(hold, view->psn) : NULL;
	if (before != NULL && before->view.psn == view->psn)
		return true; /* it came twice */
	packet = packet_get(arena, qp);
	if (packet == NULL)
		return false;
	if (hold == NULL)
		hold = hold_get(arena, qp);
	packet_fill(packet, view);
	if (before != NULL)
		TAILQ_INSERT_AFTER(&hold->packets, before, packet, link);
	else
		TAILQ_INSERT_HEAD(&hold->packets, packet, link);
	qp->shared->stats->held++;
	return true;
}

void
hold_put(struct qp *qp, struct held_packet *packet)
{
	TAILQ_INSERT_HEAD(&qp->shared->hold->free, packet, link);
}

struct held_packet *
hold_take(struct qp *qp)
{
	struct held_packet *packet;
	struct hold *hold;

	while ((hold = hold_of(qp)) != NULL) {
		int32_t ahead;

		packet = TAILQ_FIRST(&hold->packets);
		ahead = psn_diff(packet->view.psn, qp->resp.epsn);
		if (ahead > 0)
			break;
		TAILQ_REMOVE(&hold->packets, packet, link);
		if (TAILQ_EMPTY(&hold->packets))
			hold_end(qp->shared->hold, qp);
		if (ahead == 0)
			return packet;
		hold_put(qp, packet);
	}
	return NULL;
}

void
hold_drop(struct qp *qp)
{
	struct hold *hold = hold_of(qp);
	struct held_packet *packet;

	if (hold == NULL)
		return;
	while ((packet = TAILQ_FIRST(&hold->packets)) != NULL) {
		TAILQ_REMOVE(&hold->packets, packet, link);
		hold_put(qp, packet);
	}
	hold_end(qp->shared->hold, qp);
}

void
hold_sack_owe(struct qp *qp, uint32_t psn)
{
	struct hold *hold = hold_of(qp);

	if (hold == NULL || qp->peer == NULL || !peer_sacks(qp->peer))
		return;
	qp->resp.sack_due = true;
	hold->echo = psn;
	resp_due_changed(qp);
}

void
hold_sack_take(struct qp *qp, struct seth *seth)
{
	struct hold *hold = hold_of(qp);
	struct held_packet *packet;

	*seth = (struct seth){.version = SETH_VERSION << 4};
	be24_put(seth->echo, hold->echo);
	TAILQ_FOREACH (packet, &hold->packets, link) {
		uint32_t bit = (packet->view.psn - qp->resp.epsn - 1) & PSN_MASK;

		assert(bit < 8 * sizeof(seth->map));
		seth->map[bit / 8] |= (uint8_t)(1 << bit % 8);
	}
	qp->resp.sack_due = false;
	resp_due_changed(qp);
}

/* A NAK that has not been sent stays pending if a packet from the new ePSN on was dropped:
 * it will carry that PSN. */
enum verdict
resp_hole_filled(struct qp *qp)
{
	struct responder *resp = &qp->resp;

	if (qp->aeth_pending != AETH_PENDING_SEQ_NAK ||
		psn_diff(resp->epsn, resp->nak_high_psn) > 0)
		resp->wait = RESP_OPEN;
	return resp->hold != 0 ? VERDICT_FILLED : VERDICT_GO;
}
