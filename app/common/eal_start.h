/* SPDX-License-Identifier: BSD-3-Clause */
/* Starting EAL in a program with arguments for it. */
#ifndef ROCADE_COMMON_EAL_START_H
#define ROCADE_COMMON_EAL_START_H

#include <stdio.h>

#include <rte_eal.h>
#include <rte_errno.h>

/* Returns 0, or -1 after a message of the program. EAL keeps pointers into argv. */
static inline int
eal_start(const char *program, int argc, char **argv)
{
	if (rte_eal_init(argc, argv) >= 0)
		return 0;
	fprintf(stderr,
		"%s: cannot start EAL (%s); see its messages above. Use --no-huge without "
		"hugepages, --no-pci without a NIC\n",
		program, rte_strerror(rte_errno));
	return -1;
}

#endif
