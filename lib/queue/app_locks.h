/* SPDX-License-Identifier: BSD-3-Clause */
/* Control path. */
/*
 * Locks that a thread keeps while the application runs: that of a CQ's pollers, from
 * ibv_start_poll(3) to ibv_end_poll(3), and that of an SQ, from ibv_wr_start(3) to
 * ibv_wr_complete(3). In between the application may make control calls and poll other
 * CQs. So a control call that needs such locks never waits for one while it holds another
 * lock: it tries them, and waits with none in hand.
 */
#ifndef ROCADE_QUEUE_APP_LOCKS_H
#define ROCADE_QUEUE_APP_LOCKS_H

#include <stdbool.h>

#include <rte_spinlock.h>

#define APP_LOCKS_MAX 3 /* a QP's: of two CQs and an SQ */

struct app_locks {
	unsigned count;
	rte_spinlock_t *lock[APP_LOCKS_MAX];
};

/* A lock that is in the set already is not added again. */
void app_locks_add(struct app_locks *set, rte_spinlock_t *lock);

/* Takes all of the locks, or none. Returns whether it has them. */
bool app_locks_try(const struct app_locks *set);
void app_locks_release(const struct app_locks *set);

/* Waits until it has seen each of the locks free. The caller holds no lock. */
void app_locks_wait(const struct app_locks *set);

#endif
