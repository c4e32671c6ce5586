/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ending EAL in a program that then exits. rte_eal_cleanup() of DPDK 22.11 removes the
 * source of the alarms, which wakes EAL's interrupt thread, and then unmaps the memory in
 * which that thread looks up the remaining sources. net_memif leaves its listening socket
 * registered, so on a busy machine one exit in thirty is a segmentation fault. The wait
 * gives the interrupt thread time to finish the work that closing the ports woke it for.
 *
 * Without hugepages the cleanup is skipped: it removes hugepage files, and the end of the
 * process frees everything else.
 */
#ifndef ROCADE_COMMON_EAL_END_H
#define ROCADE_COMMON_EAL_END_H

#include <unistd.h>

#include <rte_eal.h>

#define EAL_END_WAIT_US 50000

/* Call after all ports are closed, immediately before main() returns. */
static inline void
eal_end(void)
{
	if (!rte_eal_has_hugepages())
		return;
	usleep(EAL_END_WAIT_US);
	rte_eal_cleanup();
}

#endif
