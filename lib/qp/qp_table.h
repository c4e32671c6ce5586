/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * QPN -> QP. QPNs are handed out upwards from a base and reused oldest first, so that a
 * packet for a QP that is gone does not soon meet another. Changes with every gate held;
 * reads by engines and pollers without a lock.
 */
#ifndef ROCADE_QP_QP_TABLE_H
#define ROCADE_QP_QP_TABLE_H

#include "base/alloc.h"

struct qp;

struct qp_table {
	struct qp **slots; /* by (qpn - base); size of them, a power of two */
	uint32_t *free;    /* FIFO of free indices */
	uint32_t free_head, free_tail;
	uint32_t base;
	uint32_t mask;
	uint32_t count;
};

/* max_qp is rounded up to a power of two; base..base+size-1 must lie in 2..0xFFFFFE:
 * -EINVAL; -ENOMEM. */
int
qp_table_init(struct qp_table *t, uint32_t base, uint32_t max_qp);
void
qp_table_fini(struct qp_table *t);

/* Reserves the QPN that is free the longest; -ENOSPC. It resolves to nothing until
 * qp_table_put(). */
int
qp_table_reserve(struct qp_table *t, uint32_t *qpn);
/* Reserves this one, which somebody else hands out; -EINVAL: not of the table, or taken.
 * For a table all of whose QPNs are reserved so. */
int
qp_table_claim(struct qp_table *t, uint32_t qpn);
void
qp_table_put(struct qp_table *t, uint32_t qpn, struct qp *qp);
/* Takes the QP out; the QPN goes to the end of the queue. */
void
qp_table_remove(struct qp_table *t, uint32_t qpn);

static inline struct qp *
qp_table_get(const struct qp_table *t, uint32_t qpn)
{
	uint32_t index = qpn - t->base;

	/* Pairs with the release in qp_table_put(). */
	return index <= t->mask ? __atomic_load_n(&t->slots[index], __ATOMIC_ACQUIRE)
				: NULL;
}

#endif
