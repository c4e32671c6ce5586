/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
#include <string.h>

#include "switch/route.h"
#include "switch/sw_ask.h"
#include "switch/sw_client.h"
#include "switch/sw_ext.h"
#include "switch/sw_group.h"
#include "switch/sw_hop.h"
#include "switch/sw_take.h"
#include "switch/uplink.h"

static void
deliver_take(const struct handed *h)
{
	if (likely(h->client != NULL))
		sw_client_put_taken(h->client, h->bytes, h->len);
}

static void
group_take(struct sw_thread *t, const struct handed *h)
{
	const struct handed_bytes bytes = {h->bytes, h->len, h->bytes + h->len, h->len};

	sw_group_deliver_taken(t, h->gid, &bytes);
}

/* Sends the packet, and tells the client's thread the next hop. */
static void
send_take(const struct sw_thread *t, const struct handed *h)
{
	if (unlikely(h->client == NULL))
		return;
	(void)sw_send_for(h->client, h->bytes, h->len);
	uplink_hop_tell(t->sw->up, h->client->thread, h->gid);
}

static void
ask_take(struct sw_thread *t, const struct handed *h)
{
	struct ring_desc desc;

	if (unlikely(h->client == NULL))
		return;
	memcpy(&desc, h->bytes, sizeof(desc));
	if (h->kind == HANDED_ASK)
		sw_ask_taken(t, h->client, &desc);
	else
		sw_ask_reply_taken(h->client, &desc);
}

static void
handed_take(struct sw_thread *t, struct handed *h, uint64_t now)
{
	switch (h->kind) {
	case HANDED_DELIVER:
		deliver_take(h);
		break;
	case HANDED_GROUP:
		group_take(t, h);
		break;
	case HANDED_FRAME:
		uplink_frame_taken(t->sw->up, t, &h->frame, now);
		break;
	case HANDED_SEND:
		send_take(t, h);
		break;
	case HANDED_QUERY:
		if (likely(h->client != NULL))
			sw_ext_query(h->client, h->bytes, h->len);
		break;
	case HANDED_ASK:
	case HANDED_ASK_REPLY:
		ask_take(t, h);
		break;
	case HANDED_HOP:
		sw_hop_set(t, &h->hop);
		break;
	}
}

static unsigned
ring_take(struct sw_thread *t, struct handover *ring, uint64_t now)
{
	uint32_t n = RTE_MIN(handover_count(ring), SW_TAKE_BURST + 0u);

	for (uint32_t i = 0; i < n; i++) {
		struct handed *next = handover_at(ring, i + 1);

		__builtin_prefetch(next);
		__builtin_prefetch(next->bytes);
		handed_take(t, handover_at(ring, i), now);
	}
	if (n != 0)
		handover_release(ring, n);
	return n;
}

unsigned
sw_take(struct sw_thread *t, uint64_t now)
{
	unsigned taken = 0;

	for (uint32_t i = 0; i < t->sw->thread_count; i++)
		if (i != t->index)
			taken += ring_take(t, t->sw->threads[i]->to[t->index], now);
	t->stats.taken_over += taken;
	return taken;
}

bool
sw_take_pending(const struct sw_thread *t)
{
	for (uint32_t i = 0; i < t->sw->thread_count; i++)
		if (i != t->index && handover_count(t->sw->threads[i]->to[t->index]) != 0)
			return true;
	return false;
}
