/* SPDX-License-Identifier: BSD-3-Clause */
/* Control path. */
#include <errno.h>
#include <stdlib.h>

#include "qp/qp_table.h"

int
qp_table_init(struct qp_table *t, uint32_t base, uint32_t max_qp)
{
	uint32_t size = rte_align32pow2(max_qp);
	int rc;

	*t = (struct qp_table){.count = 0};
	rc = qpn_pool_init(&t->pool, base, size);
	if (rc != 0)
		return rc;
	t->slots = calloc(size, sizeof(*t->slots));
	if (t->slots == NULL) {
		qpn_pool_fini(&t->pool);
		return -ENOMEM;
	}
	return 0;
}

void
qp_table_fini(struct qp_table *t)
{
	assert(t->count == 0);
	free(t->slots);
	t->slots = NULL;
	qpn_pool_fini(&t->pool);
}

int
qp_table_reserve(struct qp_table *t, uint32_t *qpn)
{
	int rc = qpn_pool_take(&t->pool, qpn);

	t->count += rc == 0;
	return rc;
}

int
qp_table_claim(struct qp_table *t, uint32_t qpn)
{
	uint32_t index = qpn - t->pool.base;

	if (index > t->pool.mask || t->slots[index] != NULL)
		return -EINVAL;
	/* In a table whose QPNs are all reserved by qp_table_claim(), the entries of the
	 * pool are not used, only their number: qp_table_remove() gives one back. */
	t->pool.free_head++;
	t->count++;
	return 0;
}

void
qp_table_put(struct qp_table *t, uint32_t qpn, struct qp *qp)
{
	/* Pairs with the acquire in qp_table_get(). */
	__atomic_store_n(&t->slots[qpn - t->pool.base], qp, __ATOMIC_RELEASE);
}

void
qp_table_remove(struct qp_table *t, uint32_t qpn)
{
	qp_table_put(t, qpn, NULL);
	qpn_pool_give(&t->pool, qpn);
	t->count--;
}
