/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>

#include "port_fixture.h"

static int
check_addr(const char *text)
{
	struct net_conf conf = {.mac = {2, 0, 0, 0, 0, 1}};

	conf_add(&conf, text);
	return net_conf_check(&conf);
}

TEST(host_addresses_are_accepted)
{
	static const char *const good[] = {"192.0.2.1/24", "192.0.2.0/32",
		"192.0.2.255/32", "192.0.2.0/31", "192.0.2.1/31", "10.0.0.0/4",
		"169.254.0.1/16", "1.2.3.4/0", "2001:db8::1/64", "2001:db8::/128",
		"2001:db8::/127", "fe80::1/10"};
	static const char *const bad[] = {"0.0.0.0", "192.0.2.0/24", "192.0.2.255/24",
		"192.0.2.3/30", "255.255.255.255", "224.0.0.1/4", "127.0.0.1/8",
		"0.1.2.3/8", "240.0.0.1", "::/0", "::1/128", "ff02::1/64",
		"2001:db8::/64"};

	for (size_t i = 0; i < RTE_DIM(good); i++)
		if (check_addr(good[i]) != 0)
			fail_msg("refused: %s", good[i]);
	for (size_t i = 0; i < RTE_DIM(bad); i++)
		if (check_addr(bad[i]) != -EINVAL)
			fail_msg("accepted: %s", bad[i]);
}

TEST(impossible_configurations_are_refused)
{
	static const struct net_conf zero;
	struct net_conf conf = conf_of(1, 0), bad, noise;
	struct net *net = NULL;

	assert_int_equal(net_conf_check(&conf), 0);
	assert_int_equal(net_create(&zero, &net), -EINVAL);
	assert_int_equal(net_create(NULL, &net), -EINVAL);
	memset(&noise, 0xa5, sizeof(noise));
	assert_int_equal(net_create(&noise, &net), -EINVAL);
	bad = conf;
	bad.mac[0] |= 1;
	assert_int_equal(net_create(&bad, &net), -EINVAL);
	bad = conf;
	bad.vlan = 4095;
	assert_int_equal(net_create(&bad, &net), -EINVAL);
	bad = conf;
	bad.addr_count = NET_MAX_ADDRS + 1;
	assert_int_equal(net_create(&bad, &net), -EINVAL);
	bad = conf;
	bad.addr[1] = bad.addr[0];
	assert_int_equal(net_create(&bad, &net), -EINVAL);
	bad = conf;
	bad.addr[0].prefix_len = 33;
	assert_int_equal(net_create(&bad, &net), -EINVAL);
	bad = conf;
	bad.addr[1].prefix_len = 129;
	assert_int_equal(net_create(&bad, &net), -EINVAL);
	assert_null(net);
}

TEST(gateways_must_be_reachable)
{
	static const struct {
		const char *text;
		bool ipv6;
		int ret;
	} rows[] = {
		{"192.0.2.254", false, 0},
		{"fe80::1", true, 0},
		{"2001:db8::fe", true, 0},
		{"192.0.3.1", false, -EINVAL},    /* on no subnet of ours */
		{"192.0.2.1", false, -EINVAL},    /* our own address */
		{"192.0.2.255", false, -EINVAL},  /* broadcast */
		{"192.0.2.0", false, -EINVAL},    /* the subnet's address */
		{"224.0.0.1", false, -EINVAL},    /* multicast */
		{"2001:db8::fe", false, -EINVAL}, /* the other family */
		{"192.0.2.254", true, -EINVAL},
		{"2001:db9::1", true, -EINVAL},
		{"ff02::2", true, -EINVAL},
	};

	for (size_t i = 0; i < RTE_DIM(rows); i++) {
		struct net_conf conf = conf_of(1, 0);

		memcpy(rows[i].ipv6 ? conf.gateway6 : conf.gateway4, gid_of(rows[i].text),
			16);
		if (net_conf_check(&conf) != rows[i].ret)
			fail_msg("row %zu: %s", i, rows[i].text);
	}
}

TEST(next_hops)
{
	static const struct {
		const char *dst;
		const char *hop; /* NULL: none */
	} rows[] = {
		{"192.0.2.9", "192.0.2.9"},
		{"192.0.3.9", "192.0.2.254"},
		{"8.8.8.8", "192.0.2.254"},
		{"2001:db8::9", "2001:db8::9"},
		{"2001:db9::9", "2001:db8::fe"},
		{"fe80::9", "fe80::9"},
		{"192.0.2.255", NULL},
		{"192.0.2.0", NULL},
		{"255.255.255.255", NULL},
		{"0.0.0.0", NULL},
		{"127.0.0.1", NULL},
		{"::", NULL},
		{"::1", NULL},
	};
	struct net_conf conf = conf_of(1, 0);
	uint8_t hop[16];

	for (size_t i = 0; i < RTE_DIM(rows); i++) {
		int ret = net_next_hop(&conf, gid_of(rows[i].dst), hop);

		if (ret != (rows[i].hop == NULL ? -ENETUNREACH : 0))
			fail_msg("%s: %d", rows[i].dst, ret);
		if (ret == 0)
			assert_memory_equal(hop, gid_of(rows[i].hop), 16);
	}
	memset(conf.gateway4, 0, 16);
	memset(conf.gateway6, 0, 16);
	assert_int_equal(net_next_hop(&conf, gid_of("8.8.8.8"), hop), -ENETUNREACH);
	assert_int_equal(net_next_hop(&conf, gid_of("2001:db9::9"), hop), -ENETUNREACH);
	conf.addr_count = 1; /* IPv4 only */
	assert_int_equal(net_next_hop(&conf, gid_of("fe80::9"), hop), -ENETUNREACH);
}

TEST(source_is_the_closest_address)
{
	struct net_conf conf = {.mac = {2, 0, 0, 0, 0, 1}};

	assert_null(net_source(&conf, gid_of("10.1.2.3")));
	conf_add(&conf, "10.0.0.1/8");
	conf_add(&conf, "10.1.0.1/16");
	conf_add(&conf, "2001:db8::1/64");
	assert_memory_equal(
		net_source(&conf, gid_of("10.1.2.3")), gid_of("10.1.0.1"), 16);
	assert_memory_equal(
		net_source(&conf, gid_of("10.2.2.3")), gid_of("10.0.0.1"), 16);
	assert_memory_equal(
		net_source(&conf, gid_of("fe80::1")), gid_of("2001:db8::1"), 16);
	conf_add(&conf, "fe80::7/64");
	assert_memory_equal(
		net_source(&conf, gid_of("fe80:0:0:1::1")), gid_of("fe80::7"), 16);
	assert_memory_equal(
		net_source(&conf, gid_of("2001:db8::2")), gid_of("2001:db8::1"), 16);
}
