/* SPDX-License-Identifier: BSD-3-Clause */
/* Clients that send descriptors whose last close waits: TCP sockets that linger. Each case
 * bounds the time that the daemon's thread takes. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <time.h>

#include "server_fixture.h"

#define LINGER_S 20
#define MOST_S 5 /* what the daemon may take, far less than a close of the socket */

/* A TCP socket with unread data: its last close waits until `end` is closed. */
struct lingering {
	int fd, end;
};

static void
lingering_open(struct lingering *l)
{
	struct sockaddr_in addr = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	const struct linger on = {.l_onoff = 1, .l_linger = LINGER_S};
	static const char data[65536];
	socklen_t len = sizeof(addr);
	int listener = socket(AF_INET, SOCK_STREAM, 0);

	assert_int_equal(bind(listener, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&addr, &len), 0);
	l->fd = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(connect(l->fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	l->end = accept(listener, NULL, NULL);
	assert_true(l->end >= 0);
	while (send(l->fd, data, sizeof(data), MSG_DONTWAIT) > 0)
		continue;
	assert_int_equal(setsockopt(l->fd, SOL_SOCKET, SO_LINGER, &on, sizeof(on)), 0);
	close(listener);
}

/* Sends a message with the descriptor, and gives up the own one. Returns as sendmsg(). */
static ssize_t
lingering_send(struct lingering *l, int to, const void *bytes, size_t len)
{
	char control[CMSG_SPACE(sizeof(int))] __attribute__((aligned(8))) = {0};
	struct iovec from = {.iov_base = (void *)bytes, .iov_len = len};
	struct msghdr msg = {.msg_iov = &from,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control)};
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
	const struct linger off = {.l_onoff = 0};
	ssize_t sent;
	int err;

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &l->fd, sizeof(l->fd));
	sent = sendmsg(to, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
	err = errno;
	if (sent < 0) /* the own close is the last one */
		(void)setsockopt(l->fd, SOL_SOCKET, SO_LINGER, &off, sizeof(off));
	close(l->fd);
	errno = err;
	return sent;
}

/* Its close no longer waits. */
static void
lingering_end(struct server_fixture *b, struct lingering *l)
{
	close(l->end);
	assert_true(fixture_closer_await(b));
}

/* Makes the daemon's sockets accept descriptors, as those of a kernel before 6.16. */
static void
fixture_open_old(struct server_fixture *b)
{
	const int on = 1;

	fixture_open(b, (struct rocade_daemon_conf){.size = 0});
	(void)setsockopt(b->d->listen.fd, SOL_SOCKET, SO_PASSRIGHTS, &on, sizeof(on));
	b->d->passed.refused = false;
}

static void
fixture_close_old(struct server_fixture *b)
{
	assert_true(fixture_closer_end(b));
	fixture_close(b);
}

static const struct sw_request request = {
	.magic = SW_PROTO_MAGIC, .version = SW_PROTO_VERSION, .type = SW_DEVICE_INFO};

static void
kernel_refuses_descriptors(void **state)
{
	struct lingering l;
	struct server_fixture b;
	int fd;

	fixture_open(&b, (struct rocade_daemon_conf){.size = 0});
	if (!b.d->passed.refused) {
		fixture_close(&b);
		skip();
	}
	fd = client_connect(&b);
	lingering_open(&l);
	assert_int_equal(lingering_send(&l, fd, &request, sizeof(request)), -1);
	assert_int_equal(errno, EPERM);
	close(l.end);
	close(fd);
	fixture_close(&b);
}

static void
received_descriptor_does_not_stop_the_daemon(void **state)
{
	time_t begin = time(NULL);
	struct sw_reply reply;
	struct lingering l;
	struct server_fixture b;
	int fd;

	fixture_open_old(&b);
	fd = client_connect(&b);
	lingering_open(&l);
	assert_int_equal(
		lingering_send(&l, fd, &request, sizeof(request)), sizeof(request));
	daemon_handle_all(&b);
	assert_true(time(NULL) - begin < MOST_S);
	assert_int_equal(passed_fds_pending(&b.d->passed), 1);
	/* A client that sends descriptors is disconnected. */
	assert_false(client_recv(fd, &reply, NULL));
	close(fd);
	lingering_end(&b, &l);
	fixture_close_old(&b);
}

/* how: 0: the daemon closes the connection; 1: it rejects it; 2: it ends. */
static void
queued_descriptor_case(unsigned how)
{
	time_t begin = time(NULL);
	struct lingering l;
	struct server_fixture b;
	int fd;

	fixture_open_old(&b);
	fd = client_socket();
	assert_int_equal(
		connect(fd, (struct sockaddr *)&b.d->addr, sizeof(b.d->addr)), 0);
	lingering_open(&l);
	/* A malformed request, an empty one, and one with the descriptor. */
	assert_int_equal(send(fd, "x", 1, 0), 1);
	assert_int_equal(send(fd, "", 0, 0), 0);
	assert_int_equal(
		lingering_send(&l, fd, &request, sizeof(request)), sizeof(request));
	if (how == 1)
		b.d->sw->conf.max_clients = 0;
	if (how != 2)
		conn_accept(b.d);
	daemon_handle_all(&b);
	if (how == 2)
		conn_listen_end(b.d);
	assert_int_equal(b.d->conn_count, 0);
	assert_int_equal(passed_fds_pending(&b.d->passed), 1);
	assert_true(time(NULL) - begin < MOST_S);
	close(fd);
	lingering_end(&b, &l);
	fixture_close_old(&b);
}

static void
queued_descriptor_does_not_stop_the_daemon(void **state)
{
	for (unsigned how = 0; how < 3; how++)
		queued_descriptor_case(how);
}

static void
queue_of_a_client_that_has_gone_is_emptied(void **state)
{
	time_t begin = time(NULL);
	struct lingering l;
	struct server_fixture b;
	int fd;

	fixture_open_old(&b);
	fd = client_connect(&b);
	lingering_open(&l);
	assert_int_equal(send(fd, "x", 1, 0), 1);
	assert_int_equal(
		lingering_send(&l, fd, &request, sizeof(request)), sizeof(request));
	/* The daemon has not read its replies: the queue ends with an error. */
	assert_int_equal(send(TAILQ_FIRST(&b.d->conns)->socket.fd, "y", 1, 0), 1);
	close(fd);
	conn_close(TAILQ_FIRST(&b.d->conns));
	assert_int_equal(passed_fds_pending(&b.d->passed), 1);
	assert_true(time(NULL) - begin < MOST_S);
	lingering_end(&b, &l);
	fixture_close_old(&b);
}

static void
wake_sockets_carry_no_descriptors(void **state)
{
	struct sw_request req = {.type = SW_CM_OPEN};
	int fds[SW_ATTACH_FDS] = {-1, -1, -1, -1};
	struct fixture_client c;
	struct sw_reply reply;
	struct lingering l;
	struct server_fixture b;

	fixture_open_old(&b);
	assert_int_equal(client_attach(&b, &c), 0);
	lingering_open(&l);
	assert_int_equal(lingering_send(&l, c.fds[2], "x", 1), -1);
	assert_int_equal(errno, EPIPE);
	close(l.end);
	assert_true(client_call(&b, c.fd, &req, &reply, fds));
	assert_int_equal(reply.error, 0);
	lingering_open(&l);
	assert_int_equal(lingering_send(&l, fds[0], "x", 1), -1);
	assert_int_equal(errno, EPIPE);
	close(l.end);
	close(fds[0]);
	client_detach(&b, &c);
	fixture_close(&b);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kernel_refuses_descriptors),
		cmocka_unit_test(received_descriptor_does_not_stop_the_daemon),
		cmocka_unit_test(queued_descriptor_does_not_stop_the_daemon),
		cmocka_unit_test(queue_of_a_client_that_has_gone_is_emptied),
		cmocka_unit_test(wake_sockets_carry_no_descriptors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
