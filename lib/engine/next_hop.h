/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/* The headers of a QP's packets, and the next hop that they go to. For engine_tx.c, and for
 * control calls that change a path. With the engine lock held. */
#ifndef ROCADE_ENGINE_NEXT_HOP_H
#define ROCADE_ENGINE_NEXT_HOP_H

#include <errno.h>

#include "engine/engine_state.h"

/* Builds the headers for qp->path. The next hop's MAC is filled in when the first packet
 * is sent. */
void engine_headers_build(const struct dev *dev, struct qp *qp);

/* For next_hop_resolve(), of a UD QP, whose requests have a destination each: sets the
 * path and the headers for the next request. Returns false if the QP is in RTS and no
 * request is posted. The caller must not send then: a request that another thread posts
 * meanwhile may have another destination. */
bool next_hop_ud_path(struct engine *e, struct qp *qp);
/* For next_hop_resolve(), whose return value it computes. */
int next_hop_lookup(struct engine *e, struct qp *qp, uint64_t now);

/* Fills the next hop's MAC into the header template. Returns enum qp_route, -EAGAIN while
 * the MAC is being resolved, -ENOMSG if nothing is posted to a UD QP, or why there is no
 * MAC. */
static inline int
next_hop_resolve(struct engine *e, struct qp *qp, uint64_t now)
{
	if (qp->type == IBV_QPT_UD && !next_hop_ud_path(e, qp))
		return -ENOMSG;
	if (likely(qp->sched.resolved && qp->sched.net_generation == e->net_generation))
		return qp->sched.route;
	return next_hop_lookup(e, qp, now);
}

#endif
