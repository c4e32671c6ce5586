/* SPDX-License-Identifier: BSD-3-Clause */
/* Control path. */
/* Which engine a QP belongs to. With dev->lock, and the locks of the engines that dev_qp_engines() has, before
 * and after. */
#ifndef ROCADE_ENGINE_QP_ENGINE_H
#define ROCADE_ENGINE_QP_ENGINE_H

#include "engine/engine_state.h"

/* Gives the QP, which has no engine, to this one. */
void engine_attach(struct engine *e, struct qp *qp);
/* Removes the QP from its engine, its queues and every list. */
void engine_detach(struct qp *qp);

/* The engines that use the QP's queues, a bit each. */
uint32_t qp_queue_engines(const struct qp *qp);

/*
 * To be called before a modification with IBV_QP_AV. Returns the engine whose receive queue gets the
 * packets of the connection, if the modification makes one, the port knows which queue that is, and the
 * application has not chosen an engine; else NULL. After RTR a QP stays where it is. Needs no engine
 * lock.
 */
struct engine *engine_steer_choose(
	const struct dev *dev, const struct qp *qp, const struct qp_attr *attr, int mask);
/* Moves the QP to that engine, unless the modification is going to be refused, which changes nothing.
 * Returns whether the QP is on that engine. */
bool engine_steer(struct dev *dev, struct qp *qp, struct engine *to,
	const struct qp_attr *attr, int mask);

#endif
