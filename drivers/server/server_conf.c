/* SPDX-License-Identifier: BSD-3-Clause */
/* The daemon's configuration: checked, turned into a switch and its port, changed
 * later. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "base/base_alloc.h"
#include "base/off.h"
#include "base/random.h"
#include "cm/cm_core.h"
#include "server/server_conf.h"
#include "server/server_conn.h"
#include "server/server_impair.h"
#include "server/server_rdmacm.h"
#include "server/server_pair.h"
#include "server/server_share.h"
#include "verbs/verbs_port.h"

#define MTU_DEFAULT 4184 /* allows a path MTU of 4096 */
#define MTU_MIN 576
#define MTU_MAX 9000
#define VLAN_MAX 4094
#define QPN_COUNT 65536
#define RING_DEFAULT 1024
#define RING_MIN 64
#define CLIENTS_DEFAULT 256
#define CLIENTS_MAX 65536
#define QPS_DEFAULT 16384
#define PORTS 28232         /* of RDMA-CM: as many as an address has ephemeral ones */
#define UNREAD_EVENTS 65536 /* of RDMA-CM, about 600 bytes each */
#define OWN_DESCRIPTORS 64u /* of the daemon and of its port */
#define SLEEP_MAX_US 1000000
#define L2_MAX (14 + 4)
/* tx buffers that a client's engine holds besides those in its ring */
#define SPARE_BUFS 128

static uint32_t
or_default(uint32_t value, uint32_t fallback)
{
	return value != 0 ? value : fallback;
}

static int
limits_check(const struct rocade_daemon_conf *conf)
{
	if (conf->client_ring != 0 &&
		(conf->client_ring < RING_MIN || conf->client_ring > REGION_MAX_SLOTS ||
			!rte_is_power_of_2(conf->client_ring)))
		return rocade_fail(EINVAL,
			"client_ring: %u is not a power of two in %d..%d",
			conf->client_ring, RING_MIN, REGION_MAX_SLOTS);
	if (conf->client_qps > QPN_COUNT)
		return rocade_fail(EINVAL, "client_qps: %u is not in 1..%d",
			conf->client_qps, QPN_COUNT);
	if (conf->client_pairs > PAIRS_MAX)
		return rocade_fail(EINVAL, "client_pairs: %u is not in 0..%d",
			conf->client_pairs, PAIRS_MAX);
	if (conf->client_mrs >= KEY_MAX)
		return rocade_fail(EINVAL, "client_mrs: %u is not in 1..%d",
			conf->client_mrs, KEY_MAX - 1);
	if (conf->neighbours != 0 &&
		(conf->neighbours < NET_NEIGHS_MIN || conf->neighbours > NET_NEIGHS_MAX ||
			!rte_is_power_of_2(conf->neighbours)))
		return rocade_fail(EINVAL,
			"neighbours: %u is not a power of two in %d..%d",
			conf->neighbours, NET_NEIGHS_MIN, NET_NEIGHS_MAX);
	if (conf->rdmacm_connections != 0 &&
		(conf->rdmacm_connections < RDMACM_CONNECTIONS_MIN ||
			conf->rdmacm_connections > CM_CONNS_MAX ||
			!rte_is_power_of_2(conf->rdmacm_connections)))
		return rocade_fail(EINVAL,
			"rdmacm_connections: %u is not a power of two in %d..%d",
			conf->rdmacm_connections, RDMACM_CONNECTIONS_MIN, CM_CONNS_MAX);
	if (conf->max_clients > CLIENTS_MAX)
		return rocade_fail(EINVAL, "max_clients: %u is not in 1..%d",
			conf->max_clients, CLIENTS_MAX);
	if (conf->sleep_us > SLEEP_MAX_US)
		return rocade_fail(EINVAL, "sleep_us: %u is not in 0..%d", conf->sleep_us,
			SLEEP_MAX_US);
	return 0;
}

static int
device_check(const struct rocade_daemon_conf *conf)
{
	if (conf->mtu != 0 && (conf->mtu < MTU_MIN || conf->mtu > MTU_MAX))
		return rocade_fail(
			EINVAL, "mtu: %u is not in %d..%d", conf->mtu, MTU_MIN, MTU_MAX);
	if (conf->vlan > VLAN_MAX)
		return rocade_fail(
			EINVAL, "vlan: %u is not in 0..%d", conf->vlan, VLAN_MAX);
	if (conf->socket_mode > 0777)
		return rocade_fail(EINVAL, "socket_mode: %o is not in 1..777 (octal)",
			conf->socket_mode);
	if (conf->name == NULL)
		return 0;
	/* It is printed in JSON and becomes part of paths. */
	if (conf->name[0] == '\0' || strlen(conf->name) >= SW_NAME_MAX ||
		strspn(conf->name,
			"abcdefghijklmnopqrstuvwxyz"
			"ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") != strlen(conf->name))
		return rocade_fail(EINVAL,
			"name: \"%s\" is not 1 to %d letters, digits, '_' and '-'",
			conf->name, SW_NAME_MAX - 1);
	return 0;
}

/* Reads addresses, gateways and the VLAN, without the MAC and the link-local address. */
static int
net_read(const struct rocade_daemon_conf *conf, struct net_conf *net)
{
	*net = (struct net_conf){.vlan = conf->vlan};
	return port_net_read(conf->addresses != NULL ? conf->addresses : "",
		conf->gateway4, conf->gateway6, net);
}

static void
net_complete(struct net_conf *net, const uint8_t mac[6])
{
	memcpy(net->mac, mac, 6);
	gid_link_local(net->mac, net->addr[net->addr_count].gid);
	net->addr[net->addr_count++].prefix_len = 64;
}

/* Returns whether a port would accept the configuration: 0 or -errno. */
static int
net_try(const struct net_conf *conf)
{
	struct net *net;
	int rc = net_create(conf, &net);

	if (rc == 0)
		net_destroy(net);
	return rc;
}

/* Sets the error text for a net that net_create() refused. conf: from which net was
 * read. */
static int
net_refused(int rc, const struct rocade_daemon_conf *conf, struct net_conf net)
{
	if (rc != -EINVAL)
		return rocade_fail(-rc, "%s", strerror(-rc));
	memset(net.gateway6, 0, 16);
	if (net_try(&net) == 0)
		return rocade_fail(EINVAL,
			"gateway6: \"%s\" is not in the subnet of any address",
			conf->gateway6);
	memset(net.gateway4, 0, 16);
	if (net_try(&net) == 0)
		return rocade_fail(EINVAL,
			"gateway4: \"%s\" is not in the subnet of any address",
			conf->gateway4);
	return rocade_fail(EINVAL,
		"addresses: \"%s\" contains a duplicate or non-host address",
		conf->addresses);
}

static int
net_check(const struct rocade_daemon_conf *conf)
{
	static const uint8_t mac[6] = {0x02};
	struct net_conf net;
	int rc, err = net_read(conf, &net);

	if (err != 0)
		return err;
	net_complete(&net, mac);
	rc = net_try(&net);
	return rc == 0 ? 0 : net_refused(rc, conf, net);
}

EXPORT int
rocade_daemon_check(const struct rocade_daemon_conf *conf)
{
	int err = 0;

	if (conf->size != sizeof(*conf))
		return rocade_fail(EINVAL,
			"size: %zu is not sizeof(struct rocade_daemon_conf), %zu",
			conf->size, sizeof(*conf));
	err = device_check(conf);
	if (err == 0)
		err = limits_check(conf);
	if (err == 0)
		err = server_impair_check(conf);
	return err == 0 ? net_check(conf) : err;
}

/* Chooses a locally administered MAC, different at each start. */
static void
mac_generate(uint8_t mac[6], uint64_t random)
{
	mac[0] = 0x02;
	for (unsigned i = 1; i < 6; i++)
		mac[i] = (uint8_t)(random >> (8 * i));
}

static struct sw_limits
limits_of(const struct rocade_daemon_conf *conf, uint32_t mtu)
{
	uint32_t ring = or_default(conf->client_ring, RING_DEFAULT);

	return (struct sw_limits){.qps = or_default(conf->client_qps, QPS_DEFAULT),
		.packets_per_s = conf->client_packets_per_s,
		.pairs = conf->client_pairs,
		.geom = {.tx_slots = ring,
			.rx_slots = ring,
			.tx_bufs = ring + SPARE_BUFS,
			.buf_size = RTE_ALIGN_CEIL(mtu + L2_MAX, (uint32_t)LINE_SIZE)}};
}

/* Finds out how many descriptors the limit of the process leaves for clients. Returns 0, or an errno value
 * with an error if these are too few for one. */
static int
descriptors_for_clients(uint32_t *left)
{
	const uint32_t least = OWN_DESCRIPTORS + FDS_PER_CONN + SHARE_FDS;
	struct rlimit limit;

	*left = INT32_MAX;
	if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur > INT32_MAX)
		return 0;
	if (limit.rlim_cur < least)
		return rocade_fail(EMFILE,
			"a daemon needs %u file descriptors to serve one client, and may have "
			"%u (RLIMIT_NOFILE, ulimit -n)",
			least, (unsigned)limit.rlim_cur);
	*left = (uint32_t)limit.rlim_cur - OWN_DESCRIPTORS;
	return 0;
}

int
switch_create(struct rocade_daemon *d, const struct rocade_daemon_conf *conf)
{
	uint32_t mtu = conf->mtu;
	struct sw_conf sw = {.qpn_base = conf->qpn_base,
		.qpn_count = QPN_COUNT,
		.no_sack = is_off(OFF_SACK),
		.neighs = conf->neighbours,
		.max_clients = or_default(conf->max_clients, CLIENTS_DEFAULT)};
	struct sw_device *device = &d->device;
	struct random_key random;
	char why[OFF_WHY_MAX];
	int err = net_read(conf, &device->net);

	if (err == 0 && off_check(why, sizeof(why)) != 0)
		err = rocade_fail(EINVAL, "%s", why);
	if (err == 0)
		err = descriptors_for_clients(&d->descriptors);
	if (err == 0 && random_key_draw(&random) != 0)
		err = rocade_fail(EIO, "no random numbers: getrandom() failed");
	if (err != 0)
		return err;
	if (mtu == 0)
		mtu = conf->port != NULL ? conf->port->mtu : MTU_DEFAULT;
	if (conf->port != NULL)
		memcpy(device->net.mac, conf->port->port.mac, 6);
	else
		mac_generate(device->net.mac, random_once(&random, RANDOM_MAC));
	snprintf(device->name, sizeof(device->name), "%s",
		conf->name != NULL ? conf->name : "rocade0");
	if (conf->port != NULL)
		sw.threads = conf->port->port.queue_count;
	sw.random = random;
	sw.mtu = device->mtu = RTE_MIN(mtu, MTU_MAX + 0u);
	sw.limits = limits_of(conf, sw.mtu);
	sw.net = device->net;
	net_complete(&sw.net, device->net.mac);
	device->qpn_base = sw.qpn_base;
	device->qpn_count = sw.qpn_count;
	device->max_qp = sw.limits.qps;
	device->max_mr = conf->client_mrs;
	device->link_up = 1;
	device->local = conf->port == NULL;
	device->index =
		SW_DEVICE_INDEX | ((uint32_t)random_once(&random, RANDOM_DEVICE_INDEX) &
					  SW_DEVICE_INDEX_BITS);
	d->sleep_us = conf->sleep_us;
	d->rdmacm_connections = or_default(conf->rdmacm_connections, RDMACM_CONNECTIONS);
	err = -sw_create(&sw, share_wake, &d->sw);
	if (err == 0)
		d->sw->pair_ops = &server_pair_ops;
	return err == 0 ? 0
			: rocade_fail(err, "cannot create the switch: %s", strerror(err));
}

/* Returns the limit of the memory that all clients share with the daemon, in KiB: twice
 * what max_clients clients need. So a user reaches its limit of clients first, unless
 * some of them attached before rocade_daemon_change() made the rings smaller. */
static uint32_t
memory_kib_limit(const struct sw_conf *conf)
{
	uint64_t each = share_kib(&conf->limits.geom);

	return (uint32_t)RTE_MIN(2 * each * conf->max_clients, (uint64_t)INT32_MAX);
}

/* Shows the limits of multicast groups to clients. */
static void
group_limits_show(struct rocade_daemon *d)
{
	struct account_limit members;

	account_limit_set(&members, SW_GROUP_MEMBERS, d->others);
	d->device.max_groups = accounts_most(&d->accounts, ACCOUNT_groups);
	d->device.max_group_members = account_limit_most(&members);
	d->device.max_memberships = accounts_most(&d->accounts, ACCOUNT_group_members);
}

void
account_limits_set(struct rocade_daemon *d)
{
	const uint32_t clients = d->sw->conf.max_clients;
	const struct {
		enum account_kind kind;
		uint32_t capacity;
	} limits[] = {{ACCOUNT_connections, CONNS_PER_CLIENT * clients},
		{ACCOUNT_clients, clients}, {ACCOUNT_qps, QPN_COUNT},
		{ACCOUNT_groups, SW_GROUPS},
		{ACCOUNT_group_members, SW_GROUPS * SW_GROUP_MEMBERS},
		/* Not more ids than connections. */
		{ACCOUNT_cm_ids, d->rdmacm_connections},
		{ACCOUNT_cm_ports, RTE_MAX(d->rdmacm_connections, (uint32_t)PORTS)},
		{ACCOUNT_cm_listeners, CM_MAX_LISTENERS},
		{ACCOUNT_cm_connections, d->rdmacm_connections},
		{ACCOUNT_cm_events, UNREAD_EVENTS},
		{ACCOUNT_memory_kib, memory_kib_limit(&d->sw->conf)},
		{ACCOUNT_descriptors, d->descriptors}};

	for (unsigned i = 0; i < RTE_DIM(limits); i++)
		accounts_limit(
			&d->accounts, limits[i].kind, limits[i].capacity, d->others);
	group_limits_show(d);
}

int
port_attach(struct rocade_daemon *d, struct rocade_daemon_port *port)
{
	int err = -uplink_create(
		d->sw, &port->port, &d->sw->conf.net, d->sw->conf.mtu, &d->up);

	if (err != 0)
		return rocade_fail(
			err, "invalid addresses for the port: %s", strerror(err));
	alloc_put(&alloc_plain, port, sizeof(*port));
	server_impair_begin(d);
	rdmacm_set_port(d);
	return 0;
}

EXPORT void
rocade_daemon_close_port(struct rocade_daemon_port *port)
{
	port->port.ops->close(port->port.drv);
	alloc_put(&alloc_plain, port, sizeof(*port));
}

static bool
net_same(const struct net_conf *a, const struct net_conf *b)
{
	if (a->addr_count != b->addr_count || memcmp(a->gateway4, b->gateway4, 16) != 0 ||
		memcmp(a->gateway6, b->gateway6, 16) != 0)
		return false;
	for (unsigned i = 0; i < a->addr_count; i++) {
		if (memcmp(a->addr[i].gid, b->addr[i].gid, 16) != 0 ||
			a->addr[i].prefix_len != b->addr[i].prefix_len)
			return false;
	}
	return true;
}

static int
net_change(struct rocade_daemon *d, const struct rocade_daemon_conf *conf)
{
	struct net_conf net, full;
	int rc, err = net_read(conf, &net);

	if (err != 0 || net_same(&net, &d->device.net))
		return err;
	net.vlan = d->device.net.vlan;
	memcpy(net.mac, d->device.net.mac, 6);
	full = net;
	net_complete(&full, net.mac);
	rc = d->up != NULL ? uplink_set_net(d->up, &full) : 0;
	if (rc != 0)
		return net_refused(rc, conf, full);
	d->device.net = net;
	sw_set_net(d->sw, &full);
	rdmacm_set_net(d);
	sw_changed(d->sw, d->up == NULL || d->up->link_up);
	return 0;
}

EXPORT int
rocade_daemon_change(struct rocade_daemon *d, const struct rocade_daemon_conf *conf)
{
	struct sw_conf *sw = &d->sw->conf;
	int err = rocade_daemon_check(conf);

	if (err == 0)
		err = net_change(d, conf);
	if (err != 0)
		return err;
	sw_lock(d->sw);
	sw->max_clients = or_default(conf->max_clients, CLIENTS_DEFAULT);
	sw->limits = limits_of(conf, sw->mtu);
	sw_unlock(d->sw);
	sw_pair_limits_changed(d->sw);
	account_limits_set(d);
	d->device.max_qp = sw->limits.qps;
	d->device.max_mr = conf->client_mrs;
	__atomic_store_n(&d->sleep_us, conf->sleep_us, __ATOMIC_RELAXED);
	return 0;
}
