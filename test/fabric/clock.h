/* SPDX-License-Identifier: BSD-3-Clause */
/* The virtual clock: events in the order of their times. Time is in picoseconds, because
 * a byte takes 80 of them at 100 Gb/s. Engines are given nanoseconds. */
#ifndef ROCADE_FABRIC_CLOCK_H
#define ROCADE_FABRIC_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/common.h"

#define PS_PER_NS UINT64_C(1000)
#define PS_PER_US (1000 * PS_PER_NS)
#define PS_PER_MS (1000 * PS_PER_US)

/* Embedded in the object that it is for; run() finds that by container_of(). */
struct event {
	void (*run)(struct event *event);
	uint64_t when;
	uint32_t place; /* in the heap, from 1; 0: not scheduled */
};

/* The current time. */
extern uint64_t clock_ps;
extern uint64_t clock_ns;

/* Schedules the event, or moves it if it is scheduled. A time that has passed: now. */
void event_at(struct event *event, uint64_t when);
void event_cancel(struct event *event);
static inline bool
event_is_scheduled(const struct event *event)
{
	return event->place != 0;
}

/* Runs the events up to and including this time, which is then the current time. Events
 * of the same time run in the order in which they were scheduled. */
void events_run(uint64_t until);

/* Forgets all events, and sets the time. */
void clock_reset(uint64_t now);

#endif
