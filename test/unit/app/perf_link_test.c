/* SPDX-License-Identifier: BSD-3-Clause */
/* The files at --socket of rocade-perf. No client comes: poll() is one of the test. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <perf/link.h>

#include "case.h"

static char dir[32], path[64], other[64];
static struct conf conf = {.server = true, .socket = path};
static char err[ERR_MAX];
static bool client_comes;

int
poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = client_comes ? socket(AF_UNIX, SOCK_SEQPACKET, 0) : -1;

	(void)fds;
	(void)count;
	(void)timeout_ms;
	if (fd < 0)
		return 0;
	strcpy(addr.sun_path, path);
	assert_int_equal(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	close(fd);
	return 1;
}

static mode_t
mode_of(const char *file)
{
	struct stat st;

	return lstat(file, &st) == 0 ? st.st_mode & S_IFMT : 0;
}

static void
file_make(const char *file)
{
	FILE *to = fopen(file, "w");

	assert_non_null(to);
	fclose(to);
}

/* The socket of a server that has ended. */
static void
stale_socket_make(void)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);

	strcpy(addr.sun_path, path);
	assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	close(fd);
}

static int
before(void **state)
{
	strcpy(dir, "/tmp/rocade-test-XXXXXX");
	if (mkdtemp(dir) == NULL)
		return -1;
	snprintf(path, sizeof(path), "%s/socket", dir);
	snprintf(other, sizeof(other), "%s/other", dir);
	client_comes = false;
	return 0;
}

static int
after(void **state)
{
	unlink(path);
	unlink(other);
	return rmdir(dir);
}

TEST_WITH(a_file_is_not_replaced, before, after)
{
	int fd;

	file_make(path);
	assert_int_equal(link_open(&conf, &fd, err), -1);
	assert_int_equal(mode_of(path), S_IFREG);
	assert_non_null(strstr(err, path));
	assert_non_null(strstr(err, "no socket"));
	link_close(&conf, fd);
	assert_int_equal(mode_of(path), S_IFREG);
}

TEST_WITH(a_link_is_not_replaced, before, after)
{
	int fd;

	file_make(other);
	assert_int_equal(symlink(other, path), 0);
	assert_int_equal(link_open(&conf, &fd, err), -1);
	assert_int_equal(mode_of(path), S_IFLNK);
	assert_int_equal(mode_of(other), S_IFREG);
}

TEST_WITH(an_old_socket_is_replaced, before, after)
{
	int fd;

	stale_socket_make();
	client_comes = true;
	assert_int_equal(link_open(&conf, &fd, err), 0);
	assert_int_equal(mode_of(path), S_IFSOCK);
	link_close(&conf, fd);
	assert_int_equal(mode_of(path), 0);
}

TEST_WITH(a_socket_that_nobody_connects_is_removed, before, after)
{
	int fd;

	assert_int_equal(link_open(&conf, &fd, err), -1);
	assert_non_null(strstr(err, "cannot reach the client: Connection timed out"));
	assert_int_equal(mode_of(path), 0);
	link_close(&conf, fd);
}

TEST_WITH(a_file_in_place_of_the_socket_stays, before, after)
{
	int fd;

	client_comes = true;
	assert_int_equal(link_open(&conf, &fd, err), 0);
	assert_int_equal(unlink(path), 0);
	file_make(path);
	link_close(&conf, fd);
	assert_int_equal(mode_of(path), S_IFREG);
}
