/* SPDX-License-Identifier: BSD-3-Clause */
/* RLIMIT_FSIZE: what makes a file longer than that raises SIGXFSZ, which ends the program. */
#ifndef ROCADE_BASE_FILE_LIMIT_H
#define ROCADE_BASE_FILE_LIMIT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/resource.h>

/* Returns whether this process may make a file of this length. */
static inline bool
file_length_allowed(size_t length)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_FSIZE, &limit) == 0 &&
	       (limit.rlim_cur == RLIM_INFINITY || length <= limit.rlim_cur);
}

#endif
