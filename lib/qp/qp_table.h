/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/*
 * Maps a QPN to its QP. Each QP has an index as well, for arrays of QPs. The caller of
 * qp_table_put() or qp_table_hide() holds the locks of the QP's engines, and that of any
 * change the device's lock. Engines and pollers look up without these locks. A QP that is hidden
 * is freed after a grace period.
 */
#ifndef ROCADE_QP_QP_TABLE_H
#define ROCADE_QP_QP_TABLE_H

#include "base/qpn_pool.h"
#include "qp/qp.h"

struct qp_table {
	struct qp **by_qpn; /* by QPN & pool.mask; the QP there may have another QPN */
	/* By index; NULL: unused, or reserved only. The pool assigns the indices: an
	 * index is that of a QPN in the pool. */
	struct qp **slots;
	struct qpn_pool pool;
	uint32_t count, max;
	bool claimed; /* QPNs are reserved by qp_table_claim() */
};

/* The number of QPNs, size, is max_qp rounded up to a power of two. Returns 0, -ENOMEM,
 * or -EINVAL unless base..base+size-1 lies in 2..0xFFFFFE. */
int qp_table_init(struct qp_table *t, uint32_t base, uint32_t max_qp);
void qp_table_fini(struct qp_table *t);

/* Reserves the QPN that has been free the longest, and its index. qp_table_get() returns
 * NULL for it until qp_table_put(). Returns 0; -ENOSPC if max_qp are reserved. */
int qp_table_reserve(struct qp_table *t, uint32_t *qpn, uint32_t *index);
/* Reserves a QPN that the daemon assigned, and an index: the one that was freed last, so
 * that indices stay small. All QPNs of a table must then be reserved this way. Returns 0,
 * or -EINVAL if the table has a QP whose QPN is the same modulo its size. */
int qp_table_claim(struct qp_table *t, uint32_t qpn, uint32_t *index);
/* Frees a reserved index and its QPN. A QP must have been hidden. */
void qp_table_free(struct qp_table *t, uint32_t index);

/* For a QP with this index in sq.doorbell. Hidden, it is found no more. */
void qp_table_put(struct qp_table *t, struct qp *qp);
void qp_table_hide(struct qp_table *t, const struct qp *qp);

static inline struct qp *
qp_table_get(const struct qp_table *t, uint32_t qpn)
{
	/* Pairs with the release in qp_table_store(). */
	struct qp *qp = __atomic_load_n(&t->by_qpn[qpn & t->pool.mask], __ATOMIC_ACQUIRE);

	return likely(qp != NULL && qp->qpn == qpn) ? qp : NULL;
}

/* Returns NULL if no QP has this index. */
static inline struct qp *
qp_table_at(const struct qp_table *t, uint32_t index)
{
	/* Pairs with the release in qp_table_store(). */
	return __atomic_load_n(&t->slots[index], __ATOMIC_ACQUIRE);
}

#endif
