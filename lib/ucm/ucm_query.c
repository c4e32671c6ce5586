/* SPDX-License-Identifier: BSD-3-Clause */
/* QUERY_ROUTE and QUERY: the addresses and the path of an ID. */
#include <endian.h>
#include <errno.h>
#include <string.h>

#include <infiniband/ib.h>

#include "ucm/id.h"
#include "ucm/ucm_addr.h"

#define PKEY 0xFFFF
#define HOP_LIMIT 64
#define SELECTOR_EXACT 2 /* a selector of a path record (IBA 15.2.5.16) */
#define RATE_10_GBPS 3

static void
path_fill(const struct ucm *ucm, const struct ucm_id *id, struct ib_user_path_rec *path)
{
	memcpy(path->sgid, id->src.gid, 16);
	memcpy(path->dgid, id->dst.gid, 16);
	path->pkey = htobe16(PKEY);
	path->reversible = 1;
	path->numb_path = 1;
	path->hop_limit = HOP_LIMIT;
	path->traffic_class = id->tos;
	path->mtu = id->device->conf.path_mtu;
	path->mtu_selector = path->rate_selector = path->packet_life_time_selector =
		SELECTOR_EXACT;
	path->rate = RATE_10_GBPS;
	path->packet_life_time = ucm->conf.cm.packet_life;
}

static bool
has_route(const struct ucm_id *id)
{
	return id->state == UCM_ROUTE || id->state == UCM_CONNECT ||
	       id->state == UCM_ACCEPTED;
}

static uint32_t
device_index(const struct ucm_id *id)
{
	uint32_t told = id->channel->session->device_index;

	return told != UCM_NO_INDEX ? told : id->device->conf.index;
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
	resp->ibdev_index = UCM_NO_INDEX;
	if (id->device == NULL)
		return 0;
	resp->node_guid = htobe64(id->device->conf.guid);
	resp->ibdev_index = device_index(id);
	resp->port_num = 1;
	resp->num_paths = has_route(id);
	path_fill(call->ucm, id, &resp->ib_route[0]);
	return 0;
}

/* A path record, in its wire format (IBA 15.2.5.16). */
struct path_record {
	uint64_t service_id;
	uint8_t dgid[16], sgid[16];
	uint16_t dlid, slid;
	uint32_t flow_hop;
	uint8_t tclass, reversible_numb_path;
	uint16_t pkey, qos_sl;
	uint8_t mtu, rate, life; /* with a selector in the upper two bits */
	uint8_t preference, reserved[6];
};
static_assert(
	sizeof(struct path_record) == sizeof(((struct ib_path_rec_data *)NULL)->path_rec),
	"size of a record");

/* The flags that Linux reports (ucma_query_path()). */
#define PATH_FLAGS (IB_PATH_GMP | IB_PATH_PRIMARY | IB_PATH_BIDIRECTIONAL)
#define REVERSIBLE 0x80

static int
query_path(const struct ucm *ucm, const struct ucm_id *id, void *out)
{
	struct rdma_ucm_query_path_resp *resp = out;
	struct path_record record = {
		.flow_hop = htobe32(HOP_LIMIT),
		.tclass = id->tos,
		.reversible_numb_path = REVERSIBLE | 1,
		.pkey = htobe16(PKEY),
		.rate = SELECTOR_EXACT << 6 | RATE_10_GBPS,
		.life = (uint8_t)(SELECTOR_EXACT << 6 | ucm->conf.cm.packet_life),
	};

	resp->num_paths = id->device != NULL && has_route(id);
	if (resp->num_paths == 0)
		return 0;
	record.mtu = (uint8_t)(SELECTOR_EXACT << 6 | id->device->conf.path_mtu);
	memcpy(record.sgid, id->src.gid, 16);
	memcpy(record.dgid, id->dst.gid, 16);
	resp->path_data[0].flags = PATH_FLAGS;
	memcpy(resp->path_data[0].path_rec, &record, sizeof(record));
	return 0;
}

/* Builds an AF_IB socket address: the GID, and the service ID of the port. */
static void
gid_fill(const struct ucm_id *id, const struct ucm_addr *addr,
	struct __kernel_sockaddr_storage *out)
{
	struct sockaddr_ib sa = {.sib_family = AF_IB,
		.sib_pkey = id->device != NULL ? PKEY : 0,
		.sib_sid = htobe64(ucm_service_id(id->ps, ucm_addr_port(addr)))};

	memcpy(&sa.sib_addr, addr->gid, 16);
	memcpy(out, &sa, sizeof(sa));
}

int
ucm_do_query(struct ucm_call *call)
{
	const struct rdma_ucm_query *cmd = call->in;
	struct rdma_ucm_query_addr_resp *resp = call->out;
	const struct ucm_id *id = ucm_id_find(call, cmd->id);

	if (id == NULL)
		return -ENOENT;
	switch (cmd->option) {
	case RDMA_USER_CM_QUERY_ADDR:
		memcpy(&resp->src_addr, &id->src.sa, sizeof(id->src.sa));
		memcpy(&resp->dst_addr, &id->dst.sa, sizeof(id->dst.sa));
		resp->src_size = resp->dst_size = sizeof(id->src.sa);
		break;
	case RDMA_USER_CM_QUERY_PATH:
		return query_path(call->ucm, id, call->out);
	case RDMA_USER_CM_QUERY_GID:
		gid_fill(id, &id->src, &resp->src_addr);
		gid_fill(id, &id->dst, &resp->dst_addr);
		resp->src_size = resp->dst_size = sizeof(struct sockaddr_ib);
		break;
	default:
		return -ENOSYS;
	}
	resp->ibdev_index = UCM_NO_INDEX;
	if (id->device == NULL)
		return 0;
	resp->node_guid = htobe64(id->device->conf.guid);
	resp->ibdev_index = device_index(id);
	resp->port_num = 1;
	resp->pkey = PKEY;
	return 0;
}
