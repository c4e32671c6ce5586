/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ROCADE_SIM_CHECK_H
#define ROCADE_SIM_CHECK_H

#include "end.h"

/* A completion that was polled. */
void
wc_check(struct cq_model *cq, const struct ibv_wc *wc);

/* The end's receive CQ is empty: what was acknowledged has been seen. */
void
end_must_have(struct end *e);

/* Looks whether the QP has failed by itself. */
void
end_sync(struct end *e);

#endif
