/* SPDX-License-Identifier: BSD-3-Clause */
/* Rules of rocade-run --faults that concern connections. Such a rule goes to the server of RDMA-CM as an option of the ID,
 * just before the call; the server applies it. */
#ifndef ROCADE_PRELOAD_FAULT_CONNECTIONS_H
#define ROCADE_PRELOAD_FAULT_CONNECTIONS_H

#include <rdma/rdma_cma.h>

#include "faults/faults.h"

/* A call on an ID. counts: the program makes it, and not librdmacm itself. Returns the errno by which it is refused, or 0.
 * *faulty: a rule concerns its connection. */
int fault_connection_call(
	enum fault_call call, struct rdma_cm_id *id, bool counts, bool *faulty);
/* The call has failed: the rule concerns no later one. Keeps errno. */
void fault_connection_forget(struct rdma_cm_id *id);
/* Whether the connection of the QP can end now, and ends it. */
bool fault_connection_is_open(const struct ibv_qp *qp);
void fault_connection_break(const struct ibv_qp *qp);

#endif
