/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Numbers that a peer or another client must not be able to guess. They are outputs of
 * SipHash-2-4 (Aumasson, Bernstein 2012) with a secret key: who knows some of them, but
 * not the key, cannot compute the others. Not for the data path.
 *
 * A process draws one key from the kernel and derives a key for each use. A test sets a
 * key of its own instead, and gets the same numbers in each run.
 */
#ifndef ROCADE_BASE_RANDOM_H
#define ROCADE_BASE_RANDOM_H

#include <stddef.h>
#include <stdint.h>

struct random_key {
	uint64_t word[2];
};

enum random_use {
	RANDOM_CM_IDS,
	RANDOM_CM_TIDS,
	RANDOM_CM_TABLES,
	RANDOM_KEY_INDICES,
	RANDOM_KEY_VARIANTS,
	RANDOM_MAC,
	RANDOM_PORTS,
	RANDOM_PSNS,
	RANDOM_QPN_BASE,
	RANDOM_QPNS,
	RANDOM_SRQN_BASE,
	RANDOM_SWITCH_TABLES,
	RANDOM_EXT_TABLE,
	RANDOM_EXT_TIDS,
	RANDOM_DEVICE_INDEX,
	RANDOM_JOINS,
};

struct random_numbers {
	struct random_key key;
	uint64_t count; /* of numbers returned so far */
};

/* Fills the key with random bits of the kernel. Returns 0 or -errno. */
int random_key_draw(struct random_key *key);
/* Returns the key for a use. */
struct random_key random_key_derive(const struct random_key *key, enum random_use use);

/* Starts the sequence of numbers for a use. random_next() returns the next one. */
void random_numbers_init(struct random_numbers *numbers, const struct random_key *key,
	enum random_use use);
uint64_t random_next(struct random_numbers *numbers);
/* Returns the first number of the sequence. */
uint64_t random_once(const struct random_key *key, enum random_use use);

uint64_t siphash24(const struct random_key *key, const void *bytes, size_t len);

/*
 * A secret permutation of the numbers below 2^bits (bits: even, 2..32). Each tweak gives
 * another permutation. Different numbers get different results, in an order that looks
 * random. random_permute_back() is the inverse.
 */
uint32_t random_permute(
	const struct random_key *key, uint32_t tweak, unsigned bits, uint32_t number);
uint32_t random_permute_back(
	const struct random_key *key, uint32_t tweak, unsigned bits, uint32_t number);

#endif
