/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>

#include "switch/qpns.h"

#define QPN_FIRST 2 /* 0 and 1 are the management QPs (IBA 3.9) */
#define QPN_LAST 0xFFFFFEu
#define QPN_MASK 0xFFFFFFu

static void
fifo_put(struct qpn_fifo *f, uint32_t mask, uint32_t index)
{
	f->at[f->tail++ & mask] = index;
}

static uint32_t
fifo_get(struct qpn_fifo *f, uint32_t mask)
{
	return f->at[f->head++ & mask];
}

int
qpns_init(struct qpns *t, uint32_t base, uint32_t count, const struct random_key *random)
{
	if (count == 0 || !rte_is_power_of_2(count) || count > QPN_MASK ||
		(base != 0 && (base < QPN_FIRST || base > QPN_LAST - (count - 1))))
		return -EINVAL;
	*t = (struct qpns){.base = base, .mask = count - 1};
	/* Not alloc_get(), which would touch the pages of all entries. */
	t->mem = calloc(count + 1, sizeof(*t->qps));
	t->free.at = calloc(count, sizeof(*t->free.at));
	t->waiting.at = calloc(count, sizeof(*t->waiting.at));
	if (t->mem == NULL || t->free.at == NULL || t->waiting.at == NULL) {
		qpns_fini(t);
		return -ENOMEM;
	}
	t->qps = RTE_PTR_ALIGN_CEIL(t->mem, LINE_SIZE);
	random_numbers_init(&t->random, random, RANDOM_QPNS);
	for (uint32_t i = 0; i < count; i++)
		fifo_put(&t->free, t->mask, (base + i) & t->mask);
	return 0;
}

void
qpns_fini(struct qpns *t)
{
	free(t->mem);
	free(t->free.at);
	free(t->waiting.at);
	*t = (struct qpns){.mem = NULL};
}

/* Returns the entry's next QPN after qpn, its last one; qpn 0: the entry's first QPN. */
static uint32_t
qpn_after(struct qpns *t, uint32_t index, uint32_t qpn)
{
	if (qpn != 0)
		qpn += t->mask + 1;
	else if (t->base != 0)
		qpn = t->base + ((index - t->base) & t->mask);
	else
		qpn = ((uint32_t)random_next(&t->random) & ~t->mask) | index;
	while ((qpn & QPN_MASK) < QPN_FIRST || (qpn & QPN_MASK) > QPN_LAST)
		qpn += t->mask + 1;
	return qpn & QPN_MASK;
}

/* Entries that have waited long enough are free. */
static void
waiting_end(struct qpns *t, uint64_t now)
{
	struct qpn_fifo *w = &t->waiting;

	while (w->head != w->tail &&
		now - t->qps[w->at[w->head & t->mask]].waits_ns >= QPN_WAIT_NS)
		fifo_put(&t->free, t->mask, fifo_get(w, t->mask));
}

/* Takes a free entry from a random place. */
static uint32_t
entry_get(struct qpns *t)
{
	uint32_t count = t->free.tail - t->free.head;
	uint32_t *first = &t->free.at[t->free.head & t->mask], *chosen = first;
	uint32_t index;

	if (t->base == 0)
		chosen = &t->free.at[(t->free.head + random_next(&t->random) % count) &
				     t->mask];
	index = *chosen;
	*chosen = *first;
	t->free.head++;
	return index;
}

int
qpns_take(struct qpns *t, struct sw_client *owner, struct sw_qp_list *list, uint64_t now,
	uint32_t *qpn)
{
	struct sw_qp *qp;
	uint32_t index;

	waiting_end(t, now);
	if (t->free.head == t->free.tail)
		return -ENOSPC;
	index = entry_get(t);
	qp = &t->qps[index];
	*qpn = qpn_after(t, index, qp->qpn);
	*qp = (struct sw_qp){.owner = owner, .qpn = *qpn, .serial = ++t->serial};
	LIST_INSERT_HEAD(list, qp, link);
	return 0;
}

void
qpns_give(struct qpns *t, struct sw_qp *qp, uint64_t now)
{
	uint32_t index = qp->qpn & t->mask;
	bool again = qpn_after(t, index, qp->qpn) < qp->qpn;

	LIST_REMOVE(qp, link);
	*qp = (struct sw_qp){.qpn = qp->qpn, .waits_ns = now};
	fifo_put(again ? &t->waiting : &t->free, t->mask, index);
}
