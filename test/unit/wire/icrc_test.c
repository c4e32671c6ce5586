/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <sys/mman.h>

#include "case.h"
#include "frame.h"
#include "wire/icrc.h"

#include "../rand.h"

TEST(crc_in_one_and_two_pieces)
{
	static const uint8_t ones[8] = {0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF};
	static const uint8_t digits[] = "123456789";

	/* CRC-32's check value, in one piece and in every two pieces. */
	for (size_t i = 0; i <= 9; i++)
		assert_int_equal(
			icrc_update(icrc_update(0, digits, i), digits + i, 9 - i),
			0xCBF43926);
	assert_int_equal(~icrc_update(0, ones, 8), 0xDEBB20E3);
}

TEST(isal_and_zlib_agree)
{
	uint8_t bytes[4096 + 7];
	crc_fn *isal = crc_named("isal"), *zlib = crc_named("zlib");
	uint64_t seed_state = 1;

	assert_true(isal != NULL && zlib != NULL && isal != zlib);
	assert_true(crc_in_use == isal || crc_in_use == zlib);
	assert_null(crc_named(""));
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)rand_next(&seed_state);
	for (size_t len = 0; len <= 4096; len += 1 + len / 8)
		for (size_t at = 0; at < 8; at++) {
			uint32_t seed = (uint32_t)(len * 2654435761u);

			assert_int_equal(
				isal(seed, bytes + at, len), zlib(seed, bytes + at, len));
		}
}

TEST(choice_follows_the_cpu)
{
	if (getenv("ROCADE_CRC") != NULL || getenv("ROCADE_EMULATED") != NULL)
		return;
#ifdef __x86_64__
	__builtin_cpu_init();
	assert_true(crc_in_use ==
		    crc_named(__builtin_cpu_supports("pclmul") ? "isal" : "zlib"));
#endif
}

/* Computed from the UDP length on, as frame_end() does. */
static uint32_t
behind_path(uint32_t crc, const uint8_t *udp, size_t payload_len)
{
	uint8_t bytes[4 + 12 + 8];

	memcpy(bytes, udp + 4, 4 + 12 + payload_len);
	bytes[2] = bytes[3] = bytes[8] = 0xFF;
	return icrc_update(crc, bytes, 4 + 12 + payload_len);
}

TEST(vectors_by_parts)
{
	uint32_t crc;

	crc = icrc_path(frame_vector4 + IP_OFF, 4);
	assert_int_equal(behind_path(crc, frame_vector4 + UDP4_OFF, 0), 0xfcd173f3);
	crc = icrc_path(frame_vector6 + IP_OFF, 6);
	assert_int_equal(behind_path(crc, frame_vector6 + UDP6_OFF, 8), 0xc3a3af96);
}

TEST(reference_agrees)
{
	assert_int_equal(ref_icrc(frame_vector4 + IP_OFF, NULL), 0xfcd173f3);
	assert_int_equal(ref_icrc(frame_vector6 + IP_OFF, NULL), 0xc3a3af96);
}

/* Whether routers may change this bit, which the ICRC therefore masks. */
static bool
bit_masked(size_t at, unsigned bit, bool v4)
{
	size_t ip = at - IP_OFF;
	size_t udp = v4 ? 20 : 40;

	if (at < IP_OFF)
		return true;
	if (ip == udp + 6 || ip == udp + 7 || ip == udp + 8 + 4)
		return true;
	if (v4)
		return ip == 1 || ip == 8 || ip == 10 || ip == 11;
	return (ip == 0 && bit < 4) || (ip >= 1 && ip <= 3) || ip == 7;
}

TEST(icrc_covers_unmasked_bits)
{
	for (unsigned v4 = 0; v4 < 2; v4++) {
		size_t len = v4 ? VECTOR4_LEN : VECTOR6_LEN;
		uint8_t frame[VECTOR6_LEN];

		memcpy(frame, v4 ? frame_vector4 : frame_vector6, len);
		for (size_t bit = 0; bit < len * 8; bit++) {
			bool ethertype = bit / 8 == 12 || bit / 8 == 13;
			bool want = bit_masked(bit / 8, bit % 8, v4) && !ethertype;
			bool have;

			frame[bit / 8] ^= 1 << bit % 8;
			have = parse_exact(frame, len, PKT_RX_IPV4_CKSUM_OK, 0, NULL,
				       NULL) == DROP_none;
			if (have != want)
				fail_msg("IPv%d byte %zu bit %zu", v4 ? 4 : 6, bit / 8,
					bit % 8);
			frame[bit / 8] ^= 1 << bit % 8;
		}
	}
}

/* Builds a SEND whose payload is random words; returns the frame's length. */
static size_t
frame_of_words(uint8_t *frame, bool v4, unsigned words, uint64_t *rand)
{
	size_t udp = IP_OFF + (v4 ? 20 : 40);
	unsigned udp_len = 8 + 12 + 4 * words + 4;
	size_t len = udp + udp_len;

	memcpy(frame, v4 ? frame_vector4 : frame_vector6, udp + 8 + 12);
	frame[udp + 8 + 1] = 0;
	for (size_t at = udp + 8 + 12; at < len; at++)
		frame[at] = (uint8_t)rand_next(rand);
	be16_put(frame + udp + 4, udp_len);
	if (v4)
		be16_put(frame + IP_OFF + 2, udp_len + 20);
	else
		be16_put(frame + IP_OFF + 4, udp_len);
	frame_seal(frame, IP_OFF);
	return len;
}

/* Every length, so that every kind of tail occurs; random contents. */
TEST(icrc_of_every_length)
{
	uint64_t seed = 0x1c2c, rand = seed;
	static uint8_t frame[IP_OFF + 40 + 8 + 12 + 4096 + 4];

	for (unsigned i = 0; i < 2 * 1100; i++) {
		bool v4 = i % 2 == 0;
		unsigned words = i / 2 < 1024 ? i / 2 : (unsigned)rand_below(&rand, 1025);
		size_t len = frame_of_words(frame, v4, words, &rand);

		if (parse_exact(frame, len, 0, 0, NULL, NULL) != DROP_none)
			fail_msg("seed 0x%llx round %u: %u words",
				(unsigned long long)seed, i, words);
		frame[len - 1 - rand_below(&rand, 4 + 4 * words)] ^= 0x10;
		if (parse_exact(frame, len, 0, 0, NULL, NULL) != DROP_icrc)
			fail_msg("seed 0x%llx round %u: %u words, not seen",
				(unsigned long long)seed, i, words);
	}
}

/* A client cannot write the memory in which it receives. */
TEST(frame_is_only_read)
{
	const size_t page = 4096;
	uint8_t *mem = mmap(
		NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t rand = 5;

	assert_ptr_not_equal(mem, MAP_FAILED);
	for (unsigned i = 0; i < 2 * 256; i++) {
		struct pkt pkt = {.data = mem, .room = page};
		struct pkt_view view;

		assert_int_equal(mprotect(mem, page, PROT_READ | PROT_WRITE), 0);
		pkt.len = (uint16_t)frame_of_words(mem, i % 2 == 0, i / 2, &rand);
		assert_int_equal(mprotect(mem, page, PROT_READ), 0);
		assert_int_equal(pkt_parse(&pkt, 0, &view), DROP_none);
		if (view.payload_len >= icrc_copy_min) {
			uint8_t to[4096];

			assert_true(icrc_check_copy(&view, to));
		}
	}
	munmap(mem, page);
}
