/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/*
 * Maps a QPN to its QP. Changes need all engine locks; engines and pollers read without a
 * lock.
 */
#ifndef ROCADE_QP_QP_TABLE_H
#define ROCADE_QP_QP_TABLE_H

#include "base/qpn_pool.h"

struct qp;

struct qp_table {
	struct qp **slots; /* by qpn - pool.base; NULL: unused, or reserved only */
	struct qpn_pool pool;
	uint32_t count;
};

/* The number of QPNs, size, is max_qp rounded up to a power of two. Returns 0, -ENOMEM,
 * or -EINVAL unless base..base+size-1 lies in 2..0xFFFFFE. */
int qp_table_init(struct qp_table *t, uint32_t base, uint32_t max_qp);
void qp_table_fini(struct qp_table *t);

/* Reserves the QPN that has been free the longest. qp_table_get() returns NULL for it
 * until qp_table_put(). Returns 0 or -ENOSPC. */
int qp_table_reserve(struct qp_table *t, uint32_t *qpn);
/* Reserves a QPN that the daemon assigned. All QPNs of a table must then be reserved this
 * way. Returns 0, or -EINVAL if the table does not have this QPN, or has a QP for it. */
int qp_table_claim(struct qp_table *t, uint32_t qpn);
void qp_table_put(struct qp_table *t, uint32_t qpn, struct qp *qp);
/* Removes the QP. Its QPN goes to the end of the queue of free ones. */
void qp_table_remove(struct qp_table *t, uint32_t qpn);

static inline struct qp *
qp_table_get(const struct qp_table *t, uint32_t qpn)
{
	uint32_t index = qpn - t->pool.base;

	/* Pairs with the release in qp_table_put(). */
	return index <= t->pool.mask ? __atomic_load_n(&t->slots[index], __ATOMIC_ACQUIRE)
				     : NULL;
}

#endif
