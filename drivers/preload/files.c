/* SPDX-License-Identifier: BSD-3-Clause */
/* The libc functions through which programs read the paths of a device: open(), fopen(),
 * stat(), lstat(), statx() and access() in all variants. All other paths go on to the next library
 * that has the function. */
/* open() and open64() are different functions here. */
#undef _FILE_OFFSET_BITS
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "preload/preload_channel.h"
#include "preload/next.h"
#include "preload/paths.h"
#include "preload/served.h"
#include "verbs/export.h"

/* Used by glibc before 2.33, and by programs built with it. */
int __xstat(int version, const char *path, struct stat *st);
int __xstat64(int version, const char *path, struct stat64 *st);

/* Calls the function on the replacement of the path, if there is one. Its value is
 * `none`, with ENOSYS, if no library has the function. */
#define CALL_REPLACED(none, name, path, call)                                            \
	__extension__({                                                                  \
		__typeof__(&name) real_ = NEXT_FUNCTION(name);                           \
		__typeof__(none) value_ = (none);                                        \
		struct path_served served_;                                              \
                                                                                         \
		if (real_ == NULL) {                                                     \
			errno = ENOSYS;                                                  \
		} else if (path_serve(path, &served_)) {                                 \
			path = served_.path;                                             \
			value_ = real_ call;                                             \
			path_done(&served_);                                             \
		} else {                                                                 \
			value_ = real_ call;                                             \
		}                                                                        \
		value_;                                                                  \
	})

static bool
is_channel_path(const char *path)
{
	return path != NULL && strcmp(path, CHANNEL_PATH) == 0;
}

/* Returns -2 if it is another path, or if there is no server of RDMA-CM. */
static int
open_channel(const char *path, int flags)
{
	if (served_by.check(path)) {
		errno = ENOENT;
		return -1;
	}
	return is_channel_path(path) ? channel_open(flags) : -2;
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
	int fd = open_channel(path, flags);
	mode_t mode = 0;

	if (fd != -2)
		return fd;
	MODE_READ(flags, mode);
	/* Without a server the kernel's file, if there is one. */
	if (is_channel_path(path))
		return NEXT_FUNCTION(open)(path, flags, mode);
	return CALL_REPLACED(-1, open, path, (path, flags, mode));
}

EXPORT int
open64(const char *path, int flags, ...)
{
	int fd = open_channel(path, flags);
	mode_t mode = 0;

	if (fd != -2)
		return fd;
	MODE_READ(flags, mode);
	if (is_channel_path(path))
		return NEXT_FUNCTION(open64)(path, flags, mode);
	return CALL_REPLACED(-1, open64, path, (path, flags, mode));
}

EXPORT FILE *
fopen(const char *path, const char *mode)
{
	return CALL_REPLACED((FILE *)NULL, fopen, path, (path, mode));
}

EXPORT FILE *
fopen64(const char *path, const char *mode)
{
	return CALL_REPLACED((FILE *)NULL, fopen64, path, (path, mode));
}

EXPORT int
access(const char *path, int mode)
{
	return CALL_REPLACED(-1, access, path, (path, mode));
}

EXPORT int
stat(const char *path, struct stat *st)
{
	return CALL_REPLACED(-1, stat, path, (path, st));
}

EXPORT int
stat64(const char *path, struct stat64 *st)
{
	return CALL_REPLACED(-1, stat64, path, (path, st));
}

EXPORT int
lstat(const char *path, struct stat *st)
{
	return CALL_REPLACED(-1, lstat, path, (path, st));
}

EXPORT int
lstat64(const char *path, struct stat64 *st)
{
	return CALL_REPLACED(-1, lstat64, path, (path, st));
}

EXPORT int
statx(int dirfd, const char *path, int flags, unsigned mask, struct statx *st)
{
	return CALL_REPLACED(-1, statx, path, (dirfd, path, flags, mask, st));
}

EXPORT int
__xstat(int version, const char *path, struct stat *st)
{
	return CALL_REPLACED(-1, __xstat, path, (version, path, st));
}

EXPORT int
__xstat64(int version, const char *path, struct stat64 *st)
{
	return CALL_REPLACED(-1, __xstat64, path, (version, path, st));
}
