/* SPDX-License-Identifier: BSD-3-Clause */
/* Replies that a client does not read: of those with descriptors it has at most one. */
#include "engine/clock.h"
#include "server_fixture.h"
#include "server/server_reply.h"

struct ends {
	int daemon, client;
};

static bool no_memory;

/* alloc_plain takes memory from here. */
void *
aligned_alloc(size_t align, size_t len)
{
	void *mem;

	return no_memory || posix_memalign(&mem, align, len) != 0 ? NULL : mem;
}

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

/* Requests the status until the daemon disconnects, and reads nothing. */
static void
unread_leave(struct server_fixture *b, int fd)
{
	struct sw_request req = {
		.magic = SW_PROTO_MAGIC, .version = SW_PROTO_VERSION, .type = SW_STATUS};

	client_connect_fd(b, fd);
	assert_int_equal(conns_count(b->d), 1);
	for (unsigned sent = 0; conns_count(b->d) != 0; sent++) {
		assert_true(sent < 1000);
		assert_int_equal(send(fd, &req, sizeof(req), 0), sizeof(req));
		daemon_handle_all(b);
	}
}

static size_t
unread_read(int fd)
{
	static struct sw_data_reply reply;
	size_t unread = 0;
	ssize_t len;

	while ((len = recv(fd, &reply, sizeof(reply), MSG_DONTWAIT)) > 0)
		unread += (size_t)len;
	assert_int_equal(len, 0); /* the end is behind the replies */
	return unread;
}

TEST(unread_data_is_bounded)
{
	struct server_fixture b;
	int fd;

	fixture_open(&b, (struct rocade_daemon_conf){.size = 0});
	b.closers_wait = true;
	fd = client_socket();
	unread_leave(&b, fd);
	assert_in_range(unread_read(fd), 1, 4 * sizeof(struct sw_data_reply));
	close(fd);
	fixture_close(&b);
}

/* Returns how many connections the user is charged for. */
static uint32_t
connections_held(struct server_fixture *b, const struct account *account)
{
	passed_fds_collect(&b->d->passed);
	passed_fds_look(&b->d->passed);
	return account->held[ACCOUNT_connections];
}

/* Sends the client's own end, as kernels before 6.16 let it. */
static void
own_end_send(int fd)
{
	char control[CMSG_SPACE(sizeof(int))] __attribute__((aligned(8))) = {0};
	struct iovec from = {.iov_base = "x", .iov_len = 1};
	struct msghdr msg = {.msg_iov = &from,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control)};
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	assert_int_equal(sendmsg(fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT), 1);
}

/* The kernel charges what a client has not read to the daemon. So the client's user is charged. */
TEST(own_end_of_a_client_in_its_queue_keeps_no_connection_charged)
{
	struct sw_request req = {
		.magic = SW_PROTO_MAGIC, .version = SW_PROTO_VERSION, .type = SW_STATUS};
	const struct account *account;
	struct server_fixture b;
	const int on = 1;
	int fd;

	fixture_open(&b, (struct rocade_daemon_conf){.size = 0});
	b.closers_wait = true;
	(void)setsockopt(b.d->listen.fd, SOL_SOCKET, SO_PASSRIGHTS, &on, sizeof(on));
	b.d->passed.refused = false;
	fd = client_connect(&b);
	account = TAILQ_FIRST(&b.d->accounts.users);
	assert_int_equal(send(fd, &req, sizeof(req), 0), sizeof(req));
	daemon_handle_all(&b);
	own_end_send(fd);
	assert_int_equal(send(fd, "", 0, 0), 0);
	conn_close(TAILQ_FIRST(&b.d->conns));
	assert_int_equal(connections_held(&b, account), 1);
	close(fd);
	assert_true(awaited(connections_held(&b, account) == 0));
	fixture_close(&b);
}

TEST(connection_is_charged_until_its_replies_are_read)
{
	const struct account *account;
	int fds[3], other, last = client_socket();
	struct server_fixture b;

	fixture_open(&b, (struct rocade_daemon_conf){.max_clients = 1});
	b.closers_wait = true;
	fds[0] = client_socket();
	fds[1] = client_socket();
	fds[2] = last;
	for (unsigned i = 0; i < RTE_DIM(fds); i++)
		unread_leave(&b, fds[i]);
	account = TAILQ_FIRST(&b.d->accounts.users);
	assert_int_equal(connections_held(&b, account), RTE_DIM(fds));
	assert_int_equal(account->held[ACCOUNT_descriptors], RTE_DIM(fds));
	other = client_connect(&b);
	assert_int_equal(conns_count(b.d), 0); /* too many of this user */
	close(other);
	/* The first one is still deaf: each is looked at by itself. */
	close(fds[1]);
	assert_true(awaited(connections_held(&b, account) == 2));
	assert_int_equal(account->held[ACCOUNT_descriptors], 2);
	assert_true(unread_read(fds[0]) != 0);
	assert_true(awaited(connections_held(&b, account) == 1));
	assert_int_equal(account->held[ACCOUNT_descriptors], 1);
	close(fds[0]);
	/* The end of the daemon does not wait for the last one: its end is closed, too. */
	fixture_close(&b);
	close(last);
}

/* A user is refused no connection for one whose replies are read. */
TEST(replies_that_are_read_make_room_at_once)
{
	struct account *another;
	const struct account *account;
	struct server_fixture b;
	int fds[3], other;

	fixture_open(&b, (struct rocade_daemon_conf){.max_clients = 1});
	b.closers_wait = true;
	for (unsigned i = 0; i < RTE_DIM(fds); i++) {
		fds[i] = client_socket();
		unread_leave(&b, fds[i]);
	}
	account = TAILQ_FIRST(&b.d->accounts.users);
	another = account_open(&b.d->accounts, getuid() + 1, 1);
	close(fds[1]);
	passed_fds_collect_of(&b.d->passed, another);
	assert_int_equal(account->held[ACCOUNT_connections], 3);
	other = client_connect(&b);
	assert_int_equal(conns_count(b.d), 1);
	assert_int_equal(account->held[ACCOUNT_connections], 3);
	assert_int_equal(account->held[ACCOUNT_descriptors], 4); /* two of it */
	account_close(another);
	close(other);
	close(fds[0]);
	close(fds[2]);
	fixture_close(&b);
}

#define LOOKS 4 /* of UNREAD_LOOKS in server/passed_fds.c */

/* Each look takes a system call of the thread that serves all. */
TEST(few_connections_are_looked_at_in_turn)
{
	const struct account *account;
	struct server_fixture b;
	int fds[LOOKS + 2];

	fixture_open(&b, (struct rocade_daemon_conf){.size = 0});
	b.closers_wait = true;
	for (unsigned i = 0; i < RTE_DIM(fds); i++) {
		fds[i] = client_socket();
		unread_leave(&b, fds[i]);
	}
	account = TAILQ_FIRST(&b.d->accounts.users);
	close(fds[LOOKS]);
	conn_reap(b.d); /* an idle pass looks at none */
	assert_int_equal(connections_held(&b, account), RTE_DIM(fds));
	assert_int_equal(connections_held(&b, account), RTE_DIM(fds) - 1);
	for (unsigned i = 0; i < RTE_DIM(fds); i++) {
		if (i != LOOKS)
			close(fds[i]);
	}
	fixture_close(&b);
}

/* Without memory for the entry, the connection is closed and charged to no user. */
TEST(unread_connection_is_closed_without_memory)
{
	struct sw_request req = {
		.magic = SW_PROTO_MAGIC, .version = SW_PROTO_VERSION, .type = SW_STATUS};
	struct account *account;
	struct server_fixture b;
	unsigned fds;
	int fd;

	fixture_open(&b, (struct rocade_daemon_conf){.size = 0});
	account = account_open(&b.d->accounts, getuid(), 1);
	fd = client_socket();
	fds = fds_count();
	client_connect_fd(&b, fd);
	assert_int_equal(send(fd, &req, sizeof(req), 0), sizeof(req));
	daemon_handle_all(&b);
	no_memory = true;
	conn_close(TAILQ_FIRST(&b.d->conns));
	no_memory = false;
	conn_reap(b.d);
	assert_int_equal(account->held[ACCOUNT_connections], 0);
	assert_int_equal(account->held[ACCOUNT_descriptors], 0);
	assert_int_equal(fds_count(), fds);
	account_close(account);
	close(fd);
	fixture_close(&b);
}
