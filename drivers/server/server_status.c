/* SPDX-License-Identifier: BSD-3-Clause */
/* The daemon's state as JSON text, a part for each request: no request takes long. */
#include <errno.h>
#include <stdio.h>

#include "base/json_out.h"
#include "engine/clock.h"
#include "server/server_idle.h"
#include "server/server_impair.h"
#include "server/server_log.h"
#include "server/server_query.h"
#include "server/server_rdmacm.h"
#include "switch/sw_client.h"

#define ROWS_MAX 8 /* in a reply; a row has less than SW_DATA_MAX / ROWS_MAX bytes */
/* A reply about requests looks at no more than that many clients of which none was measured. */
#define UNMEASURED_MOST 64
static_assert(LATENCY_TEXT_MAX + 64 < SW_DATA_MAX && SLOWEST_TEXT_MAX + 64 < SW_DATA_MAX,
	"but for what clients say of their requests, of which a reply has one row");

static void
stats_print(struct json_out *j, const struct sw_stats *stats)
{
	const uint64_t *values = (const uint64_t *)stats;

	for (size_t i = 0; i < SW_STAT_COUNT; i++)
		json_out_uint(j, sw_stat_rows[i].name, values[i]);
}

static void
status_print_client(struct json_out *j, const struct conn *conn)
{
	struct sw_client *c = conn->client;
	struct sw_stats stats;

	sw_client_stats_read(c, &stats);
	json_out_object(j, NULL);
	json_out_uint(j, "id", c->id);
	json_out_uint(j, "pid", (uint32_t)conn->pid);
	json_out_uint(j, "uid", conn->uid);
	json_out_text(j, "name", conn->name);
	json_out_uint(j, "qp_count", c->qps);
	json_out_uint(j, "pairs", c->pair_count);
	json_out_uint(j, "queue", c->thread->index);
	json_out_uint(j, "rx_waiting", sw_client_rx_waiting(c));
	stats_print(j, &stats);
	json_out_end(j);
}

static void
status_print_device(struct json_out *j, const struct rocade_daemon *d)
{
	const struct sw_device *dev = &d->device;
	char text[46];

	json_out_object(j, "device");
	json_out_text(j, "name", dev->name);
	json_out_uint(j, "mtu", dev->mtu);
	json_out_bool(j, "local", dev->local);
	json_out_uint(j, "qpn_base", dev->qpn_base);
	json_out_uint(j, "qpn_count", dev->qpn_count);
	json_out_uint(j, "qpns_free", qpns_free_count(&d->sw->qpns));
	json_out_uint(j, "disconnected", sw_corrupt_count(d->sw));
	json_out_uint(j, "parked", d->control.parks);
	json_out_uint(j, "core_slept", idle_slept(d->cores));
	json_out_uint(j, "cm_listeners", rdmacm_listeners(d));
	json_out_uint(j, "log_lines_lost", server_log_lost());
	json_out_array(j, "addresses");
	for (unsigned i = 0; i < d->sw->conf.net.addr_count; i++)
		json_out_text(j, NULL,
			gid_format(d->sw->conf.net.addr[i].gid, text, sizeof(text)));
	json_out_end(j);
	json_out_end(j);
}

static void
status_print_port(struct json_out *j, struct uplink *up)
{
	struct port_stats stats;
	const uint64_t *values = (const uint64_t *)&stats;

	uplink_stats_read(up, &stats);
	json_out_object(j, "port");
	json_out_bool(j, "link_up", up->link_up);
	json_out_uint(j, "unresolved", up->neigh_queue_count);
	for (size_t i = 0; i < PORT_STAT_COUNT; i++)
		json_out_uint(j, port_stat_rows[i].name, values[i]);
	json_out_end(j);
}

/* Of a daemon with several queues: the counters of the thread of each. */
static void
status_print_queues(struct json_out *j, const struct sw *sw)
{
	struct sw_thread_stats stats;
	const uint64_t *values = (const uint64_t *)&stats;

	json_out_array(j, "queues");
	for (uint32_t i = 0; i < sw->thread_count; i++) {
		sw_thread_stats_read(sw->threads[i], &stats);
		json_out_object(j, NULL);
		json_out_uint(j, "queue", i);
		json_out_uint(j, "clients", sw->threads[i]->client_count);
		for (size_t k = 0; k < SW_THREAD_STAT_COUNT; k++)
			json_out_uint(j, sw_thread_stat_rows[k].name, values[k]);
		json_out_end(j);
	}
	json_out_end(j);
}

/* A limit of the port. The port itself counts what each user holds. */
struct port_share {
	const char *name;
	uint32_t all;  /* 0: the size of the neighbour table */
	uint32_t user; /* 0: a user's part of it */
	uint32_t (*held)(const struct uplink *up, const struct net_user *user);
};

static uint32_t
neighs_held(const struct uplink *up, const struct net_user *user)
{
	(void)up;
	return net_user_neighs(user);
}

static uint32_t
unresolved_held(const struct uplink *up, const struct net_user *user)
{
	(void)up;
	return net_user_unresolved(user);
}

static const struct port_share port_shares[] = {
	{"neighbours", 0, 0, neighs_held},
	{"unresolved_neighbours", 0, NET_USER_UNRESOLVED, unresolved_held},
	{"queued_packets", UPLINK_NEIGH_QUEUE, UPLINK_NEIGH_QUEUE_USER, uplink_queued},
};

static uint32_t
port_share_held(
	const struct port_share *share, const struct rocade_daemon *d, uint32_t uid)
{
	const struct sw_user *user = sw_user_find(&d->sw->users, uid);

	return user != NULL ? share->held(d->up, &user->neighs) : 0;
}

static void
status_print_user(
	struct json_out *j, const struct rocade_daemon *d, const struct account *account)
{
	uint64_t refused = 0;

	json_out_object(j, NULL);
	json_out_uint(j, "uid", account->uid);
	for (unsigned i = 0; i < ACCOUNT_KINDS; i++) {
		json_out_uint(j, account_names[i], account->held[i]);
		refused += account->refused[i];
	}
	for (unsigned i = 0; d->up != NULL && i < RTE_DIM(port_shares); i++)
		json_out_uint(j, port_shares[i].name,
			port_share_held(&port_shares[i], d, account->uid));
	json_out_uint(j, "refused", refused);
	json_out_uint(j, "requests", account->requests);
	json_out_uint(j, "request_us", account->control_total_ns / NS_PER_US);
	json_out_end(j);
}

static void
status_print_share(
	struct json_out *j, const struct rocade_daemon *d, const struct port_share *share)
{
	const uint32_t neighs = net_neighs(d->up->net);
	const struct account *account;
	uint32_t used = 0;

	/* Users without connections hold nothing. */
	TAILQ_FOREACH (account, &d->accounts.users, link)
		used += port_share_held(share, d, account->uid);
	json_out_object(j, share->name);
	json_out_uint(j, "all", share->all != 0 ? share->all : neighs);
	json_out_uint(
		j, "user", share->user != 0 ? share->user : NET_USER_NEIGHS(neighs));
	json_out_uint(j, "reserved", 0);
	json_out_uint(j, "used", used);
	json_out_end(j);
}

static void
status_print_limits(struct json_out *j, const struct rocade_daemon *d)
{
	const struct accounts *all = &d->accounts;

	json_out_object(j, "limits");
	for (unsigned i = 0; i < ACCOUNT_KINDS; i++) {
		json_out_object(j, account_names[i]);
		json_out_uint(j, "all", all->limits[i].capacity);
		json_out_uint(j, "user", accounts_most(all, (enum account_kind)i));
		json_out_uint(j, "reserved", all->limits[i].reserve);
		json_out_uint(j, "used", all->limits[i].used);
		json_out_end(j);
	}
	for (unsigned i = 0; d->up != NULL && i < RTE_DIM(port_shares); i++)
		status_print_share(j, d, &port_shares[i]);
	json_out_end(j);
}

/* Counts what the asker is not shown: it can tell that something is missing. */
static void
status_print_hidden(struct json_out *j, const struct conn *asker)
{
	const struct accounts *all = &asker->daemon->accounts;
	const struct account *account;
	uint32_t clients = 0, users = 0;

	TAILQ_FOREACH (account, &all->users, link) {
		if (account->holders == 0 || conn_may_see(asker, account->uid))
			continue;
		clients += account->held[ACCOUNT_clients];
		users++;
	}
	json_out_object(j, "hidden");
	json_out_uint(j, "clients", clients);
	json_out_uint(j, "users", users);
	json_out_end(j);
}

static void
device_part_print(struct json_out *j, const struct conn *asker)
{
	struct rocade_daemon *d = asker->daemon;

	status_print_device(j, d);
	server_impair_print(j, asker);
	if (d->up != NULL)
		status_print_port(j, d->up);
	if (d->sw->thread_count > 1)
		status_print_queues(j, d->sw);
	rdmacm_print(j, d);
	status_print_limits(j, d);
	status_print_hidden(j, asker);
	json_out_object(j, "departed");
	stats_print(j, &d->sw->departed);
	json_out_end(j);
}

/* Returns the first user with a uid of at least `from` that the asker may see, or
 * NULL. */
static const struct account *
user_from(const struct conn *asker, uint32_t from)
{
	const struct account *account = accounts_from(&asker->daemon->accounts, from);

	if (account == NULL || conn_may_see(asker, account->uid))
		return account;
	/* The asker may see no other user than its own. Its account is that of another one if its uid is a
	 * subordinate uid, and that of several if it shares the uid. */
	account = asker->account;
	return conn_may_see(asker, account->uid) && from <= account->uid ? account : NULL;
}

/* The numbers that clients give of their requests. */
struct measured {
	enum sw_status_part part;
	struct latencies latencies; /* a bounded copy */
	const struct slowest *
		slowest; /* where the client writes: slowest_copy() bounds what is read */
	uint64_t wall_ns; /* for `slowest` */
};

/* Returns whether a request of the client was measured. */
static bool
measured_take(struct measured *measured, const struct sw_client *c)
{
	const struct region_client *client = c->region.client;

	measured->slowest = &client->slowest;
	if (measured->part == SW_STATUS_SLOWEST)
		return slowest_any(measured->slowest, measured->wall_ns);
	measured->latencies = (struct latencies){0}; /* it may have a sum */
	latencies_add(&measured->latencies, &client->latencies);
	return !latencies_are_empty(&measured->latencies);
}

/* Takes the numbers of the first client with an id of at least `from` that has any. Of UNMEASURED_MOST clients
 * without it takes the last one: the next request goes on behind it. Returns false if there is none. */
static bool
measured_find(
	const struct conn *asker, uint32_t from, uint32_t *id, struct measured *measured)
{
	const struct conn *conn = conn_from(asker, from);
	const struct sw_client *c = conn != NULL ? conn->client : NULL;
	unsigned skipped = 0;

	for (; c != NULL; c = TAILQ_NEXT(c, link)) {
		conn = c->owner;
		if (!conn_may_see(asker, conn->uid))
			continue;
		*id = c->id;
		if (measured_take(measured, c) || ++skipped == UNMEASURED_MOST)
			return true;
	}
	return false;
}

/* As row_print(), of the numbers that measured_find() takes. Of latencies, 0: those of departed clients. */
static bool
measured_row_print(struct json_out *j, const struct conn *asker, enum sw_status_part part,
	uint32_t from, uint32_t *id)
{
	struct measured measured = {
		.part = part, .wall_ns = part == SW_STATUS_SLOWEST ? clock_wall() : 0};

	*id = 0;
	if (from == 0 && part == SW_STATUS_LATENCIES)
		latencies_add(
			&measured.latencies, &asker->daemon->sw->departed_latencies);
	else if (!measured_find(asker, from, id, &measured))
		return false;
	json_out_object(j, NULL);
	json_out_uint(j, "id", *id);
	if (part == SW_STATUS_LATENCIES)
		latencies_print(j, "latencies", &measured.latencies);
	else
		slowest_print(j, "slowest", measured.slowest, measured.wall_ns);
	json_out_end(j);
	return true;
}

/* Prints the row. Returns false if there is none. */
static bool
row_print(struct json_out *j, const struct conn *asker, enum sw_status_part part,
	uint32_t from, uint32_t *id)
{
	const struct conn *conn =
		part == SW_STATUS_CLIENT ? conn_from(asker, from) : NULL;
	const struct account *account =
		part == SW_STATUS_USER ? user_from(asker, from) : NULL;

	if (conn != NULL) {
		*id = conn->client->id;
		status_print_client(j, conn);
	} else if (account != NULL) {
		*id = account->uid;
		status_print_user(j, asker->daemon, account);
	}
	return conn != NULL || account != NULL;
}

/* Prints several rows, which show one moment, but at most ROWS_MAX: packets wait meanwhile. Returns
 * false if there is none. *id: of the last one. */
static bool
several_rows_print(struct json_out *j, const struct conn *asker, enum sw_status_part part,
	uint32_t from, uint32_t *id)
{
	unsigned n = 0;

	if (part >= SW_STATUS_LATENCIES)
		return measured_row_print(j, asker, part, from, id);
	while (n < ROWS_MAX && row_print(j, asker, part, from, id)) {
		from = *id + 1;
		n++;
		if (from == 0) /* it was the highest */
			break;
	}
	return n != 0;
}

int
status_part(const struct conn *asker, enum sw_status_part part, uint32_t from,
	struct sw_data_reply *reply)
{
	struct json_out j = {.to = NULL};
	bool found = true;
	long len;

	if (part > SW_STATUS_SLOWEST)
		return -EINVAL;
	j.to = fmemopen(reply->bytes, sizeof(reply->bytes), "w");
	if (j.to == NULL)
		return -ENOMEM;
	if (part == SW_STATUS_DEVICE)
		device_part_print(&j, asker);
	else
		found = several_rows_print(&j, asker, part, from, &reply->id);
	len = ftell(j.to);
	/* A truncated text would be no JSON. */
	if (fclose(j.to) != 0 || len < 0)
		return -ENOMEM;
	if (!found)
		return -ENOENT;
	reply->len = (uint32_t)len;
	return 0;
}
