/* SPDX-License-Identifier: BSD-3-Clause */
/* The next hops that a thread remembers. */
#include <stdlib.h>
#include <string.h>

#include "case.h"
#include "switch/sw_hop.h"

#define HOSTS 64

static struct sw_hop
hop_to(uint8_t host, uint32_t generation)
{
	struct sw_hop hop = {
		.known = true, .generation = generation, .mac = {2, 0, 0, 0, 0, host}};

	hop.dgid[10] = hop.dgid[11] = 0xff;
	hop.dgid[12] = 192;
	hop.dgid[15] = host;
	return hop;
}

TEST(hop_is_found_for_its_generation)
{
	static struct sw_thread t;
	struct sw_hop hop = hop_to(7, 3), other = hop_to(8, 3);
	uint8_t mac[6] = {0};

	assert_false(sw_hop_find(&t, hop.dgid, 0, mac));
	sw_hop_set(&t, &hop);
	assert_true(sw_hop_find(&t, hop.dgid, 3, mac));
	assert_memory_equal(mac, hop.mac, 6);
	assert_false(sw_hop_find(&t, hop.dgid, 4, mac));
	assert_false(sw_hop_find(&t, other.dgid, 3, mac));
	/* Another address with the same end, which is at the same place. */
	other = hop;
	other.dgid[0] = 0x20;
	assert_false(sw_hop_find(&t, other.dgid, 3, mac));
	sw_hop_set(&t, &other);
	assert_true(sw_hop_find(&t, other.dgid, 3, mac));
	assert_false(sw_hop_find(&t, hop.dgid, 3, mac));
}

/* The hosts of a small subnet do not share places. */
TEST(neighbouring_hosts_are_all_remembered)
{
	static struct sw_thread t;
	unsigned found = 0;
	uint8_t mac[6];

	for (unsigned i = 0; i < HOSTS; i++) {
		struct sw_hop hop = hop_to((uint8_t)i, 1);

		sw_hop_set(&t, &hop);
	}
	for (unsigned i = 0; i < HOSTS; i++) {
		struct sw_hop hop = hop_to((uint8_t)i, 1);

		found += sw_hop_find(&t, hop.dgid, 1, mac) && mac[5] == i;
	}
	assert_in_range(found, HOSTS * 3 / 4, HOSTS);
}
