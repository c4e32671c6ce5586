/* SPDX-License-Identifier: BSD-3-Clause */
/* The libc functions of served_calls.def. All other paths go on to the next library that has the
 * function. */
/* stat() and stat64() are different functions here. */
#undef _FILE_OFFSET_BITS
#include <dirent.h>
#include <errno.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "preload/next.h"
#include "preload/paths.h"
#include "verbs/export.h"

int __xstat(int version, const char *path, struct stat *st);
int __xstat64(int version, const char *path, struct stat64 *st);
int __lxstat(int version, const char *path, struct stat *st);
int __lxstat64(int version, const char *path, struct stat64 *st);
int __fxstatat(int version, int dirfd, const char *path, struct stat *st, int flags);
int __fxstatat64(int version, int dirfd, const char *path, struct stat64 *st, int flags);

#define CALL(type, failed, name, parameters, arguments)                                  \
	static __typeof__(&name) next_##name(void)                                       \
	{                                                                                \
		return NEXT_FUNCTION(name);                                              \
	}
#include "preload/served_calls.def"

#define CALL(type, failed, name, parameters, arguments)                                  \
	static WITH_BUFFER type name##_served parameters                                 \
	{                                                                                \
		struct path_buf buf;                                                     \
                                                                                         \
		path = path_serve(path, &buf);                                           \
		return next_##name() arguments;                                          \
	}                                                                                \
                                                                                         \
	EXPORT type name parameters                                                      \
	{                                                                                \
		__typeof__(&name) real = next_##name();                                  \
                                                                                         \
		if (real == NULL) {                                                      \
			errno = ENOSYS;                                                  \
			return failed;                                                   \
		}                                                                        \
		if (path_may_be_served(path))                                            \
			return name##_served arguments;                                  \
		return real arguments;                                                   \
	}
#include "preload/served_calls.def"

/* Children of fork() and vfork() call some of these functions before exec(), where the dynamic loader
 * must not be called. */
static __attribute__((constructor)) void
calls_find(void)
{
#define CALL(type, failed, name, parameters, arguments) (void)next_##name();
#include "preload/served_calls.def"
}
