/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>

#include "base/qpn_pool.h"

#define QPN_FIRST 2 /* 0 and 1 are the management QPs (IBA 3.9) */
#define QPN_LAST 0xFFFFFEu

int
qpn_pool_init(struct qpn_pool *p, uint32_t base, uint32_t count)
{
	if (count == 0 || !rte_is_power_of_2(count) || base < QPN_FIRST ||
		base > QPN_LAST || QPN_LAST - base < count - 1)
		return -EINVAL;
	*p = (struct qpn_pool){.base = base, .mask = count - 1, .free_tail = count};
	p->free = calloc(count, sizeof(*p->free));
	if (p->free == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++)
		p->free[i] = i;
	return 0;
}

void
qpn_pool_fini(struct qpn_pool *p)
{
	free(p->free);
	p->free = NULL;
}

uint32_t
qpn_pool_base(uint64_t random, uint32_t count)
{
	uint32_t room = QPN_LAST - QPN_FIRST - count + 2;

	return QPN_FIRST + (uint32_t)(random % room);
}

int
qpn_pool_take(struct qpn_pool *p, uint32_t *qpn)
{
	if (qpn_pool_free_count(p) == 0)
		return -ENOSPC;
	*qpn = p->base + p->free[p->free_head++ & p->mask];
	return 0;
}

void
qpn_pool_give(struct qpn_pool *p, uint32_t qpn)
{
	p->free[p->free_tail++ & p->mask] = qpn - p->base;
}

void
qpn_pool_give_first(struct qpn_pool *p, uint32_t qpn)
{
	p->free[--p->free_head & p->mask] = qpn - p->base;
}
