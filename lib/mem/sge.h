/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Scatter and gather: the walk over a work request's SGEs and the only copy of payload. Keys
 * are checked for the bytes each packet touches, at that packet: a region may be gone by the
 * next one. An SGE of length 0 touches none, and its key is not looked at.
 */
#ifndef ROCADE_MEM_SGE_H
#define ROCADE_MEM_SGE_H

#include <errno.h>
#include <string.h>

#include "mem/key.h"
#include "wire/icrc.h"

/* Same layout as struct ibv_sge (asserted in lib/verbs). In a receive, a length of 0 at the
 * post means 2^31 bytes and is stored as that. */
struct sge {
	uint64_t addr;
	uint32_t len;
	uint32_t lkey;
};

/*
 * Where glibc copies 4 KiB at once it uses "rep movsb", which on Zen 3 and 4 takes up to fifteen
 * times as long where dst lies a few bytes behind src modulo a page (glibc bug 30994); less than
 * that goes through vector registers.
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

/* Into a frame whose ICRC sum is, unless that is NULL. */
static inline void
payload_copy_sum(struct icrc_sum *sum, uint8_t *dst, const uint8_t *src, uint32_t len)
{
	if (sum == NULL || likely(len < icrc_copy_min))
		payload_copy(dst, src, len);
	else
		*sum = icrc_sum_copy(*sum, dst, src, len);
}

/* A place in a list of SGEs. {0} is the start. The end of one SGE and the start of the next are
 * the same place in two spellings; every function takes either. */
struct sge_pos {
	uint32_t index;
	uint32_t offset; /* bytes into sge[index] */
};

/* Sum of the lengths: 64 bits, for 16 lengths of 2^31 do not fit 32. */
uint64_t sge_total(const struct sge *sge, uint32_t num);

/* 0 when every SGE is whole inside a region of this PD with the access needed, else -EACCES. */
int sge_check(const struct key_table *t, uint32_t pd, const struct sge *sge, uint32_t num,
	unsigned need);

/* The place offset bytes behind the start (offset <= total). */
struct sge_pos sge_seek(const struct sge *sge, uint32_t num, uint64_t offset);

/* The host address of len bytes from offset on in this SGE; NULL: not granted. */
static inline uint8_t *
sge_host(const struct key_table *t, uint32_t pd, const struct sge *s, uint32_t offset,
	uint32_t len, unsigned need)
{
	uint64_t va = s->addr + offset;

	/* An SGE that wraps around 2^64 must not come out in a region at 0. */
	if (unlikely(va < offset))
		return NULL;
	return key_check(t, s->lkey, pd, va, len, need);
}

/* Whether the next len bytes lie in the SGE of pos, which they mostly do. */
static inline bool
sge_holds(const struct sge *sge, uint32_t num, struct sge_pos pos, uint32_t len)
{
	return pos.index < num && sge[pos.index].len - pos.offset >= len;
}

/* sge_gather() and sge_scatter() where the bytes lie in several SGEs. */
int sge_gather_runs(const struct key_table *t, uint32_t pd, const struct sge *sge, uint32_t num,
	struct sge_pos *pos, uint8_t *dst, uint32_t len);
int sge_scatter_runs(const struct key_table *t, uint32_t pd, const struct sge *sge, uint32_t num,
	struct sge_pos *pos, const uint8_t *src, uint32_t len);

/*
 * Copies len bytes out of the list from *pos on to dst and moves *pos behind them. -EACCES when
 * a key does not grant local read of them; dst then holds garbage, *pos is unchanged. The list
 * must hold that many bytes (asserted). sum: of the frame that dst is in, or NULL; what comes out of
 * one SGE may be summed as it is copied.
 */
static inline int
sge_gather(const struct key_table *t, uint32_t pd, const struct sge *sge, uint32_t num,
	struct sge_pos *pos, uint8_t *dst, uint32_t len, struct icrc_sum *sum)
{
	const uint8_t *host;

	if (unlikely(!sge_holds(sge, num, *pos, len))) {
		struct sge_pos at = *pos; /* so that *pos can stay in registers */
		int rc = sge_gather_runs(t, pd, sge, num, &at, dst, len);

		*pos = at;
		return rc;
	}
	host = sge_host(t, pd, &sge[pos->index], pos->offset, len, 0);
	if (unlikely(host == NULL))
		return len == 0 ? 0 : -EACCES;
	payload_copy_sum(sum, dst, host, len);
	pos->offset += len;
	return 0;
}

/*
 * Copies len bytes from src into the list from *pos on and moves *pos. First checks that the
 * list has that many bytes left, else -EMSGSIZE, then that all of them may be written
 * (IBV_ACCESS_LOCAL_WRITE), else -EACCES; either way nothing has been written. Where SGEs
 * overlap each other the later piece wins; src never overlaps them.
 */
static inline int
sge_scatter(const struct key_table *t, uint32_t pd, const struct sge *sge, uint32_t num,
	struct sge_pos *pos, const uint8_t *src, uint32_t len)
{
	uint8_t *host;

	if (unlikely(!sge_holds(sge, num, *pos, len)))
		return sge_scatter_runs(t, pd, sge, num, pos, src, len);
	host = sge_host(
		t, pd, &sge[pos->index], pos->offset, len, IBV_ACCESS_LOCAL_WRITE);
	if (unlikely(host == NULL))
		return len == 0 ? 0 : -EACCES;
	payload_copy(host, src, len);
	pos->offset += len;
	return 0;
}

#endif
