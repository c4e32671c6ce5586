/* SPDX-License-Identifier: BSD-3-Clause */
/* What librocade-verbs shows an unmodified program: files of the device, and
 * /dev/infiniband/rdma_cm, whose commands the daemon executes. */
/* open() and open64() are different functions of the library. */
#undef _FILE_OFFSET_BITS
#include "client_cm_fixture.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>

#include <infiniband/verbs.h>

#define TYPES "/sys/class/infiniband/rocade0/ports/1/gid_attrs/types/0"
#define EVENT_ADDR_RESOLVED 0
#define EVENT_ROUTE_RESOLVED 2
#ifdef __x86_64__ /* of __xstat() and the like */
#define STAT_VERSION 1
#else
#define STAT_VERSION 0
#endif

int __xstat(int version, const char *path, struct stat *st);
int __xstat64(int version, const char *path, struct stat64 *st);
int __fxstat(int version, int fd, struct stat *st);
int __fxstat64(int version, int fd, struct stat64 *st);

static int
event_get(int fd, struct rdma_ucm_event_resp *event)
{
	struct rdma_ucm_get_event cmd = {.response = (uintptr_t)event};

	memset(event, 0, sizeof(*event));
	return command(fd, RDMA_USER_CM_CMD_GET_EVENT, &cmd, sizeof(cmd), sizeof(*event));
}

static int
id_resolve(int fd, uint32_t id, uint16_t port)
{
	struct rdma_ucm_resolve_addr cmd = {
		.id = id, .dst_size = sizeof(struct sockaddr_in), .timeout_ms = 1000};
	struct sockaddr_in to = address("192.0.2.1", port);

	memcpy(&cmd.dst_addr, &to, sizeof(to));
	return command(fd, RDMA_USER_CM_CMD_RESOLVE_ADDR, &cmd, sizeof(cmd), 0);
}

TEST(connection_request_is_delivered)
{
	struct rdma_ucm_resolve_route route = {.timeout_ms = 1000};
	struct rdma_ucm_connect connect = {.conn_param = {.valid = 1}};
	struct rdma_ucm_listen listen = {.backlog = 4};
	struct rdma_ucm_set_option option = {.level = 0, .optname = 0, .optlen = 1};
	struct sockaddr_in at = address("192.0.2.1", 7174);
	struct rdma_ucm_bind bind = {.addr_size = sizeof(at)};
	struct rdma_ucm_event_resp event;
	struct client_fixture f;
	struct pollfd ready = {.events = POLLIN};
	uint8_t tos = 8;
	uint32_t listener, id;
	int server, client;

	fixture_open(&f);
	daemon_begin(&f, NULL);
	server = open(RDMA_CM, O_RDWR | O_CLOEXEC);
	client = open64(RDMA_CM, O_RDWR | O_CLOEXEC | O_NONBLOCK);
	assert_true(server >= 0 && client >= 0);
	ready.fd = client;
	assert_int_equal(id_create(server, 1, &listener), 0);
	memcpy(&bind.addr, &at, sizeof(at));
	bind.id = listen.id = listener;
	assert_int_equal(
		command(server, RDMA_USER_CM_CMD_BIND, &bind, sizeof(bind), 0), 0);
	assert_int_equal(
		command(server, RDMA_USER_CM_CMD_LISTEN, &listen, sizeof(listen), 0), 0);
	assert_int_equal(event_get(client, &event), EAGAIN);
	assert_int_equal(id_create(client, 2, &id), 0);
	option.id = route.id = connect.id = id;
	option.optval = (uintptr_t)&tos;
	assert_int_equal(
		command(client, RDMA_USER_CM_CMD_SET_OPTION, &option, sizeof(option), 0),
		0);
	assert_int_equal(id_resolve(client, id, 7174), 0);
	assert_int_equal(fcntl(client, F_SETFL, 0), 0); /* from here on it waits */
	assert_int_equal(event_get(client, &event), 0);
	assert_int_equal(event.event, EVENT_ADDR_RESOLVED);
	assert_int_equal(event.uid, 2);
	assert_int_equal(
		command(client, RDMA_USER_CM_CMD_RESOLVE_ROUTE, &route, sizeof(route), 0),
		0);
	assert_int_equal(event_get(client, &event), 0);
	assert_int_equal(event.event, EVENT_ROUTE_RESOLVED);
	assert_int_equal(poll(&ready, 1, 0), 0); /* no wake-up is left */
	connect.conn_param.qp_num = 5;           /* not ours */
	assert_int_not_equal(
		command(client, RDMA_USER_CM_CMD_CONNECT, &connect, sizeof(connect), 0),
		0);
	assert_int_equal(command(server, 999, &listen, sizeof(listen), 0), ENOSYS);
	assert_int_equal(close(client), 0);
	assert_int_equal(close(server), 0);
	assert_int_equal(write(server, "x", 1), -1); /* no longer a channel */
	assert_int_equal(errno, EBADF);
	fixture_close(&f);
}

TEST(channel_ends_with_the_daemon)
{
	struct client_fixture f;
	uint32_t id;
	int fd, next;

	fixture_open(&f);
	daemon_begin(&f, NULL);
	fd = open(RDMA_CM, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(id_create(fd, 1, &id), 0);
	daemon_end(&f);
	assert_int_equal(id_create(fd, 1, &id), ENODEV);
	assert_int_equal(id_create(fd, 1, &id), ENODEV);
	daemon_begin(&f, NULL);
	next = open(RDMA_CM, O_RDWR | O_CLOEXEC);
	assert_true(next >= 0);
	assert_int_equal(id_create(next, 1, &id), 0);
	/* The new daemon has a channel of the same number. */
	assert_int_equal(id_create(fd, 1, &id), ENODEV);
	/* A daemon that ended and started unnoticed. */
	daemon_end(&f);
	daemon_begin(&f, NULL);
	close(fd);
	fd = open(RDMA_CM, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(id_create(fd, 1, &id), 0);
	assert_int_equal(id_create(next, 1, &id), ENODEV);
	close(fd);
	close(next);
	fixture_close(&f);
}

static int
child_uses_channels(void *arg)
{
	int fd, *parents = arg;
	uint32_t id;

	CHILD_CHECK(id_create(*parents, 1, &id) == ENODEV);
	fd = open(RDMA_CM, O_RDWR | O_CLOEXEC);
	CHILD_CHECK(fd >= 0);
	CHILD_CHECK(id_create(fd, 1, &id) == 0);
	CHILD_CHECK(id_create(*parents, 1, &id) == ENODEV);
	return 0;
}

TEST(forked_child_has_own_channels)
{
	struct client_fixture f;
	uint32_t id;
	int fd;

	fixture_open(&f);
	daemon_begin(&f, NULL);
	fd = open(RDMA_CM, O_RDWR | O_CLOEXEC);
	assert_int_equal(id_create(fd, 1, &id), 0);
	check_in_child(&f, child_uses_channels, &fd);
	assert_int_equal(id_create(fd, 1, &id), 0);
	close(fd);
	fixture_close(&f);
}

TEST(duplicates_are_channels)
{
	struct client_fixture f;
	struct stat st;
	struct stat64 st64;
	int fds[6], other;
	uint32_t id;

	fixture_open(&f);
	daemon_begin(&f, NULL);
	fds[0] = open(RDMA_CM, O_RDWR);
	assert_true(fds[0] >= 0);
	assert_int_equal(fcntl(fds[0], F_GETFD), 0); /* no O_CLOEXEC */
	fds[1] = dup(fds[0]);
	fds[2] = dup2(fds[1], 700);
	fds[3] = dup3(fds[1], 701, O_CLOEXEC);
	fds[4] = fcntl(fds[1], F_DUPFD, 702);
	fds[5] = fcntl64(fds[1], F_DUPFD_CLOEXEC, 703);
	assert_true(fds[1] > 2);
	for (int i = 2; i < 6; i++)
		assert_int_equal(fds[i], 698 + i);
	for (unsigned i = 0; i < 6; i++) {
		assert_int_equal(id_create(fds[i], i, &id), 0);
		assert_int_equal(fstat(fds[i], &st), 0);
		assert_true(S_ISCHR(st.st_mode));
		assert_int_equal(fstat64(fds[i], &st64), 0);
		assert_true(S_ISCHR(st64.st_mode));
		assert_int_equal(__fxstat(STAT_VERSION, fds[i], &st), 0);
		assert_true(S_ISCHR(st.st_mode));
		assert_int_equal(__fxstat64(STAT_VERSION, fds[i], &st64), 0);
		assert_true(S_ISCHR(st64.st_mode));
	}
	/* Others are what they are. A write to this one fails, unlike perhaps to standard input. */
	other = open("/dev/null", O_RDONLY);
	assert_int_equal(dup2(other, 701), 701);
	close(other);
	assert_int_not_equal(id_create(701, 1, &id), 0);
	for (unsigned i = 0; i < 6; i++)
		close(fds[i]);
	assert_int_equal(fstat(fds[0], &st), -1);
	fixture_close(&f);
}

static void
check_text(FILE *file, const char *expected)
{
	char text[32] = "";

	assert_non_null(file);
	assert_non_null(fgets(text, sizeof(text), file));
	assert_string_equal(text, expected);
	fclose(file);
}

#define NET "/sys/class/infiniband/rocade0/device/net"

/* The directory shows one interface, and other directories are whole, also in between. */
static void
check_interface(void)
{
	unsigned shown = 0, all = 0;
	DIR *dir = opendir(NET), *plain = opendir("/proc/self");
	const struct dirent64 *entry64;
	const struct dirent *entry;
	struct statx stx;
	struct stat64 st64;
	struct stat st;

	assert_non_null(dir);
	while ((entry = readdir(dir)) != NULL) {
		assert_true(entry->d_name[0] == '.' || strcmp(entry->d_name, "lo") == 0);
		shown += entry->d_name[0] != '.';
		assert_non_null(readdir(plain));
	}
	assert_int_equal(shown, 1);
	rewinddir(dir);
	while ((entry64 = readdir64(dir)) != NULL)
		all += strcmp(entry64->d_name, "lo") == 0;
	assert_int_equal(all, 1);
	assert_int_equal(fstatat(dirfd(dir), "lo", &st, 0), 0);
	assert_int_equal(closedir(dir), 0);
	assert_int_equal(closedir(plain), 0);
	/* The table of open directories has places again. */
	for (unsigned i = 0; i < 40; i++) {
		dir = opendir(NET "/");
		assert_non_null(dir);
		assert_int_equal(closedir(dir), 0);
	}
	assert_null(opendir("/sys/class/infiniband/rocade0/none"));
	assert_int_equal(lstat(NET "/lo", &st), 0);
	assert_int_equal(lstat64(NET "/lo", &st64), 0);
	assert_int_equal(statx(-1, NET, 0, STATX_TYPE, &stx), 0);
	assert_true(S_ISDIR(stx.stx_mode));
	assert_int_equal(statx(-1, NET "/eth0", 0, STATX_TYPE, &stx), -1);
}

TEST(files_of_the_device_exist)
{
	struct client_fixture f;
	struct stat64 st64;
	char text[8] = "";
	struct stat st;
	int fd;

	fixture_open(&f);
	daemon_begin(&f, NULL);
	check_text(fopen(TYPES, "r"), "RoCE v2\n");
	check_text(fopen64(TYPES, "r"), "RoCE v2\n");
	check_text(fdopen(open(TYPES, O_RDONLY), "r"), "RoCE v2\n");
	check_text(fdopen(open64(TYPES, O_RDONLY), "r"), "RoCE v2\n");
	assert_int_equal(access(TYPES, R_OK), 0);
	check_interface();
	assert_int_equal(access("/sys/class/infiniband/rocade0/none", R_OK), -1);
	assert_int_equal(errno, ENOENT);
	assert_int_equal(stat(TYPES, &st), 0);
	assert_int_equal(st.st_size, 8);
	assert_int_equal(stat64(TYPES, &st64), 0);
	assert_int_equal(st64.st_size, 8);
	assert_int_equal(__xstat(STAT_VERSION, TYPES, &st), 0);
	assert_int_equal(__xstat64(STAT_VERSION, TYPES, &st64), 0);
	assert_int_equal(stat(RDMA_CM, &st), 0);
	assert_true(S_ISCHR(st.st_mode));
	/* Other files are not replaced; a mode is passed on. */
	fd = open("/tmp", O_TMPFILE | O_RDWR, 0640);
	if (fd >= 0) {
		assert_int_equal(fstat(fd, &st), 0);
		assert_int_equal(st.st_mode & 0777 & ~0640, 0);
		assert_int_equal(write(fd, "text", 4), 4);
		assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
		assert_int_equal(read(fd, text, sizeof(text)), 4);
		assert_string_equal(text, "text");
		close(fd);
	}
	assert_null(fopen("/nonexistent/infiniband/file", "r"));
	assert_int_equal(stat("relative/infiniband/", &st), -1);
	fixture_close(&f);
}
