/* SPDX-License-Identifier: BSD-3-Clause */
/* A hierarchical timing wheel. Time is an argument: the wheel reads no clock. A timer
 * never fires before its time. It fires in the first wheel_advance() at or after the end
 * of the tick that its time lies in (at most WHEEL_TICK_NS late). Insert and remove are
 * O(1). Idle time costs nothing: a bitmap of each level finds the next slot with timers.
 *
 * One thread at a time: the holder of the engine lock. */
#ifndef ROCADE_BASE_WHEEL_H
#define ROCADE_BASE_WHEEL_H

#include <sys/queue.h>

#include "base/common.h"

#define WHEEL_TICK_SHIFT 8 /* 256 ns */
#define WHEEL_TICK_NS (UINT64_C(1) << WHEEL_TICK_SHIFT)
#define WHEEL_SLOT_BITS 6
#define WHEEL_SLOTS (1u << WHEEL_SLOT_BITS)
#define WHEEL_LEVELS 7 /* 64^7 ticks: 13 days; later timers wait in the last level */

struct wheel_timer {
	LIST_ENTRY(wheel_timer) link;
	uint64_t when_ns; /* TIME_NEVER: not in the wheel */
	uint8_t level;    /* private to the wheel */
	uint8_t slot;
};

LIST_HEAD(wheel_list, wheel_timer);

struct wheel {
	uint64_t tick; /* all ticks before this one have been processed */
	uint32_t count;
	uint64_t occupied[WHEEL_LEVELS];
	struct wheel_list slots[WHEEL_LEVELS][WHEEL_SLOTS];
	struct wheel_list due; /* timers that were set for a tick already processed */
	/* what wheel_advance_some() has left of a slot that cascades */
	struct wheel_list moving;
};

/* Limits of one wheel_advance_some(): a timer moves at most WHEEL_LEVELS - 1 times before it
 * fires. Neither is 0. */
struct wheel_budget {
	unsigned moves;
	unsigned fires;
};

typedef void (*wheel_fire_fn)(struct wheel_timer *timer, uint64_t now_ns, void *arg);

void wheel_init(struct wheel *wheel, uint64_t now_ns);

/* A timer must be initialised once before its first use. */
static inline void
wheel_timer_init(struct wheel_timer *timer)
{
	timer->when_ns = TIME_NEVER;
}

static inline bool
wheel_timer_armed(const struct wheel_timer *timer)
{
	return timer->when_ns != TIME_NEVER;
}

/* Arms the timer, or moves it; TIME_NEVER disarms it. A timer for a tick that has been
 * processed fires in the next wheel_advance(), whatever the time of that call. */
void wheel_set(struct wheel *wheel, struct wheel_timer *timer, uint64_t when_ns);

/* Returns the time at which a timer for when_ns would first cascade to a lower level:
 * when_ns or earlier, and not in a tick that has been processed unless when_ns is. For
 * timers that mostly have to be set again by then: a timer for this time is not moved in
 * between. */
uint64_t wheel_cascade_time(const struct wheel *wheel, uint64_t when_ns);

/* Safe on a timer that is not armed, and inside a callback. */
void wheel_cancel(struct wheel *wheel, struct wheel_timer *timer);

/*
 * Fires every timer whose time has come, in tick order (after those that were already due
 * when they were set). A timer is disarmed before its callback runs. A callback may arm
 * or cancel any timer; one armed for the past fires in the next call. If now_ns is
 * earlier than in an earlier call, that call's time counts. Returns how many fired.
 */
unsigned wheel_advance_slow(
	struct wheel *wheel, uint64_t now_ns, wheel_fire_fn fire, void *arg);

static inline unsigned
wheel_advance(struct wheel *wheel, uint64_t now_ns, wheel_fire_fn fire, void *arg)
{
	/* Most calls are within the tick of the last one: nothing to do. */
	if (likely(now_ns >> WHEEL_TICK_SHIFT <= wheel->tick && LIST_EMPTY(&wheel->due)))
		return 0;
	return wheel_advance_slow(wheel, now_ns, fire, arg);
}

/* As wheel_advance(), up to a limit: a wheel with any number of timers takes bounded time. The
 * rest is done by the next call, for which wheel_next() returns a time that has passed. A
 * wheel that is advanced by this function is not advanced by wheel_advance(). */
unsigned wheel_advance_some(struct wheel *wheel, uint64_t now_ns,
	const struct wheel_budget *budget, wheel_fire_fn fire, void *arg);

/* Returns a time at or before the earliest timer's firing (exact for the lowest level,
 * never late); TIME_NEVER if there is none. A simulator or a sleeping thread may skip to
 * it. */
uint64_t wheel_next(const struct wheel *wheel);

#endif
