/* SPDX-License-Identifier: BSD-3-Clause */
/* Lists of requests in which FLUSHes are. struct ibv_send_wr has no members for one: wr.atomic has where it
 * is, its length as compare_add, and its level as swap. */
#ifndef TESTPMD_TX_FLUSH_H
#define TESTPMD_TX_FLUSH_H

#include <infiniband/verbs.h>

/* Posts an array of *n requests, as ibv_post_send(3) does a list. Returns 0, or the error of the first one that is
 * refused. *n: how many are posted. */
int send_post_list(struct ibv_qp *qp, struct ibv_send_wr *wr, unsigned *n);
/* The same, with FLUSHes among them. */
int flush_post_list(struct ibv_qp *qp, struct ibv_send_wr *wr, unsigned *n);

#endif
