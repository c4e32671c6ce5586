/* SPDX-License-Identifier: BSD-3-Clause */
/* A scatter list over one buffer: pieces in any order with gaps between them that nobody
 * may write to, and the key they are named by. */
#ifndef ROCADE_SIM_SGL_H
#define ROCADE_SIM_SGL_H

#include <infiniband/verbs.h>

#include "arena.h"

#define SGL_PIECES 6
#define SGL_ALIGNED (1 << 29) /* in access: to 8 bytes */

struct host;

struct sgl {
	struct buf buf;
	uint32_t total;
	uint32_t lkey;
	uint64_t shift;    /* what an address is named by, less the address */
	struct ibv_mr *mr; /* its own, NULL: the host's */
	unsigned n;
	struct {
		uint32_t at, len;
	} piece[SGL_PIECES];
};

/* empty: pieces may be of length 0, which in a receive means 2^31. access: of a region of
 * its own, with which it is registered now and then. False: no room. */
bool
sgl_get(struct host *h, unsigned pd, uint32_t len, unsigned max_pieces, bool empty,
	int access, struct sgl *out);
/* The first written bytes may hold anything, all else the pattern (checked). */
void
sgl_put(struct host *h, struct sgl *s, uint32_t written);

void
sgl_sges(const struct sgl *s, struct ibv_sge *out);
void
sgl_fill(const struct sgl *s, uint64_t key, uint32_t offset, uint32_t len);
/* Bytes [from, from + len) of the list are those of the message behind skip bytes. */
bool
sgl_is(const struct sgl *s, uint32_t from, uint64_t key, uint32_t offset, uint32_t len);
/* How many bytes at the start are not the pattern any more but the message's; -1: torn
 * within a packet of so many bytes, or otherwise not as it can be. may: SGL_*. */
#define SGL_HOLES 1 /* packets may be missing in between */
#define SGL_BENT 2  /* behind what has come there may be a damaged one, no first or last */
int64_t
sgl_part(const struct sgl *s, uint64_t key, uint32_t len, uint32_t mtu, unsigned may);
void
sgl_copy_out(const struct sgl *s, uint32_t from, void *to, uint32_t len);

#endif
