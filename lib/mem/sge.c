/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
#include <errno.h>
#include <string.h>

#include "mem/sge.h"

uint64_t
sge_total(const struct sge *sge, uint32_t num)
{
	uint64_t total = 0;

	for (uint32_t i = 0; i < num; i++)
		total += sge[i].len;
	return total;
}

int
sge_check(const struct sge_cursor *c, unsigned need)
{
	for (uint32_t i = 0; i < c->num; i++) {
		const struct sge *s = &c->sge[i];

		if (s->len == 0)
			continue;
		if (key_check_part(c->keys, s->lkey, c->pd, s->addr, s->len, 0, need) ==
			NULL)
			return -EACCES;
	}
	return 0;
}

struct sge_pos
sge_seek(const struct sge *sge, uint32_t num, uint64_t offset)
{
	struct sge_pos pos = {0};

	while (pos.index < num && offset >= sge[pos.index].len) {
		offset -= sge[pos.index].len;
		pos.index++;
	}
	assert(pos.index < num || offset == 0);
	pos.offset = (uint32_t)offset;
	return pos;
}

/* Returns how many bytes of the list are left. */
static uint64_t
sge_left(const struct sge_cursor *c)
{
	if (c->pos->index >= c->num)
		return 0;
	return sge_total(&c->sge[c->pos->index], c->num - c->pos->index) - c->pos->offset;
}

/* Returns the host address of the next contiguous run, NULL if not granted. *run is its
 * length, at most len; the position moves past it. The list must have bytes left
 * (asserted). */
static uint8_t *
sge_run(struct sge_cursor *c, uint32_t len, unsigned need, uint32_t *run)
{
	uint8_t *host;

	while (c->pos->index < c->num && c->pos->offset == c->sge[c->pos->index].len) {
		c->pos->index++;
		c->pos->offset = 0;
	}
	assert(c->pos->index < c->num);
	*run = RTE_MIN(len, c->sge[c->pos->index].len - c->pos->offset);
	host = sge_host(c, *run, need);
	c->pos->offset += *run;
	return host;
}

int
sge_gather_runs(struct sge_cursor *c, uint8_t *dst, uint32_t len)
{
	struct sge_pos start = *c->pos;
	uint32_t run;

	for (; len != 0; len -= run, dst += run) {
		const uint8_t *host = sge_run(c, len, 0, &run);

		if (unlikely(host == NULL)) {
			*c->pos = start;
			return -EACCES;
		}
		payload_copy(dst, host, run);
	}
	return 0;
}

/* Checks that all of the next len bytes may be written. */
static int
scatter_check(const struct sge_cursor *c, uint32_t len)
{
	struct sge_pos pos = *c->pos;
	struct sge_cursor at = {c->keys, c->sge, c->num, c->pd, &pos};
	uint32_t run;

	if (sge_left(c) < len)
		return -EMSGSIZE;
	for (; len != 0; len -= run) {
		if (sge_run(&at, len, IBV_ACCESS_LOCAL_WRITE, &run) == NULL)
			return -EACCES;
	}
	return 0;
}

int
sge_scatter_runs(struct sge_cursor *c, const uint8_t *src, uint32_t len)
{
	int rc = scatter_check(c, len);
	uint32_t run;

	if (rc != 0)
		return rc;
	/* Point of no return. The keys stay valid as checked: deregistration needs the
	 * engine lock, which the caller holds. */
	for (; len != 0; len -= run, src += run) {
		uint8_t *host = sge_run(c, len, IBV_ACCESS_LOCAL_WRITE, &run);

		/* NULL: memory of an on-demand region that was unmapped since the check. The
		 * application would not have it, either, if it had been written. */
		if (likely(host != NULL))
			payload_copy(host, src, run);
	}
	return 0;
}
