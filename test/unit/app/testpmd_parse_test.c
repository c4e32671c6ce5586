/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdint.h>
#include <string.h>

#include "case.h"
#include "testpmd_parse.h"

TEST(numbers_are_parsed)
{
	static const char *const bad[] = {"", " 1", "-1", "+1", "1x", "0x", "x", "1.5",
		"1 ", "18446744073709551616", "101"};
	uint64_t value = 42;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(parse_number(bad[i], 0, 100, &value));
	assert_int_equal(value, 42);
	assert_true(parse_number("010", 0, 100, &value));
	assert_int_equal(value, 10);
	assert_true(parse_number("0x1f", 0, 100, &value));
	assert_int_equal(value, 0x1f);
	assert_false(parse_number("4", 5, 6, &value));
	assert_true(parse_number("18446744073709551615", 0, UINT64_MAX, &value));
	assert_int_equal(value, UINT64_MAX);
}

TEST(sizes_are_parsed)
{
	uint64_t value;

	assert_true(parse_size("0", MSG_SIZE_MAX, &value) && value == 0);
	assert_true(parse_size("4k", MSG_SIZE_MAX, &value) && value == 4096);
	assert_true(parse_size("1M", MSG_SIZE_MAX, &value) && value == 1 << 20);
	assert_true(parse_size("2g", MSG_SIZE_MAX, &value) && value == MSG_SIZE_MAX);
	assert_false(parse_size("2147483649", MSG_SIZE_MAX, &value));
	assert_false(parse_size("3g", MSG_SIZE_MAX, &value));
	assert_false(parse_size("k", MSG_SIZE_MAX, &value));
	assert_false(parse_size("64kb", MSG_SIZE_MAX, &value));
	assert_false(parse_size("", MSG_SIZE_MAX, &value));
	/* No overflow of the shift. */
	assert_false(parse_size("17179869184g", UINT64_MAX, &value));
}

TEST(size_lists_are_parsed)
{
	uint64_t sizes[4];

	assert_int_equal(parse_size_list("64,1k,0", sizes, 4), 3);
	assert_int_equal(sizes[1], 1024);
	assert_int_equal(sizes[2], 0);
	assert_int_equal(parse_size_list("", sizes, 4), 0);
	assert_int_equal(parse_size_list("1,", sizes, 4), 0);
	assert_int_equal(parse_size_list(",1", sizes, 4), 0);
	assert_int_equal(parse_size_list("1,,2", sizes, 4), 0);
	assert_int_equal(parse_size_list("1,2,3,4", sizes, 4), 4);
	assert_int_equal(parse_size_list("1,2,3,4,5", sizes, 4), 0);
}

TEST(rates_of_messages_are_parsed)
{
	static const char *const bad[] = {"", "k", "-1", "10kk", "10 k", "10kb", "0x10",
		"10gbit", "bps", "1e16", "nan", "0.4", "1.5", "0.0001k", "2.5bps"};
	struct rate_conf rate = {.per_s = 7};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(parse_rate(bad[i], &rate));
	assert_int_equal(rate.per_s, 7);
	assert_true(parse_rate("250k", &rate) && rate.per_s == 250000 && !rate.bits);
	assert_true(parse_rate("1.5m", &rate) && rate.per_s == 1500000 && !rate.bits);
	assert_true(
		parse_rate("10gbps", &rate) && rate.per_s == 10000000000 && rate.bits);
	assert_true(parse_rate("1.1g", &rate) && rate.per_s == 1100000000);
	assert_true(
		parse_rate("123456.789123457g", &rate) && rate.per_s == 123456789123457);
	assert_true(parse_rate("9bps", &rate) && rate.per_s == 9 && rate.bits);
	assert_true(parse_rate("0", &rate) && rate.per_s == 0);
	struct rate_conf list[3];

	assert_int_equal(parse_rate_list("1k,2gbps,3", list, 3), 3);
	assert_true(list[0].per_s == 1000 && list[1].bits && list[2].per_s == 3);
	assert_int_equal(parse_rate_list("1,2,3,4", list, 3), 0);
	assert_int_equal(parse_rate_list("1,0", list, 3), 0);
	assert_int_equal(parse_rate_list("", list, 3), 0);
	assert_int_equal(parse_rate_list("1,,2", list, 3), 0);
	assert_int_equal(parse_rate_list(",1", list, 3), 0);
	assert_int_equal(parse_rate_list("1,", list, 3), 0);
}

TEST(wrong_impairments_are_explained)
{
	struct rocade_impair impair = {.seed = 7};

	assert_true(parse_impair_words("loss 1% dup 0.5%", &impair));
	assert_string_equal(list_why(), "");
	assert_false(parse_impair("loss=2%,loss=3%", &impair));
	assert_string_equal(list_why(), "it names loss twice");
	assert_false(parse_impair("loss 2%", &impair));
	assert_false(parse_impair_words("loss 0X2%", &impair));
	assert_int_equal(impair.loss_ppm, 10000);
	assert_int_equal(impair.seed, 7);
}

TEST(host_addresses_are_checked)
{
	static const char *const bad[] = {"", "1.2.3", "1.2.3.4.5", "256.1.1.1",
		"0.0.0.0", "127.0.0.1", "224.0.0.1", "255.255.255.255", "host",
		"::", "::1", "ff02::1", "2001:db8:::1", "1.2.3.4/24", "::ffff:192.0.2.1"};
	bool is_v6;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(parse_host_address(bad[i], strlen(bad[i]), &is_v6));
	assert_true(parse_host_address("192.0.2.1", 9, &is_v6) && !is_v6);
	assert_true(parse_host_address("2001:db8::1", 11, &is_v6) && is_v6);
	assert_true(parse_host_address("fe80::1", 7, &is_v6) && is_v6);
}

TEST(address_lists_are_checked)
{
	assert_true(parse_address_list("192.0.2.1/24"));
	assert_true(parse_address_list("192.0.2.1/32,2001:db8::1/128,fe80::2/64"));
	assert_false(parse_address_list("192.0.2.1"));
	assert_false(parse_address_list("192.0.2.1/"));
	assert_false(parse_address_list("192.0.2.1/33"));
	assert_false(parse_address_list("192.0.2.1/0"));
	assert_false(parse_address_list("2001:db8::1/129"));
	assert_false(parse_address_list("192.0.2.1/24,"));
	assert_false(parse_address_list("192.0.2.1/24,x"));
	assert_false(parse_address_list("224.0.0.1/24"));
	assert_false(parse_address_list(""));
}

TEST(the_wrong_entry_of_a_list_is_named)
{
	static const struct {
		const char *text, *why;
	} rows[] = {
		{"1,,2", "entry 2, '', is empty"},
		{"1,2,", "entry 3, '', is empty"},
		{"7,3,7", "entry 3, '7', comes twice"},
		{"7,x", "entry 2, 'x', is no number of an lcore"},
		{"1,2,3,4", "entry 4, '4', is one too many"},
		{"x", ""},
		{"1,2", ""},
	};
	uint16_t lcores[3];
	uint64_t sizes[3];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		(void)parse_lcore_list(rows[i].text, lcores, 3);
		assert_string_equal(list_why(), rows[i].why);
	}
	assert_int_equal(parse_size_list("64,3g", sizes, 3), 0);
	assert_string_equal(list_why(), "entry 2, '3g', is no number of bytes up to 2g");
	assert_false(parse_address_list("192.0.2.1/24,192.0.2.2"));
	assert_string_equal(
		list_why(), "entry 2, '192.0.2.2', has no length of a prefix behind /");
	list_why_clear();
	assert_string_equal(list_why(), "");
}

TEST(lists_of_lcores_are_parsed)
{
	static const char *const bad[] = {
		"", ",", "1,", ",1", "1,,2", "1,1", "x", "65536", "1-3", "1,2,3,4"};
	uint16_t lcores[3];

	assert_int_equal(parse_lcore_list("3,0,127", lcores, 3), 3);
	assert_int_equal(lcores[0], 3);
	assert_int_equal(lcores[1], 0);
	assert_int_equal(lcores[2], 127);
	assert_int_equal(parse_lcore_list("65535", lcores, 3), 1);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(parse_lcore_list(bad[i], lcores, 3), 0);
}
