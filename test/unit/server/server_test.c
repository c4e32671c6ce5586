/* SPDX-License-Identifier: BSD-3-Clause */
/* The daemon: its socket, its loop, its sleep. */
#include <poll.h>
#include <pthread.h>
#include <sys/stat.h>

#include "server_fixture.h"

static void
expect_refused(const struct rocade_daemon_conf *conf, int err, const char *word)
{
	struct rocade_daemon *d;

	assert_int_equal(rocade_daemon_create(conf, &d), err);
	if (strstr(rocade_error(), word) == NULL)
		fail_msg("\"%s\" does not say \"%s\"", rocade_error(), word);
}

TEST(invalid_configuration_is_refused)
{
	struct rocade_daemon_conf good = {.size = sizeof(good),
		.socket = "/nonexistent/socket",
		.addresses = "192.0.2.1/24"};
	struct rocade_daemon_conf c;
	unsigned fds = fds_count();

	c = good;
	c.size--;
	expect_refused(&c, EINVAL, "size");
	c = good;
	c.mtu = 100;
	expect_refused(&c, EINVAL, "mtu: 100");
	c = good;
	c.client_ring = 100;
	expect_refused(&c, EINVAL, "ring: 100");
	c = good;
	c.client_qps = 1u << 20;
	expect_refused(&c, EINVAL, "qps: 1048576");
	c = good;
	c.client_mrs = 1u << 20;
	expect_refused(&c, EINVAL, "mrs: 1048576");
	c = good;
	c.name = "";
	expect_refused(&c, EINVAL, "name");
	c = good;
	c.addresses = "192.0.2";
	expect_refused(&c, EINVAL, "192.0.2");
	setenv("ROCADE_OFF", "pairs,sacks", 1);
	expect_refused(&good, EINVAL, "ROCADE_OFF: invalid entry 'sacks'");
	unsetenv("ROCADE_OFF");
	expect_refused(&good, ENOENT, "/nonexistent/socket");
	assert_int_equal(fds_count(), fds);
}

TEST(socket_has_one_daemon)
{
	struct rocade_daemon_conf conf = {
		.size = sizeof(conf), .addresses = "192.0.2.1/24", .socket_mode = 0640};
	struct rocade_daemon *d;
	struct stat st;
	struct server_fixture b;
	int fd;

	fixture_open(&b, (struct rocade_daemon_conf){.size = 0});
	assert_int_equal(stat(b.path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	conf.socket = b.path;
	expect_refused(&conf, EADDRINUSE, b.path);
	assert_int_equal(access(b.path, F_OK), 0); /* the socket remains */
	fixture_close(&b);
	/* A socket without a listener was left by a dead daemon. */
	fixture_open(&b, (struct rocade_daemon_conf){.size = 0});
	conf.socket = b.path;
	fd_source_close(&b.d->listen);
	assert_int_equal(rocade_daemon_create(&conf, &d), 0);
	assert_string_equal(rocade_daemon_socket(d), b.path);
	assert_int_equal(stat(b.path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0640);
	rocade_daemon_destroy(d);
	/* A file that is no socket is not removed. */
	fd = open(b.path, O_CREAT | O_WRONLY, 0600);
	assert_true(fd >= 0);
	close(fd);
	expect_refused(&conf, ENOTSOCK, b.path);
	assert_int_equal(unlink(b.path), 0);
	fixture_close(&b);
}

/* As a service manager makes it. */
static int
listener_make(const char *path, int type, int backlog)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, type, 0);

	assert_true(fd >= 0);
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
	assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	if (backlog != 0)
		assert_int_equal(listen(fd, backlog), 0);
	return fd;
}

TEST(socket_of_a_service_manager_is_served)
{
	struct rocade_daemon_conf conf = {
		.size = sizeof(conf), .addresses = "192.0.2.1/24"};
	char dir[] = "/tmp/rocade-test-XXXXXX", path[64];
	struct rocade_daemon *d;
	int client = client_socket();
	struct sockaddr_un addr;

	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/socket", dir);
	conf.listen_fd = listener_make(path, SOCK_STREAM, 1);
	expect_refused(&conf, EINVAL, "no listening AF_UNIX socket");
	close(conf.listen_fd);
	unlink(path);
	conf.listen_fd = listener_make(path, SOCK_SEQPACKET, 0);
	expect_refused(&conf, EINVAL, "no listening AF_UNIX socket");
	close(conf.listen_fd);
	expect_refused(&conf, EINVAL, "no listening AF_UNIX socket"); /* it is closed */
	unlink(path);
	conf.listen_fd = listener_make(path, SOCK_SEQPACKET, 1);
	assert_int_equal(rocade_daemon_create(&conf, &d), 0);
	assert_string_equal(rocade_daemon_socket(d), path);
	addr = d->addr;
	assert_int_equal(connect(client, (struct sockaddr *)&addr, sizeof(addr)), 0);
	conn_accept(d);
	assert_int_equal(conns_count(d), 1);
	conn_accept(d); /* does not block */
	rocade_daemon_destroy(d);
	close(client);
	assert_int_equal(fcntl(conf.listen_fd, F_GETFD), -1);
	assert_int_equal(unlink(path), 0); /* the manager's file stays */
	assert_int_equal(rmdir(dir), 0);
}

/* A client waits behind the connections of others that the daemon has not accepted yet. */
TEST(few_connections_wait)
{
	struct server_fixture b;
	int fds[100];
	unsigned n = 0;

	fixture_open(&b, (struct rocade_daemon_conf){.size = 0});
	for (bool room = true; room && n < RTE_DIM(fds); n++) {
		fds[n] = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0);
		assert_true(fds[n] >= 0);
		room = connect(fds[n], (struct sockaddr *)&b.d->addr,
			       sizeof(b.d->addr)) == 0;
	}
	assert_int_equal(errno, EAGAIN);
	assert_in_range(n, 10, 20);
	while (n > 0)
		close(fds[--n]);
	daemon_handle_all(&b);
	fixture_close(&b);
}

TEST(table_of_descriptors_is_long_enough)
{
	unsigned long size = 0;
	struct server_fixture b;
	char text[256];
	FILE *file;

	fixture_open(&b, (struct rocade_daemon_conf){.size = 0});
	file = fopen("/proc/self/status", "r");
	assert_non_null(file);
	while (size == 0 && fgets(text, sizeof(text), file) != NULL)
		(void)sscanf(text, "FDSize: %lu", &size);
	fclose(file);
	assert_true(size >= RTE_MIN(b.d->descriptors, 65536u));
	fixture_close(&b);
}

static void *
serve(void *d)
{
	assert_int_equal(rocade_daemon_run(d), 0);
	return NULL;
}

static struct sw_reply
call(int fd, struct sw_request req)
{
	struct sw_reply reply;

	req.magic = SW_PROTO_MAGIC;
	req.version = SW_PROTO_VERSION;
	assert_int_equal(send(fd, &req, sizeof(req), 0), sizeof(req));
	assert_int_equal(recv(fd, &reply, sizeof(reply), 0), sizeof(reply));
	assert_int_equal(reply.error, 0);
	return reply;
}

/* Posts a descriptor that the daemon drops. */
static void
garbage_post(struct fixture_client *c, struct ring_prod *tx, uint32_t qpn)
{
	static uint32_t woken; /* of the only client that sends */
	struct ring_desc desc = {.buf = 0, .qpn = qpn, .len = 100};

	assert_true(ring_prod_refresh(tx));
	ring_put(tx, &desc);
	ring_publish(tx);
	if (asleep_wake_wanted(&c->region.daemon->tx_asleep, &woken)) {
		const uint64_t one = 1;

		assert_int_equal(write(c->fds[1], &one, sizeof(one)), sizeof(one));
	}
}

static bool
is_disconnected(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLRDHUP};

	return awaited(poll(&p, 1, 0) == 1);
}

/* Each write to the wake-up descriptor wakes the daemon, though the daemon never reads
 * it. rocade_daemon_stop() ends the loop. */
TEST(sleeping_daemon_is_woken)
{
	struct fixture_client c, bad;
	struct ring_prod tx;
	struct ring_cons rx;
	pthread_t thread;
	struct server_fixture b;
	uint32_t qpn;

	fixture_open(&b, (struct rocade_daemon_conf){.size = 0});
	assert_int_equal(client_attach(&b, &c), 0);
	assert_int_equal(client_attach(&b, &bad), 0);
	assert_int_equal(pthread_create(&thread, NULL, serve, b.d), 0);
	qpn = call(c.fd, (struct sw_request){.type = SW_QPN_TAKE}).qpn;
	region_client_rings(&c.region, &tx, &rx);
	for (unsigned i = 0; i < 100; i++) {
		garbage_post(&c, &tx, qpn);
		await(__atomic_load_n(&c.region.daemon->tx_cons, __ATOMIC_ACQUIRE) ==
			i + 1);
		if (i % 10 == 0)
			await(asleep_is_set(&c.region.daemon->tx_asleep));
	}
	/* A ring that was corrupted while the daemon slept is found at the next
	 * wake-up. */
	bad.region.client->tx_prod = 12345;
	garbage_post(&c, &tx, qpn);
	assert_true(is_disconnected(bad.fd));
	rocade_daemon_stop(b.d);
	pthread_join(thread, NULL);
	assert_int_equal(TAILQ_FIRST(&b.d->sw->clients)->stats.drop_malformed, 101);
	client_detach(&b, &bad);
	client_detach(&b, &c);
	fixture_close(&b);
}

TEST(destroy_disconnects_clients)
{
	struct fixture_client c;
	struct server_fixture b;
	int fd;

	fixture_open(&b, (struct rocade_daemon_conf){.size = 0});
	assert_int_equal(client_attach(&b, &c), 0);
	fd = dup(c.fd);
	b.fds++; /* the duplicate */
	client_unmap(&c);
	for (unsigned i = 0; i < SW_ATTACH_FDS; i++)
		close(c.fds[i]);
	close(c.fd);
	fixture_close(&b);
	assert_true(is_disconnected(fd));
	close(fd);
}
