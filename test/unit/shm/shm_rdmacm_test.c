/* SPDX-License-Identifier: BSD-3-Clause */
/* RDMA-CM of a client: packets that came before an event are handled before the event. A thread of
 * the test is the daemon of the commands. */
#include <sys/un.h>

#include "shm_fixture.h"
#include "base/account.h"
#include "base/base_log.h"
#include "engine/engine.h"
#include "ucm/backend.h"

#define RX_SLOTS 256
#define PACKETS 200 /* of several passes */

static struct rdmacm_fixture {
	struct daemon_end d;
	struct port port;
	struct sw_device device;
	struct shm *shm;
	struct engine_progress_thread engine_thread;
	char dir[32], path[64];
	int listener, conn;
	struct sw_request opened; /* of the channel */
	pthread_t thread;
	struct ucm_token token;
	int channel_fd;
	unsigned fds;
	bool silent;  /* the daemon answers no command */
	bool refuses; /* it refuses the connection */
} f;

/* In place of fork.c's: there is one port. */
void
shm_list_each(void (*fn)(struct shm *shm, void *arg), void *arg)
{
	fn(f.shm, arg);
}

uint32_t
process_forks(void)
{
	return 3;
}

static void
no_wake(void *arg)
{
	(void)arg;
}

/* Answers each command, with one byte. */
static void *
commands_serve(void *arg)
{
	struct sw_cm_reply reply = {.magic = SW_PROTO_MAGIC,
		.version = SW_PROTO_VERSION,
		.type = SW_CM_COMMAND,
		.len = 1};
	struct sw_reply opened = reply_valid();
	struct sw_cm_request req;
	int fd = f.conn = accept4(f.listener, NULL, NULL, SOCK_CLOEXEC), ends[2];

	(void)arg;
	if (f.refuses) {
		opened.type = 0;
		opened.error = ENOSPC;
		opened.refusal = (struct sw_refusal){
			.kind = 1 + ACCOUNT_connections, .held = 2, .most = 2};
		reply_send(fd, &opened, SW_REFUSED_LEN, NULL, 0);
		close(fd);
		return NULL;
	}
	if (fd < 0 || recv(fd, &f.opened, sizeof(f.opened), 0) != sizeof(f.opened) ||
		ucm_sockets_create(ends) != 0)
		return NULL;
	reply_send(fd, &opened, sizeof(opened), ends, 1);
	close(ends[0]);
	while (recv(fd, &req, sizeof(req), 0) == sizeof(req))
		if (!f.silent &&
			send(fd, &reply, sizeof(reply), MSG_NOSIGNAL) != sizeof(reply))
			break;
	close(ends[1]);
	return NULL;
}

static void
daemon_listen(void)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};

	strcpy(f.dir, "/tmp/rocade-test-XXXXXX");
	assert_non_null(mkdtemp(f.dir));
	snprintf(f.path, sizeof(f.path), "%s/socket", f.dir);
	strcpy(addr.sun_path, f.path);
	setenv("ROCADE_SOCKET", f.path, 1);
	f.listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(f.listener, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(listen(f.listener, 1), 0);
	assert_int_equal(pthread_create(&f.thread, NULL, commands_serve, NULL), 0);
}

static void
rdmacm_open(void)
{
	struct dev_conf conf = {.name = "rocade0", .mtu = 1500, .max_qp = 16};
	struct sw_reply reply;
	struct session s;

	memset(&f, 0, sizeof(f));
	fixture_rx_slots = RX_SLOTS;
	reply = reply_valid();
	f.fds = fds_count();
	daemon_open(&f.d, &s);
	reply_send(f.d.fd, &reply, sizeof(reply), f.d.fds, SW_ATTACH_FDS);
	reply_send(f.d.fd, &reply, sizeof(reply), NULL, 0);
	daemon_close_passed(&f.d);
	assert_int_equal(shm_attach(&s, &f.port, &f.device, &f.shm), 0);
	assert_int_equal(gid_parse("192.0.2.1", conf.net.addr[0].gid, NULL), 0);
	memcpy(conf.net.mac, f.port.mac, 6);
	conf.net.addr_count = 1;
	assert_int_equal(dev_create(&conf, &f.port, &alloc_plain, &f.shm->dev), 0);
	f.engine_thread = (struct engine_progress_thread){
		.wake = no_wake, .asleep = &f.shm->region.client->rx_asleep};
	engine_set_progress_thread(f.shm->dev->engines[0], &f.engine_thread);
	daemon_listen();
	assert_int_equal(ucm_backend_get()->open(&f.token, &f.channel_fd), 0);
}

static void
rdmacm_close(void)
{
	dev_destroy(f.shm->dev);
	daemon_close(&f.d);
	shutdown(f.conn, SHUT_RDWR);
	pthread_join(f.thread, NULL);
	close(f.conn);
	close(f.channel_fd);
	close(f.listener);
	unlink(f.path);
	assert_int_equal(rmdir(f.dir), 0);
}

static void
packets_arrive(unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		struct ring_desc desc = {.buf = f.d.rx.prod & f.d.rx.mask, .len = 60};

		memset(region_rx_buf(&f.d.region, desc.buf), 0, 60);
		ring_put(&f.d.rx, &desc);
	}
	ring_publish(&f.d.rx);
}

/* Returns how many of the packets the client has not taken. */
static unsigned
packets_left(void)
{
	assert_true(ring_prod_refresh(&f.d.rx));
	return RX_SLOTS - ring_room(&f.d.rx);
}

static void
command(uint32_t cmd)
{
	uint8_t out[UCM_MAX];
	size_t len = 0;

	assert_int_equal(
		ucm_backend_get()->command(&f.token, f.channel_fd, cmd, "", 1, out, &len),
		0);
	assert_int_equal(len, 1);
}

TEST(packets_are_handled_before_the_event)
{
	rdmacm_open();
	packets_arrive(PACKETS);
	command(RDMA_USER_CM_CMD_QUERY);
	assert_int_equal(packets_left(), PACKETS);
	command(RDMA_USER_CM_CMD_GET_EVENT);
	assert_int_equal(packets_left(), 0);
	command(RDMA_USER_CM_CMD_GET_EVENT);
	packets_arrive(1);
	command(RDMA_USER_CM_CMD_GET_EVENT);
	assert_int_equal(packets_left(), 0);
	rdmacm_close();
}

static uint32_t disconnected;

static void
disconnect_note(uint32_t generation)
{
	disconnected = generation;
}

static int
command_status(void)
{
	uint8_t out[UCM_MAX];
	size_t len = 0;

	return ucm_backend_get()->command(
		&f.token, f.channel_fd, RDMA_USER_CM_CMD_QUERY, "", 1, out, &len);
}

/* A port has not got a reply of its daemon in time: the channels of this daemon hang up. */
TEST(lost_daemon_ends_the_channels)
{
	ucm_disconnect_set(disconnect_note);
	rdmacm_open();
	disconnected = 0;
	ucm_backend_get()->lost((SW_DEVICE_INDEX | 7) + 1);
	assert_int_equal(disconnected, 0);
	assert_int_equal(command_status(), 0);
	ucm_backend_get()->lost(SW_DEVICE_INDEX | 7);
	assert_int_equal(disconnected, f.token.generation);
	assert_int_equal(command_status(), -ENODEV);
	rdmacm_close();
	ucm_disconnect_set(NULL);
}

/* The daemon answers no command: its port ends, and the channels hang up. */
TEST(late_reply_ends_the_port)
{
	const struct timeval soon = {.tv_usec = 1000};
	struct pollfd port = {.events = POLLRDHUP};

	ucm_disconnect_set(disconnect_note);
	rdmacm_open();
	disconnected = 0;
	assert_int_equal(command_status(), 0);
	__atomic_store_n(&f.silent, true, __ATOMIC_RELAXED);
	for (int fd = 3; fd < 256; fd++)
		(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof(soon));
	assert_int_equal(command_status(), -ENODEV);
	assert_int_equal(disconnected, f.token.generation);
	port.fd = f.shm->session.fd;
	assert_int_equal(poll(&port, 1, 0), 1);
	disconnected = 0;
	assert_int_equal(command_status(), -ENODEV);
	assert_int_equal(disconnected, 0); /* once */
	rdmacm_close();
	ucm_disconnect_set(NULL);
}

static char logged[512];

static void
logged_keep(enum log_level level, const char *line, void *arg)
{
	snprintf(logged, sizeof(logged), "%s", line);
}

/* Both the error and the log name the limit; the next channel tries another connection. */
TEST(refused_connection_is_told)
{
	memset(&f, 0, sizeof(f));
	f.refuses = true;
	log_set_sink(logged_keep, NULL);
	for (unsigned i = 0; i < 2; i++) {
		logged[0] = '\0';
		daemon_listen();
		assert_int_equal(
			ucm_backend_get()->open(&f.token, &f.channel_fd), -ENOSPC);
		assert_non_null(strstr(logged, "RDMA-CM: the daemon at "));
		assert_non_null(strstr(logged,
			"limit of connections to the daemon: user 0 has 2 of at most 2"));
		pthread_join(f.thread, NULL);
		close(f.listener);
		unlink(f.path);
		assert_int_equal(rmdir(f.dir), 0);
	}
	log_set_sink(NULL, NULL);
}

/* The daemon knows by the key that the channel and the QPs are of one process. */
TEST(channel_shows_the_key_of_the_process)
{
	uint8_t key[SW_PROCESS_KEY];

	rdmacm_open();
	assert_int_equal(f.opened.type, SW_CM_OPEN);
	assert_int_equal(f.opened.dest_qpn, 3);
	assert_int_equal(process_key_get(key), 0);
	assert_memory_equal(f.opened.sgid, key, sizeof(key));
	rdmacm_close();
}
