/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"

#include "../rand.h"
#include "case.h"

static const struct random_key reference = {
	{UINT64_C(0x0706050403020100), UINT64_C(0x0f0e0d0c0b0a0908)}};

/* From the vectors of the authors: the key is 00 01 02..., the message too. */
TEST(siphash_vectors)
{
	static const struct {
		size_t len;
		uint64_t hash;
	} rows[] = {{0, UINT64_C(0x726fdb47dd0e0e31)}, {1, UINT64_C(0x74f839c593dc67fd)},
		{2, UINT64_C(0x0d6c8009d9a94f5a)}, {8, UINT64_C(0x93f5f5799a932462)},
		{15, UINT64_C(0xa129ca6149be45e5)}};
	uint8_t message[16];

	for (unsigned i = 0; i < sizeof(message); i++)
		message[i] = (uint8_t)i;
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_true(siphash24(&reference, message, rows[i].len) == rows[i].hash);
}

/* Undoes x ^= x >> shift. */
static uint64_t
unshift(uint64_t x, unsigned shift)
{
	uint64_t y = x;

	for (unsigned done = shift; done < 64; done += shift)
		y = x ^ y >> shift;
	return y;
}

/* Returns the state of SplitMix64 after the number, which it reveals, because it is a
 * permutation of the state. The factors are the inverses of its own. */
static uint64_t
splitmix64_state(uint64_t number)
{
	number = unshift(number, 31) * UINT64_C(0x319642b2d24d8ec3);
	number = unshift(number, 27) * UINT64_C(0x96de1b173f119089);
	return unshift(number, 30);
}

/* A peer that sees one number cannot compute the next one, as it can with a counter or
 * with SplitMix64. */
TEST(next_number_is_not_predicted)
{
	struct random_numbers numbers;
	uint64_t test = 99, seen, next;

	seen = rand_next(&test);
	next = splitmix64_state(seen);
	assert_true(rand_next(&next) == rand_next(&test));
	random_numbers_init(&numbers, &reference, RANDOM_PSNS);
	seen = random_next(&numbers);
	for (unsigned i = 0; i < 1000; i++) {
		uint64_t guess = splitmix64_state(seen);

		next = random_next(&numbers);
		assert_false(next == rand_next(&guess));
		assert_false(next - seen <= 2);
		seen = next;
	}
}

/* The same key gives the same numbers, another key or use others. */
TEST(numbers_depend_on_key_and_use)
{
	const struct random_key other = {{reference.word[0], reference.word[1] ^ 1}};
	struct random_numbers a, b, c, d;

	random_numbers_init(&a, &reference, RANDOM_PSNS);
	random_numbers_init(&b, &reference, RANDOM_PSNS);
	random_numbers_init(&c, &reference, RANDOM_PORTS);
	random_numbers_init(&d, &other, RANDOM_PSNS);
	assert_true(random_once(&reference, RANDOM_PSNS) == random_next(&a));
	random_next(&b);
	random_next(&c);
	random_next(&d);
	for (unsigned i = 0; i < 100; i++) {
		uint64_t number = random_next(&a);

		assert_true(number == random_next(&b));
		assert_false(number == random_next(&c));
		assert_false(number == random_next(&d));
	}
}

TEST(drawn_keys_differ)
{
	struct random_key a = {{0}}, b = {{0}};

	assert_int_equal(random_key_draw(&a), 0);
	assert_int_equal(random_key_draw(&b), 0);
	assert_memory_not_equal(&a, &b, sizeof(a));
	for (unsigned i = 0; i < 2; i++) {
		assert_true(a.word[i] != 0);
		assert_true(a.word[i] != b.word[i]);
	}
}

/* Each number has one place, random_permute_back() finds it, and neighbours do not stay
 * neighbours. */
TEST(permutation_is_one)
{
	bool *taken = calloc(1u << 16, sizeof(*taken));
	unsigned beside = 0;
	uint32_t last = 0;

	for (unsigned bits = 2; bits <= 16; bits += 2) {
		memset(taken, 0, 1u << 16);
		beside = 0;
		for (uint32_t i = 0; i < 1u << bits; i++) {
			uint32_t to = random_permute(&reference, 5, bits, i);

			assert_in_range(to, 0, (1u << bits) - 1);
			assert_false(taken[to]);
			taken[to] = true;
			assert_int_equal(random_permute_back(&reference, 5, bits, to), i);
			beside += to - last + 1 <= 2;
			last = to;
		}
	}
	assert_in_range(beside, 0, 16); /* of 65536 */
	free(taken);
	for (uint32_t i = 0; i < 1000; i++) {
		last = random_permute(&reference, 0, 32, i);
		assert_int_equal(random_permute_back(&reference, 0, 32, last), i);
	}
}

TEST(permutations_differ_by_tweak)
{
	unsigned same = 0;

	for (uint32_t i = 0; i < 256; i++)
		same += random_permute(&reference, 1, 8, i) ==
			random_permute(&reference, 2, 8, i);
	assert_in_range(same, 0, 8);
}
