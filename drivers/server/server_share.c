/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/server_share.h"

/* Creates sealed memory: the client can neither shrink it while the daemon uses it nor
 * grow it. A client that adds F_SEAL_SEAL is not served, because share_seal() fails. */
static int
memory_create(struct conn *conn, const struct region_geom *geom)
{
	int fd = memfd_create("rocade", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int rc;

	if (fd < 0)
		return -errno;
	conn->size = region_size(geom);
	if (ftruncate(fd, (off_t)conn->size) != 0 ||
		fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0) {
		rc = -errno;
		close(fd);
		return rc;
	}
	conn->mem = mmap(NULL, conn->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (conn->mem == MAP_FAILED) {
		rc = -errno;
		conn->mem = NULL;
		close(fd);
		return rc;
	}
	return fd;
}

/* Creates one wake-up descriptor per direction. wake: the client's end. */
static int
wake_fds_create(struct conn *conn, int *wake)
{
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	int ends[2];

	if (fd < 0)
		return -errno;
	if (fd_source_add(conn->daemon->wakes.fd, &conn->daemon_wake, fd, FD_SOURCE_WAKE,
		    conn) != 0) {
		close(fd);
		return -ENOMEM;
	}
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0)
		return -errno;
	/* The client cannot send to this end: a descriptor in its queue could make the
	 * daemon wait in close(). */
	(void)shutdown(ends[0], SHUT_RD);
	conn->wake_fd = ends[0];
	*wake = ends[1];
	return 0;
}

void
share_destroy(struct conn *conn)
{
	fd_source_close(conn->daemon->wakes.fd, &conn->daemon_wake);
	if (conn->wake_fd >= 0)
		close(conn->wake_fd);
	conn->wake_fd = -1;
	if (conn->mem_fd >= 0)
		close(conn->mem_fd);
	conn->mem_fd = -1;
	if (conn->mem != NULL)
		munmap(conn->mem, conn->size);
	conn->mem = NULL;
}

int
share_create(struct conn *conn, const struct region_geom *geom, int fds[SW_ATTACH_FDS])
{
	int rc, mem = memory_create(conn, geom);

	if (mem < 0)
		return mem;
	rc = wake_fds_create(conn, &fds[2]);
	if (rc != 0) {
		share_destroy(conn);
		close(mem);
		return rc;
	}
	conn->mem_fd = fds[0] = mem;
	fds[1] = conn->daemon_wake.fd;
	return 0;
}

int
share_seal(struct conn *conn)
{
	if (conn->mem_fd < 0)
		return 0;
	if (fcntl(conn->mem_fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE | F_SEAL_SEAL) != 0)
		return -errno;
	close(conn->mem_fd);
	conn->mem_fd = -1;
	return 0;
}

void
share_wake(void *owner)
{
	const struct conn *conn = owner;
	ssize_t sent = send(conn->wake_fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);

	(void)sent; /* full: wake-ups are pending already */
}
