/* SPDX-License-Identifier: BSD-3-Clause */
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
sge_check(const struct key_table *t, uint32_t pd, const struct sge *sge, uint32_t num,
	unsigned need)
{
	for (uint32_t i = 0; i < num; i++) {
		const struct sge *s = &sge[i];

		if (s->len == 0)
			continue;
		if (key_check(t, s->lkey, pd, s->addr, s->len, need) == NULL)
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

/* Returns how many bytes of the list follow pos. */
static uint64_t
sge_left(const struct sge *sge, uint32_t num, struct sge_pos pos)
{
	if (pos.index >= num)
		return 0;
	return sge_total(&sge[pos.index], num - pos.index) - pos.offset;
}

/* Returns the host address of the next contiguous run, NULL if not granted. *run is its
 * length, at most len; *pos moves past it. The list must have bytes left (asserted). */
static uint8_t *
sge_run(const struct key_table *t, uint32_t pd, const struct sge *sge, uint32_t num,
	struct sge_pos *pos, uint32_t len, unsigned need, uint32_t *run)
{
	const struct sge *s;
	uint8_t *host;

	while (pos->index < num && pos->offset == sge[pos->index].len) {
		pos->index++;
		pos->offset = 0;
	}
	assert(pos->index < num);
	s = &sge[pos->index];
	*run = RTE_MIN(len, s->len - pos->offset);
	host = sge_host(t, pd, s, pos->offset, *run, need);
	pos->offset += *run;
	return host;
}

int
sge_gather_runs(const struct key_table *t, uint32_t pd, const struct sge *sge,
	uint32_t num, struct sge_pos *pos, uint8_t *dst, uint32_t len)
{
	struct sge_pos at = *pos;
	uint32_t run;

	for (; len != 0; len -= run, dst += run) {
		const uint8_t *host = sge_run(t, pd, sge, num, &at, len, 0, &run);

		if (unlikely(host == NULL))
			return -EACCES;
		payload_copy(dst, host, run);
	}
	*pos = at;
	return 0;
}

/* Checks that all of the next len bytes may be written. */
static int
scatter_check(const struct key_table *t, uint32_t pd, const struct sge *sge, uint32_t num,
	struct sge_pos pos, uint32_t len)
{
	uint32_t run;

	if (sge_left(sge, num, pos) < len)
		return -EMSGSIZE;
	for (; len != 0; len -= run) {
		if (sge_run(t, pd, sge, num, &pos, len, IBV_ACCESS_LOCAL_WRITE, &run) ==
			NULL)
			return -EACCES;
	}
	return 0;
}

int
sge_scatter_runs(const struct key_table *t, uint32_t pd, const struct sge *sge,
	uint32_t num, struct sge_pos *pos, const uint8_t *src, uint32_t len)
{
	int rc = scatter_check(t, pd, sge, num, *pos, len);
	uint32_t run;

	if (rc != 0)
		return rc;
	/* Point of no return. The keys stay valid as checked: deregistration needs the
	 * engine lock, which the caller holds. */
	for (; len != 0; len -= run, src += run) {
		uint8_t *host =
			sge_run(t, pd, sge, num, pos, len, IBV_ACCESS_LOCAL_WRITE, &run);

		payload_copy(host, src, run);
	}
	return 0;
}
