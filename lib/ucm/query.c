/* SPDX-License-Identifier: BSD-3-Clause */
/* QUERY_ROUTE and QUERY: what an id knows. */
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "ucm/internal.h"

#define PKEY 0xFFFF
#define EXACTLY 2 /* a selector of a path record (IBA 15.2.5.16) */
#define RATE_10_GBPS 3
#define NO_INDEX UINT32_MAX /* the device goes by its GUID */

static void
path_fill(const struct ucm *ucm, const struct ucm_id *id, struct ib_user_path_rec *path)
{
	memcpy(path->sgid, id->src.gid, 16);
	memcpy(path->dgid, id->dst.gid, 16);
	path->pkey = htobe16(PKEY);
	path->reversible = 1;
	path->numb_path = 1;
	path->hop_limit = 64;
	path->traffic_class = id->tos;
	path->mtu = ucm->conf.path_mtu;
	path->mtu_selector = path->rate_selector = path->packet_life_time_selector =
		EXACTLY;
	path->rate = RATE_10_GBPS;
	path->packet_life_time = ucm->conf.cm.packet_life;
}

static bool
has_route(const struct ucm_id *id)
{
	return id->state == UCM_ROUTE || id->state == UCM_CONNECT ||
	       id->state == UCM_ACCEPTED;
}

int
ucm_do_query_route(struct ucm_call *call)
{
	const struct rdma_ucm_query *cmd = call->in;
	struct rdma_ucm_query_route_resp *resp = call->out;
	const struct ucm_id *id = ucm_id_find(call, cmd->id);

	if (id == NULL)
		return -ENOENT;
	resp->src_addr = id->src.sa;
	resp->dst_addr = id->dst.sa;
	resp->ibdev_index = NO_INDEX;
	if (!id->on_device)
		return 0;
	resp->node_guid = htobe64(call->ucm->conf.cm.ca_guid);
	resp->port_num = 1;
	resp->num_paths = has_route(id);
	path_fill(call->ucm, id, &resp->ib_route[0]);
	return 0;
}

int
ucm_do_query(struct ucm_call *call)
{
	const struct rdma_ucm_query *cmd = call->in;
	struct rdma_ucm_query_addr_resp *resp = call->out;
	const struct ucm_id *id = ucm_id_find(call, cmd->id);

	if (id == NULL)
		return -ENOENT;
	if (cmd->option != RDMA_USER_CM_QUERY_ADDR)
		return -ENOSYS;
	memcpy(&resp->src_addr, &id->src.sa, sizeof(id->src.sa));
	memcpy(&resp->dst_addr, &id->dst.sa, sizeof(id->dst.sa));
	resp->src_size = resp->dst_size = sizeof(id->src.sa);
	resp->ibdev_index = NO_INDEX;
	if (!id->on_device)
		return 0;
	resp->node_guid = htobe64(call->ucm->conf.cm.ca_guid);
	resp->port_num = 1;
	resp->pkey = PKEY;
	return 0;
}
