/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An engine without a loop of its own: whoever polls or posts takes a turn, and a keeper
 * thread when the application does neither. Nobody waits for the gate but control calls:
 * who does not get it leaves a doorbell, and the holder looks at the doorbells again when
 * it has let go.
 */
#ifndef ROCADE_ENGINE_DRIVE_H
#define ROCADE_ENGINE_DRIVE_H

#include "engine/engine.h"

struct engine_driver {
	/* Wakes the keeper: a timer is due before the time that it sleeps until. */
	void (*kick)(void *arg);
	void *arg;
	/* Where the keeper says to the other end of the port that it sleeps, and has to
	 * be woken for a packet. Cleared when the application polls. */
	uint32_t *asleep;
};

/* From now on the engine is driven; NULL: never again. The gate is held, or nobody knows
 * the engine yet. */
void
engine_set_driver(struct engine *e, const struct engine_driver *driver);
bool
engine_driven(const struct engine *e);

/* A turn, unless somebody else has the gate: he then takes it for us. */
unsigned
engine_try(struct engine *e);

/* The same, but when somebody has the gate he takes one turn more than he would. */
unsigned
engine_try_again(struct engine *e);

/* The application polled and found nothing: a turn, and a note that it is awake. */
void
engine_drive(struct engine *e);

/* The application waits for an event now: the keeper takes over at once. */
void
engine_hand_over(struct engine *e);

/* For the keeper: how often engine_drive() ran; nanoseconds until which it may sleep, 0:
 * not at all, TIME_NEVER: until it is kicked. */
uint32_t
engine_drives(const struct engine *e);
uint64_t
engine_rest(struct engine *e);

/* The device's port is gone for good: its QPs go to the error state, so that all that was
 * posted is flushed, and who listens hears IBV_EVENT_DEVICE_FATAL. */
void
dev_fail(struct dev *dev);

#endif
