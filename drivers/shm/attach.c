/* SPDX-License-Identifier: BSD-3-Clause */
/* Maps the memory that a client and the daemon share. */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/fd_fill.h"
#include "shm/attach.h"

/* Memory that is smaller, or that its creator can still truncate, would raise SIGBUS. Huge
 * pages can raise it, too. needed: seals. */
static bool
memory_valid(int fd, size_t size, int needed)
{
	int seals = fcntl(fd, F_GET_SEALS); /* -1 if this is no memfd */
	struct statfs fs;
	struct stat st;

	return seals >= 0 && (seals & needed) == needed && fstat(fd, &st) == 0 &&
	       (size_t)st.st_size == size && fstatfs(fd, &fs) == 0 &&
	       fs.f_type == TMPFS_MAGIC;
}

/* seals: those that the memory must have. */
static int
part_map(int fd, size_t size, int seals, int prot, void **mem)
{
	int rc;

	if (!memory_valid(fd, size, seals))
		return -EPROTO;
	/* The daemon has created the memory, but the kernel charges a page to the process that
	 * allocates it. */
	rc = fd_fill(fd, size);
	if (rc != 0)
		return rc;
	*mem = mmap(NULL, size, prot, MAP_SHARED, fd, 0);
	if (*mem == MAP_FAILED)
		return -errno;
	/* The reader requires that of the part that this process writes (switch/region.h). */
	if ((prot & PROT_WRITE) != 0 &&
		fcntl(fd, F_ADD_SEALS, REGION_WRITER_SEALS) != 0) {
		rc = -errno;
		munmap(*mem, size);
	}
	return rc;
}

int
region_map(const int fds[SW_ATTACH_FDS], const struct region_geom *geom,
	struct region *region)
{
	void *client, *daemon;
	int rc;

	if (!region_geom_ok(geom))
		return -EPROTO;
	rc = part_map(fds[SW_FD_CLIENT_MEM], region_client_size(geom), REGION_SIZE_SEALS,
		PROT_READ | PROT_WRITE, &client);
	if (rc != 0)
		return rc;
	/* Of this part the daemon is the only writer. */
	rc = part_map(fds[SW_FD_DAEMON_MEM], region_daemon_size(geom),
		REGION_SIZE_SEALS | F_SEAL_FUTURE_WRITE, PROT_READ, &daemon);
	if (rc != 0) {
		munmap(client, region_client_size(geom));
		return rc;
	}
	region_init(region, client, daemon, geom);
	return 0;
}

int
pair_part_map(int fd, const struct pair_geom *geom, bool own, void **mem)
{
	size_t size = pair_part_size(geom);

	if (own)
		return part_map(fd, size, REGION_SIZE_SEALS, PROT_READ | PROT_WRITE, mem);
	/* The partner is the only writer, and has allocated all pages. */
	if (!memory_valid(fd, size, REGION_SIZE_SEALS | F_SEAL_FUTURE_WRITE))
		return -EPROTO;
	*mem = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
	return *mem == MAP_FAILED ? -errno : 0;
}

void
region_unmap(const struct region *region)
{
	munmap(region->client, region_client_size(&region->geom));
	munmap(region->daemon, region_daemon_size(&region->geom));
}
