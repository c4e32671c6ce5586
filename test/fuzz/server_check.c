/* SPDX-License-Identifier: BSD-3-Clause */
/* What must hold after each step. */
#include "server_world.h"
#include "switch/sw_pair.h"
#include "switch/sw_wait.h"

const struct ucm_session *
session_of(const struct client *c)
{
	const struct ucm_session *s;

	TAILQ_FOREACH (s, &world.ucm->sessions, link) {
		const struct conn *conn = s->owner;

		if (!s->ended && conn->pid == c->pid && conn->uid == c->uid)
			return s;
	}
	return NULL;
}

/* Two users do not have the same port, and an ID connects no QP of another user. */
static void
id_check(const struct ucm_id *id)
{
	const struct ucm_session *s = id->channel->session, *other;
	const struct sw_qp *qp = qpns_find(&world.b.d->sw->qpns, id->local.qpn);
	const struct ucm_binding has = {
		.addr = &id->src, .ps = id->ps, .port = id->port, .afonly = id->afonly};

	FUZZ_CHECK(id->conn == NULL || qp == NULL || qp->owner->user->uid == s->uid);
	TAILQ_FOREACH (other, &world.ucm->sessions, link) {
		if (!id->has_port || other->uid == s->uid)
			continue;
		for (uint32_t i = 0; i < other->ids.size; i++) {
			const struct ucm_id *b = other->ids.slots[i];
			struct ucm_binding others;

			if (b == NULL || !b->has_port)
				continue;
			others = (struct ucm_binding){.addr = &b->src,
				.ps = b->ps,
				.port = b->port,
				.afonly = b->afonly};
			FUZZ_CHECK(!ucm_bindings_conflict(&has, &others));
		}
	}
}

static void
session_count(const struct ucm_session *s, uint32_t *held)
{
	uint32_t ids = 0;

	for (uint32_t i = 0; i < s->ids.size; i++) {
		const struct ucm_id *id = s->ids.slots[i];

		if (id == NULL)
			continue;
		ids++;
		id_check(id);
		held[ACCOUNT_cm_ports] += id->has_port;
		held[ACCOUNT_cm_listeners] += id->listener != NULL;
		held[ACCOUNT_cm_connections] += id->conn != NULL;
	}
	FUZZ_CHECK(ids == s->ids.used);
	held[ACCOUNT_cm_ids] += ids;
	held[ACCOUNT_cm_events] += s->events;
	held[ACCOUNT_descriptors] += s->channels.used;
}

static void
group_count(const struct account *account, const struct sw_group *g, uint32_t *held)
{
	const struct sw *sw = world.b.d->sw;
	uint32_t members = 0;

	for (uint32_t i = 0; i < g->count; i++) {
		const struct sw_qp *qp = qpns_find(&sw->qpns, g->qpns[i]);

		FUZZ_CHECK(qp != NULL);
		members += qp->owner->account == account;
	}
	held[ACCOUNT_group_members] += members;
	held[ACCOUNT_groups] += members != 0;
}

static void
clients_count(
	const struct account *account, const struct sw_clients *clients, uint32_t *held)
{
	const struct sw_client *c;
	const struct sw_qp *qp;

	TAILQ_FOREACH (c, clients, link) {
		uint32_t qps = 0;

		LIST_FOREACH(qp, &c->qp_list, link)
		{
			FUZZ_CHECK(qp->owner == c);
			qps++;
		}
		FUZZ_CHECK(qps == c->qps);
		if (c->account == account)
			held[ACCOUNT_qps] += qps;
	}
}

static void
switch_count(const struct account *account, uint32_t *held)
{
	const struct sw *sw = world.b.d->sw;

	clients_count(account, &sw->clients, held);
	clients_count(account, &sw->ended, held);
	for (unsigned i = 0; i < SW_GROUPS; i++) {
		if (sw->groups[i].count != 0)
			group_count(account, &sw->groups[i], held);
	}
}

/* Returns how many descriptors the daemon still has of a side of the pair: an end of the connection, until
 * a client leaves, and a part, until both clients have mapped what they need. */
static uint32_t
pair_descriptors(const struct sw_pair *pair)
{
	const struct sw_pair_side *s = pair->sides;

	if (s[0].client == NULL || s[1].client == NULL)
		return 0;
	return s[0].done == SW_PAIR_PEER && s[1].done == SW_PAIR_PEER ? 1 : 2;
}

/* Clients of one user only have a pair, and no two of them have two that can be used. */
static void
pairs_count(const struct account *account, uint32_t *held)
{
	struct sw_pair_side *side, *next;
	const struct sw_client *c;

	TAILQ_FOREACH (c, &world.b.d->sw->clients, link) {
		uint32_t pairs = 0;

		TAILQ_FOREACH (side, &c->pairs, link) {
			const struct sw_client *other = sw_pair_other(side)->client;

			FUZZ_CHECK(side->client == c && side->told <= SW_PAIR_END);
			FUZZ_CHECK(
				other == NULL || (other != c && other->user == c->user));
			FUZZ_CHECK(side->pair->ended || other != NULL);
			for (next = TAILQ_NEXT(side, link); next != NULL;
				next = TAILQ_NEXT(next, link))
				FUZZ_CHECK(side->pair->ended || next->pair->ended ||
					   side->partner != next->partner);
			pairs++;
			if (c->account != account)
				continue;
			held[ACCOUNT_memory_kib] +=
				(uint32_t)(pair_part_size(&side->pair->geom) / 1024);
			held[ACCOUNT_descriptors] += pair_descriptors(side->pair);
		}
		FUZZ_CHECK(pairs == c->pair_count && pairs <= CLIENT_PAIRS);
	}
}

/* Counts what the account's user has, kind by kind. */
static void
account_check(const struct account *account, uint32_t *sum)
{
	const struct rocade_daemon *d = world.b.d;
	uint32_t held[ACCOUNT_KINDS] = {0};
	const struct ucm_session *s;
	const struct conn *conn;

	TAILQ_FOREACH (conn, &d->conns, link) {
		if (conn->account != account)
			continue;
		FUZZ_CHECK(conn->uid == account->uid);
		held[ACCOUNT_connections]++;
		held[ACCOUNT_descriptors] += 2 + (conn->daemon_mem != NULL ? 4 : 0);
		if (conn->daemon_mem != NULL)
			held[ACCOUNT_memory_kib] += share_kib(&conn->geom);
		held[ACCOUNT_clients] += conn->daemon_mem != NULL;
	}
	TAILQ_FOREACH (s, &world.ucm->sessions, link) {
		if (s->account == account)
			session_count(s, held);
	}
	switch_count(account, held);
	pairs_count(account, held);
	for (unsigned kind = 0; kind < ACCOUNT_KINDS; kind++) {
		if (account->held[kind] != held[kind])
			fprintf(stderr, "user %u: %u %s, of which %u exist\n",
				account->uid, account->held[kind], account_names[kind],
				held[kind]);
		FUZZ_CHECK(account->held[kind] == held[kind]);
		FUZZ_CHECK(held[kind] <=
			   accounts_most(&d->accounts, (enum account_kind)kind));
		sum[kind] += held[kind];
	}
}

static void
accounts_check(void)
{
	const struct accounts *all = &world.b.d->accounts;
	uint32_t sum[ACCOUNT_KINDS] = {0};
	const struct account *account;

	/* Ended memory is charged until it is unmapped. */
	ended_memory_free(&world.b.d->ended_memory);
	/* A socket is charged until it is closed. */
	FUZZ_CHECK(fixture_closers_await(&world.b));
	TAILQ_FOREACH (account, &all->users, link)
		account_check(account, sum);
	for (unsigned kind = 0; kind < ACCOUNT_KINDS; kind++)
		FUZZ_CHECK(all->limits[kind].used == sum[kind]);
}

static void
honest_qps_check(void)
{
	const struct sw *sw = world.b.d->sw;
	const struct client *c = &world.honest;
	const struct sw_qp *qps[2];
	const struct sw_group *g;
	uint8_t gid[16];
	uint32_t i = 0;

	for (unsigned k = 0; k < 2; k++) {
		qps[k] = qpns_find(&sw->qpns, c->qpns[k]);
		FUZZ_CHECK(qps[k] != NULL && qps[k]->owner->user->uid == c->uid);
	}
	for (unsigned k = 0; k < 2; k++)
		FUZZ_CHECK(qps[k]->peer && qps[k]->dest_serial == qps[1 - k]->serial);
	FUZZ_CHECK(gid_parse(GROUP, gid, NULL) == 0);
	g = sw_group_find(sw, gid);
	FUZZ_CHECK(g != NULL);
	while (i < g->count && g->qpns[i] != c->qpns[0])
		i++;
	FUZZ_CHECK(i < g->count);
}

void
report_check(const struct sw_client *of, const uint8_t *bytes, uint32_t len)
{
	static struct report report;

	/* Another piece is shorter: no client has that many QPs. */
	if (len < offsetof(struct report, qps))
		return;
	memcpy(&report, bytes, offsetof(struct report, qps));
	FUZZ_CHECK(report.peer_count <= of->qps);
	for (uint32_t i = 0; i < REPORT_PEERS; i++) {
		const struct peer_info *peer = &report.peers[i];
		struct peer_info clamped = *peer;

		peer_info_clamp(&clamped, of->qps);
		FUZZ_CHECK(memcmp(peer, &clamped, sizeof(*peer)) == 0);
		FUZZ_CHECK(i < report.peer_count || peer->cap == 0);
	}
}

/* The packets that wait, by client and by thread. */
static void
waiting_check(void)
{
	const struct sw *sw = world.b.d->sw;
	const struct sw_client *c;
	uint32_t waiting = 0;

	TAILQ_FOREACH (c, &sw->clients, link) {
		FUZZ_CHECK(c->waiting <= SW_WAIT_CLIENT);
		waiting += c->waiting;
	}
	for (uint32_t i = 0; i < sw->thread_count; i++)
		waiting -= sw->threads[i]->wait->packets.used;
	FUZZ_CHECK(waiting == 0);
}

static void
honest_listener_check(void)
{
	const struct ucm_session *s = session_of(&world.honest);
	const struct ucm_id *id;

	FUZZ_CHECK(s != NULL);
	id = s->ids.slots[0];
	FUZZ_CHECK(id != NULL && id->state == UCM_LISTEN && id->port == HONEST_PORT);
}

void
world_check(void)
{
	FUZZ_CHECK(world.honest.fd >= 0);
	accounts_check();
	honest_qps_check();
	waiting_check();
	honest_listener_check();
	memory_check();
}
