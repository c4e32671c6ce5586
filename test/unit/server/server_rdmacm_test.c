/* SPDX-License-Identifier: BSD-3-Clause */
/* RDMA-CM over the daemon's socket: channels, commands, their owners, and their end. */
#include <sys/epoll.h>

#include "server_fixture.h"
#include "ucm/ucm.h"

/* The daemon handles its channels. */
static void
channels_serve(struct server_fixture *b)
{
	struct epoll_event events[16];
	int n = epoll_wait(b->d->epoll, events, 16, 0);

	for (int i = 0; i < n; i++) {
		const struct fd_source *source = events[i].data.ptr;

		if (source->kind == FD_SOURCE_CM_CHANNEL)
			rdmacm_channel(source);
	}
	rdmacm_reap(b->d);
}

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

static uint32_t
channel_open(struct server_fixture *b, int fd, int *channel)
{
	struct sw_request req = {.type = SW_CM_OPEN};
	int fds[SW_ATTACH_FDS] = {-1, -1, -1, -1};
	struct sw_reply reply;

	assert_true(client_call(b, fd, &req, &reply, fds));
	assert_int_equal(reply.error, 0);
	assert_true(fds[0] >= 0);
	*channel = fds[0];
	return reply.qpn;
}

/* Returns false if the daemon has disconnected. */
static bool
cm_command(struct server_fixture *b, int fd, uint32_t channel, uint32_t cmd,
	const void *in, uint32_t len, struct sw_cm_reply *reply)
{
	struct sw_cm_request req = {.magic = SW_PROTO_MAGIC,
		.version = SW_PROTO_VERSION,
		.type = SW_CM_COMMAND,
		.channel = channel,
		.cmd = cmd,
		.len = len};

	memcpy(req.bytes, in, RTE_MIN((size_t)len, sizeof(req.bytes)));
	assert_int_equal(send(fd, &req, sizeof(req), 0), sizeof(req));
	daemon_handle_all(b);
	return recv(fd, reply, sizeof(*reply), MSG_DONTWAIT) == sizeof(*reply);
}

static uint32_t
id_make(struct server_fixture *b, int fd, uint32_t channel)
{
	struct rdma_ucm_create_id cmd = {.uid = 1, .ps = RDMA_PS_TCP};
	struct rdma_ucm_create_id_resp resp;
	struct sw_cm_reply reply;

	assert_true(cm_command(
		b, fd, channel, RDMA_USER_CM_CMD_CREATE_ID, &cmd, sizeof(cmd), &reply));
	assert_int_equal(reply.error, 0);
	assert_int_equal(reply.len, sizeof(resp));
	memcpy(&resp, reply.bytes, sizeof(resp));
	return resp.id;
}

static int
resolve_loopback(struct server_fixture *b, int fd, uint32_t channel, uint32_t id,
	struct sw_cm_reply *reply)
{
	struct rdma_ucm_resolve_ip cmd = {.id = id};
	struct sockaddr_in *to = (struct sockaddr_in *)&cmd.dst_addr;

	to->sin_family = AF_INET;
	to->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	to->sin_port = htons(7471);
	assert_true(cm_command(
		b, fd, channel, RDMA_USER_CM_CMD_RESOLVE_IP, &cmd, sizeof(cmd), reply));
	return reply->error;
}

static void
channel_event_and_close(void **state)
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
	assert_int_equal(number, reply.wakes);
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

static void
ids_of_another_process_are_refused(void **state)
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
	assert_int_equal(recv(end, &others, 4, MSG_DONTWAIT), 0);
	close(end);
	close(c);
	close(other_end);
	daemon_handle_all(&b);
	fixture_close(&b);
}

static void
qpn_of_another_process_is_refused(void **state)
{
	struct rdma_ucm_connect cmd = {.conn_param = {.valid = 1}};
	struct rdma_ucm_resolve_route route;
	struct sw_request take = {.type = SW_QPN_TAKE};
	struct sw_cm_reply reply;
	struct sw_reply taken;
	struct fixture_client client;
	struct conn *conn;
	uint32_t channel;
	int fd, end;
	struct server_fixture b;

	fixture_open(&b, (struct rocade_daemon_conf){.addresses = "192.0.2.1/24"});
	assert_int_equal(client_attach(&b, &client), 0);
	assert_true(client_call(&b, client.fd, &take, &taken, NULL));
	assert_int_equal(taken.error, 0);
	fd = client_connect(&b);
	channel = channel_open(&b, fd, &end);
	route.id = cmd.id = id_make(&b, fd, channel);
	assert_int_equal(resolve_loopback(&b, fd, channel, cmd.id, &reply), 0);
	assert_true(cm_command(&b, fd, channel, RDMA_USER_CM_CMD_RESOLVE_ROUTE, &route,
		sizeof(route), &reply));
	cmd.conn_param.qp_num = taken.qpn + 1;
	assert_true(cm_command(
		&b, fd, channel, RDMA_USER_CM_CMD_CONNECT, &cmd, sizeof(cmd), &reply));
	assert_int_equal(reply.error, EINVAL);
	cmd.conn_param.qp_num = taken.qpn;
	/* As if the channel were another process's. */
	conn = TAILQ_LAST(&b.d->conns, conns);
	conn->pid++;
	assert_true(cm_command(
		&b, fd, channel, RDMA_USER_CM_CMD_CONNECT, &cmd, sizeof(cmd), &reply));
	assert_int_equal(reply.error, EINVAL);
	conn->pid--;
	assert_true(cm_command(
		&b, fd, channel, RDMA_USER_CM_CMD_CONNECT, &cmd, sizeof(cmd), &reply));
	assert_int_equal(reply.error, 0);
	close(fd);
	close(end);
	client_detach(&b, &client);
	daemon_handle_all(&b);
	fixture_close(&b);
}

static void
malformed_command_disconnects(void **state)
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
	assert_int_equal(b.d->conn_count, 0);
	fixture_close(&b);
}

static int
bind_any(struct server_fixture *b, int fd, uint32_t channel, uint32_t id, uint16_t port)
{
	struct rdma_ucm_bind_ip cmd = {.id = id};
	struct sockaddr_in *addr = (struct sockaddr_in *)&cmd.addr;
	struct sw_cm_reply reply;

	addr->sin_family = AF_INET;
	addr->sin_port = htons(port);
	assert_true(cm_command(
		b, fd, channel, RDMA_USER_CM_CMD_BIND_IP, &cmd, sizeof(cmd), &reply));
	return reply.error;
}

/* The daemon's own user may bind to ports below 1024, and root. Another one may not. */
static void
low_ports_are_for_the_daemons_user(void **state)
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

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(channel_event_and_close),
		cmocka_unit_test(ids_of_another_process_are_refused),
		cmocka_unit_test(qpn_of_another_process_is_refused),
		cmocka_unit_test(malformed_command_disconnects),
		cmocka_unit_test(low_ports_are_for_the_daemons_user),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
