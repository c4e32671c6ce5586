/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The commands that a program writes to /dev/infiniband/rdma_cm, in the format in which
 * they travel between the process and the server: the structures of
 * <rdma/rdma_user_cm.h>. Pointers in them have no meaning: see UCM_GET_ALONE. In MIGRATE_ID, fd is the
 * number of a channel.
 */
#ifndef ROCADE_UCM_ABI_H
#define ROCADE_UCM_ABI_H

#include <netinet/in.h>

#include <rdma/rdma_user_cm.h>

#include "base/common.h"
#include "ucm/event_type.h"

#define UCM_OPTION_MAX 64

/* SET_OPTION with the option value behind it. */
struct ucm_set_option {
	struct rdma_ucm_set_option head;
	uint8_t value[UCM_OPTION_MAX];
};

/* Commands since Linux 6.17. A newer header has the same numbers. */
#define RDMA_USER_CM_CMD_RESOLVE_IB_SERVICE 23
#define RDMA_USER_CM_CMD_WRITE_CM_EVENT 24
/* struct rdma_ucm_resolve_ib_service */
struct ucm_resolve_ib_service {
	uint32_t id, reserved;
	uint64_t service_id;
	uint8_t service_name[64];
	uint32_t flags, reserved1;
};
/* struct rdma_ucm_write_cm_event, to the end of the argument */
struct ucm_write_cm_event {
	uint32_t id, reserved;
	uint32_t event, status;
	uint64_t arg;
};

/* In place of the address of GET_EVENT's reply: the thread that waits for the event is the only one of its
 * program. */
#define UCM_GET_ALONE UINT64_MAX

#define UCM_MAX 512 /* size limit of a command or reply, in bytes */

#define UCM(name, handler, in, least, out)                                               \
	static_assert(sizeof(in) <= UCM_MAX && sizeof(out) <= UCM_MAX, #name);           \
	static_assert(sizeof(((in *)NULL)->response) == sizeof(uint64_t), #name);
#define UCM_NO_REPLY(name, handler, in, least)                                           \
	static_assert(sizeof(in) <= UCM_MAX, #name);
#include "ucm/commands.def"

/* Q_Key of all UD QPs of RDMA-CM (annex A11.7). */
#define UCM_QKEY 0x01234567u

#endif
