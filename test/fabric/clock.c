/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "clock.h"

#define FIRST_ROOM 1024

uint64_t clock_ps, clock_ns;

static struct entry {
	uint64_t when;
	uint64_t order;
	struct event *event;
} * heap; /* heap[1] is the earliest */
static uint32_t count, room;
static uint64_t orders;

static bool
earlier(const struct entry *a, const struct entry *b)
{
	return a->when != b->when ? a->when < b->when : a->order < b->order;
}

static void
put(uint32_t at, struct entry entry)
{
	heap[at] = entry;
	entry.event->place = at;
}

static void
move_up(uint32_t at, struct entry entry)
{
	for (; at > 1 && earlier(&entry, &heap[at / 2]); at /= 2)
		put(at, heap[at / 2]);
	put(at, entry);
}

static void
move_down(uint32_t at, struct entry entry)
{
	for (;;) {
		uint32_t child = 2 * at;

		if (child < count && earlier(&heap[child + 1], &heap[child]))
			child++;
		if (child > count || !earlier(&heap[child], &entry))
			break;
		put(at, heap[child]);
		at = child;
	}
	put(at, entry);
}

void
event_cancel(struct event *event)
{
	uint32_t at = event->place;
	struct entry last;

	if (at == 0)
		return;
	event->place = 0;
	last = heap[count--];
	if (last.event == event)
		return;
	if (at > 1 && earlier(&last, &heap[at / 2]))
		move_up(at, last);
	else
		move_down(at, last);
}

void
event_at(struct event *event, uint64_t when)
{
	event_cancel(event);
	if (count + 2 > room) {
		room = room != 0 ? 2 * room : FIRST_ROOM;
		heap = realloc(heap, room * sizeof(*heap));
		if (heap == NULL)
			abort();
	}
	event->when = RTE_MAX(when, clock_ps);
	move_up(++count, (struct entry){event->when, orders++, event});
}

static void
time_set(uint64_t now)
{
	clock_ps = now;
	clock_ns = now / PS_PER_NS;
}

void
events_run(uint64_t until)
{
	while (count != 0 && heap[1].when <= until) {
		struct event *event = heap[1].event;

		time_set(heap[1].when);
		event_cancel(event);
		event->run(event);
	}
	time_set(until);
}

void
clock_reset(uint64_t now)
{
	while (count != 0)
		event_cancel(heap[count].event);
	time_set(now);
}
