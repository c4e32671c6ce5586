/* SPDX-License-Identifier: BSD-3-Clause */
/* Rules of rocade-run --faults that concern connections: the server of RDMA-CM has it happen, which gets the rule as an
 * option of the ID, just before the call. */
#ifndef ROCADE_PRELOAD_FAULT_CONNECTIONS_H
#define ROCADE_PRELOAD_FAULT_CONNECTIONS_H

#include <rdma/rdma_cma.h>

#include "faults/faults.h"

/* Counts a call on an ID. Returns the errno by which it is refused, or 0. *faulty: a rule concerns its connection. */
int fault_connection_call(enum fault_call call, struct rdma_cm_id *id, bool *faulty);
/* The call has failed: the rule concerns no later one. Keeps errno. */
void fault_connection_forget(struct rdma_cm_id *id);
/* The QP of the ID, if it has one, has a connection from now on. */
void fault_connection_made(struct rdma_cm_id *id);
/* Whether the connection of the QP can end now, and ends it. */
bool fault_connection_is_open(const struct ibv_qp *qp);
void fault_connection_break(const struct ibv_qp *qp);

#endif
