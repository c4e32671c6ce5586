/* SPDX-License-Identifier: BSD-3-Clause */
/* Rules of rocade-run --faults that count the requests of a queue: requests that complete with a chosen status, and
 * events. And rules of packets, which are lost, duplicated or delayed. */
#ifndef ROCADE_PRELOAD_FAULT_REQUESTS_H
#define ROCADE_PRELOAD_FAULT_REQUESTS_H

#include <infiniband/verbs.h>

#include "faults/faults.h"

typedef int fault_send_fn(
	struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr);
typedef int fault_recv_fn(
	struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);
typedef int fault_srq_recv_fn(
	struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);

/* Counts one request, which has none behind it, and posts it, or what a rule makes of it. next: how it is posted. A
 * request that is refused does not count. */
int fault_request_post(struct ibv_qp *qp, struct ibv_send_wr *wr, fault_send_fn *next);
int fault_receive_post(struct ibv_qp *qp, struct ibv_recv_wr *wr, fault_recv_fn *next);
int fault_srq_receive_post(
	struct ibv_srq *srq, struct ibv_recv_wr *wr, fault_srq_recv_fn *next);
/* The same for the requests of a batch, just before ibv_wr_complete(), with the lock of the send queue. Returns the hit
 * that ends the connection, or one without a rule: fault_batch_end_connection() applies it without that lock, because the
 * daemon has to answer. */
struct fault_hit fault_batch_apply(struct ibv_qp_ex *ex);
void fault_batch_end_connection(struct ibv_qp *qp, const struct fault_hit *hit);

/* A request of ibv_bind_mw() was posted. */
void fault_bind_count(struct ibv_qp *qp);
/* The device of a new context: from now on packets are counted, if a rule concerns them. */
void fault_wire_begin(struct ibv_context *context);
/* The requests posted since the last RESET. Called before the QP goes to RESET. */
uint32_t fault_posted(struct ibv_qp *qp);

#endif
