/* SPDX-License-Identifier: BSD-3-Clause */
/* Copy and CRC in one pass, compared with copy followed by CRC: bytes and whole
 * frames. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/common.h"
#include "case.h"
#include "frame.h"
#include "wire/icrc.h"

#include "../rand.h"
#include "headers.h"

#define LEN_MAX 9000
#define ROOM (LEN_MAX + 128)
#define GUARD 0xA5

static uint8_t src[ROOM], dst[ROOM], want[ROOM];
static uint32_t default_min; /* icrc_copy_min at the start */

static void
bytes_fill(uint64_t *seed)
{
	for (size_t i = 0; i < sizeof(src); i++)
		src[i] = (uint8_t)rand_next(seed);
}

/* From and to any offset in a cache line, from any CRC: no byte outside dst is
 * written. */
static void
copy_checked(uint32_t crc, size_t to, size_t from, size_t len)
{
	uint32_t got;

	memset(dst, GUARD, sizeof(dst));
	memset(want, GUARD, sizeof(want));
	memcpy(want + to, src + from, len);
	got = icrc_copy((struct icrc_sum){.crc = crc}, 0, dst + to, src + from, len);
	if (got != icrc_update(crc, src + from, len) ||
		memcmp(dst, want, sizeof(dst)) != 0)
		fail_msg("%zu bytes from %zu to %zu", len, from, to);
}

TEST(copy_and_crc_of_every_length)
{
	uint64_t seed = 1;

	bytes_fill(&seed);
	/* Every number of wide blocks, narrow blocks and remaining bytes. */
	for (size_t len = icrc_copy_min; len < 3 * 256; len++)
		copy_checked((uint32_t)rand_next(&seed), len % 64, len % 61, len);
	for (size_t len = 1024; len <= LEN_MAX; len += 1 + rand_below(&seed, 97))
		copy_checked((uint32_t)rand_next(&seed), rand_below(&seed, 128),
			rand_below(&seed, 128), len);
	copy_checked(0, 54, 0, 4096);
	copy_checked(UINT32_MAX, 70, 3, 4096);
}

/* Every bit of the source affects the CRC. */
TEST(every_bit_affects_the_crc)
{
	uint64_t seed = 2;
	uint32_t crc;

	bytes_fill(&seed);
	crc = icrc_copy((struct icrc_sum){.crc = 7}, 0, dst, src, 1100);
	for (size_t bit = 0; bit < 8 * 1100; bit++) {
		src[bit / 8] ^= 1u << bit % 8;
		assert_int_not_equal(
			icrc_copy((struct icrc_sum){.crc = 7}, 0, dst, src, 1100), crc);
		src[bit / 8] ^= 1u << bit % 8;
	}
}

/* Up to 80 bytes before the payload: some whole blocks of 16, and not. */
TEST(crc_continues_from_the_bytes_before)
{
	uint8_t before[80];
	uint64_t seed = 6;

	bytes_fill(&seed);
	memcpy(before, src + 5000, sizeof(before));
	for (size_t n = 0; n <= sizeof(before); n++) {
		uint32_t crc = (uint32_t)rand_next(&seed);
		struct icrc_sum sum = {.from = before, .crc = crc};
		uint32_t want_crc =
			icrc_update(icrc_update(crc, before, n), src, 1024 + 4 * n);

		assert_int_equal(icrc_copy(sum, n, dst, src, 1024 + 4 * n), want_crc);
	}
}

/* Headers, long pieces, short pieces in between, and the remaining bytes. */
TEST(crc_of_a_frame_in_pieces)
{
	uint64_t seed = 3;
	struct icrc_sum sum = {.from = dst, .crc = 5};

	bytes_fill(&seed);
	memcpy(dst, src, sizeof(dst));
	for (size_t at = 16; at < 3000; at += 1000) {
		memset(dst + at, 0, 700);
		sum = icrc_sum_copy(sum, dst + at, src + at, 700);
		assert_ptr_equal(sum.from, dst + at + 700);
	}
	assert_memory_equal(dst, src, sizeof(dst));
	assert_int_equal(icrc_update(sum.crc, sum.from, 100),
		icrc_update(5, src, (size_t)(sum.from - dst) + 100));
}

/* ---- Frames ---- */

#define HEAD (IP_OFF + 40 + 8 + 12) /* at the most */

/* Builds a SEND whose payload is whole words; returns the frame's length. */
static size_t
frame_make(uint8_t *frame, bool v4, unsigned payload)
{
	size_t udp = v4 ? UDP4_OFF : UDP6_OFF, head = udp + 8 + 12;
	unsigned udp_len = 8 + 12 + payload + ICRC_LEN;

	memcpy(frame, v4 ? frame_vector4 : frame_vector6, head);
	frame[udp + 8 + 1] = 0; /* no pad */
	memcpy(frame + head, src, payload);
	be16_put(frame + udp + 4, udp_len);
	be16_put(frame + IP_OFF + (v4 ? 2 : 4), v4 ? 20 + udp_len : udp_len);
	frame_seal(frame, IP_OFF);
	return head + payload + ICRC_LEN;
}

/* Whether the ICRC is right; both checks must agree. The payload is copied in either
 * case, and nothing else is written. Also false for packets whose headers are invalid. */
static bool
packet_right(const struct pkt *pkt, size_t to)
{
	struct pkt_view view;
	bool right;

	if (pkt_parse_headers(pkt, 0, &view) != DROP_none || view.pad != 0 ||
		view.payload_len < icrc_copy_min)
		return false;
	memset(dst, GUARD, sizeof(dst));
	memset(want, GUARD, sizeof(want));
	memcpy(want + to, view.payload, view.payload_len);
	right = icrc_check(&view);
	assert_int_equal(icrc_check_copy(&view, dst + to), right);
	assert_memory_equal(dst, want, sizeof(dst));
	return right;
}

/* With the frame as it is, and with a copy of its headers; both must agree. */
static bool
frame_right(const uint8_t *frame, size_t bytes, size_t to)
{
	uint8_t *copy = malloc(bytes);
	struct pkt_headers *headers = headers_make(frame);
	struct pkt pkt = {.data = copy,
		.len = (uint16_t)bytes,
		.room = (uint16_t)bytes,
		.flags = PKT_RX_IPV4_CKSUM_OK};
	bool right;

	assert_non_null(copy);
	memcpy(copy, frame, bytes);
	right = packet_right(&pkt, to);
	assert_memory_equal(copy, frame, bytes);
	/* Of these headers only the copy is read. */
	memset(copy, 0, IP_OFF + 20 + 8 + 12);
	headers->frame = copy;
	headers_use(&pkt, headers);
	assert_int_equal(packet_right(&pkt, to), right);
	free(headers);
	free(copy);
	return right;
}

/* Intact frames, then with one bit corrupted in the PSN, the payload or the ICRC, and
 * with one bit changed that routers may change. */
TEST(both_checks_detect_corruption)
{
	static uint8_t frame[HEAD + 4096 + ICRC_LEN];
	uint64_t seed = 4;

	bytes_fill(&seed);
	for (unsigned i = 0; i < 2 * (4096 - icrc_copy_min) / 4 + 2; i++) {
		unsigned payload = icrc_copy_min + i / 2 * 4;
		bool v4 = i % 2 == 0;
		size_t bth = v4 ? BTH4_OFF : BTH6_OFF;
		size_t bytes = frame_make(frame, v4, payload);
		const size_t wrong[] = {bth + 11, bth + 12, bytes - 5,
			bth + 12 + rand_below(&seed, payload), bytes - 4, bytes - 1};

		assert_true(frame_right(frame, bytes, i % 64));
		frame[bth + 4] ^= 1u << i % 8;
		assert_true(frame_right(frame, bytes, i % 61));
		for (unsigned k = 0; k < RTE_DIM(wrong); k++) {
			frame[wrong[k]] ^= 1u << (i + k) % 8;
			assert_false(frame_right(frame, bytes, i % 64));
			frame[wrong[k]] ^= 1u << (i + k) % 8;
		}
	}
}

/* Both checks cover the same bits of the headers. */
TEST(both_checks_cover_the_same_bits)
{
	static uint8_t frame[HEAD + 1024 + ICRC_LEN];
	uint64_t seed = 5;

	bytes_fill(&seed);
	for (unsigned v4 = 0; v4 < 2; v4++) {
		size_t head = (v4 ? BTH4_OFF : BTH6_OFF) + 12;
		size_t bytes = frame_make(frame, v4, 1024);
		unsigned right = 0;

		for (size_t bit = 0; bit < 8 * head; bit++) {
			frame[bit / 8] ^= 1u << bit % 8;
			right += frame_right(frame, bytes, 7);
			frame[bit / 8] ^= 1u << bit % 8;
		}
		/* The bits that are not covered: MACs; TOS, TTL and checksum, or traffic
		 * class, flow label and hop limit; UDP checksum; byte 4 of the BTH. */
		assert_int_equal(right, 96 + (v4 ? 32 : 36) + 16 + 8);
	}
}

TEST(default_follows_the_cpu)
{
	bool wide = false;

#ifdef __x86_64__
	wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
	       __builtin_cpu_supports("vpclmulqdq");
#endif
	assert_int_equal(default_min, wide ? ICRC_COPY_MIN : UINT32_MAX);
}

static int
copy_always(void **state)
{
	default_min = icrc_copy_min;
	icrc_copy_min = ICRC_COPY_MIN;
	return 0;
}

TEST_GROUP(copy_always, NULL)
