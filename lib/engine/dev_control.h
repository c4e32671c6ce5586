/* SPDX-License-Identifier: BSD-3-Clause */
/* Control path. */
/* Shared by the control calls of a device (dev*.c). */
#ifndef ROCADE_ENGINE_DEV_CONTROL_H
#define ROCADE_ENGINE_DEV_CONTROL_H

#include "engine/dev.h"

/* Takes dev->lock and these locks. It waits for them with no lock held, so that the thread
 * that has one can make control calls until it releases it. */
void dev_lock_with(struct dev *dev, const struct app_locks *locks);
void dev_unlock_with(struct dev *dev, const struct app_locks *locks);

/* Tells the port its addresses, and which multicast MACs to receive. With dev->lock held, or
 * before the device is in use. */
void dev_filter_set(struct dev *dev);

/* The engine of the QP, and those that use its queues: with their locks held the QP can be reset. A bit
 * each. With dev->lock held. */
uint32_t dev_qp_engines(const struct qp *qp);
/* As dev_qp_stop(), with dev->lock, and the locks of dev_qp_engines() and qp_reset_locks() held. Other
 * engines may use the QP until dev_grace_wait() returns. */
void dev_qp_remove(struct dev *dev, struct qp *qp, uint64_t now);

/* For dev.c: create and destroy what its engines share to wait for answers (engine_answer.c). Returns 0 or
 * -ENOMEM. */
int dev_answers_create(struct dev *dev);
void dev_answers_destroy(struct dev *dev);

/* For dev.c: create the engine of a queue of the port (NULL: no memory), and destroy
 * it. */
struct engine *engine_create(struct dev *dev, unsigned index);
void engine_destroy(struct engine *e);

#endif
