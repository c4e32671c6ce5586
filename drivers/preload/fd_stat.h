/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether a descriptor still refers to what it once did: close() is not intercepted. */
#ifndef ROCADE_PRELOAD_FD_STAT_H
#define ROCADE_PRELOAD_FD_STAT_H

#include <fcntl.h>
#include <stdbool.h>
#include <sys/stat.h>

#define FD_NUMBERS 65536 /* only descriptors below this can be Rocade's */

/* fstat() itself is intercepted. */
static inline bool
fd_stat(int fd, struct stat *st)
{
	return fstatat(fd, "", st, AT_EMPTY_PATH) == 0;
}

#endif
