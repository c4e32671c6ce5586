/* SPDX-License-Identifier: BSD-3-Clause */
/* The data path of verbs: called by the inline functions of <infiniband/verbs.h>. */
#ifndef ROCADE_VERBS_POST_H
#define ROCADE_VERBS_POST_H

#include <infiniband/verbs.h>

int verbs_post_send(
	struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr);
int verbs_post_recv(
	struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);
int verbs_post_srq_recv(
	struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);
int verbs_poll_cq(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc);
int verbs_req_notify_cq(struct ibv_cq *cq, int solicited_only);

#endif
