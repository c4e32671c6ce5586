/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
#include "queue/cq_gather.h"

/* Reserves n slots. Returns false if there are fewer. */
static bool
slots_reserve(struct cq *cq, uint32_t n, uint32_t *first)
{
	uint32_t head = __atomic_load_n(&cq->head, __ATOMIC_RELAXED);

	do {
		if (unlikely(!cq_room(cq, head + n - 1)))
			return false;
		/* Relaxed: as in cq_reserve(). */
	} while (!__atomic_compare_exchange_n(
		&cq->head, &head, head + n, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	*first = head;
	return true;
}

static void RARE
gathered_lose(struct cq_gather *gather, uint32_t n)
{
	(void)cq_overrun(gather->cq);
	gather->lost = n;
	gather->on = false;
}

static void
gathered_write(struct cq_gather *gather)
{
	struct cq *cq = gather->cq;
	uint32_t first, n = gather->count;

	gather->count = 0;
	if (unlikely(__atomic_load_n(&cq->error, __ATOMIC_RELAXED) ||
		     !slots_reserve(cq, n, &first))) {
		gathered_lose(gather, n);
		return;
	}
	for (uint32_t i = 0; i < n; i++)
		cqe_write(cq, first + i, &gather->cqes[i]);
	if (unlikely(cq->notifies))
		cq_notify(cq, gather->solicited, first + n, n);
}

void
cq_gather_begin(struct cq_gather *gather)
{
	gather->on = true;
}

void
cq_gather_flush(struct cq_gather *gather)
{
	if (gather->count != 0)
		gathered_write(gather);
}

void
cq_gather_end(struct cq_gather *gather)
{
	gather->on = false;
	cq_gather_flush(gather);
}

/* Whether the CQ has room for what all its engines may gather. */
static bool
gather_fits(struct cq *cq)
{
	uint32_t head = __atomic_load_n(&cq->head, __ATOMIC_RELAXED);
	uint32_t most = cq->engines * CQ_GATHER_MAX;

	/* Time stamps are of each write. */
	return cq->stamps == NULL && most <= cq->size && cq_room(cq, head + most - 1);
}

bool
cq_gather_put(struct cq_gather *gather, struct cq *cq, const struct cqe *cqe,
	const uint64_t *now)
{
	if (gather->count != 0 && (gather->cq != cq || gather->count == CQ_GATHER_MAX))
		gathered_write(gather);
	if (gather->count == 0) {
		if (!gather->on || !gather_fits(cq))
			return cq_put(cq, cqe, now);
		gather->cq = cq;
		gather->solicited = false;
	}
	if (unlikely(__atomic_load_n(&cq->error, __ATOMIC_RELAXED)))
		return false;
	gather->solicited |=
		(cqe->flags & CQE_SOLICITED) != 0 || cqe->status != IBV_WC_SUCCESS;
	gather->cqes[gather->count++] = *cqe;
	return true;
}
