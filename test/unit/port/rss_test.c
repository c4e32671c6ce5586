/* SPDX-License-Identifier: BSD-3-Clause */
/* RSS: the hash of the known vectors, and what of a NIC's setting must be known. */
#include <arpa/inet.h>
#include <string.h>

#include "case.h"
#include "port/gid.h"
#include "port/rss.h"

/* The key and the vectors by which vendors check their NICs. */
static const uint8_t key[40] = {0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41,
	0x67, 0x25, 0x3d, 0x43, 0xa3, 0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b,
	0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30, 0xf2, 0x0c, 0x6a, 0x42, 0xb7,
	0x3b, 0xbe, 0xac, 0x01, 0xfa};

static const struct {
	const char *src, *dst;
	uint16_t sport, dport;
	uint32_t hash;
} vectors[] = {
	{"66.9.149.187", "161.142.100.80", 2794, 1766, 0x51ccc178},
	{"199.92.111.2", "65.69.140.83", 14230, 4739, 0xc626b0ea},
	{"24.19.198.95", "12.22.207.184", 12898, 38024, 0x5c2b394a},
	{"3ffe:2501:200:1fff::7", "3ffe:2501:200:3::1", 2794, 1766, 0x40207d3d},
};

static struct rss rss;
static struct port_flow flow;

/* Entry i of the table is i: the queue shows the low bits of the hash. */
static int
setup(void **state)
{
	rss = (struct rss){.key_bytes = sizeof(key), .table_size = RSS_TABLE_MAX};
	memcpy(rss.key, key, sizeof(key));
	for (uint16_t i = 0; i < RSS_TABLE_MAX; i++)
		rss.table[i] = i;
	return 0;
}

static void
flow_fill(unsigned i)
{
	assert_int_equal(gid_parse(vectors[i].src, flow.src, NULL), 0);
	assert_int_equal(gid_parse(vectors[i].dst, flow.dst, NULL), 0);
	flow.sport = vectors[i].sport;
	flow.dport = vectors[i].dport;
}

TEST_WITH(known_vectors, setup, NULL)
{
	for (unsigned i = 0; i < RTE_DIM(vectors); i++) {
		setup(state);
		flow_fill(i);
		rss.ipv4_udp = rss.ipv6_udp = true;
		assert_int_equal(rss_queue(&rss, &flow), vectors[i].hash % RSS_TABLE_MAX);
		/* A table need not have a power of two of entries. */
		rss.table_size = 100;
		assert_int_equal(rss_queue(&rss, &flow), vectors[i].hash % 100);
	}
}

TEST_WITH(what_is_not_known, setup, NULL)
{
	flow_fill(0);
	assert_int_equal(rss_queue(&rss, &flow), -1); /* no fields */
	rss.ipv6_udp = true;
	assert_int_equal(rss_queue(&rss, &flow), -1); /* only those of IPv6 */
	rss.ipv4_udp = true;
	rss.table_size = 0;
	assert_int_equal(rss_queue(&rss, &flow), -1); /* no table */
	/* The key must have 32 bits more than the fields. */
	rss.table_size = RSS_TABLE_MAX;
	rss.key_bytes = 15;
	assert_int_equal(rss_queue(&rss, &flow), -1);
	rss.key_bytes = 16;
	assert_int_equal(rss_queue(&rss, &flow), vectors[0].hash % RSS_TABLE_MAX);
	flow_fill(3);
	rss.key_bytes = 39;
	assert_int_equal(rss_queue(&rss, &flow), -1);
}
