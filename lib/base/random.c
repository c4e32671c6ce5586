/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include <rte_byteorder.h>

#include "base/random.h"

int
random_key_draw(struct random_key *key)
{
	/* Requests of up to 256 bytes are never cut short (getrandom(2)). */
	return getrandom(key, sizeof(*key), 0) == sizeof(*key) ? 0 : -errno;
}

struct random_key
random_key_derive(const struct random_key *key, enum random_use use)
{
	uint8_t half[2][2] = {{(uint8_t)use, 0}, {(uint8_t)use, 1}};

	return (struct random_key){{siphash24(key, half[0], sizeof(half[0])),
		siphash24(key, half[1], sizeof(half[1]))}};
}

void
random_numbers_init(
	struct random_numbers *numbers, const struct random_key *key, enum random_use use)
{
	*numbers = (struct random_numbers){.key = random_key_derive(key, use)};
}

uint64_t
random_next(struct random_numbers *numbers)
{
	numbers->count++;
	return siphash24(&numbers->key, &numbers->count, sizeof(numbers->count));
}

uint64_t
random_once(const struct random_key *key, enum random_use use)
{
	struct random_numbers numbers;

	random_numbers_init(&numbers, key, use);
	return random_next(&numbers);
}

static uint64_t
rotate(uint64_t x, unsigned bits)
{
	return x << bits | x >> (64 - bits);
}

static void
sip_rounds(uint64_t v[4], unsigned rounds)
{
	while (rounds-- != 0) {
		v[0] += v[1];
		v[1] = rotate(v[1], 13) ^ v[0];
		v[0] = rotate(v[0], 32);
		v[2] += v[3];
		v[3] = rotate(v[3], 16) ^ v[2];
		v[0] += v[3];
		v[3] = rotate(v[3], 21) ^ v[0];
		v[2] += v[1];
		v[1] = rotate(v[1], 17) ^ v[2];
		v[2] = rotate(v[2], 32);
	}
}

static void
sip_word(uint64_t v[4], uint64_t word)
{
	v[3] ^= word;
	sip_rounds(v, 2);
	v[0] ^= word;
}

uint64_t
siphash24(const struct random_key *key, const void *bytes, size_t len)
{
	uint64_t v[4] = {key->word[0] ^ UINT64_C(0x736f6d6570736575),
		key->word[1] ^ UINT64_C(0x646f72616e646f6d),
		key->word[0] ^ UINT64_C(0x6c7967656e657261),
		key->word[1] ^ UINT64_C(0x7465646279746573)};
	const uint8_t *at = bytes;
	size_t left = len;
	uint64_t word;

	for (; left >= 8; at += 8, left -= 8) {
		memcpy(&word, at, 8);
		sip_word(v, rte_le_to_cpu_64(word));
	}
	word = 0;
	memcpy(&word, at, left);
	sip_word(v, rte_le_to_cpu_64(word) | (uint64_t)len << 56);
	v[2] ^= 0xff;
	sip_rounds(v, 4);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

/* A Feistel network with SipHash as its round function. */
#define FEISTEL_ROUNDS 8

static uint32_t
feistel(const struct random_key *key, uint32_t tweak, unsigned half, unsigned round,
	uint32_t number)
{
	uint32_t in[2] = {tweak, round << 24 | half << 16 | number};

	return (uint32_t)siphash24(key, in, sizeof(in)) & ((1u << half) - 1);
}

uint32_t
random_permute(
	const struct random_key *key, uint32_t tweak, unsigned bits, uint32_t number)
{
	unsigned half = bits / 2;
	uint32_t left = number >> half, right = number & ((1u << half) - 1);

	for (unsigned round = 0; round < FEISTEL_ROUNDS; round++) {
		uint32_t next = left ^ feistel(key, tweak, half, round, right);

		left = right;
		right = next;
	}
	return left << half | right;
}

uint32_t
random_permute_back(
	const struct random_key *key, uint32_t tweak, unsigned bits, uint32_t number)
{
	unsigned half = bits / 2;
	uint32_t left = number >> half, right = number & ((1u << half) - 1);

	for (unsigned round = FEISTEL_ROUNDS; round-- != 0;) {
		uint32_t last = right ^ feistel(key, tweak, half, round, left);

		right = left;
		left = last;
	}
	return left << half | right;
}
