/* SPDX-License-Identifier: BSD-3-Clause */
/* A switch with pairs; the test plays the daemon's memory. */
#ifndef ROCADE_TEST_SW_PAIR_FIXTURE_H
#define ROCADE_TEST_SW_PAIR_FIXTURE_H

#include "switch/sw_pair.h"
#include "switch_fixture.h"

static struct {
	unsigned created, sealed, settled, left, destroyed;
	int create_error, seal_error;
} memory;

static inline int
memory_create(struct sw_pair *pair)
{
	assert_int_equal(pair->geom.slots, CLIENT_SLOTS);
	assert_int_equal(pair->geom.buf_size, CLIENT_BUF_SIZE);
	memory.created += memory.create_error == 0;
	return memory.create_error;
}

static inline int
memory_seal(struct sw_pair *pair, unsigned side)
{
	assert_non_null(pair->sides[side].client);
	memory.sealed++;
	return memory.seal_error;
}

static inline void
memory_settle(struct sw_pair *pair)
{
	(void)pair;
	memory.settled++;
}

static inline void
memory_leave(struct sw_pair *pair, unsigned side)
{
	(void)pair;
	assert_true(side < 2);
	memory.left++;
}

static inline void
memory_destroy(struct sw_pair *pair)
{
	assert_null(pair->sides[0].client);
	assert_null(pair->sides[1].client);
	memory.destroyed++;
}

static const struct sw_pair_ops pair_ops = {
	.create = memory_create,
	.seal = memory_seal,
	.settle = memory_settle,
	.leave = memory_leave,
	.destroy = memory_destroy,
};

static inline void
pairs_open(struct switch_fixture *b)
{
	fixture_open(b);
	memset(&memory, 0, sizeof(memory));
	b->sw->pair_ops = &pair_ops;
	b->sw->conf.limits.pairs = 2;
}

/* Each part of each pair was given back once. */
static inline void
pairs_close(struct switch_fixture *b)
{
	fixture_close(b);
	assert_int_equal(memory.destroyed, memory.created);
	assert_int_equal(memory.left, 2 * memory.created);
}

#endif
