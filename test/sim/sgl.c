/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <string.h>

#include "host.h"
#include "sgl.h"

#define GAP_MAX 20
#define OWN_MR 120 /* per mille */

static void
pieces_cut(struct sgl *s, uint32_t len, unsigned max, bool empty)
{
	uint32_t left = len;

	s->n = 0;
	while (s->n + 1 < max && left > 1 && chance(350)) {
		uint32_t part =
			empty ? (uint32_t)draw(left) : 1 + (uint32_t)draw(left - 1);

		s->piece[s->n++].len = part;
		left -= part;
	}
	if (left != 0 || chance(500) || s->n != 0)
		s->piece[s->n++].len = left;
}

/* Chooses the places of the pieces in the buffer, which has room for all. */
static void
pieces_place(struct sgl *s)
{
	unsigned order[SGL_PIECES] = {0};
	uint32_t at = 0;

	for (unsigned i = 0; i < s->n; i++) {
		unsigned other = (unsigned)draw(i + 1);

		order[i] = order[other];
		order[other] = i;
	}
	for (unsigned i = 0; i < s->n; i++) {
		if (s->n > 1)
			at += (uint32_t)draw(GAP_MAX);
		s->piece[order[i]].at = at;
		at += s->piece[order[i]].len;
	}
}

static void
own_mr(struct host *h, unsigned pd, struct sgl *s, int access)
{
	uint64_t iova = (uintptr_t)s->buf.data;

	switch (draw(3)) {
	case 0:
		access |= IBV_ACCESS_ZERO_BASED;
		s->shift = 0 - iova;
		break;
	case 1:
		s->shift = draw(UINT64_C(1) << 40) << 12;
		break;
	default:
		break;
	}
	s->mr = ibv_reg_mr_iova(
		h->pd[pd], s->buf.data, s->buf.len, iova + s->shift, access);
	CHECK(s->mr != NULL, "ibv_reg_mr_iova: %s", strerror(errno));
	s->lkey = s->mr->lkey;
}

bool
sgl_get(struct host *h, unsigned pd, uint32_t len, unsigned max_pieces, bool empty,
	int access, struct sgl *s)
{
	*s = (struct sgl){.total = len, .lkey = h->mr[pd]->lkey};
	pieces_cut(s, len, RTE_MIN(max_pieces, SGL_PIECES + 0u), empty);
	if (!arena_get(&h->arena, len + (s->n > 1 ? s->n * GAP_MAX : 0),
		    (access & SGL_ALIGNED) != 0, &s->buf))
		return false;
	pieces_place(s);
	if (access >= 0 && chance(OWN_MR))
		own_mr(h, pd, s, access & ~SGL_ALIGNED);
	return true;
}

void
sgl_put(struct host *h, struct sgl *s, uint32_t written)
{
	if (s->mr != NULL) {
		CHECK(ibv_dereg_mr(s->mr) == 0, "ibv_dereg_mr");
		s->mr = NULL;
	}
	for (unsigned i = 0; i < s->n && written != 0; i++) {
		uint32_t part = RTE_MIN(written, s->piece[i].len);

		pattern_fill(s->buf.data + s->piece[i].at, part);
		written -= part;
	}
	arena_put(&h->arena, &s->buf);
}

void
sgl_sges(const struct sgl *s, struct ibv_sge *out)
{
	for (unsigned i = 0; i < s->n; i++)
		out[i] = (struct ibv_sge){
			.addr = (uintptr_t)s->buf.data + s->piece[i].at + s->shift,
			.length = s->piece[i].len,
			.lkey = s->lkey};
}

void
sgl_fill(const struct sgl *s, uint64_t key, uint32_t offset, uint32_t len)
{
	for (unsigned i = 0; i < s->n && len != 0; i++) {
		uint32_t part = RTE_MIN(len, s->piece[i].len);

		content_fill(key, offset, s->buf.data + s->piece[i].at, part);
		offset += part;
		len -= part;
	}
}

bool
sgl_is(const struct sgl *s, uint32_t from, uint64_t key, uint32_t offset, uint32_t len)
{
	for (unsigned i = 0; i < s->n && len != 0; i++) {
		uint32_t part;

		if (from >= s->piece[i].len) {
			from -= s->piece[i].len;
			continue;
		}
		part = RTE_MIN(len, s->piece[i].len - from);
		if (!content_is(key, offset, s->buf.data + s->piece[i].at + from, part))
			return false;
		offset += part;
		len -= part;
		from = 0;
	}
	return len == 0;
}

static bool
sgl_pattern(const struct sgl *s, uint32_t from, uint32_t len)
{
	for (unsigned i = 0; i < s->n && len != 0; i++) {
		uint32_t part;

		if (from >= s->piece[i].len) {
			from -= s->piece[i].len;
			continue;
		}
		part = RTE_MIN(len, s->piece[i].len - from);
		if (!pattern_is(s->buf.data + s->piece[i].at + from, part))
			return false;
		len -= part;
		from = 0;
	}
	return true;
}

int64_t
sgl_part(const struct sgl *s, uint64_t key, uint32_t len, uint32_t mtu, unsigned may)
{
	bool ended = false;
	int64_t written = 0;

	for (uint32_t at = 0; at < len; at += mtu) {
		uint32_t part = RTE_MIN(mtu, len - at);

		bool is = sgl_is(s, at, key, at, part);
		bool was = sgl_pattern(s, at, part);
		bool corrupted = !is && !was;

		if (corrupted &&
			(!(may & SGL_CORRUPTED) || ended || at == 0 || at + part == len))
			return -1;
		/* A short piece may match both the content and the pattern. */
		if (is && !was && ended && !(may & SGL_HOLES))
			return -1;
		if (is || corrupted)
			written = at + part;
		ended = ended || !is;
	}
	return written;
}

void
sgl_copy_out(const struct sgl *s, uint32_t from, void *to, uint32_t len)
{
	uint8_t *out = to;

	for (unsigned i = 0; i < s->n && len != 0; i++) {
		uint32_t part;

		if (from >= s->piece[i].len) {
			from -= s->piece[i].len;
			continue;
		}
		part = RTE_MIN(len, s->piece[i].len - from);
		memcpy(out, s->buf.data + s->piece[i].at + from, part);
		out += part;
		len -= part;
		from = 0;
	}
}
