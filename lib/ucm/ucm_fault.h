/* SPDX-License-Identifier: BSD-3-Clause */
/* What rules of rocade-run --faults have happen to an ID: the program sets it as an option, just before the command that
 * it concerns. So a program can only harm its own connections
 * (both ends of them). Internal to lib/ucm. */
#ifndef ROCADE_UCM_UCM_FAULT_H
#define ROCADE_UCM_UCM_FAULT_H

#include "ucm/ucm_state.h"

/* Returns 0, or -EINVAL if it cannot happen to the ID now. */
int ucm_fault_set(struct ucm_id *id, const struct ucm_option_fault *fault, uint64_t now);

/* Returns whether the ID has this fault. It is over then. */
static inline bool
ucm_fault_take(struct ucm_id *id, enum ucm_fault fault)
{
	if (id->fault.fault != fault)
		return false;
	id->fault.fault = UCM_FAULT_NONE;
	return true;
}

/* The ID's connection has sent a message of this kind: it is lost if the ID has this fault. */
static inline void
ucm_fault_lose(struct ucm_id *id, enum ucm_fault fault, enum mad_attr attr)
{
	if (ucm_fault_take(id, fault))
		cm_lose(id->conn, attr);
}

#endif
