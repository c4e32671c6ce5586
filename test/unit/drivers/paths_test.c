/* SPDX-License-Identifier: BSD-3-Clause */
/* The paths of a device, and their contents. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <rocade/rocade.h>

#include "base/common.h"
#include "case.h"
#include "own_trees.h"
#include "preload/paths.h"
#include "preload/served.h"
#include "preload/sysfs_session.h"
#include "verbs/sysfs_tree.h"

#define DEVICE "/sys/class/infiniband/rocade0"

static struct device_facts device = {.name = "rocade0",
	.guid = 0x0123456789abcdef,
	.instance = 7,
	.link_up = true,
	.gids = {{0xfe, 0x80, [15] = 1}},
	.tx_packets = 3,
	.tx_bytes = 400,
	.rx_packets = 5,
	.rx_bytes = 800};

static bool ended;         /* the daemon */
static bool is_turned_off; /* the tree */

static bool
has_device(const char *name)
{
	return !is_turned_off && (name == NULL || strcmp(name, "rocade0") == 0);
}

static bool
device_facts(unsigned index, bool counters, struct device_facts *out)
{
	*out = device;
	if (!counters)
		out->tx_packets = out->tx_bytes = out->rx_packets = out->rx_bytes = 0;
	return index == 0 && !ended;
}

static bool
has_channel(void)
{
	return !ended;
}

static char warned[256];

static void
warn_keep(const char *line)
{
	snprintf(warned, sizeof(warned), "%s", line);
}

const struct served served_by = {.device = has_device,
	.channel = has_channel,
	.facts = device_facts,
	.warn = warn_keep};

const char *
rocade_version(void)
{
	return "1.2.3";
}

/* Returns the root of the tree. */
static const char *
tree(void)
{
	static char root[PATH_MAX];
	struct path_buf buf;
	const char *path = path_serve(DEVICE, &buf);

	snprintf(root, sizeof(root), "%.*s", (int)path_hidden(path), path);
	return root;
}

static void
expect_contents(const char *path, const char *text)
{
	struct path_buf buf;
	const char *served = path_serve_read(AT_FDCWD, path, &buf);
	char got[64];
	ssize_t len;
	int fd = open(served, O_RDONLY);

	assert_true(served != path);
	assert_true(fd >= 0);
	len = read(fd, got, sizeof(got));
	close(fd);
	assert_int_equal(len, strlen(text));
	assert_memory_equal(got, text, (size_t)len);
}

TEST(files_have_the_kernels_contents)
{
	expect_contents(DEVICE "/ports/1/gid_attrs/types/0", "RoCE v2\n");
	expect_contents(DEVICE "/ports/1/gid_attrs/types/15", "");
	expect_contents(DEVICE "/ports/1/gid_attrs/ndevs/0", "lo\n");
	expect_contents(DEVICE "/ports/1/gid_attrs/ndevs/3", "");
	expect_contents("/sys/class/misc/rdma_cm/abi_version", "4\n");
	expect_contents(DEVICE "/device/net/lo/address", "00:00:00:00:00:00\n");
	expect_contents(DEVICE "//ports/./1//gids/0",
		"fe80:0000:0000:0000:0000:0000:0000:0001\n");
	expect_contents(
		DEVICE "/ports/1/gids/15", "0000:0000:0000:0000:0000:0000:0000:0000\n");
	expect_contents(DEVICE "/node_guid", "0123:4567:89ab:cdef\n");
	expect_contents(DEVICE "/fw_ver", "1.2.3\n");
	expect_contents(DEVICE "/ports/1/counters/port_rcv_data", "200\n");
	expect_contents(DEVICE "/ports/1/hw_counters/sent_pkts", "3\n");
	expect_contents(DEVICE "/device/numa_node", "-1\n");
	expect_contents("/sys/class/infiniband_verbs/uverbs0/ibdev", "rocade0\n");
	expect_contents(
		"/sys/devices/pciffff:ff/ffff:ff:00.0/infiniband/rocade0/node_type",
		"1: CA\n");
}

TEST(a_file_has_the_present_text_at_each_open)
{
	expect_contents(DEVICE "/ports/1/state", "4: ACTIVE\n");
	device.link_up = false;
	expect_contents(DEVICE "/ports/1/state", "1: DOWN\n");
	expect_contents("/sys/class/infiniband/rocade0/device/infiniband/rocade0/ports/1/"
			"phys_state",
		"2: Polling\n");
	device.link_up = true;
	device.tx_packets = UINT64_MAX;
	expect_contents(
		DEVICE "/ports/1/counters/port_xmit_packets", "18446744073709551615\n");
	expect_contents(DEVICE "/ports/1/phys_state", "5: LinkUp\n");
}

TEST(the_port_of_a_daemon_that_has_ended_is_down)
{
	expect_contents(DEVICE "/ports/1/counters/port_xmit_data", "100\n");
	ended = true;
	expect_contents(DEVICE "/ports/1/state", "1: DOWN\n");
	expect_contents(DEVICE "/ports/1/phys_state", "2: Polling\n");
	expect_contents(DEVICE "/ports/1/counters/port_xmit_data", "100\n");
	ended = false;
	expect_contents(DEVICE "/ports/1/state", "4: ACTIVE\n");
}

/* A program that is in the directory names the file alone. */
TEST(a_relative_path_has_the_present_text)
{
	struct path_buf buf;
	struct stat before, after;
	const char *folder = path_serve(DEVICE "/ports/1/counters", &buf);
	int dir = open(folder, O_RDONLY | O_DIRECTORY);

	assert_true(dir >= 0);
	assert_int_equal(fstatat(dir, "port_rcv_packets", &before, 0), 0);
	device.rx_packets = 1234567;
	assert_string_equal(
		path_serve_read(dir, "port_rcv_packets", &buf), "port_rcv_packets");
	assert_int_equal(fstatat(dir, "port_rcv_packets", &after, 0), 0);
	assert_int_not_equal(before.st_ino, after.st_ino);
	assert_int_equal(after.st_size, 8);
	/* Another directory with such a file. */
	assert_string_equal(path_serve_read(AT_FDCWD, "state", &buf), "state");
	close(dir);
}

TEST(only_files_that_change_are_found)
{
	static const char *const others[] = {"", "/", "state", "ports/1/state",
		"/ports/1/state", DEVICE "/ports/2/state", DEVICE "/ports/1/states",
		DEVICE "/ports/1/gids/", DEVICE "/ports/1/gids/16",
		DEVICE "/ports/1/gids/00", DEVICE "/ports/1/gids/0x",
		DEVICE "/ports/1/gid_attrs/types/16", DEVICE "/node_guid"};
	struct sysfs_live live;

	for (unsigned i = 0; i < RTE_DIM(others); i++)
		assert_false(sysfs_live_find(others[i], &live));
	assert_true(sysfs_live_find("/x/mlx5_0/ports/1/gids/10", &live));
	assert_int_equal(live.index, 10);
	assert_string_equal(live.device, "mlx5_0");
	assert_true(sysfs_live_find(DEVICE "/ports/1/gid_attrs/types/0", &live));
	assert_true(sysfs_live_name("port_rcv_data"));
	assert_true(sysfs_live_name("15"));
	assert_false(sysfs_live_name("16"));
	assert_false(sysfs_live_name("rate"));
	assert_false(sysfs_live_name(""));
}

TEST(a_node_is_a_character_device)
{
	static const char *const nodes[] = {"/dev/infiniband/rocade0",
		"/dev/infiniband/uverbs0", "//dev/infiniband/./rdma_cm"};

	for (unsigned i = 0; i < RTE_DIM(nodes); i++) {
		struct path_buf buf;
		struct stat st;
		const char *path = path_serve(nodes[i], &buf);

		assert_int_equal(lstat(path, &st), 0);
		assert_true(S_ISCHR(st.st_mode));
		assert_int_equal(access(path, R_OK | W_OK), 0);
	}
}

/* Returns the names in the directory, with blanks between them, in no order. */
static unsigned
entries(const char *path, const char *want)
{
	struct path_buf buf;
	DIR *dir = opendir(path_serve(path, &buf));
	struct dirent *entry;
	unsigned count = 0, found = 0;

	assert_non_null(dir);
	while ((entry = readdir(dir)) != NULL) {
		count += entry->d_name[0] != '.';
		found += strcmp(entry->d_name, want) == 0;
	}
	closedir(dir);
	assert_int_equal(found, 1);
	return count;
}

TEST(directories_are_served)
{
	static const char *const paths[] = {"/sys/class/infiniband",
		"/sys/class/infiniband/", DEVICE, DEVICE "/", DEVICE "/ports/1",
		DEVICE "/ports/1/gid_attrs/types", DEVICE "/device", DEVICE "/device/",
		DEVICE "/device/net", DEVICE "/device/net/lo",
		DEVICE "/device//net//lo//", "/dev/infiniband"};

	for (unsigned i = 0; i < RTE_DIM(paths); i++) {
		struct path_buf buf;
		struct stat st;

		assert_int_equal(stat(path_serve(paths[i], &buf), &st), 0);
		assert_true(S_ISDIR(st.st_mode));
	}
	assert_int_equal(entries(DEVICE "/device/net", "lo"), 1);
	assert_int_equal(entries(DEVICE "/ports/1/gids", "15"), 16);
	(void)entries("/sys/class/infiniband", "rocade0");
	(void)entries("/dev/infiniband", "rdma_cm");
	/* Above are the kernel's others. */
	(void)entries("/sys/class/infiniband/../net", "lo");
}

TEST(other_paths_are_not_served)
{
	static const char *const paths[] = {NULL, "", "/", "rocade0",
		"/dev/infiniband/rocade", "/dev/infiniband/rocade01",
		"/dev/infiniband/rdma_cm0", "/dev/infiniband_x",
		"/sys/class/infiniband/mlx5_0", "/sys/class/infiniband/mlx5_0/ports/1",
		"/sys/class/infiniband/rocade00/ports/1", "/sys/class/infiniband_mad",
		"/sys/class/net/infiniband", "/home/sys/class/infiniband/rocade0"};

	for (unsigned i = 0; i < RTE_DIM(paths); i++) {
		struct path_buf buf;

		errno = 77;
		assert_ptr_equal(path_serve(paths[i], &buf), paths[i]);
		assert_int_equal(errno, 77);
	}
}

TEST(two_dots_lead_into_the_tree_and_out_of_it)
{
	struct path_buf buf;
	const char *linked = "/sys/class/net/lo/../../infiniband";

	expect_contents("/sys/class/net/../infiniband/rocade0/node_type", "1: CA\n");
	expect_contents("/dev/../sys/class/infiniband/rocade0/node_type", "1: CA\n");
	expect_contents(
		"/sys/class/infiniband_verbs/../infiniband/rocade0/node_type", "1: CA\n");
	expect_contents(DEVICE "/../../infiniband/rocade0/hw_rev", "0\n");
	assert_string_equal(path_serve("/dev/infiniband/../null", &buf), "/dev/null");
	assert_string_equal(path_serve("/dev/infiniband/..", &buf), "/dev/");
	assert_ptr_equal(path_serve(linked, &buf), linked);
}

TEST(absent_files_are_absent)
{
	static const char *const paths[] = {DEVICE "/port",
		DEVICE "/ports/2/gid_attrs/types/0", DEVICE "/ports/1/gid_attrs/types/16",
		DEVICE "/ports/1/gids/00", DEVICE "/devices", DEVICE "/device/net/eth0",
		"/dev/infiniband/rocade0/x"};

	for (unsigned i = 0; i < RTE_DIM(paths); i++) {
		struct path_buf buf;

		assert_int_equal(access(path_serve(paths[i], &buf), F_OK), -1);
		assert_int_equal(errno, i == 6 ? ENOTDIR : ENOENT);
	}
}

TEST(the_trees_own_name_is_hidden)
{
	struct path_buf buf;
	const char *path = path_serve(DEVICE, &buf);

	assert_string_equal(path + path_hidden(path), DEVICE);
	assert_int_equal(path_hidden("/sys/class/infiniband"), 0);
	assert_true(path_is_in_tree(path));
	assert_false(path_is_in_tree("/dev/null"));
	assert_int_equal(path_hidden(tree()), 0);
}

/* A program that is started in a directory of the tree has asked for no path of it yet. */
TEST(the_name_of_a_tree_of_other_processes_is_hidden)
{
	char root[PATH_MAX], path[PATH_MAX + 16];

	snprintf(root, sizeof(root), "%s", tree());
	snprintf(path, sizeof(path), "%s", root);
	strcpy(strrchr(path, '-'), "-0/sys/class");
	assert_int_equal(path_hidden(path), 0); /* there is none */
	*strrchr(path, '/') = '\0';
	*strrchr(path, '/') = '\0';
	assert_int_equal(mkdir(path, 0700), 0);
	strcat(path, "/sys/class");
	assert_string_equal(path + path_hidden(path), "/sys/class");
	path[path_hidden(path)] = '\0';
	assert_int_equal(chmod(path, 0755), 0);
	strcat(path, "/sys/class");
	assert_int_equal(path_hidden(path), 0); /* of any user */
	strcpy(strrchr(path, '-'), "-0");
	assert_int_equal(rmdir(path), 0);
}

static unsigned
descriptors(void)
{
	unsigned count = 0;

	for (int fd = 0; fd < 1024; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

/* A program that closes all descriptors gives up its lock. */
TEST(a_tree_that_was_removed_is_made_again)
{
	struct path_buf buf;
	char was[PATH_MAX];

	unsigned before;

	snprintf(was, sizeof(was), "%s", path_serve(DEVICE, &buf));
	before = descriptors();
	sysfs_tree_remove(AT_FDCWD, tree());
	assert_int_equal(access(was, F_OK), -1);
	assert_string_equal(path_serve(DEVICE, &buf), was);
	assert_int_equal(descriptors(), before);
	expect_contents(DEVICE "/node_type", "1: CA\n");
}

/* The node of RDMA-CM is opened without the tree, too, so it is there for all other calls. By each of its names it
 * is the same. */
TEST(the_node_of_rdma_cm_is_there_without_the_tree)
{
	static const char *const names[] = {"/dev/infiniband/rdma_cm",
		"/dev//infiniband/./rdma_cm", "/dev/infiniband/../infiniband/rdma_cm"};
	bool of_kernel = access(names[0], F_OK) == 0;
	struct path_buf buf;

	for (unsigned i = 0; i < 4; i++) {
		is_turned_off = i / 2, ended = i % 2;
		for (unsigned k = 0; k < RTE_DIM(names); k++) {
			bool there = (!is_turned_off || !ended) && !of_kernel;

			assert_string_equal(path_serve(names[k], &buf),
				there ? "/dev/null" : names[k]);
			assert_string_equal(path_serve_read(AT_FDCWD, names[k], &buf),
				"/dev/infiniband/rdma_cm");
		}
		if (is_turned_off)
			assert_string_equal(path_serve("/dev/infiniband/uverbs0", &buf),
				"/dev/infiniband/uverbs0");
	}
	is_turned_off = ended = false;
}

/* A write beyond RLIMIT_FSIZE would end the program by SIGXFSZ. */
TEST(files_must_not_be_longer_than_the_limit)
{
	struct path_buf buf;
	struct rlimit was, less;
	char root[PATH_MAX];

	snprintf(root, sizeof(root), "%s", tree());
	sysfs_tree_remove(AT_FDCWD, root);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &was), 0);
	less = (struct rlimit){.rlim_cur = 2, .rlim_max = was.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &less), 0);
	assert_string_equal(path_serve(DEVICE, &buf), DEVICE); /* there is no tree */
	assert_non_null(strstr(warned, ": File too large"));
	assert_int_equal(access(root, F_OK), -1);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &was), 0);
	assert_string_not_equal(path_serve(DEVICE, &buf), DEVICE);
	expect_contents(DEVICE "/node_type", "1: CA\n");
}

/* Makes the tree ROOT-NAME, of the daemon that listens at the socket, or did before the file was another
 * one. */
static void
tree_left(
	const char *root, const char *name, const char *socket, bool replaced, char *path)
{
	const int dash = (int)(strrchr(root, '-') - root);
	char link[2 * PATH_MAX], was[2 * PATH_MAX];
	struct stat st;

	snprintf(path, PATH_MAX, "%.*s-%s", dash, root, name);
	assert_int_equal(mkdir(path, 0700), 0);
	if (socket == NULL)
		return;
	assert_int_equal(stat(socket, &st), 0);
	snprintf(was, sizeof(was), "%jx:%jx:0:%s", (uintmax_t)st.st_dev,
		(uintmax_t)st.st_ino + replaced, socket);
	snprintf(link, sizeof(link), "%s/daemon", path);
	assert_int_equal(symlink(was, link), 0);
}

static int
socket_listen(const char *name, char *path)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	snprintf(path, PATH_MAX, "%s.%s", tree(), name);
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
	assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(listen(fd, 1), 0);
	return fd;
}

/* By exec(3) and the like a process has a working directory without a lock. */
TEST(a_tree_is_removed_if_no_process_locks_it_and_its_daemon_has_ended)
{
	char stale[PATH_MAX], used[PATH_MAX], root[PATH_MAX], live[PATH_MAX];
	char killed[PATH_MAX], here[PATH_MAX], gone[PATH_MAX];
	int fd, listener = socket_listen("here", here);
	struct path_buf buf;

	close(socket_listen("gone", gone)); /* its file stays */
	snprintf(root, sizeof(root), "%s", tree());
	tree_left(root, "stale", here, true, stale);
	tree_left(root, "killed", gone, false, killed);
	tree_left(root, "used", NULL, false, used);
	tree_left(root, "live", here, false, live);
	fd = open(used, O_RDONLY | O_DIRECTORY);
	assert_int_equal(flock(fd, LOCK_SH), 0);
	sysfs_tree_remove(AT_FDCWD, root);
	(void)path_serve(DEVICE, &buf);
	assert_int_equal(access(stale, F_OK), -1);
	assert_int_equal(access(killed, F_OK), -1);
	assert_int_equal(access(used, F_OK), 0);
	assert_int_equal(access(live, F_OK), 0);
	sysfs_tree_remove(AT_FDCWD, live);
	assert_int_equal(access(root, F_OK), 0);
	close(fd);
	assert_int_equal(rmdir(used), 0);
	close(listener);
	unlink(here);
	unlink(gone);
}

/* A service manager keeps the socket for the next daemon, whose device has another number. */
TEST(a_tree_of_an_earlier_daemon_at_the_socket_is_removed)
{
	struct device_facts now = {.instance = 1};
	char here[PATH_MAX], before[PATH_MAX], *name;
	int listener = socket_listen("here", here), folder;

	assert_true(strlen(here) < sizeof(now.socket));
	strcpy(now.socket, here);
	tree_left(tree(), "before", here, false, before);
	name = strrchr(before, '/');
	*name = '\0';
	folder = open(before, O_RDONLY | O_DIRECTORY);
	sysfs_sweep(folder, before, NULL);
	assert_int_equal(faccessat(folder, name + 1, F_OK, 0), 0);
	sysfs_sweep(folder, before, &now);
	assert_int_equal(faccessat(folder, name + 1, F_OK, 0), -1);
	close(folder);
	close(listener);
	unlink(here);
}
