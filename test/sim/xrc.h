/* SPDX-License-Identifier: BSD-3-Clause */
/* XRC connections: an initiator and a target. The target has an SRQ in a domain of its
 * own, or uses one that targets of its host share. */
#ifndef ROCADE_SIM_XRC_H
#define ROCADE_SIM_XRC_H

#include "end.h"

/* Creates the target's SRQ, which its receive model describes. */
void xrc_open(struct end *e);
/* Destroys it. The target is destroyed already. */
void xrc_close(struct end *e);
struct ibv_qp *xrc_target_create(struct end *e, struct ibv_qp_init_attr *attr);

/* The host's shared SRQ: chooses its size before the CQs exist, creates and destroys
 * it. */
void xrc_shared_plan(struct host *h);
void xrc_shared_open(struct host *h);
void xrc_shared_close(struct host *h);
/* Makes the target use the shared SRQ. */
void xrc_share(struct end *e);

#endif
