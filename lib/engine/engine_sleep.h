/* SPDX-License-Identifier: BSD-3-Clause */
/* Control path. */
/*
 * Sleeping: an application that runs the engine in its own loop waits for a descriptor while
 * there is nothing to do. The descriptor is readable when a packet may have arrived, a timer is
 * due, or another thread has work for the engine.
 *
 * Without a lost wake-up, and without a fence where others post: the thread that goes to sleep
 * sets doorbells.asleep, calls membarrier(2), and then looks for work once more. The barrier
 * makes every other thread of the process pass a full fence. So a thread whose work was not seen
 * by that look reads the flag behind the barrier, in engine_wake(), and wakes the sleeper.
 */
#ifndef ROCADE_ENGINE_ENGINE_SLEEP_H
#define ROCADE_ENGINE_ENGINE_SLEEP_H

#include "engine/engine.h"

/* Creates the descriptor, which belongs to the engine. Returns 0, -errno, or -EOPNOTSUPP: the
 * kernel lacks membarrier(2). */
int engine_sleep_open(struct engine *e, int *fd);
bool engine_sleep_is_open(const struct engine *e);

/* Turns the descriptor on. False: there was work, which it did, and there may be more: it is off
 * again. One thread at a time, and none may poll the engine until engine_sleep_end(). */
bool engine_sleep_begin(struct engine *e);
/* Turns the descriptor off. */
void engine_sleep_end(struct engine *e);

/* To be called after work for the engine was made visible, by any thread outside lib/engine. */
void engine_wake(struct engine *e);

#endif
