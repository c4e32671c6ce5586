/* SPDX-License-Identifier: BSD-3-Clause */
/* Another thread of this process connects without the path of the socket, whose permissions may
 * exclude the daemon's own user: it passes one end of a socket pair through a pipe. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/server_conn.h"
#include "server/server_own.h"
#include "verbs/verbs_port.h"

int
own_open(struct rocade_daemon *d)
{
	int fds[2], rc;

	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) != 0)
		return -errno;
	rc = fd_source_add(&d->sets[0], &d->own, fds[0], FD_SOURCE_OWN, NULL);
	if (rc != 0) {
		close(fds[0]);
		close(fds[1]);
		return rc;
	}
	d->own_fd = fds[1];
	return 0;
}

/* Returns the daemon's end of a new connection, -1: there is none. */
static int
own_read(int pipe_fd)
{
	int fd;

	return read(pipe_fd, &fd, sizeof(fd)) == (ssize_t)sizeof(fd) ? fd : -1;
}

void
own_close(struct rocade_daemon *d)
{
	int pipe_fd = fd_source_remove(&d->own), fd;

	if (pipe_fd < 0)
		return;
	while ((fd = own_read(pipe_fd)) >= 0)
		close(fd);
	close(pipe_fd);
	close(d->own_fd);
}

struct account *
own_accept(struct rocade_daemon *d)
{
	int fd = own_read(d->own.fd);

	return fd >= 0 ? conn_take(d, fd) : NULL;
}

EXPORT int
rocade_daemon_connect(struct rocade_daemon *d, int *fd)
{
	int fds[2], rc = 0;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) != 0)
		return rocade_fail(
			errno, "cannot make a connection: %s", strerror(errno));
	/* A full pipe has 16,384 connections that wait. */
	if (fcntl(fds[0], F_SETFL, O_NONBLOCK) != 0 ||
		write(d->own_fd, &fds[0], sizeof(fds[0])) != (ssize_t)sizeof(fds[0]))
		rc = rocade_fail(errno, "cannot reach the daemon: %s", strerror(errno));
	if (rc == 0) {
		*fd = fds[1];
		return 0;
	}
	close(fds[0]);
	close(fds[1]);
	return rc;
}
