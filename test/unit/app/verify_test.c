/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "case.h"
#include "verify.h"

#define LEN_MAX 200

/* One wrong bit in any byte of any length up to LEN_MAX is found. */
TEST(each_single_bit_error_is_found)
{
	uint8_t buf[LEN_MAX + 8];
	uint64_t seed = verify_seed(0x100, 7);
	size_t first;

	for (size_t len = 0; len <= LEN_MAX; len++) {
		memset(buf, 0xa5, sizeof(buf));
		verify_fill(buf, len, seed);
		assert_int_equal(verify_check(buf, len, seed, &first), 0);
		assert_int_equal(buf[len], 0xa5); /* the byte behind it is unchanged */
		for (size_t bit = 0; bit < len * 8; bit++) {
			buf[bit / 8] ^= (uint8_t)(1 << (bit % 8));
			first = SIZE_MAX;
			assert_int_equal(verify_check(buf, len, seed, &first), 1);
			assert_int_equal(first, bit / 8);
			buf[bit / 8] ^= (uint8_t)(1 << (bit % 8));
		}
	}
}

TEST(every_bad_byte_is_counted)
{
	uint8_t buf[100];
	uint64_t seed = verify_seed(0x100, 7);
	size_t first;

	verify_fill(buf, sizeof(buf), seed);
	buf[3] ^= 1;
	buf[50] ^= 0xff;
	buf[99] ^= 0x80;
	assert_int_equal(verify_check(buf, sizeof(buf), seed, &first), 3);
	assert_int_equal(first, 3);
}

/* The bytes depend on the QP, the message and the offset. */
TEST(bytes_depend_on_qp_message_and_offset)
{
	uint8_t a[64], b[64];
	size_t first;

	for (uint64_t msg = 0; msg < 1000; msg++) {
		verify_fill(a, sizeof(a), verify_seed(0x100, msg));
		assert_true(verify_check(a, 64, verify_seed(0x101, msg), &first) > 32);
		assert_true(
			verify_check(a, 64, verify_seed(0x100, msg + 1), &first) > 32);
	}
	verify_fill(a, sizeof(a), verify_seed(0x100, 0));
	for (size_t i = 8; i < sizeof(a); i += 8)
		assert_memory_not_equal(a, a + i, 8);
	/* A shift by one byte is found as well. */
	memcpy(b, a + 1, 63);
	assert_true(verify_check(b, 63, verify_seed(0x100, 0), &first) > 32);
}

TEST(alignment_does_not_matter)
{
	uint8_t aligned[64], raw[80];
	uint64_t seed = verify_seed(5, 5);
	size_t first;

	verify_fill(aligned, 61, seed);
	for (size_t off = 0; off < 8; off++) {
		verify_fill(raw + off, 61, seed);
		assert_memory_equal(raw + off, aligned, 61);
		assert_int_equal(verify_check(raw + off, 61, seed, &first), 0);
	}
}

/* The peer may be another build or another machine: the bytes are fixed. */
TEST(bytes_are_fixed)
{
	static const uint8_t want[16] = {0x50, 0x37, 0xb6, 0xde, 0xb0, 0xe7, 0x85, 0xa2,
		0x65, 0xb3, 0x00, 0x5e, 0x6a, 0x61, 0xbd, 0x40};
	uint8_t buf[16];

	verify_fill(buf, sizeof(buf), verify_seed(0x100, 0));
	assert_memory_equal(buf, want, sizeof(want));
}

/* --mode both: the QPNs of both ends may be the same. */
TEST(a_message_that_comes_back_is_wrong)
{
	uint8_t out[64];
	size_t first;

	for (uint32_t qpn = 0x100; qpn < 0x180; qpn++) {
		uint32_t begins = verify_flow(qpn, qpn, false),
			 follows = verify_flow(qpn, qpn, true);

		assert_int_equal(begins, qpn);
		verify_fill(out, sizeof(out), verify_seed(begins, 3));
		assert_true(verify_check(out, 64, verify_seed(follows, 3), &first) > 32);
		verify_fill(out, sizeof(out), verify_seed(follows, 3));
		assert_true(verify_check(out, 64, verify_seed(begins, 3), &first) > 32);
	}
}
