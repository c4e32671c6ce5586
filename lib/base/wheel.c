/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A timer of tick t is on the level of the highest group of WHEEL_SLOT_BITS bits in which
 * t differs from the wheel's tick, in the slot that this group of t names. So on every
 * level but the last, the occupied slots come after the wheel's current one, and the
 * first of them on the lowest occupied level starts before all others. The last level is
 * a ring: timers that differ in a higher group wait there too, for one revolution or
 * more.
 */
#include <limits.h>

#include "base/wheel.h"

#define SLOT_MASK (WHEEL_SLOTS - 1)
#define TOP (WHEEL_LEVELS - 1)
#define DUE WHEEL_LEVELS /* level of a timer that is in no slot */

static_assert(WHEEL_SLOTS == 64, "a level's bitmap is one uint64_t");

/* The start of a slot: at level 0 its timers fire, above it they cascade to lower
 * levels. */
struct wheel_event {
	uint64_t tick;
	unsigned level;
	unsigned slot;
};

/* The level of a timer for tick `when`. */
static unsigned
level_of(uint64_t tick, uint64_t when)
{
	/* The `or` gives a timer of this very tick level 0, without a special case. */
	unsigned level = (63 - __builtin_clzll((tick ^ when) | 1)) / WHEEL_SLOT_BITS;

	return level < TOP ? level : TOP;
}

static void
slot_insert(struct wheel *wheel, struct wheel_timer *timer, uint64_t tick)
{
	uint64_t when = timer->when_ns >> WHEEL_TICK_SHIFT;
	unsigned level = level_of(tick, when);

	timer->level = level;
	timer->slot = (when >> (level * WHEEL_SLOT_BITS)) & SLOT_MASK;
	LIST_INSERT_HEAD(&wheel->slots[level][timer->slot], timer, link);
	wheel->occupied[level] |= UINT64_C(1) << timer->slot;
}

static void
timer_unlink(struct wheel *wheel, struct wheel_timer *timer)
{
	LIST_REMOVE(timer, link);
	timer->when_ns = TIME_NEVER;
	wheel->count--;
	if (timer->level != DUE && LIST_EMPTY(&wheel->slots[timer->level][timer->slot]))
		wheel->occupied[timer->level] &= ~(UINT64_C(1) << timer->slot);
}

/* The first slot at or after tick that has timers; false when no slot has any. */
static bool
event_find(const struct wheel *wheel, uint64_t tick, struct wheel_event *event)
{
	for (unsigned level = 0; level < TOP; level++) {
		unsigned shift = level * WHEEL_SLOT_BITS;

		if (wheel->occupied[level] == 0)
			continue;
		event->level = level;
		event->slot = __builtin_ctzll(wheel->occupied[level]);
		event->tick = (tick >> shift) & ~(uint64_t)SLOT_MASK;
		event->tick = (event->tick | event->slot) << shift;
		return true;
	}
	if (wheel->occupied[TOP] == 0)
		return false;

	uint64_t turn = tick >> (TOP * WHEEL_SLOT_BITS);
	/* Starts at the slot after the current one: a timer in the current slot waits a
	 * whole revolution. */
	unsigned first = (turn + 1) & SLOT_MASK;
	uint64_t seen = wheel->occupied[TOP];

	seen = (seen >> first) | (seen << ((WHEEL_SLOTS - first) & SLOT_MASK));
	turn += 1 + __builtin_ctzll(seen);
	event->level = TOP;
	event->slot = turn & SLOT_MASK;
	event->tick = turn << (TOP * WHEEL_SLOT_BITS);
	return true;
}

static void
list_move(struct wheel_list *to, struct wheel_list *from)
{
	to->lh_first = from->lh_first;
	if (to->lh_first != NULL)
		to->lh_first->link.le_prev = &to->lh_first;
	LIST_INIT(from);
}

/* Moves up to max timers to the list that ends at *last. Returns how many. */
static unsigned
list_expire(struct wheel_list *from, struct wheel_list *out, struct wheel_timer **last,
	unsigned max)
{
	struct wheel_timer *timer;
	unsigned n = 0;

	for (; n < max && (timer = LIST_FIRST(from)) != NULL; n++) {
		LIST_REMOVE(timer, link);
		timer->level = DUE;
		if (*last == NULL)
			LIST_INSERT_HEAD(out, timer, link);
		else
			LIST_INSERT_AFTER(*last, timer, link);
		*last = timer;
	}
	return n;
}

/* Cascades up to max timers of wheel->moving. Returns how many. */
static unsigned
moving_cascade(struct wheel *wheel, unsigned max)
{
	struct wheel_timer *timer;
	unsigned n = 0;

	for (; n < max && (timer = LIST_FIRST(&wheel->moving)) != NULL; n++) {
		LIST_REMOVE(timer, link);
		slot_insert(wheel, timer, wheel->tick);
	}
	return n;
}

/* Advances the wheel to tick, or to an earlier one at which the budget is used up. Timers that
 * are due then are in expired, in firing order. */
static inline void
wheel_advance_to(struct wheel *wheel, uint64_t tick, unsigned moves, unsigned fires,
	struct wheel_list *expired)
{
	struct wheel_timer *last = NULL;
	struct wheel_event event;

	LIST_INIT(expired);
	if (unlikely(!LIST_EMPTY(&wheel->due)))
		fires -= list_expire(&wheel->due, expired, &last, fires);
	if (unlikely(!LIST_EMPTY(&wheel->moving))) {
		moves -= moving_cascade(wheel, moves);
		if (!LIST_EMPTY(&wheel->moving))
			return;
	}
	/* A slot that starts at the new tick itself cascades now: the wheel's current
	 * slot is always empty, except on level 0. */
	while (event_find(wheel, wheel->tick, &event) && event.tick <= tick) {
		struct wheel_list *slot = &wheel->slots[event.level][event.slot];
		uint64_t bit = UINT64_C(1) << event.slot;

		if (event.level == 0 && event.tick == tick)
			break;
		wheel->tick = event.tick;
		if (event.level == 0) {
			fires -= list_expire(slot, expired, &last, fires);
			if (!LIST_EMPTY(slot))
				return;
			wheel->occupied[0] &= ~bit;
		} else {
			/* Emptied first: on the last level a timer may go back to its
			 * slot. */
			wheel->occupied[event.level] &= ~bit;
			list_move(&wheel->moving, slot);
			moves -= moving_cascade(wheel, moves);
			if (!LIST_EMPTY(&wheel->moving))
				return;
		}
	}
	wheel->tick = tick;
}

void
wheel_init(struct wheel *wheel, uint64_t now_ns)
{
	wheel->tick = now_ns >> WHEEL_TICK_SHIFT;
	wheel->count = 0;
	for (unsigned level = 0; level < WHEEL_LEVELS; level++) {
		wheel->occupied[level] = 0;
		for (unsigned slot = 0; slot < WHEEL_SLOTS; slot++)
			LIST_INIT(&wheel->slots[level][slot]);
	}
	LIST_INIT(&wheel->due);
	LIST_INIT(&wheel->moving);
}

void
wheel_set(struct wheel *wheel, struct wheel_timer *timer, uint64_t when_ns)
{
	wheel_cancel(wheel, timer);
	if (when_ns == TIME_NEVER)
		return;
	timer->when_ns = when_ns;
	wheel->count++;
	if (when_ns >> WHEEL_TICK_SHIFT >= wheel->tick) {
		slot_insert(wheel, timer, wheel->tick);
	} else {
		timer->level = DUE;
		LIST_INSERT_HEAD(&wheel->due, timer, link);
	}
}

uint64_t
wheel_cascade_time(const struct wheel *wheel, uint64_t when_ns)
{
	uint64_t when = when_ns >> WHEEL_TICK_SHIFT;
	unsigned shift = level_of(wheel->tick, when) * WHEEL_SLOT_BITS;

	return shift != 0 ? when >> shift << (shift + WHEEL_TICK_SHIFT) : when_ns;
}

void
wheel_cancel(struct wheel *wheel, struct wheel_timer *timer)
{
	if (wheel_timer_armed(timer))
		timer_unlink(wheel, timer);
}

static __rte_always_inline unsigned
advance(struct wheel *wheel, uint64_t now_ns, unsigned moves, unsigned fires,
	wheel_fire_fn fire, void *arg)
{
	uint64_t tick = now_ns >> WHEEL_TICK_SHIFT;
	struct wheel_list expired;
	struct wheel_timer *timer;
	unsigned fired = 0;

	if (tick < wheel->tick)
		tick = wheel->tick;
	if (wheel->count == 0) {
		wheel->tick = tick;
		return 0;
	}
	/* The wheel is at the new tick before the first callback. A timer that a callback
	 * arms for the past then goes to wheel->due, not to the list being fired. */
	wheel_advance_to(wheel, tick, moves, fires, &expired);
	while ((timer = LIST_FIRST(&expired)) != NULL) {
		timer_unlink(wheel, timer);
		fired++;
		fire(timer, now_ns, arg);
	}
	return fired;
}

unsigned
wheel_advance_some(struct wheel *wheel, uint64_t now_ns,
	const struct wheel_budget *budget, wheel_fire_fn fire, void *arg)
{
	return advance(wheel, now_ns, budget->moves, budget->fires, fire, arg);
}

unsigned
wheel_advance_slow(struct wheel *wheel, uint64_t now_ns, wheel_fire_fn fire, void *arg)
{
	return advance(wheel, now_ns, UINT_MAX, UINT_MAX, fire, arg);
}

uint64_t
wheel_next(const struct wheel *wheel)
{
	struct wheel_event event;

	if (!LIST_EMPTY(&wheel->due) || !LIST_EMPTY(&wheel->moving))
		return wheel->tick << WHEEL_TICK_SHIFT;
	if (!event_find(wheel, wheel->tick, &event))
		return TIME_NEVER;
	/* The end of the last tick is beyond uint64_t: its timers never fire. */
	if (event.tick >= TIME_NEVER >> WHEEL_TICK_SHIFT)
		return TIME_NEVER;
	return (event.tick + 1) << WHEEL_TICK_SHIFT;
}
