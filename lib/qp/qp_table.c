/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>

#include "qp/qp_table.h"

#define QPN_FIRST 2 /* 0 and 1 are the management QPs (IBA 3.9) */
#define QPN_LAST 0xFFFFFEu

int
qp_table_init(struct qp_table *t, uint32_t base, uint32_t max_qp)
{
	uint32_t size;

	if (max_qp == 0 || max_qp > QPN_LAST)
		return -EINVAL;
	size = rte_align32pow2(max_qp);
	if (base < QPN_FIRST || base > QPN_LAST || QPN_LAST - base < size - 1)
		return -EINVAL;
	*t = (struct qp_table){.base = base, .mask = size - 1, .free_tail = size};
	t->slots = calloc(size, sizeof(*t->slots));
	t->free = calloc(size, sizeof(*t->free));
	if (t->slots == NULL || t->free == NULL) {
		qp_table_fini(t);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < size; i++)
		t->free[i] = i;
	return 0;
}

void
qp_table_fini(struct qp_table *t)
{
	assert(t->count == 0);
	free(t->slots);
	free(t->free);
	t->slots = NULL;
	t->free = NULL;
}

int
qp_table_reserve(struct qp_table *t, uint32_t *qpn)
{
	if (t->free_head == t->free_tail)
		return -ENOSPC;
	*qpn = t->base + t->free[t->free_head++ & t->mask];
	t->count++;
	return 0;
}

int
qp_table_claim(struct qp_table *t, uint32_t qpn)
{
	if (qpn - t->base > t->mask || t->slots[qpn - t->base] != NULL)
		return -EINVAL;
	/* In a table whose QPNs are all reserved by qp_table_claim(), the FIFO's entries
	 * are not used. Only its length counts: qp_table_remove() appends an index. */
	t->free_head++;
	t->count++;
	return 0;
}

void
qp_table_put(struct qp_table *t, uint32_t qpn, struct qp *qp)
{
	/* Pairs with the acquire in qp_table_get(). */
	__atomic_store_n(&t->slots[qpn - t->base], qp, __ATOMIC_RELEASE);
}

void
qp_table_remove(struct qp_table *t, uint32_t qpn)
{
	__atomic_store_n(&t->slots[qpn - t->base], NULL, __ATOMIC_RELEASE);
	t->free[t->free_tail++ & t->mask] = qpn - t->base;
	t->count--;
}
