/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses and ports of programs: conversion, ownership, binding. */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "port/net_addr.h"
#include "ucm/ucm_addr.h"

#define HOP_LIMIT 64
#define PORT_TRIES 64          /* ephemeral ports that a command looks at closely */
#define PORT_UNPRIVILEGED 1024 /* lower ones are for privileged users only */

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

struct ucm_device *
ucm_device_of(const struct ucm *ucm, const uint8_t gid[16])
{
	struct ucm_device *device;

	TAILQ_FOREACH (device, &ucm->devices, link) {
		if (net_is_ours(&device->conf.net, gid))
			return device;
	}
	return NULL;
}

void
ucm_id_set_device(struct ucm_id *id, struct ucm_device *device)
{
	if (id->device != NULL)
		TAILQ_REMOVE(&id->device->ids, id, device_link);
	id->device = device;
	if (device != NULL)
		TAILQ_INSERT_TAIL(&device->ids, id, device_link);
}

bool
ucm_is_local(const struct ucm *ucm, const uint8_t sgid[16], const uint8_t dgid[16])
{
	const struct ucm_device *device = ucm_device_of(ucm, sgid);

	return device != NULL && net_is_ours(&device->conf.net, dgid);
}

/* Replaces a loopback address (127.0.0.0/8, ::1) by the first local address. */
static void
loopback_map(const struct ucm *ucm, uint8_t gid[16])
{
	static const uint8_t one[16] = {[15] = 1};
	const struct ucm_device *first = TAILQ_FIRST(&ucm->devices);

	if (first == NULL)
		return;
	if ((gid_is_ipv4(gid) && gid[12] == 127) || memcmp(gid, one, 16) == 0)
		memcpy(gid, first->conf.net.addr[0].gid, 16);
}

/* Names the address as every peer does, by its GID. Two names are replaced: a loopback address, and
 * an IPv4 address in the form of IPv6. Another IPv6 address keeps its scope. */
static void
addr_name(const struct ucm *ucm, struct ucm_addr *addr)
{
	uint8_t gid[16];

	memcpy(gid, addr->gid, 16);
	loopback_map(ucm, gid);
	if (memcmp(gid, addr->gid, 16) != 0 || gid_is_ipv4(gid))
		ucm_addr_make(addr, gid, ucm_addr_port(addr));
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
		addr_name(ucm, &addr);
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

/* IDs of two users do not share a port: one could take the other's requests by listening
 * on a more specific address. */
static bool
may_share(const struct ucm_id *a, const struct ucm_id *id)
{
	const struct ucm_session *of = a->channel->session, *wants = id->channel->session;

	return id->reuse && a->reuse && a->state != UCM_LISTEN &&
	       (of == wants || (of->uid == wants->uid && !of->shares_uid));
}

/* Returns the user of the session as port_wait.h knows it. */
static uint64_t
waiting_user(const struct ucm_session *session)
{
	uint64_t among = session->shares_uid ? session->serial : 0;

	return among << 32 | session->uid;
}

/* Returns what an ID has. */
static struct ucm_binding
binding_of(const struct ucm_id *id)
{
	return (struct ucm_binding){
		.addr = &id->src, .ps = id->ps, .port = id->port, .afonly = id->afonly};
}

/* share: a port that another ID has is free, too, if the two may share it. */
static bool
port_free(struct ucm *ucm, const struct ucm_id *id, uint16_t port,
	const struct ucm_addr *addr, bool share, uint64_t now)
{
	const struct ucm_binding wanted = {
		.addr = addr, .ps = id->ps, .port = port, .afonly = is_afonly(id, addr)};
	const struct ucm_id *other;
	unsigned count = 0;

	LIST_FOREACH(other, ucm_port_bucket(ucm, port), port_link)
	{
		struct ucm_binding has = binding_of(other);

		if (other->port == port && ++count == UCM_PORT_IDS)
			return false;
		if (other != id && !(share && may_share(other, id)) &&
			ucm_bindings_conflict(&has, &wanted))
			return false;
	}
	return !port_waits_for_other(
		&ucm->port_waits, &wanted, waiting_user(id->channel->session), now);
}

/* An ID was added to the bucket of the port, or removed from it. */
static void
port_bucket_changed(struct ucm *ucm, uint16_t port)
{
	uint32_t at = ((uint32_t)port - UCM_PORT_FIRST) % UCM_PORT_BUCKETS;
	uint64_t bit = UINT64_C(1) << at % 64;

	if (at >= UCM_PORT_COUNT)
		return;
	if (LIST_EMPTY(ucm_port_bucket(ucm, port)))
		ucm->ports_used[at / 64] &= ~bit;
	else
		ucm->ports_used[at / 64] |= bit;
}

/* Returns the first ephemeral port, counted from 0, from `at` on, and then from the first, whose bucket
 * is empty. UCM_PORT_COUNT: there is none. */
static uint32_t
port_unused(const struct ucm *ucm, uint32_t at)
{
	for (uint32_t i = 0; i <= UCM_PORT_WORDS; i++) {
		uint32_t word = (at / 64 + i) % UCM_PORT_WORDS, port;
		uint64_t unused = ~ucm->ports_used[word];

		if (i == 0)
			unused &= ~UINT64_C(0) << at % 64;
		port = word * 64 + (uint32_t)(unused != 0 ? __builtin_ctzll(unused) : 64);
		if (unused != 0 && port < UCM_PORT_COUNT)
			return port;
	}
	return UCM_PORT_COUNT;
}

/* Returns a port that no other ID has, or 0. Of ports that IDs have, at other addresses, or that wait for
 * other users, it looks at a few: a command takes the same time however many are taken. */
static uint16_t
port_choose(struct ucm *ucm, const struct ucm_id *id, const struct ucm_addr *addr,
	uint64_t now)
{
	for (unsigned i = 0; i < PORT_TRIES; i++) {
		uint32_t at =
			(uint32_t)(random_next(&ucm->port_choices) % UCM_PORT_COUNT);
		uint32_t unused = port_unused(ucm, at);
		uint16_t port = (uint16_t)(UCM_PORT_FIRST +
					   (unused != UCM_PORT_COUNT ? unused : at));

		if (port_free(ucm, id, port, addr, false, now))
			return port;
	}
	return 0;
}

int
ucm_bind(struct ucm *ucm, struct ucm_id *id, const struct ucm_addr *addr, uint64_t now)
{
	struct ucm_device *device = addr->any ? NULL : ucm_device_of(ucm, addr->gid);
	uint16_t port = ucm_addr_port(addr);

	if (!addr->any && device == NULL)
		return -EADDRNOTAVAIL;
	if (port != 0 && port < PORT_UNPRIVILEGED && !id->channel->session->privileged)
		return -EACCES;
	if (port == 0)
		port = port_choose(ucm, id, addr, now);
	else if (!port_free(ucm, id, port, addr, true, now))
		return -EADDRINUSE;
	if (port == 0)
		return -EADDRINUSE;
	if (!id->has_port &&
		!account_take(id->channel->session->account, ACCOUNT_cm_ports, 1))
		return -EADDRINUSE;
	if (id->has_port) {
		LIST_REMOVE(id, port_link);
		port_bucket_changed(ucm, id->port);
	}
	id->afonly = is_afonly(id, addr);
	id->src = *addr;
	id->src.sa.sin6_port = htons(port);
	id->port = port;
	id->has_port = true;
	ucm_id_set_device(id, device);
	LIST_INSERT_HEAD(ucm_port_bucket(ucm, port), id, port_link);
	port_bucket_changed(ucm, port);
	return 0;
}

void
ucm_unbind(struct ucm_id *id, uint64_t now)
{
	const struct ucm_session *session = id->channel->session;
	const struct ucm_binding has = binding_of(id);

	if (!id->has_port)
		return;
	LIST_REMOVE(id, port_link);
	port_bucket_changed(session->ucm, id->port);
	id->has_port = false;
	account_give(session->account, ACCOUNT_cm_ports, 1);
	if (id->state == UCM_LISTEN)
		port_wait_begin(
			&session->ucm->port_waits, &has, waiting_user(session), now);
}

int
ucm_listen_check(struct ucm *ucm, const struct ucm_id *id)
{
	const struct ucm_binding has = binding_of(id);
	const struct ucm_id *other;

	LIST_FOREACH(other, ucm_port_bucket(ucm, id->port), port_link)
	{
		struct ucm_binding others = binding_of(other);

		if (other != id && ucm_bindings_conflict(&others, &has))
			return -EADDRINUSE;
	}
	return 0;
}

/* Returns the index of a local address in the GID table; -1 if it, or the device, was removed. */
static int
gid_index(const struct ucm_device *device, const uint8_t gid[16])
{
	for (unsigned i = 0; device != NULL && i < device->conf.net.addr_count; i++) {
		/* Entry 3 of the GID table repeats entry 0. */
		if (memcmp(device->conf.net.addr[i].gid, gid, 16) == 0)
			return (int)(i < 3 ? i : i + 1);
	}
	return -1;
}

int
ucm_ah_fill(const struct ucm_id *id, struct ib_uverbs_ah_attr *ah)
{
	int index = gid_index(id->device, id->src.gid);

	if (index < 0)
		return -EADDRNOTAVAIL;
	memset(ah, 0, sizeof(*ah));
	memcpy(ah->grh.dgid, id->dst.gid, 16);
	ah->grh.sgid_index = (uint8_t)index;
	ah->grh.hop_limit = HOP_LIMIT;
	ah->grh.traffic_class = id->tos;
	ah->is_global = 1;
	ah->port_num = 1;
	return 0;
}
