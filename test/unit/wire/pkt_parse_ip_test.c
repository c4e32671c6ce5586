/* SPDX-License-Identifier: BSD-3-Clause */
/* Invalid and valid IP headers. */

#include "case.h"
#include "frame.h"

TEST(drop_ip_header)
{
	static const uint8_t first[] = {0x00, 0x35, 0x55, 0x65, 0x44, 0x46, 0x4F};
	static const uint8_t protocols[] = {0, 6, 41, 43, 59, 89, 132, 255};
	struct raw_frame c;

	for (size_t i = 0; i < sizeof(first); i++) {
		c = raw_frame4();
		c.data[IP_OFF] = first[i];
		assert_int_equal(raw_frame_parse(&c, 0), DROP_ip_header);
	}
	for (unsigned total = 0; total < 20; total++) {
		c = raw_frame4();
		be16_put(c.data + IP_OFF + 2, total);
		assert_int_equal(raw_frame_parse(&c, 0), DROP_ip_header);
	}
	for (unsigned version = 0; version < 16; version++) {
		c = raw_frame6();
		c.data[IP_OFF] = (uint8_t)(version << 4);
		if (version != 6)
			assert_int_equal(raw_frame_parse(&c, 0), DROP_ip_header);
	}
	for (size_t i = 0; i < sizeof(protocols); i++) {
		c = raw_frame4();
		c.data[IP_OFF + 9] = protocols[i];
		assert_int_equal(raw_frame_parse(&c, 0), DROP_ip_header);
		c = raw_frame6();
		c.data[IP_OFF + 6] = protocols[i];
		assert_int_equal(raw_frame_parse(&c, 0), DROP_ip_header);
	}
}

/* IGMP and MLD are for the port; they are the only protocols with IP options. */
TEST(membership_packets_may_have_options)
{
	static const uint8_t first[] = {0x45, 0x46, 0x4F, 0x44, 0x36};
	struct raw_frame c;

	for (size_t i = 0; i < sizeof(first); i++) {
		c = raw_frame4();
		c.data[IP_OFF] = first[i];
		c.data[IP_OFF + 9] = 2;
		assert_int_equal(
			raw_frame_parse(&c, 0), i < 3 ? PARSE_OTHER : DROP_ip_header);
	}
	c = raw_frame6();
	c.data[IP_OFF + 6] = 0;
	assert_int_equal(raw_frame_parse(&c, 0), DROP_ip_header);
	c.data[IP_OFF + 40] = 58;
	assert_int_equal(raw_frame_parse(&c, 0), PARSE_OTHER);
}

TEST(drop_ip_checksum)
{
	struct raw_frame c = raw_frame4();

	/* A change of any bit is detected. Those in version, header length and total
	 * length are detected before the checksum. */
	for (unsigned bit = 0; bit < 20 * 8; bit++) {
		unsigned at = bit / 8;
		unsigned reason;

		c.data[IP_OFF + at] ^= 1 << bit % 8;
		reason = parse_exact(c.data, c.len, 0, 0, NULL, NULL);
		if (at != 0 && at != 2 && at != 3)
			assert_int_equal(reason, DROP_ip_checksum);
		else
			assert_int_not_equal(reason, DROP_none);
		c.data[IP_OFF + at] ^= 1 << bit % 8;
	}
	/* The port's result takes precedence over the header. */
	assert_int_equal(parse_exact(c.data, c.len, PKT_RX_IPV4_CKSUM_BAD, 0, NULL, NULL),
		DROP_ip_checksum);
	be16_put(c.data + IP_OFF + 10, 0x1234);
	assert_int_equal(parse_exact(c.data, c.len, PKT_RX_IPV4_CKSUM_OK, 0, NULL, NULL),
		DROP_none);
	assert_int_equal(parse_exact(c.data, c.len, 0, 0, NULL, NULL), DROP_ip_checksum);
}

TEST(ip_checksum_extremes)
{
	/* Sums with one and two carries: many identifications and addresses. */
	struct raw_frame c = raw_frame4();

	for (unsigned id = 0; id < 0x10000; id++) {
		be16_put(c.data + IP_OFF + 4, id);
		be16_put(c.data + IP_OFF + 12, 0xFFFF);
		be16_put(c.data + IP_OFF + 14, ~id);
		be16_put(c.data + IP_OFF + 18, id % 3 == 0 ? 0xFFFF : 0);
		if (id % 64 != 0 && id < 0xFF00)
			continue;
		frame_seal(c.data, IP_OFF);
		assert_int_equal(parse_exact(c.data, c.len, 0, 0, NULL, NULL), DROP_none);
	}
}

/* A GID ::ffff:a.b.c.d stands for an IPv4 address, so no IPv6 packet of one host to another
 * may have one; neither RoCEv2 nor one for the port itself. */
TEST(drop_mapped_address)
{
	static const uint8_t addrs[][16] = {
		{[10] = 0xff, [11] = 0xff, [12] = 192, [14] = 2, [15] = 1},
		{[10] = 0xff, [11] = 0xff},
	};
	/* next to the mapped ones, unspecified, loopback, IPv4-compatible */
	static const uint8_t others[][16] = {
		{[9] = 1, [10] = 0xff, [11] = 0xff, [12] = 192, [15] = 1},
		{[0] = 0x20, [10] = 0xff, [11] = 0xff, [12] = 192, [15] = 1},
		{[10] = 0xff, [11] = 0xfe, [12] = 192, [15] = 1},
		{[8] = 0xff, [9] = 0xff, [12] = 192, [15] = 1},
		{0},
		{[15] = 1},
		{[12] = 192, [14] = 2, [15] = 1},
	};
	static const uint8_t group[16] = {[0] = 0xff, [1] = 0x0e, [15] = 1};
	static const uint8_t protocols[] = {17, 58, 44, 89};
	struct raw_frame to_group = raw_frame6();

	for (size_t at = 0; at < 2; at++) {
		struct raw_frame c = raw_frame6();
		uint8_t *addr = c.data + IP_OFF + 8 + 16 * at;

		for (size_t i = 0; i < sizeof(addrs) / sizeof(addrs[0]); i++) {
			memcpy(addr, addrs[i], 16);
			for (size_t p = 0; p < sizeof(protocols); p++) {
				c.data[IP_OFF + 6] = protocols[p];
				assert_int_equal(
					raw_frame_parse(&c, 0), DROP_mapped_address);
			}
		}
		c = raw_frame6();
		for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
			memcpy(addr, others[i], 16);
			frame_seal(c.data, IP_OFF);
			assert_int_equal(raw_frame_parse(&c, 0), DROP_none);
		}
	}
	memcpy(to_group.data + IP_OFF + 8, addrs[0], 16);
	memcpy(to_group.data + IP_OFF + 24, group, 16);
	frame_seal(to_group.data, IP_OFF);
	assert_int_equal(raw_frame_parse(&to_group, 0), DROP_none);
}

TEST(drop_fragment)
{
	static const uint16_t fields[] = {0x2000, 0x0001, 0x1FFF, 0x2001, 0x6000};
	struct raw_frame c;

	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		c = raw_frame4();
		be16_put(c.data + IP_OFF + 6, fields[i]);
		assert_int_equal(raw_frame_parse(&c, 0), DROP_fragment);
	}
	/* DF is not a fragment flag. */
	c = raw_frame4();
	be16_put(c.data + IP_OFF + 6, 0);
	frame_seal(c.data, IP_OFF);
	assert_int_equal(raw_frame_parse(&c, 0), DROP_none);
	c = raw_frame6();
	c.data[IP_OFF + 6] = 44;
	assert_int_equal(raw_frame_parse(&c, 0), DROP_fragment);
}
