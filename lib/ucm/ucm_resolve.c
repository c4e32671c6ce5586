/* SPDX-License-Identifier: BSD-3-Clause */
/* Commands that bind an ID to an address, or resolve that of its peer. */
#include <errno.h>
#include <string.h>

#include "port/net_addr.h"
#include "ucm/id.h"
#include "ucm/queue.h"
#include "ucm/ucm_addr.h"
#include "ucm/ucm_fault.h"

static int
bind_read(struct ucm_call *call, uint32_t number, const void *sa, size_t len)
{
	struct ucm_id *id = ucm_id_find(call, number);
	struct ucm_addr addr;
	int rc;

	if (id == NULL)
		return -ENOENT;
	if (id->state != UCM_IDLE)
		return -EINVAL;
	rc = ucm_addr_read(call->ucm, sa, len, &addr);
	if (rc == 0)
		rc = ucm_bind(call->ucm, id, &addr, call->now);
	if (rc == 0)
		id->state = UCM_BOUND;
	return rc;
}

int
ucm_do_bind_ip(struct ucm_call *call)
{
	const struct rdma_ucm_bind_ip *cmd = call->in;

	return bind_read(call, cmd->id, &cmd->addr, sizeof(cmd->addr));
}

/* librdmacm probes with AF_IB whether it may use the newer commands: -EAFNOSUPPORT says
 * no. */
int
ucm_do_bind(struct ucm_call *call)
{
	const struct rdma_ucm_bind *cmd = call->in;

	return bind_read(call, cmd->id, &cmd->addr,
		RTE_MIN((size_t)cmd->addr_size, sizeof(cmd->addr)));
}

/* How well a device reaches dst. */
enum reach { REACH_NOT, REACH_FAMILY, REACH_GATEWAY, REACH_LINK };

static enum reach
device_reach(const struct ucm_device *device, const uint8_t dst[16])
{
	const struct net_conf *net = &device->conf.net;
	uint8_t hop[16];

	if (net_source(net, dst) == NULL)
		return REACH_NOT;
	if (net_next_hop(net, dst, hop) != 0)
		return REACH_FAMILY;
	return net_is_onlink(net, dst) ? REACH_LINK : REACH_GATEWAY;
}

/* Returns the local address for packets to dst: of the device that has dst on its link, else of
 * one with a gateway, else of the first one with an address of this family. NULL: none. */
static const uint8_t *
source_choose(const struct ucm *ucm, const uint8_t dst[16])
{
	const struct ucm_device *device, *best = NULL;
	enum reach best_reach = REACH_NOT;

	TAILQ_FOREACH (device, &ucm->devices, link) {
		enum reach reach = device_reach(device, dst);

		if (reach > best_reach) {
			best = device;
			best_reach = reach;
		}
	}
	return best != NULL ? net_source(&best->conf.net, dst) : NULL;
}

/* Chooses the source GID of packets to dst: the address of the ID, else dst itself if it
 * is local, else that of the best device. */
static int
source_gid_choose(const struct ucm *ucm, const struct ucm_id *id,
	const struct ucm_addr *dst, uint8_t gid[16])
{
	const uint8_t *source = dst->gid;

	if (id->device != NULL) {
		memcpy(gid, id->src.gid, 16);
		return gid_is_ipv4(gid) == gid_is_ipv4(dst->gid) ? 0 : -EINVAL;
	}
	if (ucm_device_of(ucm, dst->gid) == NULL)
		source = source_choose(ucm, dst->gid);
	if (source == NULL)
		return -EADDRNOTAVAIL;
	memcpy(gid, source, 16);
	return 0;
}

/* Binds the ID to its source address, and to a port. */
static int
source_set(struct ucm *ucm, struct ucm_id *id, const struct ucm_addr *dst, uint64_t now)
{
	struct ucm_addr addr;
	uint8_t gid[16];
	int rc = source_gid_choose(ucm, id, dst, gid);

	if (rc != 0 || id->device != NULL)
		return rc;
	ucm_addr_make(&addr, gid, id->has_port ? id->port : 0);
	return ucm_bind(ucm, id, &addr, now);
}

static bool
is_reachable(const struct ucm *ucm, const uint8_t gid[16])
{
	return ucm_device_of(ucm, gid) != NULL || gid_is_multicast(gid) ||
	       ucm->conf.ops.send != NULL;
}

/* Takes the fault of the ID, if it has this one. */
static bool
resolution_fails(struct ucm *ucm, struct ucm_id *id, enum ucm_fault fault)
{
	if (!ucm_fault_take(id, fault))
		return false;
	cm_count_fault(ucm->cm);
	return true;
}

static int
addr_resolve(struct ucm_call *call, struct ucm_id *id, const struct ucm_addr *src,
	struct ucm_addr *dst)
{
	struct ucm *ucm = call->ucm;
	const struct ucm_device *first = TAILQ_FIRST(&ucm->devices);
	struct ucm_event *event;
	int rc = 0, status = 0;

	if (dst->any && first != NULL) /* as with TCP: the local host */
		ucm_addr_make(dst, first->conf.net.addr[0].gid, ucm_addr_port(dst));
	if (src->sa.sin6_family != 0 && id->state == UCM_IDLE)
		rc = ucm_bind(ucm, id, src, call->now);
	if (rc != 0)
		return rc;
	event = ucm_event_new(id, UCM_EVENT_ADDR_RESOLVED, 0);
	if (event == NULL)
		return -ENOMEM;
	if (resolution_fails(ucm, id, UCM_FAULT_ADDR_ERROR))
		status = -ETIMEDOUT;
	else
		status = is_reachable(ucm, dst->gid) ? source_set(ucm, id, dst, call->now)
						     : -EHOSTUNREACH;
	if (status == 0) {
		id->dst = *dst;
		id->state = UCM_ADDR;
	} else {
		id->state = id->has_port ? UCM_BOUND : UCM_IDLE;
		event->resp.event = UCM_EVENT_ADDR_ERROR;
		event->resp.status = (uint32_t)status;
	}
	ucm_event_put(event);
	return 0;
}

static int
addr_resolve_read(struct ucm_call *call, uint32_t number, const void *src, size_t src_len,
	const void *dst, size_t dst_len)
{
	struct ucm_id *id = ucm_id_find(call, number);
	struct ucm_addr from = {.any = true}, to;
	sa_family_t family;
	int rc;

	if (id == NULL)
		return -ENOENT;
	if (id->removed)
		return -ENODEV;
	if (id->state != UCM_IDLE && id->state != UCM_BOUND)
		return -EINVAL;
	memcpy(&family, src, sizeof(family));
	rc = family == 0 || src_len == 0 ? 0
					 : ucm_addr_read(call->ucm, src, src_len, &from);
	if (rc == 0)
		rc = ucm_addr_read(call->ucm, dst, dst_len, &to);
	return rc != 0 ? rc : addr_resolve(call, id, &from, &to);
}

int
ucm_do_resolve_ip(struct ucm_call *call)
{
	const struct rdma_ucm_resolve_ip *cmd = call->in;

	return addr_resolve_read(call, cmd->id, &cmd->src_addr, sizeof(cmd->src_addr),
		&cmd->dst_addr, sizeof(cmd->dst_addr));
}

int
ucm_do_resolve_addr(struct ucm_call *call)
{
	const struct rdma_ucm_resolve_addr *cmd = call->in;

	return addr_resolve_read(call, cmd->id, &cmd->src_addr,
		RTE_MIN((size_t)cmd->src_size, sizeof(cmd->src_addr)), &cmd->dst_addr,
		RTE_MIN((size_t)cmd->dst_size, sizeof(cmd->dst_addr)));
}

int
ucm_do_resolve_route(struct ucm_call *call)
{
	const struct rdma_ucm_resolve_route *cmd = call->in;
	struct ucm_id *id = ucm_id_find(call, cmd->id);
	struct ucm_event *event;

	if (id == NULL)
		return -ENOENT;
	if (id->removed)
		return -ENODEV;
	if (id->state != UCM_ADDR)
		return -EINVAL;
	event = ucm_event_new(id, UCM_EVENT_ROUTE_RESOLVED, 0);
	if (event == NULL)
		return -ENOMEM;
	if (resolution_fails(call->ucm, id, UCM_FAULT_ROUTE_ERROR)) {
		event->resp.event = UCM_EVENT_ROUTE_ERROR;
		event->resp.status = (uint32_t)-ETIMEDOUT;
	} else {
		id->state = UCM_ROUTE;
	}
	ucm_event_put(event);
	return 0;
}
