/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses and ports of programs: conversion, ownership, binding. */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "base/splitmix64.h"
#include "ucm/ucm_internal.h"

#define PORT_FIRST 32768 /* ephemeral ports: 32768 to 60999 */
#define PORT_COUNT 28232

static const struct sockaddr_in *
as_ipv4(const struct ucm_addr *addr)
{
	return (const struct sockaddr_in *)&addr->sa;
}

uint16_t
ucm_addr_port(const struct ucm_addr *addr)
{
	return ntohs(addr->sa.sin6_port); /* same offset in sockaddr_in */
}

bool
ucm_is_local(const struct ucm *ucm, const uint8_t gid[16])
{
	for (unsigned i = 0; i < ucm->conf.net.addr_count; i++) {
		if (memcmp(ucm->conf.net.addr[i].gid, gid, 16) == 0)
			return true;
	}
	return false;
}

int
ucm_gid_index(const struct ucm *ucm, const uint8_t gid[16])
{
	for (unsigned i = 0; i < ucm->conf.net.addr_count; i++) {
		/* Entry 3 of the GID table repeats entry 0. */
		if (memcmp(ucm->conf.net.addr[i].gid, gid, 16) == 0)
			return (int)(i < 3 ? i : i + 1);
	}
	return -1;
}

/* Replaces a loopback address (127.0.0.0/8, ::1) by the first local address. */
static void
loopback_map(const struct ucm *ucm, struct ucm_addr *addr)
{
	static const uint8_t one[16] = {[15] = 1};

	if ((gid_is_ipv4(addr->gid) && addr->gid[12] == 127) ||
		memcmp(addr->gid, one, 16) == 0)
		memcpy(addr->gid, ucm->conf.net.addr[0].gid, 16);
}

int
ucm_addr_read(struct ucm *ucm, const void *sa, size_t len, struct ucm_addr *out)
{
	static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
	struct ucm_addr addr;
	sa_family_t family;

	memset(&addr, 0, sizeof(addr));
	memcpy(&addr.sa, sa, RTE_MIN(len, sizeof(addr.sa)));
	family = addr.sa.sin6_family;
	if (family == AF_INET) {
		memset((char *)&addr.sa + sizeof(struct sockaddr_in), 0,
			sizeof(addr.sa) - sizeof(struct sockaddr_in));
		addr.any = as_ipv4(&addr)->sin_addr.s_addr == INADDR_ANY;
		memcpy(addr.gid, mapped, sizeof(mapped));
		memcpy(addr.gid + 12, &as_ipv4(&addr)->sin_addr, 4);
	} else if (family == AF_INET6) {
		addr.any = IN6_IS_ADDR_UNSPECIFIED(&addr.sa.sin6_addr);
		memcpy(addr.gid, &addr.sa.sin6_addr, 16);
	} else {
		return -EAFNOSUPPORT;
	}
	if (addr.any)
		memset(addr.gid, 0, sizeof(addr.gid));
	else
		loopback_map(ucm, &addr);
	*out = addr;
	return 0;
}

void
ucm_addr_make(struct ucm_addr *out, const uint8_t gid[16], uint16_t port)
{
	memset(out, 0, sizeof(*out));
	memcpy(out->gid, gid, 16);
	if (gid_is_ipv4(gid)) {
		struct sockaddr_in *sa = (struct sockaddr_in *)&out->sa;

		sa->sin_family = AF_INET;
		memcpy(&sa->sin_addr, gid + 12, 4);
	} else {
		out->sa.sin6_family = AF_INET6;
		memcpy(&out->sa.sin6_addr, gid, 16);
	}
	out->sa.sin6_port = htons(port);
}

uint64_t
ucm_service_id(uint16_t ps, uint16_t port)
{
	/* RDMA-CM numbers the port spaces as service IDs do (annex A11.3). */
	return cma_service_id((uint8_t)ps, port);
}

struct ucm_port_bucket *
ucm_port_bucket(struct ucm *ucm, uint16_t port)
{
	return &ucm->ports[port % UCM_PORT_BUCKETS];
}

bool
ucm_addr_serves(const struct ucm_id *id, const uint8_t gid[16])
{
	if (!id->src.any)
		return memcmp(id->src.gid, gid, 16) == 0;
	return !id->afonly || gid_is_ipv4(gid) == (id->src.sa.sin6_family == AF_INET);
}

/* RDMA_OPTION_ID_AFONLY if the program has set it. Otherwise a wildcard of IPv6 covers
 * both families. */
static bool
is_afonly(const struct ucm_id *id, const struct ucm_addr *addr)
{
	return id->afonly_set ? id->afonly : addr->sa.sin6_family == AF_INET;
}

/* Returns whether `a` keeps id from binding to the port. Two IDs may share a port if
 * their addresses differ, if each is limited to its own family and the families differ,
 * or if both set REUSEADDR and `a` does not listen. */
static bool
ports_conflict(const struct ucm_id *a, const struct ucm_id *id, uint16_t port,
	const struct ucm_addr *addr)
{
	if (a->ps != id->ps || a->port != port ||
		(id->reuse && a->reuse && a->state != UCM_LISTEN))
		return false;
	if (a->afonly && is_afonly(id, addr) &&
		a->src.sa.sin6_family != addr->sa.sin6_family)
		return false;
	return a->src.any || addr->any || memcmp(a->src.gid, addr->gid, 16) == 0;
}

static bool
port_free(struct ucm *ucm, const struct ucm_id *id, uint16_t port,
	const struct ucm_addr *addr)
{
	const struct ucm_id *other;

	LIST_FOREACH(other, ucm_port_bucket(ucm, port), port_link)
	{
		if (other != id && ports_conflict(other, id, port, addr))
			return false;
	}
	return true;
}

/* Returns 0 if no port is free. */
static uint16_t
port_choose(struct ucm *ucm, const struct ucm_id *id, const struct ucm_addr *addr)
{
	uint32_t at = (uint32_t)(splitmix64(&ucm->rand) % PORT_COUNT);

	for (uint32_t i = 0; i < PORT_COUNT; i++) {
		uint16_t port = (uint16_t)(PORT_FIRST + (at + i) % PORT_COUNT);

		if (port_free(ucm, id, port, addr))
			return port;
	}
	return 0;
}

int
ucm_bind(struct ucm *ucm, struct ucm_id *id, const struct ucm_addr *addr)
{
	uint16_t port = ucm_addr_port(addr);

	if (!addr->any && !ucm_is_local(ucm, addr->gid))
		return -EADDRNOTAVAIL;
	if (port == 0)
		port = port_choose(ucm, id, addr);
	else if (!port_free(ucm, id, port, addr))
		return -EADDRINUSE;
	if (port == 0)
		return -EADDRINUSE;
	ucm_unbind(id);
	id->afonly = is_afonly(id, addr);
	id->src = *addr;
	id->src.sa.sin6_port = htons(port);
	id->port = port;
	id->has_port = true;
	id->on_device = !addr->any;
	LIST_INSERT_HEAD(ucm_port_bucket(ucm, port), id, port_link);
	return 0;
}

void
ucm_unbind(struct ucm_id *id)
{
	if (id->has_port)
		LIST_REMOVE(id, port_link);
	id->has_port = false;
}

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
		rc = ucm_bind(call->ucm, id, &addr);
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

/* Chooses the source GID of packets to dst: the address of the ID, else dst itself if it
 * is local, else the first local address of its family. */
static int
source_gid_choose(const struct ucm *ucm, const struct ucm_id *id,
	const struct ucm_addr *dst, uint8_t gid[16])
{
	bool ipv4 = gid_is_ipv4(dst->gid);

	if (id->on_device) {
		memcpy(gid, id->src.gid, 16);
		return gid_is_ipv4(gid) == ipv4 ? 0 : -EINVAL;
	}
	if (ucm_is_local(ucm, dst->gid)) {
		memcpy(gid, dst->gid, 16);
		return 0;
	}
	for (unsigned i = 0; i < ucm->conf.net.addr_count; i++) {
		memcpy(gid, ucm->conf.net.addr[i].gid, 16);
		if (gid_is_ipv4(gid) == ipv4)
			return 0;
	}
	return -EADDRNOTAVAIL;
}

/* Binds the ID to its source address, and to a port. */
static int
source_set(struct ucm *ucm, struct ucm_id *id, const struct ucm_addr *dst)
{
	struct ucm_addr addr;
	uint8_t gid[16];
	int rc = source_gid_choose(ucm, id, dst, gid);

	if (rc != 0 || id->on_device)
		return rc;
	ucm_addr_make(&addr, gid, id->has_port ? id->port : 0);
	return ucm_bind(ucm, id, &addr);
}

static bool
is_reachable(const struct ucm *ucm, const uint8_t gid[16])
{
	return ucm_is_local(ucm, gid) || gid_is_multicast(gid) ||
	       ucm->conf.ops.send != NULL;
}

static int
addr_resolve(struct ucm_call *call, struct ucm_id *id, const struct ucm_addr *src,
	struct ucm_addr *dst)
{
	struct ucm *ucm = call->ucm;
	struct ucm_event *event;
	int rc = 0, status = 0;

	if (dst->any) /* as with TCP: the local host */
		memcpy(dst->gid, ucm->conf.net.addr[0].gid, 16);
	if (src->sa.sin6_family != 0 && id->state == UCM_IDLE)
		rc = ucm_bind(ucm, id, src);
	if (rc != 0)
		return rc;
	event = ucm_event_new(id, UCM_EVENT_ADDR_RESOLVED, 0);
	if (event == NULL)
		return -ENOMEM;
	status = is_reachable(ucm, dst->gid) ? source_set(ucm, id, dst) : -EHOSTUNREACH;
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
	if (id->state != UCM_ADDR)
		return -EINVAL;
	event = ucm_event_new(id, UCM_EVENT_ROUTE_RESOLVED, 0);
	if (event == NULL)
		return -ENOMEM;
	id->state = UCM_ROUTE;
	ucm_event_put(event);
	return 0;
}
