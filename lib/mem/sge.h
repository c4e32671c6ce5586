/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Scatter and gather: the walk over a work request's SGEs and the only copy of payload. Keys
 * are checked for the bytes each packet touches, at that packet: a region may be gone by the
 * next one. An SGE of length 0 touches none, and its key is not looked at.
 */
#ifndef ROCADE_MEM_SGE_H
#define ROCADE_MEM_SGE_H

#include "mem/key.h"

/* Same layout as struct ibv_sge (asserted in lib/verbs). In a receive, a length of 0 at the
 * post means 2^31 bytes and is stored as that. */
struct sge {
	uint64_t addr;
	uint32_t len;
	uint32_t lkey;
};

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

/*
 * Copies len bytes out of the list from *pos on to dst and moves *pos behind them. -EACCES when
 * a key does not grant local read of them; dst then holds garbage, *pos is unchanged. The list
 * must hold that many bytes (asserted).
 */
int sge_gather(const struct key_table *t, uint32_t pd, const struct sge *sge, uint32_t num,
	struct sge_pos *pos, uint8_t *dst, uint32_t len);

/*
 * Copies len bytes from src into the list from *pos on and moves *pos. First checks that the
 * list has that many bytes left, else -EMSGSIZE, then that all of them may be written
 * (IBV_ACCESS_LOCAL_WRITE), else -EACCES; either way nothing has been written. Where SGEs
 * overlap each other the later piece wins; src never overlaps them.
 */
int sge_scatter(const struct key_table *t, uint32_t pd, const struct sge *sge, uint32_t num,
	struct sge_pos *pos, const uint8_t *src, uint32_t len);

#endif
