/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The libc functions on descriptors that act differently on an RDMA-CM channel: write()
 * is a command, fstat() reports a character device, and dup() and its variants create
 * another descriptor of the channel. write() to a socket of netlink for RDMA is a query, and a duplicate of
 * that is such a socket, too. No code here may call write().
 */
#undef _FILE_OFFSET_BITS
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

#include "preload/preload_channel.h"
#include "preload/next.h"
#include "preload/served.h"
#include "verbs/export.h"

/* Used by glibc before 2.33, and by programs built with it. */
int __fxstat(int version, int fd, struct stat *st);
int __fxstat64(int version, int fd, struct stat64 *st);

EXPORT ssize_t
write(int fd, const void *buf, size_t len)
{
	ssize_t rc = channel_write(fd, buf, len);

	if (rc == -2 && served_by.netlink_write != NULL)
		rc = served_by.netlink_write(fd, buf, len);
	return rc != -2 ? rc : NEXT_FUNCTION(write)(fd, buf, len);
}

NEXT_FIND(dup)
NEXT_FIND(dup2)
NEXT_FIND(dup3)
NEXT_FIND(fcntl)
NEXT_FIND(fcntl64)

static int
duplicated(int from, int to)
{
	if (to >= 0 && served_by.netlink_dup != NULL)
		served_by.netlink_dup(from, to);
	return channel_dup(from, to);
}

EXPORT int
dup(int fd)
{
	return duplicated(fd, next_dup()(fd));
}

EXPORT int
dup2(int fd, int to)
{
	return duplicated(fd, next_dup2()(fd, to));
}

EXPORT int
dup3(int fd, int to, int flags)
{
	return duplicated(fd, next_dup3()(fd, to, flags));
}

/* The argument of fcntl() is a number, a pointer or absent. A pointer is as wide as any
 * of these. */
#define FCNTL(name, fd, cmd)                                                             \
	__extension__({                                                                  \
		va_list args_;                                                           \
		void *arg_;                                                              \
		int rc_;                                                                 \
                                                                                         \
		va_start(args_, cmd);                                                    \
		arg_ = va_arg(args_, void *);                                            \
		va_end(args_);                                                           \
		rc_ = next_##name()(fd, cmd, arg_);                                      \
		(cmd) == F_DUPFD || (cmd) == F_DUPFD_CLOEXEC ? duplicated(fd, rc_)       \
							     : rc_;                      \
	})

EXPORT int
fcntl(int fd, int cmd, ...)
{
	return FCNTL(fcntl, fd, cmd);
}

EXPORT int
fcntl64(int fd, int cmd, ...)
{
	return FCNTL(fcntl64, fd, cmd);
}

#define FSTAT(name, fd, st, call)                                                        \
	__extension__({                                                                  \
		__typeof__(&name) real_ = NEXT_FUNCTION(name);                           \
		int rc_ = -1;                                                            \
                                                                                         \
		if (real_ == NULL)                                                       \
			errno = ENOSYS;                                                  \
		else                                                                     \
			rc_ = real_ call;                                                \
		if (rc_ == 0 && channel_is(fd)) {                                        \
			(st)->st_mode = S_IFCHR | 0666;                                  \
			(st)->st_rdev = channel_device();                                \
		}                                                                        \
		rc_;                                                                     \
	})

EXPORT int
fstat(int fd, struct stat *st)
{
	return FSTAT(fstat, fd, st, (fd, st));
}

EXPORT int
fstat64(int fd, struct stat64 *st)
{
	return FSTAT(fstat64, fd, st, (fd, st));
}

EXPORT int
__fxstat(int version, int fd, struct stat *st)
{
	return FSTAT(__fxstat, fd, st, (version, fd, st));
}

EXPORT int
__fxstat64(int version, int fd, struct stat64 *st)
{
	return FSTAT(__fxstat64, fd, st, (version, fd, st));
}
