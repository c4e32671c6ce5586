/* SPDX-License-Identifier: BSD-3-Clause */
/* Allocates the pages of a memfd: the first access to a missing one raises SIGBUS when there is no memory. */
#ifndef ROCADE_BASE_FD_FILL_H
#define ROCADE_BASE_FD_FILL_H

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>

#include "base/common.h"

#define FILL_PIECE (64 << 10) /* bytes allocated by a system call */

/* Allocates all pages of a file of this size, or returns a negative errno value. RLIMIT_FSIZE is for what
 * makes a file longer, such as ftruncate(2), so it does not count here. */
static inline int
fd_fill(int fd, size_t size)
{
	size_t at = 0;

	while (at < size) {
		size_t piece = RTE_MIN(size - at, (size_t)FILL_PIECE);

		/* A signal undoes the piece. */
		if (fallocate(fd, 0, (off_t)at, (off_t)piece) == 0)
			at += piece;
		else if (errno != EINTR)
			return -errno;
	}
	return 0;
}

#endif
