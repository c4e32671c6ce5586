/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The engine: one poll loop that owns a set of QPs and one RX/TX queue pair of a port. It
 * has one fair gate, taken once a loop: whoever holds it is the engine. Nothing below
 * runs without it, except engine_doorbell().
 */
#ifndef ROCADE_ENGINE_ENGINE_H
#define ROCADE_ENGINE_ENGINE_H

#include <rte_ticketlock.h>

#include "engine/dev.h"

/* One turn of the loop: takes the gate, receives a burst, runs timers, serves doorbells,
 * sends. Returns how many packets it moved (0: idle). now: nanoseconds of any clock that
 * only rises, the same for all engines of a process. */
unsigned
engine_run(struct engine *e, uint64_t now);

/* The same, reading the clock of the process (the only place that does). */
unsigned
engine_poll(struct engine *e);

/* Nanoseconds of that clock, for control calls that need a time. */
uint64_t
engine_clock(void);

/* The wall clock's nanoseconds (CLOCK_REALTIME) when that clock was at stamp, as it is set now. */
uint64_t
engine_clock_wall(uint64_t stamp);

/* When there is something to do without a packet or a post: TIME_NEVER if nothing. */
uint64_t
engine_deadline(struct engine *e);

/* After a post: its engine will look at the QP, or has sent the request. Any thread. */
void
engine_doorbell(struct qp *qp);

/* The control side's hold on an engine; not recursive. */
void
engine_lock(struct engine *e);
void
engine_unlock(struct engine *e);

/* The queue that the engine reads and writes, for a driver that wraps it. The caller holds the
 * gate. */
struct port_queue engine_queue(const struct engine *e);
void engine_set_queue(struct engine *e, const struct port_queue *queue);

struct dev *
engine_dev(struct engine *e);
unsigned
engine_index(const struct engine *e);
struct port_stats *
engine_stats(struct engine *e);

#endif
