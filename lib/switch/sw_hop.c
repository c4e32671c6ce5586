/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
#include <string.h>

#include "switch/sw_hop.h"

/* Hosts of a network differ in the last bytes. Addresses that share a place only cost their
 * senders the way through thread 0. */
static uint32_t
place_of(const uint8_t dgid[16])
{
	uint32_t last;

	memcpy(&last, dgid + 12, sizeof(last));
	last *= UINT32_C(2654435761); /* Fibonacci hashing */
	return last / (UINT32_MAX / SW_HOPS + 1);
}

bool
sw_hop_find(const struct sw_thread *t, const uint8_t dgid[16], uint32_t generation,
	uint8_t mac[6])
{
	const struct sw_hop *hop = &t->hops[place_of(dgid)];

	if (!hop->known || hop->generation != generation ||
		memcmp(hop->dgid, dgid, 16) != 0)
		return false;
	memcpy(mac, hop->mac, 6);
	return true;
}

void
sw_hop_set(struct sw_thread *t, const struct sw_hop *hop)
{
	t->hops[place_of(hop->dgid)] = *hop;
}
