/* SPDX-License-Identifier: BSD-3-Clause */
/* The libc functions that open a file: those of a device have the present text, and the node of RDMA-CM
 * is a channel. All other paths go on to the next library that has the function. */
/* open() and open64() are different functions here. */
#undef _FILE_OFFSET_BITS
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "preload/preload_channel.h"
#include "preload/next.h"
#include "preload/paths.h"
#include "preload/served.h"
#include "verbs/export.h"

/* Called in place of open() and its variants if _FORTIFY_SOURCE is set. */
int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);
int __openat_2(int dirfd, const char *path, int flags);
int __openat64_2(int dirfd, const char *path, int flags);

NEXT_FIND(openat)
NEXT_FIND(openat64)
NEXT_FIND(fopen)
NEXT_FIND(fopen64)
NEXT_FIND(freopen)
NEXT_FIND(freopen64)

static bool
writes(int flags)
{
	return (flags & O_ACCMODE) != O_RDONLY || (flags & (O_CREAT | O_TRUNC)) != 0;
}

/* sysfs makes no files, and these are read-only for root, too. */
static bool
is_refused(int dirfd, const char *path)
{
	if (path[0] == '/' ? !path_is_in_tree(path) : !path_folder_in_tree(dirfd))
		return false;
	errno = EACCES;
	return true;
}

/* A file of the tree is empty where read(2) of the kernel's gives EINVAL. That of an epoll set does, too: such a
 * descriptor takes the place of the file's. */
static void
unreadable_replace(int fd, const char *path, int dirfd)
{
	struct stat st;
	int flags, other;

	if (fd < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size != 0 ||
		(path[0] == '/' ? !path_is_in_tree(path) : !path_folder_in_tree(dirfd)))
		return;
	flags = fcntl(fd, F_GETFD);
	other = epoll_create1(EPOLL_CLOEXEC);
	if (other < 0)
		return;
	(void)syscall(SYS_dup3, other, fd, (flags & FD_CLOEXEC) != 0 ? O_CLOEXEC : 0);
	close(other);
}

static WITH_BUFFER int
path_open_served(
	__typeof__(&openat) next, int dirfd, const char *path, int flags, mode_t mode)
{
	struct path_buf buf;
	int fd = -2;

	path = path_serve_read(dirfd, path, &buf);
	if (strcmp(path, CHANNEL_PATH) == 0)
		fd = channel_open(flags);
	if (fd != -2) /* without a server it is the kernel's file, if there is one */
		return fd;
	if (writes(flags) && is_refused(dirfd, path))
		return -1;
	fd = next(dirfd, path, flags, mode);
	unreadable_replace(fd, path, dirfd);
	return fd;
}

static int
path_open(__typeof__(&openat) next, int dirfd, const char *path, int flags, mode_t mode)
{
	if (served_by.check(path)) {
		errno = ENOENT;
		return -1;
	}
	return path_may_be_opened(dirfd, path, writes(flags))
		       ? path_open_served(next, dirfd, path, flags, mode)
		       : next(dirfd, path, flags, mode);
}

/* The third argument of open(), if there is one. */
#define MODE_READ(flags, mode)                                                           \
	do {                                                                             \
		va_list args_;                                                           \
                                                                                         \
		va_start(args_, flags);                                                  \
		if (((flags)&O_CREAT) != 0 || ((flags)&O_TMPFILE) == O_TMPFILE)          \
			(mode) = va_arg(args_, mode_t);                                  \
		va_end(args_);                                                           \
	} while (0)

EXPORT int
open(const char *path, int flags, ...)
{
	mode_t mode = 0;

	MODE_READ(flags, mode);
	return path_open(next_openat(), AT_FDCWD, path, flags, mode);
}

EXPORT int
open64(const char *path, int flags, ...)
{
	mode_t mode = 0;

	MODE_READ(flags, mode);
	return path_open(next_openat64(), AT_FDCWD, path, flags, mode);
}

EXPORT int
openat(int dirfd, const char *path, int flags, ...)
{
	mode_t mode = 0;

	MODE_READ(flags, mode);
	return path_open(next_openat(), dirfd, path, flags, mode);
}

EXPORT int
openat64(int dirfd, const char *path, int flags, ...)
{
	mode_t mode = 0;

	MODE_READ(flags, mode);
	return path_open(next_openat64(), dirfd, path, flags, mode);
}

EXPORT int
__open_2(const char *path, int flags)
{
	return path_open(next_openat(), AT_FDCWD, path, flags, 0);
}

EXPORT int
__open64_2(const char *path, int flags)
{
	return path_open(next_openat64(), AT_FDCWD, path, flags, 0);
}

EXPORT int
__openat_2(int dirfd, const char *path, int flags)
{
	return path_open(next_openat(), dirfd, path, flags, 0);
}

EXPORT int
__openat64_2(int dirfd, const char *path, int flags)
{
	return path_open(next_openat64(), dirfd, path, flags, 0);
}

EXPORT int
creat(const char *path, mode_t mode)
{
	return path_open(
		next_openat(), AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC, mode);
}

EXPORT int
creat64(const char *path, mode_t mode)
{
	return path_open(
		next_openat64(), AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC, mode);
}

/* name##_served() has the buffer: see WITH_BUFFER. */
#define STREAM_OPEN(name, parameters, arguments)                                         \
	static WITH_BUFFER FILE *name##_served parameters                                \
	{                                                                                \
		struct path_buf buf;                                                     \
		FILE *file;                                                              \
                                                                                         \
		path = path_serve_read(AT_FDCWD, path, &buf);                            \
		if (stream_writes(mode) && is_refused(AT_FDCWD, path))                   \
			return NULL;                                                     \
		file = next_##name() arguments;                                          \
		if (file != NULL)                                                        \
			unreadable_replace(fileno(file), path, AT_FDCWD);                \
		return file;                                                             \
	}                                                                                \
                                                                                         \
	EXPORT FILE *name parameters                                                     \
	{                                                                                \
		return path_may_be_opened(AT_FDCWD, path, stream_writes(mode))           \
			       ? name##_served arguments                                 \
			       : next_##name() arguments;                                \
	}

static bool
stream_writes(const char *mode)
{
	return mode[0] != 'r' || strchr(mode, '+') != NULL;
}

STREAM_OPEN(fopen, (const char *path, const char *mode), (path, mode))
STREAM_OPEN(fopen64, (const char *path, const char *mode), (path, mode))
STREAM_OPEN(
	freopen, (const char *path, const char *mode, FILE *stream), (path, mode, stream))
STREAM_OPEN(freopen64, (const char *path, const char *mode, FILE *stream),
	(path, mode, stream))
