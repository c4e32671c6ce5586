/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
#include <errno.h>
#include <string.h>

#include "qp/counting.h"
#include "qp/qp_state.h"

struct qp_counting {
	struct comp_cntr *by_op[COUNTED_OPS]; /* NULL: not counted */
};

/* struct qp has room for an index only: qp->counting. 3 MiB, of which the pages that are used take
 * memory. Index 0 stands for no counters. */
static struct qp_counting table[COUNTING_QPS + 1];
/* No lock, which a fork() of another thread could leave locked. */
static uint8_t taken[COUNTING_QPS + 1];
static uint32_t last; /* the entry that was tried last */

/* Returns 0 if none is free. */
static uint32_t
counting_take(void)
{
	for (uint32_t tried = 0; tried < COUNTING_QPS; tried++) {
		uint32_t i =
			1 + __atomic_fetch_add(&last, 1, __ATOMIC_RELAXED) % COUNTING_QPS;

		/* Pairs with the release of counting_put(): the entry is empty. */
		if (__atomic_exchange_n(&taken[i], 1, __ATOMIC_ACQUIRE) == 0)
			return i;
	}
	return 0;
}

static void
counting_put(uint32_t i)
{
	memset(&table[i], 0, sizeof(table[i]));
	/* Pairs with the acquire of counting_take(). */
	__atomic_store_n(&taken[i], 0, __ATOMIC_RELEASE);
}

int
qp_count_by(struct qp *qp, struct comp_cntr *cntr, uint32_t ops)
{
	struct qp_counting *counting;

	if (qp->type != IBV_QPT_RC && qp->type != IBV_QPT_UC && qp->type != IBV_QPT_UD)
		return -EOPNOTSUPP;
	if (qp->state != IBV_QPS_RESET && qp->state != IBV_QPS_INIT)
		return -EINVAL;
	counting = &table[qp_counts(qp) ? qp->counting : 0];
	for (unsigned op = 0; op < COUNTED_OPS; op++) {
		if ((ops >> op & 1) != 0 && counting->by_op[op] != NULL)
			return -EBUSY;
	}
	if (!qp_counts(qp)) {
		uint32_t entry = counting_take();

		if (entry == 0)
			return -ENOMEM;
		qp->counting = entry;
	}
	/* Point of no return. */
	counting = &table[qp->counting];
	for (unsigned op = 0; op < COUNTED_OPS; op++) {
		if ((ops >> op & 1) == 0)
			continue;
		counting->by_op[op] = cntr;
		__atomic_fetch_add(&cntr->attached, 1, __ATOMIC_RELAXED);
	}
	qp->resp.counts = true;
	qp->sq.always |= WQE_COUNTED;
	return 0;
}

void
qp_counting_end(struct qp *qp)
{
	if (!qp_counts(qp))
		return;
	for (unsigned op = 0; op < COUNTED_OPS; op++) {
		struct comp_cntr *cntr = table[qp->counting].by_op[op];

		/* Pairs with the acquire of a destroy that finds none attached. */
		if (cntr != NULL)
			__atomic_fetch_sub(&cntr->attached, 1, __ATOMIC_RELEASE);
	}
	counting_put(qp->counting);
	qp->counting = 0;
	qp->sq.always &= (uint8_t)~WQE_COUNTED;
}

static void
count(struct qp *qp, enum counted_op op, uint32_t bytes, bool failed)
{
	struct comp_cntr *cntr = table[qp->counting].by_op[op];

	if (cntr == NULL)
		return;
	/* Pairs with the acquire of value_read(). */
	if (failed)
		__atomic_fetch_add(&cntr->failed, 1, __ATOMIC_RELEASE);
	else
		__atomic_fetch_add(
			&cntr->done, cntr->bytes ? bytes : 1, __ATOMIC_RELEASE);
}

/* Atomics, FLUSH and local operations have no counter. */
static enum counted_op
request_op(const struct send_wqe *wqe)
{
	switch (wqe->opcode) {
	case IBV_WR_SEND:
	case IBV_WR_SEND_WITH_IMM:
	case IBV_WR_SEND_WITH_INV:
		return COUNTED_SEND;
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		return COUNTED_WRITE;
	case IBV_WR_RDMA_READ:
		return COUNTED_READ;
	default:
		return COUNTED_OPS;
	}
}

void
qp_count_send(struct qp *qp, uint32_t idx, bool failed)
{
	struct send_wqe *wqe = sq_slot(&qp->sq, idx);
	enum counted_op op = request_op(wqe);

	/* Once: a completion that finds its CQ full is flushed, too. */
	wqe->flags &= (uint8_t)~WQE_COUNTED;

	if (op != COUNTED_OPS)
		count(qp, op, wqe->len, failed);
}

void
qp_count_recv(struct qp *qp, uint32_t bytes, bool failed)
{
	count(qp, COUNTED_RECV, bytes, failed);
}

void
qp_count_remote(struct qp *qp, enum counted_op op, uint32_t bytes)
{
	count(qp, op, bytes, false);
}
