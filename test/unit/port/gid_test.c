/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>

#include "port_fixture.h"

TEST(texts_become_gids_and_back)
{
	static const struct {
		const char *text;
		const char *back;
		uint8_t prefix_len;
	} rows[] = {
		{"192.0.2.1/24", "192.0.2.1", 24},
		{"192.0.2.1", "192.0.2.1", 32},
		{"0.0.0.0/0", "0.0.0.0", 0},
		{"255.255.255.255/32", "255.255.255.255", 32},
		{"::ffff:192.0.2.1", "192.0.2.1", 32},
		{"::ffff:192.0.2.1/120", "192.0.2.1", 24},
		{"fe80::1", "fe80::1", 128},
		{"2001:DB8:0:0:0:0:0:1/64", "2001:db8::1", 64},
		{"::/0", "::", 0},
	};

	for (size_t i = 0; i < RTE_DIM(rows); i++) {
		uint8_t gid[16], prefix_len;
		char buf[46];

		assert_int_equal(gid_parse(rows[i].text, gid, &prefix_len), 0);
		assert_int_equal(prefix_len, rows[i].prefix_len);
		assert_ptr_equal(gid_format(gid, buf, sizeof(buf)), buf);
		assert_string_equal(buf, rows[i].back);
	}
}

TEST(gid_byte_layout)
{
	static const uint8_t want[16] = {
		0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 0, 2, 7};

	assert_memory_equal(gid_of("192.0.2.7"), want, 16);
	assert_true(gid_is_ipv4(want));
	assert_false(gid_is_ipv4(gid_of("2001:db8::1")));
}

TEST(invalid_texts_are_refused)
{
	static const char *const texts[] = {"", "/", "192.0.2", "192.0.2.1.2",
		"192.0.2.256", "192.0.2.1/33", "192.0.2.1/", "192.0.2.1/-1",
		"192.0.2.1/ 24", "192.0.2.1/24x", "192.0.2.1/0024", " 192.0.2.1",
		"192.0.2.1 ", "fe80::1%eth0", "::1/129", "::ffff:192.0.2.1/95",
		":::", "g::1", "host.example",
		"1111:2222:3333:4444:5555:6666:7777:8888:9999",
		"1111:2222:3333:4444:5555:6666:7777:8888:9999:aaaa:bbbb:cccc:dddd"};
	uint8_t gid[16] = {42}, prefix_len = 42;

	for (size_t i = 0; i < RTE_DIM(texts); i++) {
		if (gid_parse(texts[i], gid, &prefix_len) != -EINVAL)
			fail_msg("accepted: %s", texts[i]);
		assert_int_equal(gid[0], 42); /* outputs only on success */
		assert_int_equal(prefix_len, 42);
	}
	assert_int_equal(gid_parse(NULL, gid, &prefix_len), -EINVAL);
	assert_int_equal(gid_parse("192.0.2.1/24", gid, NULL), -EINVAL);
}

TEST(short_buffer_gets_empty_string)
{
	char buf[4] = "xxx";

	assert_string_equal(gid_format(gid_of("192.0.2.1"), buf, sizeof(buf)), "");
}

TEST(kinds_of_addresses)
{
	static const char *const hosts[] = {"1.0.0.1", "192.0.2.1", "223.255.255.254",
		"169.254.1.1", "fe80::1", "2001:db8::1", "fd00::1"};
	static const char *const others[] = {"0.0.0.0", "0.1.2.3", "127.0.0.1",
		"224.0.0.1", "239.1.2.3", "240.0.0.1", "255.255.255.255", "::", "::1",
		"ff02::1"};

	for (size_t i = 0; i < RTE_DIM(hosts); i++)
		assert_true(gid_is_host(gid_of(hosts[i])));
	for (size_t i = 0; i < RTE_DIM(others); i++)
		assert_false(gid_is_host(gid_of(others[i])));
	assert_true(gid_is_multicast(gid_of("224.0.0.1")));
	assert_true(gid_is_multicast(gid_of("ff0e::1")));
	assert_false(gid_is_multicast(gid_of("240.0.0.1")));
	assert_false(gid_is_multicast(gid_of("fe80::1")));
	assert_true(gid_is_link_local(gid_of("febf::1")));
	assert_false(gid_is_link_local(gid_of("fec0::1")));
}

TEST(derived_addresses)
{
	static const uint8_t mac[6] = {0x52, 0x54, 0x00, 0x12, 0x34, 0x01};
	static const uint8_t mac4[6] = {0x01, 0x00, 0x5e, 0x01, 0x02, 0x03};
	static const uint8_t mac6[6] = {0x33, 0x33, 0xff, 0x12, 0x34, 0x01};
	uint8_t gid[16], group[16], out[6];

	gid_link_local(mac, gid);
	assert_memory_equal(gid, gid_of("fe80::5054:ff:fe12:3401"), 16);
	gid_solicited_node(gid, group);
	assert_memory_equal(group, gid_of("ff02::1:ff12:3401"), 16);
	gid_multicast_mac(group, out);
	assert_memory_equal(out, mac6, 6);
	/* bit 23 of the address is left out */
	gid_multicast_mac(gid_of("239.129.2.3"), out);
	assert_memory_equal(out, mac4, 6);
}

TEST(prefixes_compare_every_bit)
{
	struct net_addr addr;
	uint8_t gid[16];

	for (unsigned family = 0; family < 2; family++) {
		unsigned from = family == 0 ? 96 : 0;

		memcpy(addr.gid, gid_of(family == 0 ? "10.91.62.213" : "2001:db8::5"),
			16);
		for (unsigned len = 0; len <= 128 - from; len++) {
			addr.prefix_len = (uint8_t)len;
			assert_true(gid_in_prefix(addr.gid, addr.gid, addr.prefix_len));
			for (unsigned bit = from; bit < 128; bit++) {
				memcpy(gid, addr.gid, 16);
				gid[bit / 8] ^= 0x80 >> bit % 8;
				assert_int_equal(
					gid_in_prefix(gid, addr.gid, addr.prefix_len),
					bit >= from + len);
			}
		}
	}
}
