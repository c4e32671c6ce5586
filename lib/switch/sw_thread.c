/* SPDX-License-Identifier: BSD-3-Clause */
/* Control path. */
#include <errno.h>

#include "base/base_alloc.h"
#include "switch/handover.h"
#include "switch/sw.h"

static struct sw_thread *
sw_thread_create(struct sw *sw, uint32_t index)
{
	struct sw_thread *t = alloc_get(&alloc_plain, "switch thread", sizeof(*t));

	if (t == NULL)
		return NULL;
	t->sw = sw;
	t->index = index;
	t->running = index == 0;
	rte_ticketlock_init(&t->lock);
	TAILQ_INIT(&t->clients);
	TAILQ_INIT(&t->dirty);
	TAILQ_INIT(&t->lagging);
	TAILQ_INIT(&t->holding);
	return t;
}

int
sw_threads_create(struct sw *sw, uint32_t count, uint32_t buf_size)
{
	for (uint32_t i = 0; i < count; i++) {
		sw->threads[i] = sw_thread_create(sw, i);
		if (sw->threads[i] == NULL)
			return -ENOMEM;
		sw->thread_count = i + 1;
	}
	for (uint32_t i = 0; i < count * count; i++) {
		struct sw_thread *from = sw->threads[i / count];

		if (i / count == i % count)
			continue;
		from->to[i % count] = handover_create(buf_size);
		if (from->to[i % count] == NULL)
			return -ENOMEM;
	}
	return 0;
}

void
sw_threads_destroy(struct sw *sw)
{
	for (uint32_t i = 0; i < sw->thread_count; i++) {
		for (uint32_t to = 0; to < sw->thread_count; to++)
			handover_destroy(sw->threads[i]->to[to]);
		alloc_put(&alloc_plain, sw->threads[i], sizeof(*sw->threads[i]));
	}
	sw->thread_count = 0;
}

void
sw_lock(struct sw *sw)
{
	if (sw->lock_depth++ != 0)
		return;
	for (uint32_t i = 1; i < sw->thread_count; i++)
		sw_thread_lock(sw->threads[i]);
}

void
sw_unlock(struct sw *sw)
{
	if (--sw->lock_depth != 0)
		return;
	for (uint32_t i = 1; i < sw->thread_count; i++)
		sw_thread_unlock(sw->threads[i]);
}

struct sw_thread *
sw_thread_choose(const struct sw *sw)
{
	struct sw_thread *chosen = sw->threads[0];

	for (uint32_t i = 1; i < sw->thread_count; i++) {
		struct sw_thread *t = sw->threads[i];

		if (__atomic_load_n(&t->running, __ATOMIC_RELAXED) &&
			t->client_count < chosen->client_count)
			chosen = t;
	}
	return chosen;
}
