/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads that wait for an event of RDMA-CM: signals, several threads, the end of the server. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "case.h"
#include "preload/preload_channel.h"
#include "preload/served.h"
#include "ucm/backend.h"

#include "await.h"

__thread unsigned sysfs_depth;

static struct {
	pthread_mutex_t lock;
	int far;           /* its end of the channel */
	unsigned commands; /* GET_EVENT */
	unsigned empty;    /* number of those that find no event */
	int rc;            /* of the others */
} server = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int
backend_open(struct ucm_token *token, int *fd)
{
	int ends[2];

	assert_int_equal(ucm_sockets_create(ends), 0);
	server.far = ends[0];
	*fd = ends[1];
	*token = (struct ucm_token){.number = 1};
	return 0;
}

static int
backend_command(const struct ucm_token *token, int fd, uint32_t cmd, const void *in,
	size_t in_len, void *out, size_t *out_len)
{
	int rc;

	(void)token;
	(void)fd;
	(void)in;
	(void)in_len;
	assert_int_equal(cmd, RDMA_USER_CM_CMD_GET_EVENT);
	*out_len = sizeof(struct rdma_ucm_event_resp);
	memset(out, 0, *out_len);
	pthread_mutex_lock(&server.lock);
	rc = server.commands++ < server.empty ? -EAGAIN : server.rc;
	pthread_mutex_unlock(&server.lock);
	return rc;
}

const struct served served_by = {.backend = ucm_backend_get};

static const struct ucm_backend backend = {
	.open = backend_open, .command = backend_command};

/* Opens a channel whose first commands find no event. */
static int
channel_without_events(unsigned commands)
{
	int fd;

	ucm_backend_set(&backend);
	server.commands = 0;
	server.empty = commands;
	server.rc = 0;
	fd = channel_open(O_RDWR);
	assert_true(fd >= 0);
	return fd;
}

static void
event_send(void)
{
	assert_int_equal(send(server.far, "0123", 4, 0), 4);
}

/* A thread that waits for an event. */
struct waiter {
	pthread_t thread;
	int fd, err;
	pid_t tid;
};

static void *
waiter_main(void *arg)
{
	struct rdma_ucm_event_resp resp;
	struct {
		struct rdma_ucm_cmd_hdr head;
		struct rdma_ucm_get_event get;
	} cmd = {.head = {RDMA_USER_CM_CMD_GET_EVENT, sizeof(cmd.get), sizeof(resp)},
		.get = {.response = (uintptr_t)&resp}};
	struct waiter *w = arg;

	__atomic_store_n(&w->tid, gettid(), __ATOMIC_RELEASE);
	if (channel_write(w->fd, &cmd, sizeof(cmd)) != sizeof(cmd))
		w->err = errno;
	return NULL;
}

/* Whether the server has had this number of commands. */
static bool
server_had(unsigned commands)
{
	bool had;

	pthread_mutex_lock(&server.lock);
	had = server.commands == commands;
	pthread_mutex_unlock(&server.lock);
	return had;
}

/* Returns when the thread sleeps and the server has had this number of commands. */
static void
waiter_start(struct waiter *w, int fd, unsigned commands)
{
	*w = (struct waiter){.fd = fd};
	assert_int_equal(pthread_create(&w->thread, NULL, waiter_main, w), 0);
	await(server_had(commands));
	await(thread_sleeps(__atomic_load_n(&w->tid, __ATOMIC_ACQUIRE)));
}

static void
waiter_expect(struct waiter *w, int err)
{
	await(pthread_tryjoin_np(w->thread, NULL) == 0);
	assert_int_equal(w->err, err);
}

static void
on_signal(int number)
{
	(void)number;
}

/* As for a write() that waits in the kernel. */
TEST(get_event_restarts_after_a_signal)
{
	struct sigaction restart = {.sa_handler = on_signal, .sa_flags = SA_RESTART}, old;
	int fd = channel_without_events(1);
	struct waiter w;

	assert_int_equal(sigaction(SIGUSR1, &restart, &old), 0);
	waiter_start(&w, fd, 1);
	for (unsigned i = 0; i < 20; i++) {
		pthread_kill(w.thread, SIGUSR1);
		/* The signal has ended its sleep: it sleeps anew. */
		await(thread_sleeps(w.tid));
	}
	assert_int_equal(pthread_tryjoin_np(w.thread, NULL), EBUSY);
	event_send();
	waiter_expect(&w, 0);
	assert_int_equal(server.commands, 2);
	assert_int_equal(sigaction(SIGUSR1, &old, NULL), 0);
	close(fd);
	close(server.far);
}

TEST(get_event_ends_with_a_signal)
{
	struct sigaction plain = {.sa_handler = on_signal}, old;
	int fd = channel_without_events(1);
	struct waiter w;

	assert_int_equal(sigaction(SIGUSR1, &plain, &old), 0);
	waiter_start(&w, fd, 1);
	pthread_kill(w.thread, SIGUSR1);
	waiter_expect(&w, EINTR);
	assert_int_equal(server.commands, 1);
	assert_int_equal(sigaction(SIGUSR1, &old, NULL), 0);
	close(fd);
	close(server.far);
}

/* A second event may come without a message: the socket had no room. */
TEST(message_wakes_all_threads)
{
	int fd = channel_without_events(2);
	struct waiter w[2];
	uint8_t bytes[5];

	waiter_start(&w[0], fd, 1);
	waiter_start(&w[1], fd, 2);
	event_send();
	waiter_expect(&w[0], 0);
	waiter_expect(&w[1], 0);
	/* The message is the backend's. */
	assert_int_equal(recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT), 4);
	close(fd);
	close(server.far);
}

/* A server that ends is reported by the next command. */
TEST(end_of_the_server_wakes)
{
	int fd = channel_without_events(1);
	struct waiter w;

	waiter_start(&w, fd, 1);
	pthread_mutex_lock(&server.lock);
	server.rc = -ENODEV;
	pthread_mutex_unlock(&server.lock);
	close(server.far);
	waiter_expect(&w, ENODEV);
	close(fd);
}
