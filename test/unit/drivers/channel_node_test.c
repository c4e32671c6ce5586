/* SPDX-License-Identifier: BSD-3-Clause */
/* The node of RDMA-CM without the tree: the kernel's path and number, if it has one. And no tree is made
 * after the end of this library. */
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rocade/rocade.h>

#include "case.h"
#include "own_trees.h"
#include "preload/paths.h"
#include "preload/preload_channel.h"
#include "preload/served.h"

#define DEVICE "/sys/class/infiniband/rocade0"

static struct device_facts device = {.name = "rocade0", .instance = 7};
static bool there; /* the device */

static bool
has_device(const char *name)
{
	return there && (name == NULL || strcmp(name, device.name) == 0);
}

static bool
facts_of_device(unsigned index, bool counters, struct device_facts *out)
{
	(void)counters;
	*out = device;
	return there && index == 0;
}

static void
warn(const char *line)
{
	fprintf(stderr, "%s\n", line);
}

static bool
has_a_channel(void)
{
	return true;
}

const struct served served_by = {.device = has_device,
	.channel = has_a_channel,
	.facts = facts_of_device,
	.warn = warn};

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

static char root[PATH_MAX];

/* Runs after the destructor of sysfs_session.c, as other threads may. */
static __attribute__((destructor(101))) void
late_look(void)
{
	struct path_buf buf;

	if (!there)
		return;
	if (access(root, F_OK) == 0)
		_exit(3);
	_exit(strcmp(path_serve(DEVICE, &buf), DEVICE) == 0 ? 0 : 4);
}

/* socket: of the daemon, which has ended; "": the tree is of this process only. */
static void
end_check(const char *socket)
{
	struct path_buf buf;
	const char *path;
	unsigned hidden;
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		there = true;
		strcpy(device.socket, socket);
		path = path_serve(DEVICE, &buf);
		hidden = path_hidden(path);
		if (hidden == 0)
			_exit(1);
		snprintf(root, sizeof(root), "%.*s", (int)hidden, path);
		if (access(root, F_OK) != 0 ||
			strncmp(root, own_trees, strlen(own_trees)) != 0)
			_exit(2);
		exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

TEST(no_tree_is_made_after_the_end)
{
	end_check("");
	end_check("/nonexistent/socket");
}
