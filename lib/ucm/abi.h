/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The commands that a program writes to /dev/infiniband/rdma_cm, in the format in which
 * they travel between the process and the server: the structures of
 * <rdma/rdma_user_cm.h>. Pointers in them have no meaning. In MIGRATE_ID, fd is the
 * number of a channel.
 */
#ifndef ROCADE_UCM_ABI_H
#define ROCADE_UCM_ABI_H

#include <netinet/in.h>

#include <rdma/rdma_user_cm.h>

#include "base/common.h"

#define UCM_OPTION_MAX 64

/* SET_OPTION with the option value behind it. */
struct ucm_set_option {
	struct rdma_ucm_set_option head;
	uint8_t value[UCM_OPTION_MAX];
};

#define UCM_MAX 512 /* size limit of a command or reply, in bytes */

#define UCM(name, handler, in, least, out)                                               \
	static_assert(sizeof(in) <= UCM_MAX && sizeof(out) <= UCM_MAX, #name);           \
	static_assert(sizeof(((in *)NULL)->response) == sizeof(uint64_t), #name);
#define UCM_NO_REPLY(name, handler, in, least)                                           \
	static_assert(sizeof(in) <= UCM_MAX, #name);
#include "ucm/commands.def"

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
};

/* Q_Key of all UD QPs of RDMA-CM (annex A11.7). */
#define UCM_QKEY 0x01234567u

#endif
