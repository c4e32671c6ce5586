/* SPDX-License-Identifier: BSD-3-Clause */
/* Two million checks of random regions, compared with a list and 128-bit arithmetic. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "case.h"
#include "key_fixture.h"

#include "../rand.h"

#define LIVE 40
#define CHECKS 2000000

typedef unsigned __int128 wide;

struct region {
	uint32_t key; /* 0: none */
	uint32_t pd;
	uint64_t va;
	uint64_t len;
	uintptr_t host;
	unsigned access;
};

static struct region regions[LIVE];
static uint32_t stale[LIVE];

static const struct region *
model_find(uint32_t key)
{
	for (unsigned i = 0; i < LIVE; i++) {
		if (key != 0 && regions[i].key == key)
			return &regions[i];
	}
	return NULL;
}

static uint8_t *
model_check(uint32_t key, uint32_t pd, uint64_t va, uint64_t len, unsigned need)
{
	const struct region *r = model_find(key);

	if (r == NULL || r->pd != pd || (need & ~r->access) != 0)
		return NULL;
	if (va < r->va || (wide)va + len > (wide)r->va + r->len)
		return NULL;
	return (uint8_t *)(r->host + (uintptr_t)(va - r->va));
}

/* Registers a random region in a random place; frees the region that was there. */
static void
model_replace(uint64_t *rand)
{
	unsigned i = rand_below(rand, LIVE);
	struct region *r = &regions[i];
	int rc;

	if (r->key != 0) {
		assert_int_equal(key_free(&table, r->key), 0);
		stale[i] = r->key;
	}
	r->pd = rand_below(rand, 3);
	r->len = rand_magnitude(rand, 63);
	r->va = rand_below(rand, 2) ? rand_magnitude(rand, 64)
				    : -rand_magnitude(rand, 64);
	r->host = 1 + rand_magnitude(rand, 40);
	r->access = rand_below(rand, 64);
	r->key = 0;
	rc = key_alloc(&table, r->pd, r->va, (void *)r->host, r->len, r->access, &r->key);
	if ((wide)r->va + r->len > (wide)1 << 64 ||
		((r->access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) !=
				0 &&
			(r->access & IBV_ACCESS_LOCAL_WRITE) == 0)) {
		assert_int_equal(rc, -EINVAL);
		assert_int_equal(r->key, 0);
	} else {
		assert_int_equal(rc, 0);
		assert_int_not_equal(r->key, 0);
	}
}

static uint64_t
near(uint64_t *rand, uint64_t what)
{
	return what + rand_below(rand, 5) - 2;
}

/* Returns whether the access was granted. */
static bool
model_compare(uint64_t *rand, uint64_t seed, unsigned step)
{
	unsigned i = rand_below(rand, LIVE);
	const struct region *r = &regions[i];
	uint32_t pd = rand_below(rand, 8) == 0 ? rand_below(rand, 3) : r->pd;
	unsigned need = rand_below(rand, 2) ? r->access & (unsigned)rand_next(rand)
					    : rand_below(rand, 64);
	uint32_t key = r->key;
	uint64_t va, len;
	uint8_t *want;

	switch (rand_below(rand, 8)) {
	case 0:
		key = stale[i];
		break;
	case 1:
		key = (uint32_t)rand_magnitude(rand, 32);
		break;
	}
	va = rand_below(rand, 2)
		     ? r->va + (r->len ? rand_below(rand, r->len) : 0)
		     : near(rand, rand_below(rand, 2) ? r->va : r->va + r->len);
	len = rand_below(rand, 2) ? near(rand, r->va + r->len - va)
				  : rand_magnitude(rand, 64);
	want = model_check(key, pd, va, len, need);
	if (key_check(&table, key, pd, va, len, need) != want)
		fail_msg("seed %" PRIu64 ", step %u: key %#" PRIx32 " va %#" PRIx64
			 " len %#" PRIx64 " need %#x: not %p",
			seed, step, key, va, len, need, (void *)want);
	return want != NULL;
}

TEST_WITH(random_checks_agree_with_a_list, table_setup, table_teardown)
{
	const char *given = getenv("ROCADE_SEED");
	uint64_t seed = given != NULL ? strtoull(given, NULL, 0) : 2;
	uint64_t rand = seed;
	unsigned granted = 0;

	for (unsigned step = 0; step < CHECKS; step++) {
		if (step % 16 == 0)
			model_replace(&rand);
		granted += model_compare(&rand, seed, step);
	}
	/* Both results occur often. */
	assert_in_range(granted, CHECKS / 20, CHECKS - CHECKS / 20);
	for (unsigned i = 0; i < LIVE; i++) {
		if (regions[i].key != 0)
			assert_int_equal(key_free(&table, regions[i].key), 0);
	}
}
