/* SPDX-License-Identifier: BSD-3-Clause */
/* XRC connections: an initiator, and a target with an SRQ of its own domain. */
#ifndef ROCADE_SIM_XRC_H
#define ROCADE_SIM_XRC_H

#include "end.h"

/* The target's domain and SRQ, which its receive model is of then. */
void
xrc_open(struct end *e);
/* The target is gone. */
void
xrc_close(struct end *e);
struct ibv_qp *
xrc_target_create(struct end *e, struct ibv_qp_init_attr *attr);

#endif
