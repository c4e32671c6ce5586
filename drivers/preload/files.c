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

/* Children of fork() and vfork() call these functions before exec(), where the dynamic
 * loader must not be called. So the constructor below looks them up. */
#define FIND(name)                                                                       \
	static __typeof__(&name) next_##name(void)                                       \
	{                                                                                \
		return NEXT_FUNCTION(name);                                              \
	}
FIND(openat)
FIND(openat64)
FIND(fopen)
FIND(fopen64)
FIND(freopen)
FIND(freopen64)
#undef FIND

static __attribute__((constructor)) void
next_opens_find(void)
{
	(void)next_openat();
	(void)next_openat64();
	(void)next_fopen();
	(void)next_fopen64();
	(void)next_freopen();
	(void)next_freopen64();
}

/* sysfs makes no files, and these are read-only for root, too. */
static bool
is_refused(const char *path, int flags)
{
	if (((flags & O_ACCMODE) == O_RDONLY && (flags & (O_CREAT | O_TRUNC)) == 0) ||
		!path_is_in_tree(path))
		return false;
	errno = EACCES;
	return true;
}

static int
path_open(__typeof__(&openat) next, int dirfd, const char *path, int flags, mode_t mode)
{
	struct path_buf buf;
	int fd = -2;

	if (served_by.check(path)) {
		errno = ENOENT;
		return -1;
	}
	path = path_serve_read(dirfd, path, &buf);
	if (path != NULL && strcmp(path, CHANNEL_PATH) == 0)
		fd = channel_open(flags);
	if (fd != -2) /* without a server it is the kernel's file, if there is one */
		return fd;
	return is_refused(path, flags) ? -1 : next(dirfd, path, flags, mode);
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

#define STREAM_OPEN(next, path, mode, arguments)                                         \
	__extension__({                                                                  \
		struct path_buf buf_;                                                    \
		const char *mode_ = (mode);                                              \
                                                                                         \
		path = path_serve_read(AT_FDCWD, path, &buf_);                           \
		is_refused(path, mode_[0] != 'r' || strchr(mode_, '+') ? O_RDWR : 0)     \
			? NULL                                                           \
			: (next)arguments;                                               \
	})

EXPORT FILE *
fopen(const char *path, const char *mode)
{
	return STREAM_OPEN(next_fopen(), path, mode, (path, mode));
}

EXPORT FILE *
fopen64(const char *path, const char *mode)
{
	return STREAM_OPEN(next_fopen64(), path, mode, (path, mode));
}

EXPORT FILE *
freopen(const char *path, const char *mode, FILE *stream)
{
	return STREAM_OPEN(next_freopen(), path, mode, (path, mode, stream));
}

EXPORT FILE *
freopen64(const char *path, const char *mode, FILE *stream)
{
	return STREAM_OPEN(next_freopen64(), path, mode, (path, mode, stream));
}
