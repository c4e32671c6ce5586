/* SPDX-License-Identifier: BSD-3-Clause */

#include "case.h"
#include "wire/hdr.h"

TEST(rnr_timer_table)
{
	/* Hundredths of a millisecond, as IBA 9.7.5.2.8 prints them. */
	static const uint32_t hundredths[32] = {65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32,
		48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096,
		6144, 8192, 12288, 16384, 24576, 32768, 49152};

	for (unsigned i = 0; i < 32; i++)
		assert_int_equal(rnr_timer_ns[i], hundredths[i] * 10000);
}

TEST(mtu_codes)
{
	assert_int_equal(mtu_bytes(1), 256);
	assert_int_equal(mtu_bytes(2), 512);
	assert_int_equal(mtu_bytes(3), 1024);
	assert_int_equal(mtu_bytes(4), 2048);
	assert_int_equal(mtu_bytes(5), 4096);
}

TEST(be24_fields)
{
	uint8_t bytes[5] = {0xA5, 0, 0, 0, 0xA5};

	be24_put(bytes + 1, 0xFF123456);
	assert_int_equal(bytes[0], 0xA5);
	assert_int_equal(bytes[1], 0x12);
	assert_int_equal(bytes[2], 0x34);
	assert_int_equal(bytes[3], 0x56);
	assert_int_equal(bytes[4], 0xA5);
	assert_int_equal(be24_get(bytes + 1), 0x123456);
	be24_put(bytes + 1, 0xFFFFFF);
	assert_int_equal(be24_get(bytes + 1), 0xFFFFFF);
}
