/* SPDX-License-Identifier: BSD-3-Clause */
/* XRC connections: an initiator, and a target with an SRQ of its own domain, or with one
 * that targets of its host share. */
#ifndef ROCADE_SIM_XRC_H
#define ROCADE_SIM_XRC_H

#include "end.h"

/* The target's SRQ, which its receive model is of then. */
void
xrc_open(struct end *e);
/* The target is gone. */
void
xrc_close(struct end *e);
struct ibv_qp *
xrc_target_create(struct end *e, struct ibv_qp_init_attr *attr);

/* The host's SRQ for many: what it will be, before there are CQs; made; and gone. */
void
xrc_shared_plan(struct host *h);
void
xrc_shared_open(struct host *h);
void
xrc_shared_close(struct host *h);
/* The target is one of those. */
void
xrc_share(struct end *e);

#endif
