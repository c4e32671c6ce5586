/* SPDX-License-Identifier: BSD-3-Clause */
/* A scatter/gather list over one buffer: pieces in any order, gaps between them that must
 * not change, and the key that covers them. */
#ifndef ROCADE_SIM_SGL_H
#define ROCADE_SIM_SGL_H

#include <infiniband/verbs.h>

#include "arena.h"

#define SGL_PIECES 6
#define SGL_ALIGNED (1 << 29) /* flag in `access`: align to 8 bytes */

struct host;

struct sgl {
	struct buf buf;
	uint32_t total;
	uint32_t lkey;
	uint64_t shift;    /* offset from an address to the address in an SGE */
	struct ibv_mr *mr; /* a region of this list; NULL: the host's */
	unsigned n;
	struct {
		uint32_t at, len;
	} piece[SGL_PIECES];
};

/* Allocates a list. empty: allows pieces of length 0, which mean 2^31 in a receive.
 * access: rights of a region of its own, which is registered now and then. Returns false
 * if there is no room. */
bool sgl_get(struct host *h, unsigned pd, uint32_t len, unsigned max_pieces, bool empty,
	int access, struct sgl *out);
/* Frees the list. Checks that all but its first `written` bytes hold the pattern. */
void sgl_put(struct host *h, struct sgl *s, uint32_t written);

void sgl_sges(const struct sgl *s, struct ibv_sge *out);
void sgl_fill(const struct sgl *s, uint64_t key, uint32_t offset, uint32_t len);
/* Returns whether bytes [from, from + len) of the list are the message's bytes from
 * `offset`. */
bool sgl_is(
	const struct sgl *s, uint32_t from, uint64_t key, uint32_t offset, uint32_t len);
/* Returns how many bytes from the start hold the message instead of the pattern. Returns
 * -1 if a packet (`mtu` bytes) is partly written or the state is otherwise impossible.
 * may: SGL_*. */
#define SGL_HOLES 1 /* packets in between may be missing */
/* a corrupted packet, neither the first nor the last, may follow the received ones */
#define SGL_CORRUPTED 2
int64_t sgl_part(
	const struct sgl *s, uint64_t key, uint32_t len, uint32_t mtu, unsigned may);
void sgl_copy_out(const struct sgl *s, uint32_t from, void *to, uint32_t len);

#endif
