/* SPDX-License-Identifier: BSD-3-Clause */
/* The extended calls: ibv_wr_*, ibv_create_cq_ex(), ibv_start_poll(). */
#ifndef ROCADE_SIM_EXT_H
#define ROCADE_SIM_EXT_H

#include "host.h"

struct ibv_qp *ext_qp_create(
	struct ibv_context *ctx, struct ibv_pd *pd, struct ibv_qp_init_attr *attr);
/* Posts the list between one ibv_wr_start() and ibv_wr_complete(): all of it or
 * nothing. */
int ext_post(struct ibv_qp *qp, const struct ibv_send_wr *list);

struct ibv_cq *ext_cq_create(struct cq_model *m);
/* As ibv_poll_cq(). */
int ext_poll(struct cq_model *m, int n, struct ibv_wc *wc);

#endif
