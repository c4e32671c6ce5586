/* SPDX-License-Identifier: BSD-3-Clause */
/* Control path. */
#include <fcntl.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error_fd.h"

/* Above those that a program expects to get next. Under a lower RLIMIT_NOFILE half of it, a quarter, and so on. */
#define FD_LEAST 256

static struct {
	bool tried, known;
	int fd;
	dev_t dev; /* of standard error, once it is known */
	ino_t ino;
} error_kept = {.fd = -1};

static bool
error_is_file(const struct stat *st)
{
	return st->st_dev == error_kept.dev && st->st_ino == error_kept.ino;
}

void
error_keep(void)
{
	struct stat st;
	int fd = -1;

	if (__atomic_exchange_n(&error_kept.tried, true, __ATOMIC_RELAXED) ||
		fstat(STDERR_FILENO, &st) != 0 ||
		(error_kept.known && !error_is_file(&st)))
		return;
	for (int least = FD_LEAST; fd < 0 && least > STDERR_FILENO; least /= 2)
		fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, least);
	error_kept.dev = st.st_dev;
	error_kept.ino = st.st_ino;
	error_kept.known = true;
	__atomic_store_n(&error_kept.fd, fd, __ATOMIC_RELEASE);
}

int
error_fd(void)
{
	/* Pairs with the release in error_keep(). */
	int fd = __atomic_load_n(&error_kept.fd, __ATOMIC_ACQUIRE);
	struct stat st;

	return fd >= 0 && fstat(fd, &st) == 0 && error_is_file(&st) ? fd : -1;
}

void
error_leave(void)
{
	if (error_fd() >= 0)
		close(error_kept.fd);
	error_kept.fd = -1;
	error_kept.tried = false;
}
