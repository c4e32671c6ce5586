/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/*
 * Scatter and gather: walks a work request's SGEs and copies the payload, once. Each
 * packet checks the keys of the bytes that it accesses, because the region may be
 * deregistered before the next packet. The key of an SGE of length 0 is not checked.
 */
#ifndef ROCADE_MEM_SGE_H
#define ROCADE_MEM_SGE_H

#include <errno.h>
#include <string.h>

#include "mem/key.h"
#include "wire/icrc.h"

/* Same layout as struct ibv_sge (asserted in lib/verbs). A receive SGE posted with length
 * 0 means 2^31 bytes and is stored with that length. */
struct sge {
	uint64_t addr;
	uint32_t len;
	uint32_t lkey;
};

/*
 * glibc's memcpy() uses "rep movsb" for 4 KiB and more. On Zen 3 and 4 that takes up to
 * fifteen times as long if dst lies a few bytes behind src modulo the page size (glibc
 * bug 30994). Smaller pieces go through vector registers.
 */
#define COPY_PIECE 2048u

static inline void
payload_copy(uint8_t *dst, const uint8_t *src, uint32_t len)
{
	uint32_t piece;

	for (; unlikely(len > COPY_PIECE); len -= piece, dst += piece, src += piece) {
		piece = RTE_MIN(len, COPY_PIECE);
		memcpy(dst, src, piece);
	}
	memcpy(dst, src, len);
}

/* Copies bytes of one cache line, in ascending order by stores of 16 bytes at most. memcpy() of a few bytes
 * stores the last ones first. */
static inline void
line_copy(uint8_t *dst, const uint8_t *src, uint32_t len)
{
	for (; len >= 16; len -= 16, dst += 16, src += 16) {
		memcpy(dst, src, 16);
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
	}
	for (uint32_t piece = 8; len != 0; piece /= 2) {
		if ((len & piece) == 0)
			continue;
		memcpy(dst, src, piece);
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
		len -= piece;
		dst += piece;
		src += piece;
	}
}

/* Copies at least one byte of payload. Another thread sees its last cache line after the lines before it:
 * docs/memory-order.md. */
static inline void
payload_copy_end(uint8_t *dst, const uint8_t *src, uint32_t len)
{
	uint32_t in_line = (uint32_t)((uintptr_t)(dst + len - 1) % LINE_SIZE) + 1;
	uint32_t before = len > in_line ? len - in_line : 0;

	if (before != 0) {
		payload_copy(dst, src, before);
		__atomic_thread_fence(__ATOMIC_RELEASE);
	}
	line_copy(dst + before, src + before, len - before);
}

/* Copies payload into a frame. Unless sum is NULL, the copy may be added to the frame's
 * ICRC sum. */
static inline void
payload_copy_sum(struct icrc_sum *sum, uint8_t *dst, const uint8_t *src, uint32_t len)
{
	if (sum == NULL || likely(len < icrc_copy_min))
		payload_copy(dst, src, len);
	else
		*sum = icrc_sum_copy(*sum, dst, src, len);
}

/* A position in a list of SGEs; {0} is the start. The end of one SGE and the start of the
 * next are the same position. Every function accepts both forms. */
struct sge_pos {
	uint32_t index;
	uint32_t offset; /* bytes into sge[index] */
};

/* A list of SGEs whose keys are of this PD, and where its position is kept: NULL for
 * sge_check(). */
struct sge_cursor {
	const struct key_table *keys;
	const struct sge *sge;
	uint32_t num;
	uint32_t pd;
	struct sge_pos *pos;
};

/* Sum of the lengths. 64 bits: 16 lengths of 2^31 do not fit in 32. */
uint64_t sge_total(const struct sge *sge, uint32_t num);

/* Returns 0 if every SGE of the list lies in one region of the PD with the access needed,
 * else -EACCES. */
int sge_check(const struct sge_cursor *c, unsigned need);

/* Returns the position offset bytes after the start (offset <= total). */
struct sge_pos sge_seek(const struct sge *sge, uint32_t num, uint64_t offset);

/* Returns whether the next len bytes lie in the SGE of the position, the common case. */
static inline bool
sge_holds(const struct sge_cursor *c, uint32_t len)
{
	return c->pos->index < c->num &&
	       c->sge[c->pos->index].len - c->pos->offset >= len;
}

/* Returns the host address of the next len bytes, which lie in the SGE of the position, or
 * NULL if its key does not grant the access. */
static inline uint8_t *
sge_host(const struct sge_cursor *c, uint32_t len, unsigned need)
{
	const struct sge *s = &c->sge[c->pos->index];
	uint64_t va = s->addr + c->pos->offset;

	/* An SGE that wraps around 2^64 must not match a region at address 0. */
	if (unlikely(va < c->pos->offset))
		return NULL;
	return key_check(c->keys, s->lkey, c->pd, va, len, need);
}

/* sge_gather() and sge_scatter() for bytes in several SGEs (runs: contiguous pieces). */
int sge_gather_runs(struct sge_cursor *c, uint8_t *dst, uint32_t len);
int sge_scatter_runs(struct sge_cursor *c, const uint8_t *src, uint32_t len);

/*
 * Copies the next len bytes of the list to dst and moves the position past them. Returns
 * -EACCES if a key does not grant local read; dst then holds garbage and the position is
 * unchanged. The list must hold len bytes (asserted). sum: ICRC sum of the frame that
 * contains dst, or NULL. Only bytes that lie in one SGE may be added to the sum.
 */
static inline int
sge_gather(struct sge_cursor *c, uint8_t *dst, uint32_t len, struct icrc_sum *sum)
{
	const uint8_t *host;

	if (unlikely(!sge_holds(c, len))) {
		struct sge_pos pos = *c->pos; /* lets *c->pos stay in registers */
		struct sge_cursor at = {c->keys, c->sge, c->num, c->pd, &pos};
		int rc = sge_gather_runs(&at, dst, len);

		*c->pos = pos;
		return rc;
	}
	host = sge_host(c, len, 0);
	if (unlikely(host == NULL))
		return len == 0 ? 0 : -EACCES;
	payload_copy_sum(sum, dst, host, len);
	c->pos->offset += len;
	return 0;
}

/*
 * Copies len bytes from src to the next bytes of the list and moves the position past
 * them. Returns -EMSGSIZE if the list has fewer bytes left, -EACCES if not all of them may
 * be written (IBV_ACCESS_LOCAL_WRITE). Both checks come before the first write. Where SGEs
 * overlap each other, the later one wins. src must not overlap them.
 */
static __rte_always_inline int
sge_scatter(struct sge_cursor *c, const uint8_t *src, uint32_t len)
{
	uint8_t *host;

	if (unlikely(!sge_holds(c, len))) {
		struct sge_pos pos = *c->pos; /* lets *c->pos stay in registers */
		struct sge_cursor at = {c->keys, c->sge, c->num, c->pd, &pos};
		int rc = sge_scatter_runs(&at, src, len);

		*c->pos = pos;
		return rc;
	}
	host = sge_host(c, len, IBV_ACCESS_LOCAL_WRITE);
	if (unlikely(host == NULL))
		return len == 0 ? 0 : -EACCES;
	payload_copy(host, src, len);
	c->pos->offset += len;
	return 0;
}

#endif
