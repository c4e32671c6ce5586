/* SPDX-License-Identifier: BSD-3-Clause */
/* Replies with descriptors: a client has at most one that it has not read. */
#include "server_fixture.h"
#include "server/server_reply.h"

struct ends {
	int daemon, client;
};

static void
ends_open(struct ends *e)
{
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds), 0);
	e->daemon = fds[0];
	e->client = fds[1];
}

static void
ends_close(struct ends *e)
{
	close(e->daemon);
	close(e->client);
}

/* Sends n descriptors. */
static bool
send_with(struct ends *e, unsigned n)
{
	const struct sw_reply reply = {.magic = SW_PROTO_MAGIC};
	const int fds[SW_ATTACH_FDS] = {e->client, e->client, e->client, e->client};

	return reply_send(e->daemon, &reply, fds, n);
}

/* Reads a reply with n descriptors. */
static void
expect_reply(struct ends *e, unsigned n)
{
	int fds[SW_ATTACH_FDS];
	struct sw_reply reply;

	assert_true(client_recv(e->client, &reply, fds));
	assert_int_equal(reply.magic, SW_PROTO_MAGIC);
	for (unsigned i = 0; i < SW_ATTACH_FDS; i++) {
		assert_int_equal(fds[i] >= 0, i < n);
		if (fds[i] >= 0)
			close(fds[i]);
	}
}

TEST(descriptors_follow_read_replies)
{
	struct ends e;

	ends_open(&e);
	for (unsigned n = 1; n <= SW_ATTACH_FDS; n++) {
		assert_true(send_with(&e, n));
		assert_false(send_with(&e, n));
		expect_reply(&e, n);
	}
	assert_true(send_with(&e, 1));
	ends_close(&e);
}

TEST(replies_without_descriptors_follow_at_once)
{
	struct ends e;

	ends_open(&e);
	assert_true(send_with(&e, 1));
	assert_true(send_with(&e, 0));
	expect_reply(&e, 1);
	assert_false(send_with(&e, 1));
	expect_reply(&e, 0);
	assert_true(send_with(&e, 1));
	ends_close(&e);
}
