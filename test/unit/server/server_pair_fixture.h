/* SPDX-License-Identifier: BSD-3-Clause */
/* Two clients of a daemon, whose QPs can be connected with each other. */
#ifndef ROCADE_TEST_SERVER_PAIR_FIXTURE_H
#define ROCADE_TEST_SERVER_PAIR_FIXTURE_H

#include "server_fixture.h"

struct two {
	struct server_fixture b;
	struct fixture_client c[2];
	uint32_t qpn[2];
};

static inline struct sw_reply
call(struct two *t, unsigned c, struct sw_request req, int *fd)
{
	int fds[SW_ATTACH_FDS];
	struct sw_reply reply;

	assert_true(client_call(&t->b, t->c[c].fd, &req, &reply, fds));
	if (fd != NULL)
		*fd = fds[0];
	else
		assert_int_equal(fds[0], -1);
	/* The connection with the partner comes with the own part only. */
	assert_int_equal(fds[1] >= 0,
		fds[0] >= 0 && req.type == SW_PAIR && reply.qpn == SW_PAIR_OWN);
	if (fds[1] >= 0)
		close(fds[1]);
	return reply;
}

static inline void
peer_register(struct two *t, unsigned c, uint32_t dest_qpn)
{
	struct sw_request req = {
		.type = SW_PEER_SET, .qpn = t->qpn[c], .dest_qpn = dest_qpn};

	assert_int_equal(gid_parse("192.0.2.1", req.sgid, NULL), 0);
	memcpy(req.dgid, req.sgid, 16);
	assert_int_equal(call(t, c, req, NULL).error, 0);
}

static inline void
two_connect(struct two *t)
{
	peer_register(t, 0, t->qpn[1]);
	peer_register(t, 1, t->qpn[0]);
}

/* no_pairs: what the second one says when it starts. */
static inline void
two_open_with(struct two *t, uint32_t pairs, uint32_t no_pairs)
{
	fixture_open(&t->b, (struct rocade_daemon_conf){.client_pairs = pairs});
	for (unsigned i = 0; i < 2; i++) {
		struct sw_request start = {.qpn = i == 1 ? no_pairs : 0};

		assert_int_equal(client_attach_as(&t->b, &t->c[i], start), 0);
		t->qpn[i] =
			call(t, i, (struct sw_request){.type = SW_QPN_TAKE}, NULL).qpn;
	}
}

static inline void
two_open(struct two *t)
{
	two_open_with(t, 4, 0);
}

/* Nothing is charged to the user any more. */
static inline void
two_close(struct two *t)
{
	for (unsigned i = 0; i < 2; i++)
		client_detach(&t->b, &t->c[i]);
	sw_ended_free(t->b.d->sw);
	assert_int_equal(t->b.d->accounts.limits[ACCOUNT_memory_kib].used, 0);
	assert_int_equal(t->b.d->accounts.limits[ACCOUNT_descriptors].used, 0);
	fixture_close(&t->b);
}

/* Acknowledges an event, and expects the next one. Returns its descriptor, -1: none. */
static inline int
expect_event(struct two *t, unsigned c, uint32_t done, uint32_t next)
{
	struct sw_request req = {.type = SW_PAIR,
		.qpn = done != 0 ? t->c[1 - c].reply.client_id : 0,
		.dest_qpn = done};
	struct sw_reply reply;
	int fd;

	reply = call(t, c, req, &fd);
	assert_int_equal(reply.error, 0);
	assert_int_equal(reply.qpn, next);
	assert_int_equal(fd >= 0, next == SW_PAIR_OWN || next == SW_PAIR_PEER);
	return fd;
}

static inline size_t
part_size(const struct two *t)
{
	struct pair_geom geom = pair_geom_of(&t->c[0].region.geom);

	return pair_part_size(&geom);
}

/* Maps the own part, allocates all pages but for `less` bytes, and seals it. */
static inline void *
own_map(const struct two *t, int fd, size_t less)
{
	size_t size = part_size(t);
	void *own;

	assert_int_equal(fallocate(fd, 0, 0, (off_t)(size - less)), 0);
	own = memory_map(fd, size, PROT_READ | PROT_WRITE);
	memory_seal(fd);
	return own;
}

#endif
