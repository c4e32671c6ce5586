/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ROCADE_TEST_FAKE_H
#define ROCADE_TEST_FAKE_H

#include <infiniband/verbs.h>

struct fake {
	int lists, frees, freed_devices, names, closes, pds, ports;
	unsigned acks;
	int newer;       /* calls of verbs of rdma-core 59 to 65 */
	int seen_inside; /* devices that the library sees in its own list */
};
extern struct fake fake;

/* Defined in a library named like a DPDK driver. Returns the number of devices it
 * sees. */
int fake_probe(const char **first);

#endif
