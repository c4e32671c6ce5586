/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ROCADE_VERBS_MW_H
#define ROCADE_VERBS_MW_H

#include <infiniband/verbs.h>

/* ibv_alloc_mw(3), ibv_bind_mw(3): functions of a context. */
struct ibv_mw *verbs_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type);
int verbs_dealloc_mw(struct ibv_mw *mw);
int verbs_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind);

#endif
