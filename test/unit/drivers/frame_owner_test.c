/* SPDX-License-Identifier: BSD-3-Clause */
/* For whom a frame is on a port that Rocade shares with the application. */
#include <stdlib.h>
#include <string.h>

#include "base/common.h"
#include "case.h"
#include "ethdev/frame_owner.h"

#define OURS4 "192.0.2.1"
#define OURS6 "2001:db8::1"
#define OTHER4 "192.0.2.9"
#define OTHER6 "2001:db8::9"
#define LOCAL6 "fe80::ff:fe00:1" /* of the MAC */

static const uint8_t mac[6] = {2, 0, 0, 0, 0, 1};
static struct frame_addrs addrs, beside; /* beside: of the application, too */
static uint8_t frame[256];
static uint32_t len;

static void
gid_of(const char *text, uint8_t gid[16])
{
	assert_int_equal(gid_parse(text, gid, NULL), 0);
}

static int
addresses_set(void **state)
{
	struct net_conf conf = {.addr_count = 3};

	memcpy(conf.mac, mac, 6);
	gid_of(OURS4, conf.addr[0].gid);
	gid_of(OURS6, conf.addr[1].gid);
	gid_of(LOCAL6, conf.addr[2].gid);
	frame_addrs_fill(&addrs, &conf);
	conf.other_stack = true;
	frame_addrs_fill(&beside, &conf);
	return 0;
}

static void
put16(uint32_t at, unsigned value)
{
	frame[at] = (uint8_t)(value >> 8);
	frame[at + 1] = (uint8_t)value;
}

/* Returns the offset of the L3 header. vlan -1: no tag. */
static uint32_t
ether_begin(unsigned type, int vlan)
{
	uint32_t at = 12;

	memset(frame, 0, sizeof(frame));
	memcpy(frame, mac, 6);
	if (vlan >= 0) {
		put16(at, 0x8100);
		put16(at + 2, (unsigned)vlan);
		at += 4;
	}
	put16(at, type);
	return at + 2;
}

/* A datagram or message with the first bytes of its L4 header given. */
static void
ip_frame(const char *dst, unsigned proto, const uint8_t *l4, uint32_t l4_len, int vlan)
{
	uint8_t gid[16];
	uint32_t at;

	gid_of(dst, gid);
	if (gid_is_ipv4(gid)) {
		at = ether_begin(0x0800, vlan);
		frame[at] = 0x45;
		frame[at + 9] = (uint8_t)proto;
		memcpy(frame + at + 16, gid + 12, 4);
		at += 20;
	} else {
		at = ether_begin(0x86DD, vlan);
		frame[at] = 0x60;
		frame[at + 6] = (uint8_t)proto;
		memcpy(frame + at + 24, gid, 16);
		at += 40;
	}
	if (gid_is_multicast(gid))
		gid_multicast_mac(gid, frame);
	memcpy(frame + at, l4, l4_len);
	len = at + l4_len;
}

static void
udp_frame(const char *dst, unsigned port, int vlan)
{
	uint8_t udp[8] = {0xC0, 0, (uint8_t)(port >> 8), (uint8_t)port};

	ip_frame(dst, 17, udp, sizeof(udp), vlan);
}

static void
arp_frame(unsigned op, const char *sender, const char *target)
{
	uint32_t at = ether_begin(0x0806, -1);
	uint8_t gid[16];

	put16(at + 6, op);
	gid_of(sender, gid);
	memcpy(frame + at + 14, gid + 12, 4);
	gid_of(target, gid);
	memcpy(frame + at + 24, gid + 12, 4);
	len = at + 28;
}

static void
nd_frame(unsigned type, const char *dst, const char *target)
{
	uint8_t msg[24] = {(uint8_t)type};

	gid_of(target, msg + 8);
	ip_frame(dst, 58, msg, sizeof(msg), -1);
}

static void
expect(const char *what, enum frame_owner want, enum frame_owner want_other)
{
	/* On the heap, so that the address sanitizer reports a read behind its end. */
	uint8_t *copy = malloc(len);

	assert_non_null(copy);
	memcpy(copy, frame, len);
	/* The quick answer is never another one. */
	assert_true(!frame_is_roce_ipv4(&addrs, copy, len) || want == FRAME_ROCADE);
	if (frame_owner(&addrs, copy, len, -1) != want ||
		frame_owner(&beside, copy, len, -1) != want_other)
		fail_msg("%s: %d, beside another stack %d", what,
			frame_owner(&addrs, copy, len, -1),
			frame_owner(&beside, copy, len, -1));
	free(copy);
}

TEST(roce_to_own_addresses_is_rocades)
{
	static const char *const own[] = {OURS4, OURS6, LOCAL6};
	static const char *const groups[] = {"239.1.2.3", "ff0e::1234"};
	static const char *const others[] = {OTHER4, OTHER6, "255.255.255.255"};

	for (unsigned i = 0; i < RTE_DIM(own); i++) {
		udp_frame(own[i], 4791, -1);
		expect(own[i], FRAME_ROCADE, FRAME_ROCADE);
		udp_frame(own[i], 4792, -1);
		expect(own[i], FRAME_APP, FRAME_APP);
	}
	for (unsigned i = 0; i < RTE_DIM(groups); i++) {
		udp_frame(groups[i], 4791, -1);
		expect(groups[i], FRAME_GROUP, FRAME_GROUP);
	}
	for (unsigned i = 0; i < RTE_DIM(others); i++) {
		udp_frame(others[i], 4791, -1);
		expect(others[i], FRAME_APP, FRAME_APP);
	}
	udp_frame(OURS4, 4791, -1);
	assert_true(frame_is_roce_ipv4(&addrs, frame, len));
	/* TCP to an address of Rocade, and a later fragment of a datagram. */
	ip_frame(OURS4, 6, (const uint8_t[20]){0x12, 0xB7, 0x12, 0xB7}, 20, -1);
	expect("TCP", FRAME_APP, FRAME_APP);
	udp_frame(OURS4, 4791, -1);
	put16(14 + 6, 10);
	expect("fragment", FRAME_APP, FRAME_APP);
}

TEST(options_do_not_hide_the_udp_port)
{
	udp_frame(OURS4, 4791, -1);
	memmove(frame + 14 + 24, frame + 14 + 20, 8);
	memset(frame + 14 + 20, 0, 4);
	frame[14] = 0x46;
	len += 4;
	expect("a header of 24 bytes", FRAME_ROCADE, FRAME_ROCADE);
	frame[14] = 0x4F; /* ends behind the frame */
	expect("a header of 60 bytes", FRAME_APP, FRAME_APP);
	frame[14] = 0x44; /* shorter than a header can be */
	expect("a header of 16 bytes", FRAME_APP, FRAME_APP);
}

TEST(arp_goes_to_whose_address_it_names)
{
	arp_frame(1, OTHER4, OURS4);
	expect("a request for ours", FRAME_ROCADE, FRAME_APP);
	arp_frame(1, OURS4, OTHER4);
	expect("a request for another", FRAME_APP, FRAME_APP);
	arp_frame(2, OTHER4, OURS4);
	expect("an answer to us", FRAME_ROCADE, FRAME_BOTH);
	arp_frame(2, OTHER4, OTHER4);
	expect("an announcement by an answer", FRAME_BOTH, FRAME_BOTH);
	arp_frame(1, OTHER4, OTHER4);
	expect("an announcement", FRAME_BOTH, FRAME_BOTH);
	arp_frame(2, OTHER4, "192.0.2.8");
	expect("an answer to another", FRAME_APP, FRAME_APP);
}

TEST(nd_goes_to_whose_address_it_names)
{
	nd_frame(135, "ff02::1:ff00:1", OURS6);
	expect("a solicitation for ours", FRAME_ROCADE, FRAME_APP);
	nd_frame(135, "ff02::1:ff00:1", LOCAL6);
	expect("a solicitation for the address of the MAC", FRAME_BOTH, FRAME_APP);
	nd_frame(135, "ff02::1:ff00:9", OTHER6);
	expect("a solicitation for another", FRAME_APP, FRAME_APP);
	nd_frame(136, OURS6, OTHER6);
	expect("an answer to us", FRAME_ROCADE, FRAME_BOTH);
	nd_frame(136, LOCAL6, OTHER6);
	expect("an answer to the address of the MAC", FRAME_BOTH, FRAME_BOTH);
	nd_frame(136, OTHER6, OTHER6);
	expect("an answer to another", FRAME_APP, FRAME_APP);
	nd_frame(136, "ff02::1", OTHER6);
	expect("an announcement", FRAME_BOTH, FRAME_BOTH);
	nd_frame(134, "ff02::1", OTHER6);
	expect("a router's advertisement", FRAME_APP, FRAME_APP);
}

TEST(pings_and_groups)
{
	ip_frame(OURS4, 1, (const uint8_t[8]){8}, 8, -1);
	expect("an echo request", FRAME_ROCADE, FRAME_APP);
	for (unsigned type = 0; type < 256; type++) {
		ip_frame(OURS4, 1, (const uint8_t[8]){(uint8_t)type}, 8, -1);
		if (type != 8)
			expect("another message of ICMP", FRAME_APP, FRAME_APP);
	}
	ip_frame(OURS4, 1, (const uint8_t[8]){8}, 8, -1);
	put16(14 + 6, 0x2000);
	expect("a fragment of an echo request", FRAME_APP, FRAME_APP);
	ip_frame(OURS4, 1, (const uint8_t[12]){0, 0, 0, 0, 8}, 12, -1);
	frame[14] = 0x46;
	expect("an echo request with options", FRAME_APP, FRAME_APP);
	ip_frame(OTHER4, 1, (const uint8_t[8]){8}, 8, -1);
	expect("an echo request to another", FRAME_APP, FRAME_APP);
	ip_frame(OURS6, 58, (const uint8_t[8]){128}, 8, -1);
	expect("an echo request over IPv6", FRAME_ROCADE, FRAME_APP);
	ip_frame(LOCAL6, 58, (const uint8_t[8]){128}, 8, -1);
	expect("an echo request to the address of the MAC", FRAME_BOTH, FRAME_APP);
	ip_frame(OTHER6, 58, (const uint8_t[8]){128}, 8, -1);
	expect("an echo request to another over IPv6", FRAME_APP, FRAME_APP);
	ip_frame(OURS6, 58, (const uint8_t[8]){129}, 8, -1);
	expect("an answer to a ping of the application", FRAME_APP, FRAME_APP);
	ip_frame("224.0.0.1", 2, (const uint8_t[8]){0x11}, 8, -1);
	expect("an IGMP query", FRAME_BOTH, FRAME_APP);
	ip_frame("ff02::1", 0, (const uint8_t[8]){58}, 8, -1);
	expect("an MLD query", FRAME_BOTH, FRAME_APP);
	ip_frame("ff02::1", 0, (const uint8_t[8]){17}, 8, -1);
	expect("other hop-by-hop options", FRAME_APP, FRAME_APP);
	ether_begin(0x88CC, -1);
	len = 60;
	expect("LLDP", FRAME_APP, FRAME_APP);
}

/* The application forwards frames, and so receives those to the MACs of others. */
TEST(frames_to_another_mac)
{
	udp_frame(OURS4, 4791, -1);
	frame[5] ^= 1;
	expect("a RoCEv2 packet to another MAC", FRAME_APP, FRAME_APP);
	arp_frame(1, OTHER4, OURS4);
	frame[5] ^= 1;
	expect("an ARP request to another MAC", FRAME_APP, FRAME_APP);
	memset(frame, 0xFF, 6);
	expect("an ARP request to all", FRAME_ROCADE, FRAME_APP);
}

/* Other hosts cannot make Rocade copy long frames. */
TEST(long_messages_are_not_copied)
{
	static uint8_t query[FRAME_MESSAGE_MAX + 1];

	ip_frame("224.0.0.1", 2, (const uint8_t[8]){0x11}, 8, -1);
	memcpy(query, frame, len);
	assert_int_equal(frame_owner(&addrs, query, FRAME_MESSAGE_MAX, -1), FRAME_BOTH);
	assert_int_equal(
		frame_owner(&addrs, query, FRAME_MESSAGE_MAX + 1, -1), FRAME_APP);
}

/* Frames of another VLAN are the application's. */
TEST(vlans)
{
	struct frame_addrs tagged = addrs;

	tagged.vlan = 7;
	udp_frame(OURS4, 4791, 7);
	assert_int_equal(frame_owner(&tagged, frame, len, -1), FRAME_ROCADE);
	expect("a tag", FRAME_APP, FRAME_APP);
	udp_frame(OURS4, 4791, 0xE000);
	expect("a priority tag", FRAME_ROCADE, FRAME_ROCADE);
	assert_int_equal(frame_owner(&tagged, frame, len, -1), FRAME_APP);
	/* stripped by the port */
	udp_frame(OURS4, 4791, -1);
	assert_int_equal(frame_owner(&tagged, frame, len, -1), FRAME_APP);
	assert_int_equal(frame_owner(&tagged, frame, len, 0x2007), FRAME_ROCADE);
	assert_int_equal(frame_owner(&tagged, frame, len, 8), FRAME_APP);
	assert_int_equal(frame_owner(&addrs, frame, len, 7), FRAME_APP);
	assert_int_equal(frame_owner(&addrs, frame, len, 0), FRAME_ROCADE);
}

/* A frame that is cut anywhere is judged without a read behind its end. */
TEST(cut_frames_are_the_applications)
{
	for (unsigned kind = 0; kind < 5; kind++) {
		uint32_t whole, least = 0;

		switch (kind) {
		case 0:
			udp_frame(OURS4, 4791, -1);
			break;
		case 1:
			udp_frame(OURS6, 4791, 0);
			break;
		case 2:
			arp_frame(1, OTHER4, OURS4);
			break;
		case 3:
			nd_frame(135, OURS6, OURS6);
			break;
		default:
			nd_frame(136, OURS6, OTHER6);
			break;
		}
		whole = len;
		for (len = 0; len < whole; len++) {
			uint8_t *copy = malloc(len + 1);

			assert_non_null(copy);
			memcpy(copy, frame, len);
			least += frame_owner(&addrs, copy, len, -1) != FRAME_APP;
			free(copy);
		}
		assert_int_equal(least, 0);
	}
}

TEST_GROUP(addresses_set, NULL)
