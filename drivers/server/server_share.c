/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/futex.h"
#include "server/server_share.h"

#define BLOCK 512 /* unit of st_blocks */

int
share_memory_create(size_t size)
{
	int fd = memfd_create("rocade", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int rc;

	if (fd < 0)
		return -errno;
	if (ftruncate(fd, (off_t)size) == 0 &&
		fcntl(fd, F_ADD_SEALS, REGION_SIZE_SEALS) == 0)
		return fd;
	rc = -errno;
	close(fd);
	return rc;
}

static int
memory_map(int fd, size_t size, int prot, void **mem)
{
	void *at = mmap(NULL, size, prot, MAP_SHARED, fd, 0);

	if (at == MAP_FAILED)
		return -errno;
	*mem = at;
	return 0;
}

/* Creates the memory that the daemon writes. It is sealed before the client gets the
 * descriptor, so the client cannot map it for writing. */
static int
daemon_memory_create(struct conn *conn)
{
	size_t size = region_daemon_size(&conn->geom);
	int fd = share_memory_create(size), rc;

	if (fd < 0)
		return fd;
	conn->daemon_mem_fd = fd;
	rc = memory_map(fd, size, PROT_READ | PROT_WRITE, &conn->daemon_mem);
	if (rc == 0 && fcntl(fd, F_ADD_SEALS, REGION_WRITER_SEALS) != 0)
		rc = -errno;
	return rc;
}

static int
client_memory_create(struct conn *conn)
{
	int fd = share_memory_create(region_client_size(&conn->geom));

	if (fd < 0)
		return fd;
	conn->client_mem_fd = fd;
	return 0;
}

/* Creates one wake-up descriptor per direction. wake: the client's end. */
static int
wake_fds_create(struct conn *conn, int *wake)
{
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	int ends[2];

	if (fd < 0)
		return -errno;
	if (fd_source_add(&conn->daemon->sets[0], &conn->daemon_wake, fd, FD_SOURCE_WAKE,
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

static uint32_t
part_kib(size_t size)
{
	return (uint32_t)(size / 1024);
}

/* The mapping, too, keeps the file open: the descriptor is closed after it. */
static void
part_end(struct conn *conn, void **at, size_t size, int *fd)
{
	ended_memory_add(&conn->daemon->ended_memory, &(struct mapping){*at, size, *fd},
		conn->account, part_kib(size));
	*at = NULL;
	*fd = -1;
}

void
share_destroy(struct conn *conn)
{
	if (conn->memory_kib == 0)
		return;
	account_give(conn->account, ACCOUNT_descriptors, SHARE_FDS);
	passed_fds_close_given(&conn->daemon->passed, conn->account,
		fd_source_remove(&conn->daemon_wake));
	/* The client has the other end only. */
	if (conn->wake_fd >= 0)
		close(conn->wake_fd);
	conn->wake_fd = -1;
	part_end(conn, &conn->daemon_mem, region_daemon_size(&conn->geom),
		&conn->daemon_mem_fd);
	part_end(conn, &conn->client_mem, region_client_size(&conn->geom),
		&conn->client_mem_fd);
	conn->memory_kib = 0;
}

int
share_create(struct conn *conn, int fds[SW_ATTACH_FDS])
{
	int rc = daemon_memory_create(conn);

	if (rc == 0)
		rc = client_memory_create(conn);
	if (rc == 0)
		rc = wake_fds_create(conn, &fds[SW_FD_CLIENT_WAKE]);
	if (rc != 0) {
		share_destroy(conn);
		return rc;
	}
	fds[SW_FD_CLIENT_MEM] = conn->client_mem_fd;
	fds[SW_FD_DAEMON_MEM] = conn->daemon_mem_fd;
	fds[SW_FD_DAEMON_WAKE] = conn->daemon_wake.fd;
	return 0;
}

/* Returns whether every page of the memory is allocated. */
static bool
memory_is_whole(int fd, size_t size)
{
	struct stat st;

	return fstat(fd, &st) == 0 && (size_t)st.st_blocks >= size / BLOCK;
}

int
share_memory_check(int fd, size_t size)
{
	const int all = REGION_SIZE_SEALS | REGION_WRITER_SEALS;
	int seals = fcntl(fd, F_GET_SEALS);

	if (seals < 0 || (seals & all) != all)
		return -EPERM;
	return memory_is_whole(fd, size) ? 0 : -ENOMEM;
}

static int
client_memory_take(struct conn *conn)
{
	size_t size = region_client_size(&conn->geom);
	int rc = share_memory_check(conn->client_mem_fd, size);

	if (rc != 0)
		return rc;
	if (!memory_is_whole(conn->daemon_mem_fd, region_daemon_size(&conn->geom)))
		return -ENOMEM;
	return memory_map(conn->client_mem_fd, size, PROT_READ, &conn->client_mem);
}

int
share_start(struct conn *conn, struct region *region)
{
	int rc = conn->client_mem == NULL ? client_memory_take(conn) : 0;

	if (rc == 0)
		region_init(region, conn->client_mem, conn->daemon_mem, &conn->geom);
	return rc;
}

uint32_t
share_kib(const struct region_geom *geom)
{
	return part_kib(region_client_size(geom)) + part_kib(region_daemon_size(geom));
}

void
share_wake(void *owner, const uint32_t *futex)
{
	const struct conn *conn = owner;
	ssize_t sent;

	if (futex != NULL) {
		futex_wake(futex, true);
		return;
	}
	sent = send(conn->wake_fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
	(void)sent; /* full: wake-ups are pending already */
}
