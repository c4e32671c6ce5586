/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "link.h"

#define OPEN_MS 30000
#define OPEN_STEP_MS 20
/* The memif PMD crashes when a port is closed while its interrupt thread still handles
 * the peer's disconnect. */
#define DRAIN_MS 200

/* Removes the socket of an earlier server, and no other kind of file. Returns 0 or -1. */
static int
socket_remove(const char *path)
{
	struct stat st;

	if (lstat(path, &st) != 0)
		return errno == ENOENT ? 0 : -1;
	if (!S_ISSOCK(st.st_mode)) {
		errno = ENOTSOCK;
		return -1;
	}
	return unlink(path);
}

static int
server_open(int fd, const struct sockaddr_un *addr)
{
	struct pollfd wait = {.fd = fd, .events = POLLIN};
	int found = -1, err;

	if (socket_remove(addr->sun_path) != 0 ||
		bind(fd, (const struct sockaddr *)addr, sizeof(*addr)) != 0)
		return -1;
	errno = ETIMEDOUT;
	if (listen(fd, 1) == 0 && poll(&wait, 1, OPEN_MS) == 1)
		found = accept(fd, NULL, NULL);
	err = errno;
	if (found < 0)
		(void)socket_remove(addr->sun_path);
	errno = err;
	return found;
}

static int
client_open(int fd, const struct sockaddr_un *addr)
{
	for (int ms = 0; ms < OPEN_MS; ms += OPEN_STEP_MS) {
		if (connect(fd, (const struct sockaddr *)addr, sizeof(*addr)) == 0)
			return fd;
		if (errno != ENOENT && errno != ECONNREFUSED)
			return -1;
		poll(NULL, 0, OPEN_STEP_MS);
	}
	return -1;
}

int
link_open(const struct conf *conf, int *fd, char err[ERR_MAX])
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	int found = -1;

	strcpy(addr.sun_path, conf->socket);
	if (sock >= 0)
		found = conf->server ? server_open(sock, &addr)
				     : client_open(sock, &addr);
	if (found < 0 && errno == ENOTSOCK)
		snprintf(err, ERR_MAX,
			"--socket %s: the file is no socket and is not replaced: expected a "
			"path without a file",
			conf->socket);
	else if (found < 0)
		snprintf(err, ERR_MAX, "--socket %s: cannot reach the %s: %s",
			conf->socket, conf->server ? "client" : "server",
			strerror(errno));
	if (sock >= 0 && found != sock)
		close(sock);
	*fd = found;
	return found < 0 ? -1 : 0;
}

void
link_close(const struct conf *conf, int fd)
{
	if (fd < 0)
		return;
	close(fd);
	if (conf->server)
		(void)socket_remove(conf->socket);
}

int
link_send(int fd, const struct msg *msg)
{
	return send(fd, msg, sizeof(*msg), MSG_NOSIGNAL) == (ssize_t)sizeof(*msg) ? 0
										  : -1;
}

int
link_recv(int fd, enum msg_kind kind, struct msg *msg)
{
	if (recv(fd, msg, sizeof(*msg), 0) != (ssize_t)sizeof(*msg))
		return -1;
	return msg->kind == kind ? 0 : -1;
}

void
link_drain(int fd)
{
	struct msg msg;

	while (recv(fd, &msg, sizeof(msg), 0) > 0)
		;
	poll(NULL, 0, DRAIN_MS);
}

bool
link_poll(int fd, struct msg *msg)
{
	ssize_t n = recv(fd, msg, sizeof(*msg), MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n != (ssize_t)sizeof(*msg))
		msg->kind = MSG_DISCONNECTED;
	return true;
}
