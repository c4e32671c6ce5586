/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/no_cancel.h"
#include "preload/fd_stat.h"
#include "preload/preload_channel.h"
#include "preload/served.h"
#include "preload/sysfs_session.h"

/* A descriptor that is a channel. close() is not intercepted: device and inode tell
 * whether the descriptor still refers to the channel. There is no lock, because a signal
 * handler may call write() at any time. */
struct channel {
	ino_t ino; /* 0: no channel */
	dev_t dev;
	struct ucm_token token;
	bool disconnects; /* that was the last command by this descriptor */
};

static struct channel channels[FD_NUMBERS];

struct command {
	uint16_t least;
	int16_t response; /* offset of the response address; -1: there is no response */
};

static const struct command commands[] = {
#define UCM(name, handler, in, least, out)                                               \
	[RDMA_USER_CM_CMD_##name] = {least, offsetof(in, response)},
#define UCM_NO_REPLY(name, handler, in, least) [RDMA_USER_CM_CMD_##name] = {least, -1},
#include "ucm/commands.def"
};

/* Returns NULL if fd is no channel, or no longer one. */
static const struct channel *
channel_find(int fd)
{
	const struct channel *c;
	struct stat st;
	int err = errno;
	bool same;
	ino_t ino;

	if (fd < 0 || fd >= FD_NUMBERS)
		return NULL;
	c = &channels[fd];
	/* Pairs with the release in channel_add(). */
	ino = __atomic_load_n(&c->ino, __ATOMIC_ACQUIRE);
	if (ino == 0)
		return NULL;
	same = fd_stat(fd, &st) && st.st_ino == ino && st.st_dev == c->dev;
	errno = err;
	return same ? c : NULL;
}

/* If the kernel has this device too, librdmacm expects its device number. Else it is that of the file by which
 * the path is served. */
dev_t
channel_device(void)
{
	struct stat st;
	int err = errno;
	bool there;

	sysfs_depth++;
	there = (fstatat(AT_FDCWD, CHANNEL_PATH, &st, 0) == 0 ||
			fstatat(AT_FDCWD, "/dev/null", &st, 0) == 0) &&
		S_ISCHR(st.st_mode);
	sysfs_depth--;
	errno = err;
	return there ? st.st_rdev : 0;
}

bool
channel_is(int fd)
{
	return channel_find(fd) != NULL;
}

static int
channel_add(int fd, const struct ucm_token *token)
{
	struct channel *c;
	struct stat st;

	if (fd >= FD_NUMBERS)
		return -EMFILE;
	c = &channels[fd];
	if (!fd_stat(fd, &st))
		return -errno;
	c->dev = st.st_dev;
	c->token = *token;
	__atomic_store_n(&c->disconnects, false, __ATOMIC_RELAXED);
	/* Pairs with the acquire in channel_find(). */
	__atomic_store_n(&c->ino, st.st_ino, __ATOMIC_RELEASE);
	return 0;
}

int
channel_dup(int from, int to)
{
	const struct channel *channel = to >= 0 ? channel_find(from) : NULL;
	struct ucm_token token;
	int rc;

	if (channel == NULL || from == to)
		return to;
	token = channel->token;
	rc = channel_add(to, &token);
	if (rc == 0)
		return to;
	close(to);
	errno = -rc;
	return -1;
}

int
channel_open(int flags)
{
	const struct ucm_backend *backend = served_by.backend();
	struct ucm_token token;
	int fd = -1, rc;

	rc = backend != NULL ? backend->open(&token, &fd) : -ENOENT;
	if (rc == -ENOENT || rc == -ECONNREFUSED)
		return -2;
	if (rc == 0)
		rc = channel_add(fd, &token);
	if (rc != 0) {
		if (fd >= 0)
			close(fd);
		errno = -rc;
		return -1;
	}
	if ((flags & O_NONBLOCK) != 0)
		(void)fcntl(fd, F_SETFL, O_NONBLOCK);
	if ((flags & O_CLOEXEC) == 0)
		(void)fcntl(fd, F_SETFD, 0);
	return fd;
}

/* Another thread may close the descriptor, and reuse its number, at any time: it is the duplicate that is
 * looked at before it is shut down. */
static void
channel_disconnect(int fd)
{
	const struct channel *c = &channels[fd];
	struct stat st;
	int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);

	if (own < 0)
		return;
	if (fd_stat(own, &st) && st.st_ino == c->ino && st.st_dev == c->dev)
		(void)shutdown(own, SHUT_RDWR);
	close(own);
}

void
channels_of_daemon_disconnect(uint32_t generation)
{
	for (int fd = 0; fd < FD_NUMBERS; fd++)
		if (channel_find(fd) != NULL &&
			channels[fd].token.generation == generation)
			channel_disconnect(fd);
}

/* Waits until there may be an event. It waits in recv(2), because that restarts after a
 * signal whose handler restarts calls (SA_RESTART), as the kernel's write() of GET_EVENT
 * does; poll(2) never restarts. The message stays in the socket for the backend. */
static int
event_wait(int fd)
{
	int flags = fcntl(fd, F_GETFL);
	uint8_t byte;

	if (flags < 0 || (flags & O_NONBLOCK) != 0)
		return flags < 0 ? -errno : -EAGAIN;
	/* 0 or ECONNRESET: the server has ended, which the next command reports. */
	if (recv(fd, &byte, sizeof(byte), MSG_PEEK) < 0 && errno != ECONNRESET)
		return -errno;
	return 0;
}

/* rdma_disconnect() of a synchronous ID waits for the end of the connection. The other end may be the
 * program's, too: if no other thread can disconnect that, the server is told. */
static bool
waits_alone(int fd)
{
	bool alone = false;
	int flags, state;

	if (served_by.main_only == NULL)
		return false;
	if (!__atomic_load_n(&channels[fd].disconnects, __ATOMIC_RELAXED))
		return false;
	state = no_cancel_begin();
	flags = fcntl(fd, F_GETFL);
	if (flags >= 0 && (flags & O_NONBLOCK) == 0)
		alone = served_by.main_only();
	no_cancel_end(state);
	return alone;
}

/* Replaces what is valid only in this process: the address of an option by its value, a
 * descriptor by the number of its channel, the address of an event by how it is waited for. */
static int
command_read(uint32_t cmd, uint8_t *bytes, size_t *len, bool alone)
{
	struct ucm_set_option *option = (struct ucm_set_option *)bytes;
	struct rdma_ucm_migrate_id *migrate = (struct rdma_ucm_migrate_id *)bytes;
	struct rdma_ucm_get_event *get = (struct rdma_ucm_get_event *)bytes;
	const struct channel *from;

	if (cmd == RDMA_USER_CM_CMD_SET_OPTION) {
		if (option->head.optlen > UCM_OPTION_MAX)
			return -EINVAL;
		memcpy(option->value, (const void *)(uintptr_t)option->head.optval,
			option->head.optlen);
		*len = sizeof(option->head) + option->head.optlen;
	} else if (cmd == RDMA_USER_CM_CMD_MIGRATE_ID) {
		from = channel_find((int)migrate->fd);
		if (from == NULL)
			return -EBADF;
		migrate->fd = from->token.number;
	} else if (cmd == RDMA_USER_CM_CMD_GET_EVENT) {
		get->response = alone ? UCM_GET_ALONE : 0;
	}
	return 0;
}

static int
command_run(int fd, const struct ucm_token *token, const struct rdma_ucm_cmd_hdr *hdr,
	const void *in, bool alone)
{
	const struct ucm_backend *backend = served_by.backend();
	uint64_t bytes[UCM_MAX / sizeof(uint64_t)] = {0}, out[RTE_DIM(bytes)];
	const struct command *command = &commands[hdr->cmd];
	size_t len = RTE_MIN((size_t)hdr->in, sizeof(bytes)), out_len = 0;
	uint64_t response;
	int rc;

	memcpy(bytes, in, len);
	rc = command_read(hdr->cmd, (uint8_t *)bytes, &len, alone);
	while (rc == 0) {
		rc = backend->command(token, fd, hdr->cmd, bytes, len, out, &out_len);
		if (rc != -EAGAIN || hdr->cmd != RDMA_USER_CM_CMD_GET_EVENT)
			break;
		rc = event_wait(fd);
	}
	if (rc != 0 || command->response < 0)
		return rc;
	memcpy(&response, (const uint8_t *)in + command->response, sizeof(response));
	memcpy((void *)(uintptr_t)response, out, RTE_MIN(out_len, (size_t)hdr->out));
	return 0;
}

/* A command of another channel has taken events from this one. The descriptor signals them until the
 * channel's own next command: here one that names no ID, and so does nothing else. */
static void
channel_settle(int fd, const struct ucm_token *token)
{
	const struct rdma_ucm_query none = {.id = 0};
	uint64_t out[UCM_MAX / sizeof(uint64_t)];
	size_t out_len;

	(void)served_by.backend()->command(
		token, fd, RDMA_USER_CM_CMD_QUERY, &none, sizeof(none), out, &out_len);
}

static int
id_migrate(int fd, const struct ucm_token *token, const struct rdma_ucm_cmd_hdr *hdr,
	const void *in)
{
	struct rdma_ucm_migrate_id migrate;
	const struct channel *channel;
	struct ucm_token from;
	int rc;

	memcpy(&migrate, in, sizeof(migrate));
	channel = channel_find((int)migrate.fd);
	if (channel == NULL)
		return -EBADF;
	from = channel->token;
	rc = command_run(fd, token, hdr, in, false);
	if (rc == 0)
		channel_settle((int)migrate.fd, &from);
	return rc;
}

static void
duplicate_close(void *arg)
{
	close(*(const int *)arg);
}

/* Waits on a duplicate of the descriptor if possible: another thread may close the
 * channel meanwhile, and its number may be reused. As in the kernel, the waiting thread
 * then goes on waiting (rping relies on it). */
static int
event_get(int fd, const struct ucm_token *token, const struct rdma_ucm_cmd_hdr *hdr,
	const void *in, bool alone)
{
	int own = fcntl(fd, F_DUPFD_CLOEXEC, 0), rc;

	if (own < 0)
		return command_run(fd, token, hdr, in, alone);
	pthread_cleanup_push(duplicate_close, &own); /* recv() is a cancellation point */
	rc = command_run(own, token, hdr, in, alone);
	pthread_cleanup_pop(1);
	return rc;
}

static int
command_dispatch(int fd, const struct ucm_token *token,
	const struct rdma_ucm_cmd_hdr *hdr, const void *in)
{
	if (hdr->cmd >= RTE_DIM(commands) || commands[hdr->cmd].least == 0)
		return -ENOSYS;
	if (hdr->in < commands[hdr->cmd].least)
		return -EINVAL;
	if (hdr->cmd == RDMA_USER_CM_CMD_GET_EVENT)
		return event_get(fd, token, hdr, in, waits_alone(fd));
	__atomic_store_n(&channels[fd].disconnects,
		hdr->cmd == RDMA_USER_CM_CMD_DISCONNECT, __ATOMIC_RELAXED);
	if (hdr->cmd == RDMA_USER_CM_CMD_MIGRATE_ID)
		return id_migrate(fd, token, hdr, in);
	return command_run(fd, token, hdr, in, false);
}

ssize_t
channel_write(int fd, const void *buf, size_t len)
{
	const struct channel *channel = channel_find(fd);
	struct rdma_ucm_cmd_hdr hdr;
	struct ucm_token token;
	int rc = -EINVAL, err = errno;

	if (channel == NULL)
		return -2;
	token = channel->token;
	if (len >= sizeof(hdr)) {
		memcpy(&hdr, buf, sizeof(hdr));
		if (hdr.in + sizeof(hdr) <= len)
			rc = command_dispatch(
				fd, &token, &hdr, (const uint8_t *)buf + sizeof(hdr));
	}
	errno = rc == 0 ? err : -rc; /* some programs check errno after success */
	return rc == 0 ? (ssize_t)len : -1;
}
