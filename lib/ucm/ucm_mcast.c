/* SPDX-License-Identifier: BSD-3-Clause */
/* Multicast groups. A join returns what the program needs to attach its QP and to send.
 * The network learns of the membership (IGMP, MLD) when the QP is attached. */
#include <errno.h>
#include <string.h>

#include "ucm/id.h"
#include "ucm/queue.h"
#include "ucm/ucm_addr.h"

/* The bucket of an ID that is a group of this member. */
static struct ucm_id_list *
join_bucket(struct ucm *ucm, const struct ucm_id *member, const uint8_t group[16])
{
	uint64_t in[3] = {(uintptr_t)member};

	memcpy(in + 1, group, 16);
	return &ucm->joins[siphash24(&ucm->joins_key, in, sizeof(in)) % UCM_JOIN_BUCKETS];
}

static bool
has_joined(struct ucm *ucm, const struct ucm_id *member, const uint8_t group[16])
{
	const struct ucm_id *mcast;

	LIST_FOREACH(mcast, join_bucket(ucm, member, group), join_link)
	{
		if (mcast->member == member && memcmp(mcast->dst.gid, group, 16) == 0)
			return true;
	}
	return false;
}

static int
mcast_join(struct ucm_call *call, struct ucm_id *id, const struct ucm_addr *group,
	uint64_t uid)
{
	struct rdma_ucm_create_id_resp *resp = call->out;
	struct ib_uverbs_ah_attr ah;
	struct ucm_event *event;
	struct ucm_id *mcast;
	int rc = ucm_id_create(id->channel, id->ps, &mcast);

	if (rc != 0)
		return rc;
	mcast->state = UCM_MCAST;
	mcast->member = id;
	mcast->uid = uid;
	ucm_id_set_device(mcast, id->device);
	mcast->src = id->src;
	mcast->dst = *group;
	mcast->tos = id->tos;
	LIST_INSERT_HEAD(&id->mcasts, mcast, mcast_link);
	LIST_INSERT_HEAD(join_bucket(call->ucm, id, group->gid), mcast, join_link);
	rc = ucm_ah_fill(mcast, &ah);
	event = rc == 0 ? ucm_event_new(mcast, UCM_EVENT_MULTICAST_JOIN, 0) : NULL;
	if (event == NULL) {
		ucm_id_destroy(mcast, call->now);
		return rc != 0 ? rc : -ENOMEM;
	}
	event->resp.param.ud.qp_num = QPN_MULTICAST;
	event->resp.param.ud.qkey = UCM_QKEY;
	event->resp.param.ud.ah_attr = ah;
	ucm_event_put(event);
	resp->id = mcast->number;
	return 0;
}

static int
mcast_join_read(
	struct ucm_call *call, uint32_t number, const void *sa, size_t len, uint64_t uid)
{
	struct ucm_id *id = ucm_id_find(call, number);
	struct ucm_addr group;
	int rc;

	if (id == NULL)
		return -ENOENT;
	rc = ucm_addr_read(call->ucm, sa, len, &group);
	if (rc != 0)
		return rc;
	if (id->device == NULL || !ucm_id_is_ud(id) || !gid_is_multicast(group.gid) ||
		gid_is_ipv4(group.gid) != gid_is_ipv4(id->src.gid))
		return -EINVAL;
	if (has_joined(call->ucm, id, group.gid))
		return -EADDRINUSE;
	return mcast_join(call, id, &group, uid);
}

int
ucm_do_join_ip_mcast(struct ucm_call *call)
{
	const struct rdma_ucm_join_ip_mcast *cmd = call->in;

	return mcast_join_read(call, cmd->id, &cmd->addr, sizeof(cmd->addr), cmd->uid);
}

int
ucm_do_join_mcast(struct ucm_call *call)
{
	const struct rdma_ucm_join_mcast *cmd = call->in;

	if (cmd->join_flags >= RDMA_MC_JOIN_FLAG_RESERVED)
		return -EINVAL;
	return mcast_join_read(call, cmd->id, &cmd->addr,
		RTE_MIN((size_t)cmd->addr_size, sizeof(cmd->addr)), cmd->uid);
}

int
ucm_do_leave_mcast(struct ucm_call *call)
{
	const struct rdma_ucm_destroy_id *cmd = call->in;
	struct rdma_ucm_destroy_id_resp *resp = call->out;
	struct ucm_id *mcast = ucm_table_find(&call->session->ids, cmd->id);

	if (mcast == NULL || mcast->channel != call->channel || mcast->state != UCM_MCAST)
		return -ENOENT;
	resp->events_reported = mcast->events_reported;
	ucm_id_destroy(mcast, call->now);
	return 0;
}
