/* SPDX-License-Identifier: BSD-3-Clause */
/* The state of the daemon's device, for a process that need not have opened it. */
#ifndef ROCADE_SHM_FACTS_H
#define ROCADE_SHM_FACTS_H

#include "verbs/device_facts.h"
#include "switch/proto.h"

uint64_t shm_device_guid(const struct sw_device *device);

/* Asks the daemon at the socket (NULL: that of clients). The counters, if they are wanted, are sums over the
 * clients that the caller may see and those that have ended. again: the caller keeps what it has if the
 * daemon does not answer soon. Returns 0 or -errno, as session_open(). */
int shm_facts(const char *socket, bool counters, bool again, struct device_facts *out);

#endif
