/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>

#include "ucm/ucm_fault.h"

static bool
conn_sends(const struct ucm_id *id, enum mad_attr attr)
{
	return id->conn != NULL && !ucm_id_is_ud(id) && cm_sends(id->conn, attr);
}

/* UD has no REJ, REP, RTU and DREQ. */
static bool
fault_fits(const struct ucm_id *id, uint32_t fault)
{
	switch (fault) {
	case UCM_FAULT_NONE:
		return true;
	case UCM_FAULT_ADDR_ERROR:
		return id->state == UCM_IDLE || id->state == UCM_BOUND;
	case UCM_FAULT_ROUTE_ERROR:
		return id->state == UCM_ADDR;
	case UCM_FAULT_UNREACHABLE:
		return id->state == UCM_ROUTE;
	case UCM_FAULT_REJECTED:
	case UCM_FAULT_LOSE_REQ:
	case UCM_FAULT_LOSE_RTU:
		return id->state == UCM_ROUTE && !ucm_id_is_ud(id);
	case UCM_FAULT_LOSE_REP:
		return conn_sends(id, MAD_REP);
	case UCM_FAULT_LOSE_DREQ:
		return conn_sends(id, MAD_DREQ);
	case UCM_FAULT_BREAK:
		return id->conn != NULL && cm_is_established(id->conn);
	default:
		return false;
	}
}

int
ucm_fault_set(struct ucm_id *id, const struct ucm_option_fault *fault, uint64_t now)
{
	if (!fault_fits(id, fault->fault))
		return -EINVAL;
	if (fault->fault != UCM_FAULT_BREAK)
		id->fault = *fault;
	else if (fault->value != 0)
		cm_break(id->conn, now);
	return 0;
}
