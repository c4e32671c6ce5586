/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>

#include "preload/fault_connections.h"
#include "preload/fault_process.h"
#include "preload/fault_queues.h"
#include "ucm/event_type.h"

/* Returns 0, or -1 with errno. */
static int
cm_option_set(struct rdma_cm_id *id, enum ucm_fault fault, uint32_t value)
{
	struct ucm_option_fault option = {.fault = fault, .value = value};
	__typeof__(&rdma_set_option) set = NEXT(rdma_set_option, "RDMACM_1.0");

	return set != NULL ? set(id, UCM_LEVEL_ROCADE, UCM_ROCADE_FAULT, &option,
				     sizeof(option))
			   : -1;
}

/* Hands the rule to the server. Returns 0, or -1 if the ID cannot have it now. */
static int
rule_set(struct rdma_cm_id *id, const struct fault_rule *r)
{
	static const enum ucm_fault faults[] = {
		[FAULT_CM_ADDR_ERROR - FAULT_CM_ADDR_ERROR] = UCM_FAULT_ADDR_ERROR,
		[FAULT_CM_ROUTE_ERROR - FAULT_CM_ADDR_ERROR] = UCM_FAULT_ROUTE_ERROR,
		[FAULT_CM_UNREACHABLE - FAULT_CM_ADDR_ERROR] = UCM_FAULT_UNREACHABLE,
		[FAULT_CM_REQ - FAULT_CM_ADDR_ERROR] = UCM_FAULT_LOSE_REQ,
		[FAULT_CM_REP - FAULT_CM_ADDR_ERROR] = UCM_FAULT_LOSE_REP,
		[FAULT_CM_RTU - FAULT_CM_ADDR_ERROR] = UCM_FAULT_LOSE_RTU,
		[FAULT_CM_DREQ - FAULT_CM_ADDR_ERROR] = UCM_FAULT_LOSE_DREQ,
	};

	if (r->action == FAULT_REJECT)
		return cm_option_set(id, UCM_FAULT_REJECTED, (uint32_t)r->err);
	return cm_option_set(id, faults[r->err - FAULT_CM_ADDR_ERROR], 0);
}

/* Requests of the ID's QP, if it has one, can end the connection of the ID from now on. */
static void
qp_id_store(struct rdma_cm_id *id)
{
	struct counted_queue *q = id->qp != NULL ? fault_queue_of(id->qp) : NULL;

	if (q != NULL)
		__atomic_store_n(&q->id, id, __ATOMIC_RELAXED);
}

int
fault_connection_call(
	enum fault_call call, struct rdma_cm_id *id, bool counts, bool *faulty)
{
	struct fault_hit hit = {.rule = NULL};
	int err = errno;

	if (counts)
		hit = fault_call_hit(call);
	if (hit.rule != NULL && hit.rule->action == FAULT_REFUSE) {
		fault_hit_apply(&hit);
		return hit.rule->err;
	}
	if (call == FAULT_rdma_connect || call == FAULT_rdma_accept)
		qp_id_store(id);
	if (hit.rule == NULL)
		return 0;
	*faulty = rule_set(id, hit.rule) == 0;
	/* A thread of the program may end the process as soon as an event has come. */
	if (*faulty)
		fault_hit_apply(&hit);
	errno = err;
	return 0;
}

void
fault_connection_forget(struct rdma_cm_id *id)
{
	int err = errno;

	(void)cm_option_set(id, UCM_FAULT_NONE, 0);
	errno = err;
}

/* A program frees the QP of an ID before the ID (rdma_destroy_id(3)). The server refuses what a connection that has ended
 * cannot do. */
static int
connection_break(const struct ibv_qp *qp, bool asks)
{
	struct counted_queue *q = fault_queue_of(qp);
	struct rdma_cm_id *id =
		q != NULL ? __atomic_load_n(&q->id, __ATOMIC_RELAXED) : NULL;
	int err = errno, rc = id != NULL ? cm_option_set(id, UCM_FAULT_BREAK, !asks) : -1;

	errno = err;
	return rc;
}

bool
fault_connection_is_open(const struct ibv_qp *qp)
{
	return connection_break(qp, true) == 0;
}

void
fault_connection_break(const struct ibv_qp *qp)
{
	(void)connection_break(qp, false);
}
