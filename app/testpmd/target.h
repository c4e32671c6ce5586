/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory that the peer's WRITEs, READs and atomics access. It begins with an area that READs
 * read. Behind it are the words of each QP, for its atomics, and then its ring: the wth WRITE of a QP
 * goes to slot w % slots of it. A slot is used again when this end has checked it.
 */
#ifndef TESTPMD_TARGET_H
#define TESTPMD_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>

struct host;
struct conn;

enum target_word { WORD_FADD, WORD_CAS, WORDS_OF_QP = 8 };

/* Where the peer finds a target. */
struct target_map {
	uint64_t addr;
	uint64_t read_len;
	uint64_t stride; /* from one slot to the next */
	uint32_t slots;  /* of a QP */
	uint32_t rkey;
};

struct target {
	uint8_t *mem;
	size_t len;
	struct ibv_mr *mr;
	struct target_map map;
	bool filled, back; /* the area for READs; back: of verify_flow() */
};

/* Offsets in a target for n QPs, of QP i. */
static inline uint64_t
target_word(const struct target_map *map, unsigned i, enum target_word word)
{
	return map->read_len + ((uint64_t)i * WORDS_OF_QP + word) * sizeof(uint64_t);
}

static inline uint64_t
target_slot(const struct target_map *map, unsigned n, unsigned i, uint64_t w)
{
	return target_word(map, n, 0) +
	       ((uint64_t)i * map->slots + w % map->slots) * map->stride;
}

/* The offset that a READ of len bytes with this seed reads. */
static inline uint64_t
target_read(const struct target_map *map, uint64_t seed, uint64_t len)
{
	return (seed >> 8) % ((map->read_len - len) / 8 + 1) * 8;
}

/* The seed (verify.h) of the bytes from this offset of the area on. back: of the end that has the area. */
uint64_t target_read_seed(bool back, uint64_t offset);

/* At the first run that needs it. Returns 0, or an errno value with everything undone. */
int target_init(struct host *host);
void target_fini(struct target *target);
/* Fills the area for READs, unless it is filled. */
void target_fill(struct host *host);
/* Clears the words of a QP, whose messages are numbered from 0 again. */
void target_restart(struct host *host, const struct conn *conn);
/* Checks what the QP's WRITEs before the endth have left. Returns false if any byte is wrong. On UC a
 * WRITE may be lost, in part or as a whole: the slot is cleared when it is checked, so that its bytes
 * are then those of its message, or 0. */
bool target_verify(struct host *host, struct conn *conn, uint64_t end);
/* Whether all bytes of these WRITEs have come. */
bool target_is_complete(struct host *host, const struct conn *conn, uint64_t end);

#endif
