/* SPDX-License-Identifier: BSD-3-Clause */
/* The paths of a device, and their contents. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/common.h"
#include "case.h"
#include "preload/paths.h"
#include "preload/served.h"

static bool
has_device(const char *name)
{
	return name == NULL || strcmp(name, "rocade0") == 0;
}

const struct served served_by = {.device = has_device};

/* Returns the lowest free descriptor. */
static int
fd_next(void)
{
	int fd = open("/dev/null", O_RDONLY);

	assert_true(fd >= 0);
	close(fd);
	return fd;
}

static void
expect_contents(const char *path, const char *text)
{
	struct path_served served;
	char got[64];
	ssize_t len;
	int fd;

	for (unsigned twice = 0; twice < 2; twice++) {
		assert_true(path_serve(path, &served));
		fd = open(served.path, O_RDONLY);
		path_done(&served);
		assert_true(fd >= 0);
		len = read(fd, got, sizeof(got));
		assert_int_equal(len, strlen(text));
		assert_memory_equal(got, text, (size_t)len);
		assert_int_equal(read(fd, got, sizeof(got)), 0);
		close(fd);
	}
}

TEST(files_have_the_kernels_contents)
{
	int before = fd_next();

	expect_contents(
		"/sys/class/infiniband/rocade0/ports/1/gid_attrs/types/0", "RoCE v2\n");
	expect_contents(
		"/sys/class/infiniband/rocade0/ports/1/gid_attrs/types/15", "RoCE v2\n");
	expect_contents(
		"/sys/class/infiniband/rocade0/ports/1/gid_attrs/ndevs/3", "lo\n");
	expect_contents("/sys/class/misc/rdma_cm/abi_version", "4\n");
	expect_contents("/sys/class/infiniband/rocade0/device/net/lo/address",
		"00:00:00:00:00:00\n");
	assert_int_equal(fd_next(), before);
}

TEST(a_node_is_a_character_device)
{
	struct path_served served;
	struct stat st;

	assert_true(path_serve("/dev/infiniband/rocade0", &served));
	assert_int_equal(stat(served.path, &st), 0);
	assert_true(S_ISCHR(st.st_mode));
	assert_int_equal(access(served.path, R_OK | W_OK), 0);
	path_done(&served);
}

TEST(directories_are_served)
{
	static const char *const paths[] = {"/sys/class/infiniband/rocade0",
		"/sys/class/infiniband/rocade0/", "/sys/class/infiniband/rocade0/ports/1",
		"/sys/class/infiniband/rocade0/ports/1/gid_attrs/types",
		"/sys/class/infiniband/rocade0/device",
		"/sys/class/infiniband/rocade0/device/",
		"/sys/class/infiniband/rocade0/device/net",
		"/sys/class/infiniband/rocade0/device/net/",
		"/sys/class/infiniband/rocade0/device/net/lo",
		"/sys/class/infiniband/rocade0/device//net//lo//"};
	struct path_served served;
	struct stat st;

	for (unsigned i = 0; i < RTE_DIM(paths); i++) {
		assert_true(path_serve(paths[i], &served));
		assert_int_equal(stat(served.path, &st), 0);
		assert_true(S_ISDIR(st.st_mode));
		assert_int_equal(served.one_interface, i == 6 || i == 7);
		path_done(&served);
	}
}

TEST(other_paths_are_not_served)
{
	static const char *const paths[] = {NULL, "", "/", "rocade0", "/dev/infiniband/",
		"/dev/infiniband/rocade", "/dev/infiniband/rocade01",
		"/dev/infiniband/rocade0/x", "/dev/infiniband/rdma_cm0",
		"/sys/class/infiniband/", "/sys/class/infiniband/mlx5_0/ports/1",
		"/sys/class/infiniband/rocade00/ports/1",
		"/sys/class/infiniband/rocade0/port",
		"/sys/class/infiniband/rocade0/ports/2/gid_attrs/types/0",
		"/sys/class/infiniband/rocade0/ports/1/gid_attrs/types/16",
		"/sys/class/infiniband/rocade0/ports/1/gid_attrs/types/0x",
		"/sys/class/infiniband/rocade0/ports/1/gid_attrs/types/00",
		"/sys/class/infiniband/rocade0/ports/1/gid_attrs/types/-1",
		"/sys/class/infiniband/rocade0/device/numa_node",
		"/sys/class/infiniband/rocade0/devices",
		"/sys/class/infiniband/rocade0/device/net/eth0",
		"/sys/class/infiniband/rocade0/device/net/lo0/address",
		"/sys/class/infiniband/rocade0/device/net/lo/"
		"12345678901234567890123456789012345678901234567890"
		"123456789012345678901234567890123456789012345678901234567890"};
	struct path_served served;

	for (unsigned i = 0; i < RTE_DIM(paths); i++) {
		errno = 77;
		assert_false(path_serve(paths[i], &served));
		assert_int_equal(errno, 77);
	}
}
