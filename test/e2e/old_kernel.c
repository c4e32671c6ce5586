/* SPDX-License-Identifier: BSD-3-Clause */
/* For rocaded, as LD_PRELOAD: a kernel before 6.16, which cannot refuse descriptors (SO_PASSRIGHTS). */
#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <sys/socket.h>

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif

int
setsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
	static int (*real)(int, int, int, const void *, socklen_t);

	if (level == SOL_SOCKET && name == SO_PASSRIGHTS) {
		errno = ENOPROTOOPT;
		return -1;
	}
	if (real == NULL)
		*(void **)&real = dlsym(RTLD_NEXT, "setsockopt");
	return real(fd, level, name, value, len);
}
