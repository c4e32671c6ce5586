/* SPDX-License-Identifier: BSD-3-Clause */
/* Control path. Whether a port can be opened in this process of DPDK. */
#ifndef ROCADE_ETHDEV_EAL_CHECK_H
#define ROCADE_ETHDEV_EAL_CHECK_H

#include <errno.h>

#include <rte_eal.h>
#include <rte_lcore.h>

#include "verbs/export.h"

/* Returns 0, or an errno value with its text for rocade_error(). */
static inline int
eal_check(void)
{
	if (rte_lcore_count() == 0)
		return rocade_fail(
			EINVAL, "EAL is not initialised: call rte_eal_init() first");
	/* The state of a port of Rocade, and its engines, are memory of one process. */
	if (rte_eal_process_type() == RTE_PROC_SECONDARY)
		return rocade_fail(EOPNOTSUPP,
			"EAL: this is a secondary process of DPDK (--proc-type), and only the "
			"primary process can open a port");
	return 0;
}

#endif
