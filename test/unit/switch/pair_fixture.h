/* SPDX-License-Identifier: BSD-3-Clause */
/* A switch that forms pairs. The memory of the pairs is only counted. */
#ifndef ROCADE_TEST_SWITCH_PAIR_FIXTURE_H
#define ROCADE_TEST_SWITCH_PAIR_FIXTURE_H

#include "switch/sw_pair.h"
#include "switch_fixture.h"

/* Counts the calls of the memory's functions. */
struct pair_calls {
	unsigned created, settled, destroyed;
	unsigned checked[2], left[2];
	int create_error, check_error;
};

static struct pair_calls calls;

static int
pair_created(struct sw_pair *pair)
{
	if (calls.create_error != 0)
		return calls.create_error;
	assert_non_null(pair->sides[0].client);
	assert_non_null(pair->sides[1].client);
	pair->memory = &calls;
	calls.created++;
	return 0;
}

static int
pair_checked(struct sw_pair *pair, unsigned side)
{
	assert_ptr_equal(pair->memory, &calls);
	assert_true(side < 2);
	calls.checked[side]++;
	return calls.check_error;
}

static void
pair_settled(struct sw_pair *pair)
{
	assert_ptr_equal(pair->memory, &calls);
	calls.settled++;
}

static void
pair_left(struct sw_pair *pair, unsigned side)
{
	assert_ptr_equal(pair->memory, &calls);
	assert_true(side < 2);
	calls.left[side]++;
}

static void
pair_destroyed(struct sw_pair *pair)
{
	assert_ptr_equal(pair->memory, &calls);
	calls.destroyed++;
}

static const struct sw_pair_ops counting_ops = {
	.create = pair_created,
	.check = pair_checked,
	.settle = pair_settled,
	.leave = pair_left,
	.destroy = pair_destroyed,
};

/* Clients 0 and 1 are connected, but before the switch formed pairs. */
static inline void
pair_fixture_open_users(struct switch_fixture *b, const uint32_t uids[CLIENTS])
{
	memset(&calls, 0, sizeof(calls));
	fixture_open_users(b, uids);
	b->sw->pair_ops = &counting_ops;
	b->sw->conf.limits.pairs = 8;
}

static inline void
pair_fixture_open(struct switch_fixture *b)
{
	pair_fixture_open_users(b, (const uint32_t[CLIENTS]){0});
}

/* Proves that both clients of each pair have left it, and that no pair is left. */
static inline void
pair_fixture_close(struct switch_fixture *b)
{
	fixture_close(b);
	assert_int_equal(calls.destroyed, calls.created);
	assert_int_equal(calls.left[0], calls.created);
	assert_int_equal(calls.left[1], calls.created);
}

static inline struct sw_reply
peer_register(struct switch_fixture *b, unsigned client, uint32_t qpn, uint32_t dest_qpn)
{
	struct sw_request req = {.type = SW_PEER_SET, .qpn = qpn, .dest_qpn = dest_qpn};
	struct sw_reply reply;

	memcpy(req.sgid, b->addr, 16);
	memcpy(req.dgid, b->addr, 16);
	client_request(b, &b->c[client], &req, &reply);
	assert_int_equal(reply.error, 0);
	return reply;
}

/* Each registers the first QP of the other one. */
static inline void
clients_connect(struct switch_fixture *b, unsigned first, unsigned second)
{
	(void)peer_register(b, first, b->c[first].qpn, b->c[second].qpn);
	(void)peer_register(b, second, b->c[second].qpn, b->c[first].qpn);
}

static inline void
peer_clear(struct switch_fixture *b, unsigned client, uint32_t qpn)
{
	struct sw_request req = {.type = SW_PEER_CLEAR, .qpn = qpn};
	struct sw_reply reply;

	client_request(b, &b->c[client], &req, &reply);
	assert_int_equal(reply.error, 0);
}

/* Returns the reply to a client that has done what this event asks for, or found it wrong. */
static inline struct sw_reply
event_reply(struct switch_fixture *b, unsigned client, uint32_t partner, uint32_t event)
{
	struct sw_request req = {.type = SW_PAIR, .qpn = partner, .dest_qpn = event};
	struct sw_reply reply;

	client_request(b, &b->c[client], &req, &reply);
	return reply;
}

/* Returns the next event, which is of the pair with this client, if there is one. */
static inline uint32_t
event_next(struct switch_fixture *b, unsigned client, unsigned partner, uint32_t done)
{
	uint32_t id = b->c[partner].client != NULL ? b->c[partner].client->id : 0;
	struct sw_reply reply = event_reply(b, client, id, done);

	assert_int_equal(reply.error, 0);
	if (reply.qpn != SW_PAIR_NONE)
		assert_int_equal(reply.client_id, id);
	return reply.qpn;
}

static inline uint32_t
events_of(const struct switch_fixture *b, unsigned client)
{
	return b->c[client].region.daemon->pair_events;
}

#endif
