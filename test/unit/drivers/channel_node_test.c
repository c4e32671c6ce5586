/* SPDX-License-Identifier: BSD-3-Clause */
/* The node of RDMA-CM without the tree: the kernel's path and number, if it has one. */
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rocade/rocade.h>

#include "case.h"
#include "preload/paths.h"
#include "preload/preload_channel.h"
#include "preload/served.h"

static bool
has_no_device(const char *name)
{
	(void)name;
	return false;
}

static bool
has_a_channel(void)
{
	return true;
}

const struct served served_by = {.device = has_no_device, .channel = has_a_channel};

const char *
rocade_version(void)
{
	return "1.2.3";
}

/* In a mount namespace of its own, where /dev has a node of this name. Returns 77 where none can be made. */
static int
kernel_node_check(void)
{
	static const char name[] = "/dev/infiniband/rdma_cm";
	struct path_buf buf;
	char from[32];
	int fd;

	if (unshare(CLONE_NEWNS) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0)
		return 77;
	snprintf(from, sizeof(from), "/proc/self/fd/%d",
		open("/dev/zero", O_PATH | O_CLOEXEC));
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
		mount("rocade-test", "/dev", "tmpfs", 0, NULL) != 0 ||
		mkdir("/dev/infiniband", 0755) != 0)
		return 77;
	if (path_serve(name, &buf) == name)
		return 1;
	fd = open(name, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	if (fd < 0 || close(fd) != 0 || mount(from, name, NULL, MS_BIND, NULL) != 0)
		return 2;
	if (path_serve(name, &buf) != name)
		return 3;
	return channel_device() == makedev(1, 5) ? 0 : 4;
}

TEST(the_kernels_node_of_rdma_cm_stays)
{
	struct stat null;
	int status;
	pid_t pid = fork();

	if (pid == 0)
		_exit(kernel_node_check());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		skip();
	assert_int_equal(WEXITSTATUS(status), 0);
	/* Without one it is as the path. */
	assert_int_equal(stat("/dev/null", &null), 0);
	if (access("/dev/infiniband/rdma_cm", F_OK) != 0)
		assert_int_equal(channel_device(), null.st_rdev);
}
