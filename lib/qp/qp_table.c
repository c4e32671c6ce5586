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

	*t = (struct qp_table){.max = max_qp};
	rc = qpn_pool_init(&t->pool, base, size);
	if (rc != 0)
		return rc;
	t->slots = calloc(size, sizeof(*t->slots));
	t->by_qpn = calloc(size, sizeof(*t->by_qpn));
	if (t->slots == NULL || t->by_qpn == NULL) {
		qp_table_fini(t);
		return -ENOMEM;
	}
	return 0;
}

void
qp_table_fini(struct qp_table *t)
{
	assert(t->count == 0);
	free(t->slots);
	free(t->by_qpn);
	t->slots = t->by_qpn = NULL;
	qpn_pool_fini(&t->pool);
}

int
qp_table_reserve(struct qp_table *t, uint32_t *qpn, uint32_t *index)
{
	int rc;

	if (t->count >= t->max)
		return -ENOSPC;
	rc = qpn_pool_take(&t->pool, qpn);
	*index = *qpn - t->pool.base;
	t->count += rc == 0;
	return rc;
}

int
qp_table_claim(struct qp_table *t, uint32_t qpn, uint32_t *index)
{
	uint32_t ours;

	if (t->by_qpn[qpn & t->pool.mask] != NULL)
		return -EINVAL;
	t->claimed = true;
	return qp_table_reserve(t, &ours, index);
}

void
qp_table_free(struct qp_table *t, uint32_t index)
{
	if (t->claimed)
		qpn_pool_give_first(&t->pool, t->pool.base + index);
	else
		qpn_pool_give(&t->pool, t->pool.base + index);
	t->count--;
}

static void
qp_table_store(struct qp_table *t, const struct qp *qp, struct qp *to)
{
	/* Pair with the acquires in qp_table_get() and qp_table_at(). */
	__atomic_store_n(&t->slots[qp->sq.doorbell], to, __ATOMIC_RELEASE);
	__atomic_store_n(&t->by_qpn[qp->qpn & t->pool.mask], to, __ATOMIC_RELEASE);
}

void
qp_table_put(struct qp_table *t, struct qp *qp)
{
	qp_table_store(t, qp, qp);
}

void
qp_table_hide(struct qp_table *t, const struct qp *qp)
{
	qp_table_store(t, qp, NULL);
}
