/* SPDX-License-Identifier: BSD-3-Clause */
#include <limits.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include "server_fixture.h"

#define CLIENTS 12 /* more than are fetched at a time */

static const struct sw_request info = {
	.magic = SW_PROTO_MAGIC, .version = SW_PROTO_VERSION, .type = SW_DEVICE_INFO};

static void
wake(int fd)
{
	const uint64_t one = 1;

	assert_int_equal(write(fd, &one, sizeof(one)), sizeof(one));
}

/* Returns the next source that is ready. */
static const struct fd_source *
next(struct fd_sets *sets)
{
	return fd_sets_next(sets);
}

TEST(requests_are_not_behind_wakes)
{
	struct fixture_client c[CLIENTS];
	struct server_fixture b;
	struct fd_sets *sets;
	int fd;

	fixture_open(&b, (struct rocade_daemon_conf){.size = 0});
	sets = &b.d->sets[0];
	for (unsigned i = 0; i < CLIENTS; i++)
		assert_int_equal(client_attach(&b, &c[i]), 0);
	fd = client_connect(&b);
	for (unsigned round = 0; round < 3; round++) {
		/* Wake-ups end the sleep, each time, and leave nothing to serve. */
		wake(c[round].fds[SW_FD_DAEMON_WAKE]);
		assert_false(fd_sets_wait(sets, NS_PER_SEC));
		assert_null(next(sets));
		/* The request comes after as many as there can be, and is next. */
		for (unsigned i = 0; i < CLIENTS; i++)
			wake(c[i].fds[SW_FD_DAEMON_WAKE]);
		assert_int_equal(send(fd, &info, sizeof(info), 0), sizeof(info));
		assert_true(fd_sets_wait(sets, NS_PER_SEC));
		assert_ptr_equal(next(sets)->conn, TAILQ_LAST(&b.d->conns, conns));
		daemon_handle_all(&b);
		while (fd_sets_wait(sets, 1))
			assert_null(next(sets));
	}
	close(fd);
	for (unsigned i = 0; i < CLIENTS; i++)
		client_detach(&b, &c[i]);
	daemon_handle_all(&b);
	fixture_close(&b);
}

/* The set for sleeping tells of each message once. */
TEST(sources_that_are_left_end_the_next_sleep)
{
	struct fd_source sources[2];
	struct fd_sets sets;
	int fds[2];

	assert_int_equal(fd_sets_open(&sets, true), 0);
	for (unsigned i = 0; i < 2; i++) {
		fds[i] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		assert_int_equal(
			fd_source_add(&sets, &sources[i], fds[i], FD_SOURCE_CLIENT, NULL),
			0);
		wake(fds[i]);
	}
	for (unsigned i = 0; i < 4; i++) {
		assert_true(fd_sets_wait(&sets, NS_PER_SEC));
		/* In turn, although both stay ready. */
		assert_ptr_equal(next(&sets), &sources[i % 2]);
	}
	/* A paused one is not served, and has its turn once it is resumed. */
	fd_source_pause(&sources[0], true);
	fd_source_close(&sources[1]);
	assert_null(next(&sets));
	assert_false(fd_sets_wait(&sets, 1));
	fd_source_pause(&sources[0], false);
	assert_true(fd_sets_wait(&sets, NS_PER_SEC));
	assert_ptr_equal(next(&sets), &sources[0]);
	fd_source_close(&sources[0]);
	fd_sets_close(&sets);
}

TEST(removed_source_is_in_no_set)
{
	struct fd_source source, again;
	struct fd_sets sets;
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

	assert_int_equal(fd_sets_open(&sets, true), 0);
	assert_int_equal(fd_source_add(&sets, &source, fd, FD_SOURCE_CLIENT, NULL), 0);
	assert_int_equal(
		fd_source_add(&sets, &again, fd, FD_SOURCE_CLIENT, NULL), -EEXIST);
	assert_int_equal(fd_source_remove(&again), -1);
	assert_int_equal(fd_source_remove(&source), fd);
	assert_int_equal(fd_source_remove(&source), -1);
	assert_int_equal(epoll_ctl(sets.sleep, EPOLL_CTL_DEL, fd, NULL), -1);
	assert_int_equal(epoll_ctl(sets.serve, EPOLL_CTL_DEL, fd, NULL), -1);
	/* One that cannot be served is not left in the set for sleeping. */
	close(sets.serve);
	sets.serve = -1;
	assert_int_equal(
		fd_source_add(&sets, &source, fd, FD_SOURCE_CLIENT, NULL), -EBADF);
	assert_int_equal(epoll_ctl(sets.sleep, EPOLL_CTL_DEL, fd, NULL), -1);
	close(fd);
	fd_sets_close(&sets);
}

static bool
is_epoll_set(const char *fd)
{
	char path[PATH_MAX], to[64];
	ssize_t len;

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%s", fd);
	len = readlink(path, to, sizeof(to) - 1);
	to[RTE_MAX(len, 0)] = '\0';
	return strcmp(to, "anon_inode:[eventpoll]") == 0;
}

/* Returns how many descriptors the set has. None may be an epoll set. */
static unsigned
set_check(const char *set)
{
	char path[PATH_MAX], line[256], fd[16];
	unsigned n = 0;
	FILE *file;

	(void)snprintf(path, sizeof(path), "/proc/self/fdinfo/%s", set);
	file = fopen(path, "r");
	assert_non_null(file);
	while (fgets(line, sizeof(line), file) != NULL) {
		if (sscanf(line, "tfd: %15s", fd) != 1)
			continue;
		assert_false(is_epoll_set(fd));
		n++;
	}
	assert_int_equal(fclose(file), 0);
	return n;
}

/* The kernel has one lock for such sets, and anyone can keep it. */
TEST(no_set_is_in_another)
{
	struct fixture_client c;
	struct server_fixture b;
	const struct dirent *entry;
	unsigned sets = 0, members = 0;
	DIR *dir;

	fixture_open(&b, (struct rocade_daemon_conf){.size = 0});
	assert_int_equal(client_attach(&b, &c), 0);
	dir = opendir("/proc/self/fd");
	assert_non_null(dir);
	while ((entry = readdir(dir)) != NULL) {
		if (!is_epoll_set(entry->d_name))
			continue;
		members += set_check(entry->d_name);
		sets++;
	}
	closedir(dir);
	assert_int_equal(sets, 2);
	/* Both have the stop event, the pipe, the timer, the listener, and the client's
	 * socket and process; one has its eventfd. */
	assert_int_equal(members, 2 * 6 + 1);
	client_detach(&b, &c);
	daemon_handle_all(&b);
	fixture_close(&b);
}
