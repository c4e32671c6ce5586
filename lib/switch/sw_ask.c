/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
#include <string.h>

#include "switch/sw_ask.h"
#include "switch/sw_client.h"
#include "switch/sw_qp.h"

/* If there is no room the reply is lost: the client asks again. */
static void
reply_put(struct sw_client *to, const struct ring_desc *reply)
{
	struct ring_desc desc = *reply;

	desc.buf = to->rx.prod & to->rx.mask;
	desc.flags = RING_ASK;
	(void)sw_client_put_desc(to, &desc);
}

/* Thread t has looked at the peer. The reply comes behind the answers that t has forwarded. */
static void
ask_reply_send(struct sw_thread *t, struct sw_client *to, const struct ring_desc *reply)
{
	const struct handed_bytes bytes = {.head = (const uint8_t *)reply,
		.head_len = sizeof(*reply),
		.rest = (const uint8_t *)reply,
		.len = sizeof(*reply)};

	if (to->thread == t)
		reply_put(to, reply);
	else if (!handover_bytes(t, to->thread, HANDED_ASK_REPLY, to, &bytes))
		t->stats.drop_handover_full++;
}

/* The number runs freely. A client can write any number into its memory: then its own peers are told too
 * early, or never. */
static bool
has_come_to(uint32_t index, uint32_t mark)
{
	return (int32_t)(index - mark) >= 0;
}

/* By the thread of the client peer, behind what was delivered to it. */
static void
ask_look(const struct sw_client *peer, struct ring_desc *ask)
{
	const struct region_client *shown = peer->region.client;
	unsigned step = SW_ASK_STEP(ask->len);

	ask->len = (uint16_t)(ask->len - step);
	if (step == SW_ASK_BEGIN) {
		ask->mark = peer->rx.prod;
		step = SW_ASK_TAKEN;
	}
	/* Pairs with the release in rx_answered_show(): the answers are in the ring. */
	if (step == SW_ASK_TAKEN &&
		has_come_to(__atomic_load_n(&shown->rx_answered, __ATOMIC_ACQUIRE),
			ask->mark)) {
		ask->mark = __atomic_load_n(&shown->tx_prod, __ATOMIC_RELAXED);
		step = SW_ASK_FORWARDED;
	}
	if (step == SW_ASK_FORWARDED && has_come_to(peer->tx.cons, ask->mark))
		step = SW_ASK_DONE;
	ask->len = (uint16_t)(ask->len + step);
}

/* Returns the client that has the QP's peer, or NULL. */
static struct sw_client *
peer_client(const struct sw *sw, const struct sw_qp *qp)
{
	const struct sw_qp *dest =
		qp->peer_local ? qpns_find(&sw->qpns, qp->dest_qpn) : NULL;

	if (dest == NULL || !sw_qp_is_connected(qp, dest) ||
		sw_client_is_corrupt(dest->owner))
		return NULL;
	return dest->owner;
}

bool
sw_ask(struct sw_client *from, const struct ring_desc *ask)
{
	const struct sw_qp *qp = qpns_find(&from->sw->qpns, ask->qpn);
	struct sw_thread *t = from->thread;
	struct ring_desc reply = *ask;
	const struct handed_bytes bytes = {.head = (const uint8_t *)&reply,
		.head_len = sizeof(reply),
		.rest = (const uint8_t *)&reply,
		.len = sizeof(reply)};
	struct sw_client *peer;

	if (unlikely(qp == NULL || qp->owner != from)) {
		from->stats.drop_not_owner++;
		return true;
	}
	peer = peer_client(from->sw, qp);
	/* Earlier packets of the QP have to go first. */
	if (peer != NULL && qp->waiting)
		return false;
	if (peer != NULL && peer->thread != t) {
		if (handover_bytes(t, peer->thread, HANDED_ASK, from, &bytes))
			return true;
		t->stats.handover_blocked++;
		return false;
	}
	if (peer == NULL)
		reply.len |= SW_ASK_DONE;
	else
		ask_look(peer, &reply);
	ask_reply_send(t, from, &reply);
	return true;
}

void
sw_ask_taken(struct sw_thread *t, struct sw_client *from, const struct ring_desc *ask)
{
	const struct sw_qp *qp = qpns_find(&t->sw->qpns, ask->qpn);
	struct ring_desc reply = *ask;
	struct sw_client *peer = NULL;

	if (qp != NULL && qp->owner == from)
		peer = peer_client(t->sw, qp);
	/* It may have changed meanwhile. */
	if (peer != NULL && peer->thread == t)
		ask_look(peer, &reply);
	else
		reply.len |= SW_ASK_DONE;
	ask_reply_send(t, from, &reply);
}

void
sw_ask_reply_taken(struct sw_client *to, const struct ring_desc *reply)
{
	reply_put(to, reply);
}
