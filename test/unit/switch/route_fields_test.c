/* SPDX-License-Identifier: BSD-3-Clause */
/* Header fields that a client may not send, although the packet is complete. */
#include "switch_fixture.h"

#include <rte_ether.h>
#include <rte_ip.h>

/* An IPv6 packet with the same addresses as GIDs would pass for the IPv4 packet that QP
 * may send. */
TEST(mapped_addresses_are_dropped)
{
	struct switch_fixture b;
	struct frame_spec f;
	struct rte_ipv6_hdr *ip;
	uint16_t len;

	fixture_open(&b);
	f = frame_spec_valid(&b);
	f.sgid[0] = f.dgid[0] = 0x20; /* so that an IPv6 packet is built */
	len = frame_spec_build(region_tx_buf(&b.c[0].region, 0), &f);
	ip = (struct rte_ipv6_hdr *)(region_tx_buf(&b.c[0].region, 0) +
				     sizeof(struct rte_ether_hdr));
	memcpy(&ip->src_addr, b.addr, 16);
	memcpy(&ip->dst_addr, b.addr, 16);
	client_post(&b.c[0], 0, b.c[0].qpn, len);
	sw_run(b.sw, b.now);
	assert_int_equal(b.c[0].client->stats.drop_mapped_address, 1);
	assert_int_equal(b.c[0].client->stats.drop_malformed, 0);
	assert_false(client_received(&b.c[1], NULL));
	fixture_close(&b);
}

/* Sends the frame with a changed byte. */
static void
changed_frame_send(
	struct switch_fixture *b, struct frame_spec *f, unsigned at, uint8_t byte)
{
	struct fixture_client *c = &b->c[0];
	uint8_t *to = region_tx_buf(&c->region, 0);
	uint16_t len = frame_spec_build(to, f);

	to[at] = byte;
	client_post(c, 0, c->qpn, len);
	sw_run(b->sw, b->now);
}

/* Fields that a client's library always sets rightly. */
TEST(fields_of_others_are_dropped)
{
	enum { BTH = 14 + 20 + 8, TTL = 14 + 8, HOP_LIMIT = 14 + 7 };
	struct switch_fixture b;
	struct sw_stats *stats;
	struct frame_spec f;

	fixture_open(&b);
	stats = &b.c[0].client->stats;
	f = frame_spec_valid(&b);
	changed_frame_send(&b, &f, BTH + 2, 0x7e); /* P_Key 0x7eff */
	changed_frame_send(&b, &f, BTH + 3, 0);
	assert_int_equal(stats->drop_pkey, 2);
	changed_frame_send(&b, &f, TTL, 0);
	assert_int_equal(stats->drop_malformed, 1);
	f.opcode = OPCODE_UD_SEND_ONLY;
	f.deth_qpn = b.c[0].qpn;
	changed_frame_send(&b, &f, BTH + 12, 0x80); /* Q_Key */
	assert_int_equal(stats->drop_qkey, 1);
	b.c[0].client->privileged = true;
	changed_frame_send(&b, &f, BTH + 12, 0x80);
	assert_int_equal(stats->drop_qkey, 1);
	assert_true(client_received(&b.c[1], NULL));
	b.c[0].client->privileged = false;
	memset(f.sgid, 0x20, 16);
	memset(f.dgid, 0x20, 16);
	changed_frame_send(&b, &f, HOP_LIMIT, 0);
	assert_int_equal(stats->drop_malformed, 2);
	assert_false(client_received(&b.c[1], NULL));
	/* Limited membership, and other keys, are fine. */
	f = frame_spec_valid(&b);
	changed_frame_send(&b, &f, BTH + 2, 0x7f);
	assert_true(client_received(&b.c[1], NULL));
	f.opcode = OPCODE_UD_SEND_ONLY;
	f.deth_qpn = b.c[0].qpn;
	changed_frame_send(&b, &f, BTH + 12, 0x7f);
	assert_true(client_received(&b.c[1], NULL));
	fixture_close(&b);
}
