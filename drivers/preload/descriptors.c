/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The functions of libc on a descriptor that mean something else for a channel of
 * RDMA-CM: write() is a command, and fstat() says that it is a character device. Nothing
 * in here may call write().
 */
#undef _FILE_OFFSET_BITS
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "preload/channel.h"
#include "preload/next.h"
#include "verbs/export.h"

/* Of glibc before 2.33, and of programs that were built with it. */
int
__fxstat(int version, int fd, struct stat *st);
int
__fxstat64(int version, int fd, struct stat64 *st);

EXPORT ssize_t
write(int fd, const void *buf, size_t len)
{
	ssize_t rc = channel_write(fd, buf, len);

	return rc != -2 ? rc : NEXT(write)(fd, buf, len);
}

/* Where the kernel has one too, librdmacm expects its number. */
static dev_t
device_number(void)
{
	struct stat st;
	int err = errno;
	bool there = fstatat(AT_FDCWD, CHANNEL_PATH, &st, 0) == 0 && S_ISCHR(st.st_mode);

	errno = err;
	return there ? st.st_rdev : 0;
}

#define FSTAT(name, fd, st, call)                                                        \
	__extension__({                                                                  \
		__typeof__(&name) real_ = NEXT(name);                                    \
		int rc_ = -1;                                                            \
                                                                                         \
		if (real_ == NULL)                                                       \
			errno = ENOSYS;                                                  \
		else                                                                     \
			rc_ = real_ call;                                                \
		if (rc_ == 0 && channel_is(fd)) {                                        \
			(st)->st_mode = S_IFCHR | 0666;                                  \
			(st)->st_rdev = device_number();                                 \
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
