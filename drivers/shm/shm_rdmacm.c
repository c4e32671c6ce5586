/* SPDX-License-Identifier: BSD-3-Clause */
/* RDMA-CM of this process, served by the daemon over a connection that only RDMA-CM uses.
 * The lock keeps a thread's command and its reply together. */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/base_log.h"
#include "base/no_cancel.h"
#include "shm/process_key.h"
#include "shm/shm.h"
#include "ucm/backend.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct session session = {.fd = -1};
/* of the connection: fork() and a new connection change it */
static uint32_t generation = 1;
static uint32_t daemon_index; /* of the daemon's device: which daemon it is */

static void
rdmacm_fork_prepare(void)
{
	pthread_mutex_lock(&lock);
}

static void
rdmacm_fork_parent(void)
{
	pthread_mutex_unlock(&lock);
}

/* The parent keeps the connection. */
static void
rdmacm_fork_child(void)
{
	int state = no_cancel_begin();

	if (session.fd >= 0)
		session_close(&session);
	generation++;
	pthread_mutex_unlock(&lock);
	no_cancel_end(state);
}

/* Returns whether the daemon has not replied in time, once. With the lock. */
static bool
is_late(int rc)
{
	bool late = rc == -ENODEV && session.timed_out;

	session.timed_out = false;
	return late;
}

/* Programs end threads that wait for events by pthread_cancel(). */
static int
session_lock(void)
{
	int old = no_cancel_begin();

	pthread_mutex_lock(&lock);
	return old;
}

static void
session_unlock(int old)
{
	pthread_mutex_unlock(&lock);
	no_cancel_end(old);
}

/* Its port is found dead by its progress thread. */
static void
port_end(struct shm *shm, void *arg)
{
	if (shm->daemon_index == *(const uint32_t *)arg)
		(void)shutdown(shm->session.fd, SHUT_RDWR);
}

/* The daemon has not replied in time: it counts as ended for the whole process, and closes nothing if it is
 * stopped. Without locks. */
static void
daemon_is_late(uint32_t index, uint32_t ended)
{
	int state = no_cancel_begin();

	ucm_channels_disconnect(ended);
	shm_list_each(port_end, &index);
	no_cancel_end(state);
}

/* A port has found that. */
static void
rdmacm_lost(uint32_t index)
{
	int old = session_lock();
	bool same = session.fd >= 0 && daemon_index == index;
	uint32_t ended = generation;

	if (same)
		session_close(&session);
	session_unlock(old);
	if (same)
		ucm_channels_disconnect(ended);
}

static int
channel_open_locked(struct ucm_token *token, int *fd)
{
	struct sw_request req = {.type = SW_CM_OPEN, .dest_qpn = process_forks()};
	struct sw_reply reply;
	bool opened = session.fd < 0;
	int rc = process_key_get(req.sgid);

	if (rc == 0 && opened) {
		rc = session_open(&session, NULL);
		generation += rc == 0;
	}
	if (rc != 0)
		return rc;
	rc = session_call(&session, &req, &reply, fd, 1);
	if (rc == 0)
		daemon_index = reply.device.index;
	if (rc == 0 && *fd < 0)
		rc = -EPROTO;
	if (rc == -ENODEV || (rc != 0 && opened))
		session_close(&session); /* the next call may find another daemon */
	if (rc != 0)
		return rc;
	*token = (struct ucm_token){.number = reply.qpn, .generation = generation};
	return 0;
}

/* The program has no more than errno, and librdmacm reports that in its own words. With the lock. */
static void
error_text(int rc, char *text, size_t size)
{
	session.timed_out = rc == -ENODEV;
	session_error_text(&session, NULL, rc, text, size);
	session.timed_out = false;
}

static int
rdmacm_channel_open(struct ucm_token *token, int *fd)
{
	int old = session_lock(), got = -1;
	int rc = channel_open_locked(token, &got);

	bool late = is_late(rc);
	uint32_t index = daemon_index, ended = generation;
	char text[SESSION_TEXT] = "";

	/* The daemon ended since the last call: try again, there may be a new one. */
	if (rc == -ENODEV && !late)
		rc = channel_open_locked(token, &got);
	if (late || rc == -ETIMEDOUT || (rc != 0 && rc == -session.refused))
		error_text(rc, text, sizeof(text));
	session_unlock(old);
	if (text[0] != '\0')
		log_err("RDMA-CM: %s", text);
	if (late)
		daemon_is_late(index, ended);
	if (rc == 0)
		*fd = got;
	return rc;
}

static int
command_exchange(const struct sw_cm_request *req, struct sw_cm_reply *reply)
{
	ssize_t n;

	do {
		n = send(session.fd, req, sizeof(*req), MSG_NOSIGNAL);
	} while (n < 0 && errno == EINTR);
	if (n != sizeof(*req))
		return session_lost(&session);
	do {
		n = recv(session.fd, reply, sizeof(*reply), 0);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return session_lost(&session);
	if (n != sizeof(*reply) || reply->magic != SW_PROTO_MAGIC || reply->len > UCM_MAX)
		return -ENODEV;
	return 0;
}

static int
command_locked(const struct ucm_token *token, int fd, struct sw_cm_request *req,
	struct sw_cm_reply *reply)
{
	int rc = session.fd >= 0 && token->generation == generation ? 0 : -ENODEV;

	if (rc == 0) {
		rc = command_exchange(req, reply);
		/* A command without its reply leaves the connection unusable. */
		if (rc != 0)
			session_close(&session);
	}
	if (rc != 0)
		return rc;
	if (reply->error != EBADF)
		ucm_wakes_take(fd, reply->wakes, reply->pending != 0);
	return reply->error > 0 ? -reply->error : 0;
}

static void
received_take(struct shm *shm, void *arg)
{
	(void)arg;
	shm_take_received(shm);
}

/* The daemon has put the packets that came before an event into the ports' rings before it gave the
 * event away. The program gets their completions before the event too: when its peer has
 * disconnected it destroys the QP. Normally the progress thread has taken them before the event became
 * readable, but the daemon does not wait for it for longer than a second. */
static void
packets_before_event_take(void)
{
	int state = no_cancel_begin();

	shm_list_each(received_take, NULL);
	no_cancel_end(state);
}

static int
rdmacm_channel_command(const struct ucm_token *token, int fd, uint32_t cmd,
	const void *in, size_t in_len, void *out, size_t *out_len)
{
	struct sw_cm_request req = {.magic = SW_PROTO_MAGIC,
		.version = SW_PROTO_VERSION,
		.type = SW_CM_COMMAND,
		.channel = token->number,
		.cmd = cmd,
		.len = (uint32_t)in_len};
	struct sw_cm_reply reply;
	uint32_t index;
	int old, rc;
	bool late;

	if (in_len > sizeof(req.bytes))
		return -EINVAL;
	memcpy(req.bytes, in, in_len);
	old = session_lock();
	rc = command_locked(token, fd, &req, &reply);
	late = is_late(rc);
	index = daemon_index;
	session_unlock(old);
	if (late)
		daemon_is_late(index, token->generation);
	if (rc != 0)
		return rc;
	if (cmd == RDMA_USER_CM_CMD_GET_EVENT)
		packets_before_event_take();
	memcpy(out, reply.bytes, reply.len);
	*out_len = reply.len;
	return 0;
}

static const struct ucm_backend backend = {.open = rdmacm_channel_open,
	.command = rdmacm_channel_command,
	.lost = rdmacm_lost};

static __attribute__((constructor)) void
backend_register(void)
{
	ucm_backend_set(&backend);
	/* When the library is loaded, as in fork.c. */
	(void)pthread_atfork(rdmacm_fork_prepare, rdmacm_fork_parent, rdmacm_fork_child);
}
