/* SPDX-License-Identifier: BSD-3-Clause */
/* Types of events, and the option that writes one, for files that include <rdma/rdma_cma.h>: that excludes
 * <rdma/rdma_user_cm.h> of abi.h. */
#ifndef ROCADE_UCM_EVENT_TYPE_H
#define ROCADE_UCM_EVENT_TYPE_H

#include <stdint.h>

/* Event types, numbered as in <rdma/rdma_cma.h>. */
enum ucm_event_type {
	UCM_EVENT_ADDR_RESOLVED,
	UCM_EVENT_ADDR_ERROR,
	UCM_EVENT_ROUTE_RESOLVED,
	UCM_EVENT_ROUTE_ERROR,
	UCM_EVENT_CONNECT_REQUEST,
	UCM_EVENT_CONNECT_RESPONSE,
	UCM_EVENT_CONNECT_ERROR,
	UCM_EVENT_UNREACHABLE,
	UCM_EVENT_REJECTED,
	UCM_EVENT_ESTABLISHED,
	UCM_EVENT_DISCONNECTED,
	UCM_EVENT_DEVICE_REMOVAL,
	UCM_EVENT_MULTICAST_JOIN,
	UCM_EVENT_MULTICAST_ERROR,
	UCM_EVENT_ADDR_CHANGE,
	UCM_EVENT_TIMEWAIT_EXIT,
	UCM_EVENT_ADDRINFO_RESOLVED,
	UCM_EVENT_ADDRINFO_ERROR,
	UCM_EVENT_USER,
	UCM_EVENT_INTERNAL, /* librdmacm's own, to itself */
};

/* An option of Rocade's: it writes an event, for a librdmacm that has no rdma_write_cm_event(3). */
#define UCM_LEVEL_ROCADE 0x526f6361
#define UCM_ROCADE_EVENT 1
struct ucm_option_event {
	uint32_t event, status;
	uint64_t arg;
};

/* Another one: a rule of rocade-run --faults concerns the next command of the ID, or the ID at once. -EINVAL if that
 * cannot happen to it now. */
#define UCM_ROCADE_FAULT 2
enum ucm_fault {
	UCM_FAULT_NONE, /* the rule does not concern the ID after all */
	UCM_FAULT_ADDR_ERROR, /* the address is not resolved, and UCM_EVENT_ADDR_ERROR says so */
	UCM_FAULT_ROUTE_ERROR,
	UCM_FAULT_UNREACHABLE, /* of a request that is not sent */
	UCM_FAULT_REJECTED,    /* the same; value: the reason of the REJ */
	UCM_FAULT_LOSE_REQ,    /* such a message is lost once */
	UCM_FAULT_LOSE_REP,
	UCM_FAULT_LOSE_RTU, /* that follows the next CONNECT */
	UCM_FAULT_LOSE_DREQ,
	UCM_FAULT_BREAK /* at once: the connection ends. value 0: asks only whether it can */
};
struct ucm_option_fault {
	uint32_t fault; /* enum ucm_fault */
	uint32_t value;
};

#endif
