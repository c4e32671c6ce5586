/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ROCADE_SIM_CHECK_H
#define ROCADE_SIM_CHECK_H

#include "end.h"

/* Checks a polled completion. */
void wc_check(struct cq_model *cq, const struct ibv_wc *wc);

/* Checks, when the end's receive CQ is empty, that every acknowledged message was
 * seen. */
void end_must_have(struct end *e);

/* Follows a state change that the QP made by itself. Checks that it had a cause. */
void end_sync(struct end *e);

#endif
