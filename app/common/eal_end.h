/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The end of EAL in a program that ends, too. rte_eal_cleanup() of DPDK 22.11 wakes EAL's
 * interrupt thread (it takes the alarms' source away), and unmaps the memory in which that then
 * looks up the sources left, of which net_memif leaves its listening socket behind: one exit in
 * thirty is a segmentation fault on a busy machine. The thread is given time to be done with what
 * closing the ports woke it for; and where there are no hugepages, whose files cleaning up
 * removes, the end of the process gives back all there is.
 */
#ifndef ROCADE_COMMON_EAL_END_H
#define ROCADE_COMMON_EAL_END_H

#include <unistd.h>

#include <rte_eal.h>

#define EAL_END_WAIT_US 50000

/* All ports are closed; main() returns next. */
static inline void
eal_end(void)
{
	if (!rte_eal_has_hugepages())
		return;
	usleep(EAL_END_WAIT_US);
	rte_eal_cleanup();
}

#endif
