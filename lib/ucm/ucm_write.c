/* SPDX-License-Identifier: BSD-3-Clause */
/* WRITE_CM_EVENT and RESOLVE_IB_SERVICE, of rdma_write_cm_event(3) and rdma_resolve_addrinfo(3). */
#include <errno.h>

#include "ucm/id.h"
#include "ucm/queue.h"

int
ucm_do_write_cm_event(struct ucm_call *call)
{
	const struct ucm_write_cm_event *cmd = call->in;
	struct ucm_id *id = ucm_id_find(call, cmd->id);

	if (id == NULL)
		return -ENOENT;
	if (cmd->event != UCM_EVENT_USER && cmd->event != UCM_EVENT_INTERNAL)
		return -EINVAL;
	return ucm_event_write(id, cmd->event, cmd->status, cmd->arg);
}

/* There is no subnet administrator that has service records, as on every RoCE device. */
int
ucm_do_resolve_ib_service(struct ucm_call *call)
{
	const struct ucm_resolve_ib_service *cmd = call->in;

	return ucm_id_find(call, cmd->id) != NULL ? -EOPNOTSUPP : -ENOENT;
}
