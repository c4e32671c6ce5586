/* SPDX-License-Identifier: BSD-3-Clause */
/* RDMA-CM over the daemon's socket: channels, commands, their owners, and their end. */
#include "server_rdmacm_fixture.h"

/* Number of ids according to the status. */
static unsigned
ids_count(const struct server_fixture *b)
{
	unsigned ids = 99;
	char *text = NULL;
	size_t len;
	struct json_out j = {.to = open_memstream(&text, &len)};

	rdmacm_print(&j, b->d);
	fclose(j.to);
	assert_int_equal(sscanf(text, "\"rdma_cm\": {\"ids\": %u", &ids), 1);
	free(text);
	return ids;
}

/* The daemon has closed its end. */
static void
expect_end(int end)
{
	uint32_t number;

	/* What the program's end has kept unread is lost: lib/ucm/backend.h. */
	assert_int_equal(recv(end, &number, 4, MSG_DONTWAIT), -1);
	assert_int_equal(errno, ECONNRESET);
	assert_int_equal(recv(end, &number, 4, MSG_DONTWAIT), 0);
}

/* The process still has the channel, for example because a child of it has. */
TEST(channel_ends_with_its_connection)
{
	struct server_fixture b;
	uint32_t number;
	int fd, end;

	fixture_open(&b, (struct rocade_daemon_conf){.addresses = "192.0.2.1/24"});
	fd = client_connect(&b);
	channel_open(&b, fd, &end);
	assert_int_equal(recv(end, &number, 4, MSG_DONTWAIT), -1);
	close(fd);
	daemon_handle_all(&b);
	assert_int_equal(conns_count(b.d), 0);
	expect_end(end);
	assert_int_equal(b.d->accounts.limits[ACCOUNT_descriptors].used, 0);
	close(end);
	fixture_close(&b);
}

TEST(channel_event_and_close)
{
	struct rdma_ucm_get_event get = {0};
	struct sw_cm_reply reply;
	uint32_t channel, id, number;
	int fd, end;
	struct server_fixture b;

	fixture_open(&b, (struct rocade_daemon_conf){.addresses = "192.0.2.1/24"});
	fd = client_connect(&b);
	channel = channel_open(&b, fd, &end);
	id = id_make(&b, fd, channel);
	assert_int_equal(recv(end, &number, 4, MSG_DONTWAIT), -1);
	assert_int_equal(resolve_loopback(&b, fd, channel, id, &reply), 0);
	assert_int_equal(reply.pending, 1);
	assert_int_equal(recv(end, &number, 4, MSG_DONTWAIT), 4);
	assert_int_equal(number, reply.wakes + 1);
	assert_true(cm_command(
		&b, fd, channel, RDMA_USER_CM_CMD_GET_EVENT, &get, sizeof(get), &reply));
	assert_int_equal(reply.len, sizeof(struct rdma_ucm_event_resp));
	assert_int_equal(reply.pending, 0);
	assert_true(cm_command(
		&b, fd, channel, RDMA_USER_CM_CMD_GET_EVENT, &get, sizeof(get), &reply));
	assert_int_equal(reply.error, EAGAIN);
	/* The client cannot write to the channel. Its close destroys the ids. */
	assert_int_equal(send(end, "x", 1, MSG_NOSIGNAL), -1);
	channels_serve(&b);
	assert_int_equal(ids_count(&b), 1);
	close(end);
	channels_serve(&b);
	assert_int_equal(ids_count(&b), 0);
	assert_true(cm_command(
		&b, fd, channel, RDMA_USER_CM_CMD_GET_EVENT, &get, sizeof(get), &reply));
	assert_int_equal(reply.error, EBADF);
	close(fd);
	daemon_handle_all(&b);
	fixture_close(&b);
}

TEST(ids_of_another_process_are_refused)
{
	struct rdma_ucm_destroy_id destroy = {0};
	struct sw_cm_reply reply;
	uint32_t channel, others;
	int a, c, end, other_end;
	struct server_fixture b;

	fixture_open(&b, (struct rocade_daemon_conf){.addresses = "192.0.2.1/24"});
	a = client_connect(&b);
	c = client_connect(&b);
	channel = channel_open(&b, a, &end);
	destroy.id = id_make(&b, a, channel);
	/* A process needs its own channel, and cannot use another process's channel or
	 * ids. */
	assert_true(cm_command(&b, c, channel, RDMA_USER_CM_CMD_DESTROY_ID, &destroy,
		sizeof(destroy), &reply));
	assert_int_equal(reply.error, EBADF);
	others = channel_open(&b, c, &other_end);
	assert_true(cm_command(&b, c, others, RDMA_USER_CM_CMD_DESTROY_ID, &destroy,
		sizeof(destroy), &reply));
	assert_int_equal(reply.error, ENOENT);
	/* When the process ends, its channel is closed and its ids are destroyed. */
	close(a);
	daemon_handle_all(&b);
	assert_int_equal(ids_count(&b), 0);
	expect_end(end);
	close(end);
	close(c);
	close(other_end);
	daemon_handle_all(&b);
	fixture_close(&b);
}

/* A connection for RDMA-CM, with an ID that is ready to be connected. */
struct cm_end {
	int fd, channel_fd;
	uint32_t channel, id;
};

static void
cm_end_open(struct server_fixture *b, struct cm_end *e)
{
	struct rdma_ucm_resolve_route route;
	struct sw_cm_reply reply;

	e->fd = client_connect(b);
	e->channel = channel_open(b, e->fd, &e->channel_fd);
	route.id = e->id = id_make(b, e->fd, e->channel);
	assert_int_equal(resolve_loopback(b, e->fd, e->channel, e->id, &reply), 0);
	assert_true(cm_command(b, e->fd, e->channel, RDMA_USER_CM_CMD_RESOLVE_ROUTE,
		&route, sizeof(route), &reply));
}

static void
cm_end_close(struct server_fixture *b, struct cm_end *e)
{
	close(e->fd);
	close(e->channel_fd);
	daemon_handle_all(b);
}

/* Returns the error with which the ID connects a QP. */
static int
cm_end_connect(struct server_fixture *b, struct cm_end *e, uint32_t qpn)
{
	struct rdma_ucm_connect cmd = {
		.id = e->id, .conn_param = {.valid = 1, .qp_num = qpn}};
	struct sw_cm_reply reply;

	assert_true(cm_command(b, e->fd, e->channel, RDMA_USER_CM_CMD_CONNECT, &cmd,
		sizeof(cmd), &reply));
	return reply.error;
}

/* The connections of this test are all of one process, so the daemon sees one PID: no right rests on
 * that. It rests on the key. */
TEST(qpn_of_another_process_is_refused)
{
	struct sw_request take = {.type = SW_QPN_TAKE};
	struct sw_reply taken;
	struct fixture_client client;
	struct server_fixture b;
	struct conn *attached, *conn;
	struct cm_end e;

	fixture_open(&b, (struct rocade_daemon_conf){.addresses = "192.0.2.1/24"});
	fixture_process(1);
	assert_int_equal(client_attach(&b, &client), 0);
	attached = TAILQ_LAST(&b.d->conns, conns);
	assert_true(client_call(&b, client.fd, &take, &taken, NULL));
	assert_int_equal(taken.error, 0);
	for (uint8_t other = 0; other < 4; other += 2) {
		fixture_process(other); /* none, or another one */
		cm_end_open(&b, &e);
		assert_int_equal(cm_end_connect(&b, &e, taken.qpn), EINVAL);
		/* It stays the process that it was. */
		fixture_process(other != 0 ? 1 : 0);
		close(e.channel_fd);
		(void)channel_open(&b, e.fd, &e.channel_fd);
		assert_int_equal(cm_end_connect(&b, &e, taken.qpn), EINVAL);
		cm_end_close(&b, &e);
	}
	fixture_process(1);
	cm_end_open(&b, &e);
	assert_int_equal(cm_end_connect(&b, &e, taken.qpn + 1), EINVAL);
	conn = TAILQ_LAST(&b.d->conns, conns);
	/* The process has become another user, and the daemon does not know the PID from another PID
	 * namespace. */
	conn->uid++;
	attached->pid = conn->pid = 0;
	assert_int_equal(cm_end_connect(&b, &e, taken.qpn), 0);
	cm_end_close(&b, &e);
	client_detach(&b, &client);
	fixture_close(&b);
}

/* Two processes that have shown no key are not one. */
TEST(connections_without_a_key_stay_apart)
{
	struct sw_request take = {.type = SW_QPN_TAKE};
	struct sw_reply taken;
	struct fixture_client client;
	struct server_fixture b;
	struct cm_end e;

	fixture_open(&b, (struct rocade_daemon_conf){.addresses = "192.0.2.1/24"});
	fixture_process(0);
	assert_int_equal(client_attach(&b, &client), 0);
	assert_true(client_call(&b, client.fd, &take, &taken, NULL));
	cm_end_open(&b, &e);
	assert_int_equal(cm_end_connect(&b, &e, taken.qpn), EINVAL);
	cm_end_close(&b, &e);
	client_detach(&b, &client);
	fixture_close(&b);
}

/* A process has two connections. One has ended when it disconnects by the other. */
TEST(ended_connection_is_not_of_its_process)
{
	struct server_fixture b;
	int fds[2], channel;

	fixture_open(&b, (struct rocade_daemon_conf){.size = 0});
	fixture_process(1);
	for (unsigned i = 0; i < 2; i++) {
		fds[i] = client_connect(&b);
		(void)channel_open(&b, fds[i], &channel);
		close(channel);
	}
	for (unsigned left = 2; left-- > 0;) {
		unsigned found = 0;
		const struct conn *conn;

		close(fds[left]);
		daemon_handle_all(&b);
		for (unsigned i = 0; i < KEY_BUCKETS; i++)
			LIST_FOREACH(conn, &b.d->by_key[i], key_link)
		found++;
		assert_int_equal(found, left);
	}
	fixture_close(&b);
}

TEST(malformed_command_disconnects)
{
	static const uint8_t longest[UCM_MAX];
	struct sw_cm_request bad = {.magic = 1};
	struct sw_cm_reply reply;
	struct server_fixture b;
	int fd;

	fixture_open(&b, (struct rocade_daemon_conf){.addresses = "192.0.2.1/24"});
	fd = client_connect(&b);
	assert_false(cm_command(
		&b, fd, 1, RDMA_USER_CM_CMD_GET_EVENT, longest, UCM_MAX + 1, &reply));
	close(fd);
	fd = client_connect(&b);
	assert_int_equal(send(fd, &bad, sizeof(bad), 0), sizeof(bad));
	daemon_handle_all(&b);
	assert_int_equal(recv(fd, &reply, sizeof(reply), MSG_DONTWAIT), 0);
	close(fd);
	assert_int_equal(conns_count(b.d), 0);
	fixture_close(&b);
}

/* The daemon's own user may bind to ports below 1024, and root. Another one may not. */
TEST(low_ports_are_for_the_daemons_user)
{
	const uid_t uids[] = {geteuid(), 0, geteuid() + 1};
	struct server_fixture b;

	fixture_open(&b, (struct rocade_daemon_conf){.addresses = "192.0.2.1/24"});
	for (unsigned i = 0; i < RTE_DIM(uids); i++) {
		int fd = client_connect(&b), channel_fd;
		uint32_t channel, id;

		TAILQ_LAST(&b.d->conns, conns)->uid = uids[i];
		channel = channel_open(&b, fd, &channel_fd);
		id = id_make(&b, fd, channel);
		assert_int_equal(bind_any(&b, fd, channel, id, 111), i < 2 ? 0 : EACCES);
		close(fd);
		close(channel_fd);
		daemon_handle_all(&b);
		rdmacm_reap(b.d);
	}
	fixture_close(&b);
}
