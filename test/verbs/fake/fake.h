/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ROCADE_TEST_FAKE_H
#define ROCADE_TEST_FAKE_H

#include <infiniband/verbs.h>

struct fake {
	int lists, frees, freed_devices, names, closes, pds, ports;
	unsigned acks;
	int seen_inside; /* devices that the library finds when it asks itself */
};
extern struct fake fake;

/* In an object whose name is that of a DPDK driver: devices that it is shown. */
int fake_probe(const char **first);

#endif
