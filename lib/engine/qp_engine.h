/* SPDX-License-Identifier: BSD-3-Clause */
/* Control path. */
/* Which engine a QP belongs to. With dev->lock and the locks of all engines held. */
#ifndef ROCADE_ENGINE_QP_ENGINE_H
#define ROCADE_ENGINE_QP_ENGINE_H

#include "engine/engine_state.h"

/* Gives the QP, which has no engine, to this one. */
void engine_attach(struct engine *e, struct qp *qp);
/* Removes the QP from its engine, its queues and every list. */
void engine_detach(struct qp *qp);

/*
 * To be called before a modification with IBV_QP_AV. If that is valid and connects the QP, moves it to the engine whose receive queue gets its packets, if the port
 * knows which one that is and the application has not chosen an engine. After RTR a QP stays
 * where it is. Returns whether the QP is on that engine.
 */
bool engine_steer(struct dev *dev, struct qp *qp, const struct qp_attr *attr, int mask);

#endif
