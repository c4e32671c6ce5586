/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/*
 * The engine: one poll loop that owns a set of QPs and one RX/TX queue pair of a port.
 * Each pass of the loop takes the engine lock, which is fair. Only the thread that holds
 * it runs the engine. Posting threads call engine_doorbell() without it.
 */
#ifndef ROCADE_ENGINE_ENGINE_H
#define ROCADE_ENGINE_ENGINE_H

#include <rte_ticketlock.h>

#include "engine/dev.h"
#include "engine/wall_time.h"

/* One pass of the poll loop: takes the lock, receives a burst, runs timers, drains
 * doorbells, sends. Returns the number of packets received and sent (0: idle). now:
 * nanoseconds of any monotonic clock, the same for all engines of a process. */
unsigned engine_run(struct engine *e, uint64_t now);

/* As engine_run(), at the current time of the process's clock. */
unsigned engine_poll(struct engine *e);

/* Returns the current time of the process's clock, in nanoseconds, for control calls that
 * need a time. */
uint64_t engine_clock(void);

/* Converts a time of the process's clock to nanoseconds of the wall clock
 * (CLOCK_REALTIME, as it is set now). */
uint64_t engine_clock_wall(uint64_t stamp);
/* The same for the stamps of a queue, whose order it keeps. */
uint64_t engine_clock_wall_of(struct wall_time *w, uint64_t stamp);

/* Returns the time of the next work that neither a packet nor a post announces, such as a
 * timer. 0: there is work now; TIME_NEVER: there is none. Takes the engine lock. */
uint64_t engine_deadline(struct engine *e);

/* To be called after a post to the QP, by any thread, without the engine lock. Rings the
 * QP's doorbell. In manual progress the calling thread also runs a pass, if the engine
 * lock is free. Where a loop polls the engine, this call sends the first post of a
 * thread after its engine_poll() itself, without the doorbell, if the engine lock is
 * free, the QP is not on the ready list, and at most one of its requests is in flight;
 * see engine_tx_qp(). */
void engine_doorbell(struct qp *qp);

/* Take and release the engine lock, for control calls. Not recursive. In manual progress
 * engine_unlock() then runs a pass. */
void engine_lock(struct engine *e);
void engine_unlock(struct engine *e);
/* In a child of fork(), in place of engine_unlock(): releases the lock for the child's
 * only thread. The parent's threads that waited for it do not exist here. */
void engine_unlock_forked(struct engine *e);

/* Return and replace the port queue of the engine, for a driver that wraps it. With the
 * engine lock held. */
struct port_queue engine_queue(const struct engine *e);
void engine_set_queue(struct engine *e, const struct port_queue *queue);
/* The queue holds a frame back, for the next passes: those are due now, also if the
 * progress thread sleeps. With the engine lock held. */
void engine_frame_held(void *engine);

/* Where the engine keeps the time of its pass, or of the post that sends at once. With
 * the engine lock held. */
const uint64_t *engine_pass_time(const struct engine *e);

struct dev *engine_dev(struct engine *e);
unsigned engine_index(const struct engine *e);
struct port_stats *engine_stats(struct engine *e);
/* Where the engine counts how long requests take, and keeps the slowest ones, from now
 * on. No QP has sent any. */
void engine_set_latencies(
	struct engine *e, struct latencies *to, struct slowest *slowest);
/* A thread that slept until packets came wakes up. Any thread. */
void engine_woke(struct engine *e);

#endif
