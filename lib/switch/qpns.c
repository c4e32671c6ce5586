/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>

#include "switch/qpns.h"

#define QPN_FIRST 2 /* 0 and 1 are the management QPs (IBA 3.9) */
#define QPN_LAST 0xFFFFFEu

int
qpns_init(struct qpns *t, uint32_t base, uint32_t count)
{
	if (count == 0 || !rte_is_power_of_2(count) || base < QPN_FIRST ||
		base > QPN_LAST || QPN_LAST - base < count - 1)
		return -EINVAL;
	*t = (struct qpns){.base = base, .mask = count - 1, .free_tail = count};
	t->qps = calloc(count, sizeof(*t->qps));
	t->free = calloc(count, sizeof(*t->free));
	if (t->qps == NULL || t->free == NULL) {
		qpns_fini(t);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < count; i++)
		t->free[i] = i;
	return 0;
}

void
qpns_fini(struct qpns *t)
{
	free(t->qps);
	free(t->free);
	t->qps = NULL;
	t->free = NULL;
}

uint32_t
qpns_base(uint64_t seed, uint32_t count)
{
	uint32_t room = QPN_LAST - QPN_FIRST - count + 2;

	return QPN_FIRST + (uint32_t)(seed * UINT64_C(0x9E3779B97F4A7C15) >> 33) % room;
}

int
qpns_take(struct qpns *t, struct sw_client *owner, uint32_t *qpn)
{
	uint32_t index;

	if (t->free_head == t->free_tail)
		return -ENOSPC;
	index = t->free[t->free_head++ & t->mask];
	t->qps[index] = (struct sw_qp){.owner = owner};
	*qpn = t->base + index;
	return 0;
}

void
qpns_give(struct qpns *t, uint32_t qpn)
{
	uint32_t index = qpn - t->base;

	t->qps[index] = (struct sw_qp){.owner = NULL};
	t->free[t->free_tail++ & t->mask] = index;
}
