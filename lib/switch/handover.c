/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "base/asleep.h"
#include "base/base_alloc.h"
#include "switch/handover.h"
#include "switch/sw.h"

/* ---- Control path ---- */

struct handover *
handover_create(uint32_t buf_size)
{
	struct handover *h = alloc_get(&alloc_plain, "handover", sizeof(*h));

	if (h == NULL)
		return NULL;
	h->buf_size = buf_size;
	/* Most pairs of threads exchange few packets. */
	h->bytes = alloc_get(
		&alloc_demand, "handover packets", (size_t)HANDOVER_SLOTS * buf_size);
	if (h->bytes == NULL) {
		alloc_put(&alloc_plain, h, sizeof(*h));
		return NULL;
	}
	ring_prod_init(&h->prod, &h->prod_shown, &h->cons_shown, h->desc, HANDOVER_SLOTS);
	ring_cons_init(&h->cons, &h->prod_shown, &h->cons_shown, h->desc, HANDOVER_SLOTS);
	for (uint32_t i = 0; i < HANDOVER_SLOTS; i++)
		h->slots[i].bytes = h->bytes + (size_t)i * buf_size;
	return h;
}

void
handover_destroy(struct handover *h)
{
	if (h == NULL)
		return;
	alloc_put(&alloc_demand, h->bytes, (size_t)HANDOVER_SLOTS * h->buf_size);
	alloc_put(&alloc_plain, h, sizeof(*h));
}

/* Also in slots that are not published yet. */
static void
ring_forget(struct handover *h, const struct sw_client *client)
{
	for (uint32_t at = h->cons.cons; at != h->prod.prod; at++) {
		struct handed *slot = &h->slots[at & h->prod.mask];

		if (slot->client == client)
			slot->client = NULL;
	}
}

void
handover_forget(struct sw *sw, const struct sw_client *client)
{
	for (uint32_t i = 0; i < sw->thread_count * sw->thread_count; i++) {
		struct handover *h =
			sw->threads[i / sw->thread_count]->to[i % sw->thread_count];

		if (h != NULL)
			ring_forget(h, client);
	}
}

/* ---- Data path ---- */

struct handed *
handover_slot(struct sw_thread *from, const struct sw_thread *to)
{
	struct handover *h = from->to[to->index];

	if (unlikely(ring_room(&h->prod) == 0)) {
		(void)ring_prod_refresh(&h->prod);
		if (ring_room(&h->prod) == 0)
			return NULL;
	}
	return &h->slots[h->prod.prod & h->prod.mask];
}

void
handover_put(struct sw_thread *from, const struct sw_thread *to)
{
	from->to[to->index]->prod.prod++;
	from->unpublished |= UINT32_C(1) << to->index;
	from->stats.handed_over++;
}

bool
handover_bytes(struct sw_thread *from, const struct sw_thread *to, enum handed_kind kind,
	struct sw_client *client, const struct handed_bytes *bytes)
{
	struct handed *slot = handover_slot(from, to);

	if (unlikely(slot == NULL || bytes->len > from->to[to->index]->buf_size))
		return false;
	slot->kind = kind;
	slot->client = client;
	slot->len = bytes->len;
	memcpy(slot->bytes, bytes->head, bytes->head_len);
	memcpy(slot->bytes + bytes->head_len, bytes->rest, bytes->len - bytes->head_len);
	handover_put(from, to);
	return true;
}

static void
thread_wake(struct sw_thread *from, const struct sw_thread *to)
{
	const struct sw *sw = from->sw;

	if (sw->wake_thread != NULL &&
		unlikely(asleep_wake_wanted(&to->asleep, &from->woken[to->index]))) {
		from->stats.thread_wakeups++;
		sw->wake_thread(sw->wake_thread_arg, to->index);
	}
}

void
handover_publish(struct sw_thread *from)
{
	while (from->unpublished != 0) {
		uint32_t to = (uint32_t)__builtin_ctz(from->unpublished);

		from->unpublished &= from->unpublished - 1;
		ring_publish(&from->to[to]->prod);
		thread_wake(from, from->sw->threads[to]);
	}
}
