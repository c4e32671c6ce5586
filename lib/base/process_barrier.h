/* SPDX-License-Identifier: BSD-3-Clause */
/* membarrier(2): a full fence in each thread of the process, called by the one that does so rarely.
 * Where Dekker's pattern pairs it with a thread that does so often, that thread needs only the
 * compiler's fence. */
#ifndef ROCADE_BASE_PROCESS_BARRIER_H
#define ROCADE_BASE_PROCESS_BARRIER_H

#include <stdbool.h>

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

/* To be called before the first process_barrier(); more calls do nothing. The first one takes some
 * milliseconds if the process has several threads. Returns false where the kernel, or a filter of
 * system calls, has none. */
static inline bool
process_barrier_register(void)
{
	return syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) ==
	       0;
}

/* Returns whether all threads of the process have passed a full fence. */
static inline bool
process_barrier(void)
{
	return syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0;
}

#endif
