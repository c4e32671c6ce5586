/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Users that make random calls, over a wire that loses, duplicates, delays and reorders.
 * Both ends must agree on which connections are established, each event must come once
 * and in order, and after the documented time nothing may remain of released connections.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../rand.h"
#include "case.h"
#include "cm_pair.h"

#define SEEDS 300
#define CONNS 24
#define STEPS 120
#define QUIET_NS (17 * (REQ_WAIT_NS + code_ns(CM_MRA_MAX)) + 100 * NS_PER_SEC)

struct user {
	unsigned side;
	struct cm_conn *conn; /* NULL: unused */
	uint32_t events;      /* bits of the types seen */
	struct user *peer;    /* of an established connection */
	uint32_t qpn, peer_qpn;
};

struct world {
	struct cm_pair pair;
	uint64_t rand;
	unsigned loss, copies; /* percent */
	uint64_t jitter_ns;
	struct user users[2 * CONNS];
	uint32_t next_qpn;
	unsigned both; /* connections that both ends saw established */
};

static struct world w;

static void
wire_put(struct flight *f)
{
	struct cm_pair *pair = &w.pair;
	unsigned at = pair->flight_count;

	if (pair->flight_count == RTE_DIM(pair->flights))
		return;
	f->at = pair->now + WIRE_NS + rand_below(&w.rand, w.jitter_ns + 1);
	while (at != 0 && pair->flights[at - 1].at > f->at)
		at--;
	memmove(&pair->flights[at + 1], &pair->flights[at],
		(pair->flight_count - at) * sizeof(*f));
	pair->flights[at] = *f;
	pair->flight_count++;
}

static void
send_all(void)
{
	for (unsigned from = 0; from < 2; from++) {
		struct flight f = {.to = !from};
		struct cm_path path;

		while (cm_tx(w.pair.cm[from], &f.mad, &path)) {
			memcpy(f.path.sgid, path.dgid, 16);
			memcpy(f.path.dgid, path.sgid, 16);
			for (bool more = true; more;
				more = rand_below(&w.rand, 100) < w.copies)
				if (rand_below(&w.rand, 100) >= w.loss)
					wire_put(&f);
		}
	}
}

static struct user *
user_of(struct cm_conn *conn)
{
	for (unsigned i = 0; i < RTE_DIM(w.users); i++)
		if (w.users[i].conn == conn)
			return &w.users[i];
	return NULL;
}

static struct user *
user_new(unsigned side, struct cm_conn *conn)
{
	struct user *u = user_of(NULL);

	if (u != NULL)
		*u = (struct user){.side = side, .conn = conn};
	return u;
}

static void
user_release(struct user *u)
{
	cm_release(u->conn, w.pair.now);
	u->conn = NULL;
}

static void
on_request(struct cm_event *e, unsigned side)
{
	struct user *u = user_new(side, e->conn);
	struct cm_qp qp = passive_qp;

	if (u == NULL) {
		cm_release(e->conn, w.pair.now);
		return;
	}
	u->peer_qpn = e->qp.qpn;
	u->qpn = qp.qpn = w.next_qpn++;
	if (rand_below(&w.rand, 8) == 0)
		return; /* neither accepts nor rejects */
	/* The peer may have given up already. */
	if (rand_below(&w.rand, 8) == 0)
		(void)cm_reject(u->conn, CM_REJ_CONSUMER, "no", 2, w.pair.now);
	else
		(void)cm_accept(u->conn, &qp, "yes", 3, w.pair.now);
}

/* The user of the other end, found by both QPNs. */
static struct user *
other_end(const struct user *u)
{
	for (unsigned i = 0; i < RTE_DIM(w.users); i++)
		if (w.users[i].conn != NULL && w.users[i].qpn == u->peer_qpn &&
			w.users[i].side != u->side)
			return &w.users[i];
	return NULL;
}

static void
on_event(unsigned side, struct cm_event *e)
{
	struct user *u = user_of(e->conn);

	if (e->type == CM_EVENT_REQUEST) {
		assert_null(u);
		on_request(e, side);
		return;
	}
	assert_non_null(u);
	assert_int_equal(u->side, side);
	/* Each event comes once. After an end only CM_EVENT_TIMEWAIT_EXIT follows. */
	assert_int_equal(u->events & 1u << e->type, 0);
	if (e->type != CM_EVENT_TIMEWAIT_EXIT)
		assert_int_equal(u->events & (1u << CM_EVENT_REJECTED |
						     1u << CM_EVENT_UNREACHABLE |
						     1u << CM_EVENT_DISCONNECTED),
			0);
	assert_int_equal(u->events & 1u << CM_EVENT_TIMEWAIT_EXIT, 0);
	u->events |= 1u << e->type;
	if (e->type == CM_EVENT_REPLY) {
		u->peer_qpn = e->qp.qpn;
		if (rand_below(&w.rand, 8) == 0)
			(void)cm_reject(u->conn, CM_REJ_NO_QP, NULL, 0, w.pair.now);
		else if (rand_below(&w.rand, 8) != 0)
			(void)cm_confirm(u->conn, NULL, 0, w.pair.now);
	} else if (e->type == CM_EVENT_ESTABLISHED) {
		/* The other end names this QP, unless it is released or its user did not
		 * wait for the reply. */
		struct user *o = other_end(u);

		if (o != NULL && o->events & 1u << CM_EVENT_REPLY) {
			assert_int_equal(o->peer_qpn, u->qpn);
			w.both++;
		}
	}
}

static void
events_all(void)
{
	struct cm_event e;

	for (unsigned side = 0; side < 2; side++)
		while (cm_next_event(w.pair.cm[side], &e))
			on_event(side, &e);
}

static void
time_pass(uint64_t ns)
{
	struct cm_pair *pair = &w.pair;
	uint64_t end = pair->now + ns;

	for (;;) {
		uint64_t next = end;

		send_all();
		events_all();
		send_all();
		if (pair->flight_count != 0)
			next = RTE_MIN(next, pair->flights[0].at);
		for (unsigned i = 0; i < 2; i++)
			next = RTE_MIN(next, cm_deadline(pair->cm[i]));
		if (next >= end)
			break;
		pair->now = RTE_MAX(pair->now + 1, next);
		for (unsigned i = 0; i < 2; i++)
			cm_run(pair->cm[i], pair->now);
		while (pair->flight_count != 0 && pair->flights[0].at <= pair->now) {
			struct flight f = pair->flights[0];

			memmove(pair->flights, pair->flights + 1,
				--pair->flight_count * sizeof(f));
			cm_rx(pair->cm[f.to], (const uint8_t *)&f.mad, MAD_LEN, &f.path,
				pair->now);
		}
	}
	pair->now = end;
}

static void
step(void)
{
	struct user *u = &w.users[rand_below(&w.rand, RTE_DIM(w.users))];
	struct cm_request r = request_from(A, 0);
	struct cm_conn *conn;

	switch (rand_below(&w.rand, 6)) {
	case 0:
	case 1:
		if (user_of(NULL) == NULL)
			break;
		r.qp.qpn = w.next_qpn++;
		r.service_id += rand_below(&w.rand, 10) == 0;
		if (cm_connect(w.pair.cm[A], &r, NULL, w.pair.now, &conn) == 0)
			user_new(A, conn)->qpn = r.qp.qpn;
		break;
	case 2:
		if (u->conn != NULL)
			(void)cm_disconnect(u->conn, "bye", 3, w.pair.now);
		break;
	case 3:
		if (u->conn != NULL && rand_below(&w.rand, 2) == 0)
			user_release(u);
		break;
	case 4:
		if (u->conn != NULL && rand_below(&w.rand, 2) == 0)
			(void)cm_established(u->conn, w.pair.now);
		break;
	default:
		break;
	}
	time_pass(rand_magnitude(&w.rand, 34));
}

static void
seed_run(uint64_t seed)
{
	w = (struct world){.rand = seed, .next_qpn = 0x1000};
	cm_pair_init(&w.pair, rand_below(&w.rand, 4) == 0 ? 6 : 2 * CONNS);
	w.loss = (unsigned)rand_below(&w.rand, 3) * 15;
	w.copies = (unsigned)rand_below(&w.rand, 3) * 15;
	w.jitter_ns = rand_below(&w.rand, 2) * rand_magnitude(&w.rand, 33);
	for (unsigned i = 0; i < STEPS; i++)
		step();
	for (unsigned i = 0; i < RTE_DIM(w.users); i++)
		if (w.users[i].conn != NULL)
			user_release(&w.users[i]);
	time_pass(QUIET_NS);
	assert_int_equal(w.pair.flight_count, 0);
	/* A request may have arrived after its listener's user released everything. */
	for (unsigned i = 0; i < RTE_DIM(w.users); i++)
		if (w.users[i].conn != NULL)
			user_release(&w.users[i]);
	time_pass(QUIET_NS);
	cm_pair_fini(&w.pair);
}

static uint64_t
number_of(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);

	return text != NULL ? strtoull(text, NULL, 0) : otherwise;
}

static uint64_t running;

static void
print_seed(void)
{
	if (running != 0)
		fprintf(stderr, "failed with ROCADE_SEED=%llu\n",
			(unsigned long long)running);
}

static int
teardown(void **state)
{
	print_seed();
	return 0;
}

TEST_WITH(random_users_over_a_lossy_wire, NULL, teardown)
{
	uint64_t first = number_of("ROCADE_SEED", 1), both = 0;
	uint64_t count = getenv("ROCADE_SEED") ? 1 : number_of("ROCADE_SEEDS", SEEDS);

	for (running = first; running < first + count; running++) {
		seed_run(running);
		both += w.both;
	}
	running = 0;
	if (count > 1)
		assert_true(both > count);
}
