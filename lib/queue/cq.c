/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
#include <errno.h>

#include "queue/cq.h"

/* Control path. */

int
cq_init(struct cq *cq, const struct alloc *mem, uint32_t cqe, struct event_queue *events,
	void *object)
{
	uint32_t size;

	if (cqe == 0 || cqe > CQ_MAX_CQE)
		return -EINVAL;
	size = rte_align32pow2(cqe);
	*cq = (struct cq){.mask = size - 1, .size = size, .mem = mem};
	rte_spinlock_init(&cq->lock);
	async_event_init(&cq->error_event, events, object);
	/* Zeroed: no CQE has the phase of the first round. */
	cq->ring = alloc_get(mem, "cq ring", (size_t)size * sizeof(struct cqe));
	return cq->ring == NULL ? -ENOMEM : 0;
}

void
cq_fini(struct cq *cq)
{
	assert(cq->engines == 0);
	cq_moderator_count(cq->moderator, cq->armed, CQ_IDLE);
	cq->armed = CQ_IDLE;
	if (cq->stamps != NULL)
		alloc_put(cq->mem, cq->stamps, (size_t)cq->size * sizeof(*cq->stamps));
	alloc_put(cq->mem, cq->ring, (size_t)cq->size * sizeof(struct cqe));
	cq->stamps = NULL;
	cq->ring = NULL;
}

int
cq_enable_stamps(struct cq *cq)
{
	assert(cq->engines == 0 && cq->stamps == NULL);
	cq->stamps =
		alloc_get(cq->mem, "cq stamps", (size_t)cq->size * sizeof(*cq->stamps));
	cq->shared = true;
	if (cq->stamps != NULL)
		return 0;
	cq_fini(cq);
	return -ENOMEM;
}

/* Data path. */

void
cq_attach(struct cq *cq, unsigned engine)
{
	cq->engines += cq->engine_qps[engine]++ == 0;
	cq->shared = cq->engines > 1 || cq->stamps != NULL;
}

void
cq_detach(struct cq *cq, unsigned engine)
{
	assert(cq->engine_qps[engine] != 0);
	cq->engines -= --cq->engine_qps[engine] == 0;
	cq->shared = cq->engines > 1 || cq->stamps != NULL;
}

/* Moves the remaining CQEs towards head, in order, over the cleaned ones. The slots
 * before them become free, as if the cleaned CQEs had been polled. */
static void
ring_compact(struct cq *cq)
{
	uint32_t to = cq->head;

	for (uint32_t i = cq->head; i != cq->tail;) {
		const struct cqe *cqe = &cq->ring[--i & cq->mask];

		if ((cqe->flags & CQE_CLEANED) != 0 || --to == i)
			continue;
		cq->ring[to & cq->mask] = *cqe;
		cq->ring[to & cq->mask].flags = cq_phase(cq, to);
		if (cq->stamps != NULL)
			cq->stamps[to & cq->mask] = cq->stamps[i & cq->mask];
	}
	cq_consume(cq, to);
}

void
cq_clean(struct cq *cq, uint32_t qpn)
{
	for (uint32_t i = cq->tail; i != cq->head; i++) {
		struct cqe *cqe = &cq->ring[i & cq->mask];

		if (cqe->qpn == qpn)
			__atomic_store_n(
				&cqe->flags, cqe->flags | CQE_CLEANED, __ATOMIC_RELAXED);
	}
	/* Frees the slots now: repeated resets of one QP must not fill the CQ with
	 * cleaned CQEs. */
	if (!cq->unlocked)
		ring_compact(cq);
}

int
cq_init_like(const struct cq *cq, uint32_t cqe, struct cq *out)
{
	int rc = cq_init(out, cq->mem, cqe, NULL, NULL);

	return rc == 0 && cq->stamps != NULL ? cq_enable_stamps(out) : rc;
}

static uint32_t
cq_unpolled(const struct cq *cq)
{
	uint32_t n = 0;

	for (uint32_t i = cq->tail; i != cq->head; i++)
		n += (cq->ring[i & cq->mask].flags & CQE_CLEANED) == 0;
	return n;
}

/* Copies the unpolled CQEs, except cleaned ones, to the start of an empty CQ. */
static void
ring_move(const struct cq *cq, struct cq *to)
{
	for (uint32_t i = cq->tail; i != cq->head; i++) {
		const struct cqe *cqe = &cq->ring[i & cq->mask];

		if ((cqe->flags & CQE_CLEANED) != 0)
			continue;
		if (cq->stamps != NULL)
			to->stamps[to->head] = cq->stamps[i & cq->mask];
		to->ring[to->head] = *cqe;
		to->ring[to->head].flags = cq_phase(to, to->head);
		to->head++;
	}
}

int
cq_replace(struct cq *cq, struct cq *with, uint32_t cqe)
{
	assert(with->head == 0 && (with->stamps == NULL) == (cq->stamps == NULL));
	if (cq_unpolled(cq) > cqe)
		return -EINVAL;
	ring_move(cq, with);
	RTE_SWAP(cq->ring, with->ring);
	RTE_SWAP(cq->stamps, with->stamps);
	RTE_SWAP(cq->size, with->size);
	cq->mask = cq->size - 1;
	cq->head = with->head;
	cq->tail = cq->tail_seen = 0;
	return 0;
}

bool RARE
cq_overrun(struct cq *cq)
{
	if (!__atomic_exchange_n(&cq->error, true, __ATOMIC_RELAXED))
		event_raise(&cq->error_event, IBV_EVENT_CQ_ERR);
	return false;
}

int64_t
cq_reserve(struct cq *cq, const uint64_t *now)
{
	uint32_t head = __atomic_load_n(&cq->head, __ATOMIC_RELAXED);

	do {
		if (unlikely(!cq_room(cq, head)))
			return -ENOSPC;
		/* Relaxed: cq_room() has granted the slot, and pollers read its flags,
		 * not head. */
	} while (!__atomic_compare_exchange_n(
		&cq->head, &head, head + 1, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	if (cq->stamps != NULL)
		cq->stamps[head & cq->mask] = *now;
	return head;
}

void
cq_set_channel(struct cq *cq, struct event_queue *channel, void *object)
{
	async_event_init(&cq->comp_event, channel, object);
	cq->notifies = channel != NULL;
}

void
cq_arm(struct cq *cq, bool solicited_only)
{
	uint8_t armed = (uint8_t)(solicited_only ? CQ_ARMED_SOLICITED : CQ_ARMED), old;

	if (cq_moderator_counts(cq->moderator) &&
		event_is_slept_for(cq->comp_event.queue))
		armed |= CQ_COUNTED;
	if (solicited_only) {
		old = CQ_IDLE;
		/* If armed for any completion already, leave it: that includes solicited
		 * ones. */
		if (!__atomic_compare_exchange_n(&cq->armed, &old, armed, false,
			    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
			armed = old;
	} else {
		old = __atomic_exchange_n(&cq->armed, armed, __ATOMIC_SEQ_CST);
	}
	cq_moderator_count(cq->moderator, old, armed);
	/* Orders the arming before the poll that follows. Pairs with the fence in
	 * cq_notify(). */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

/* Returns whether the completions before end hid those behind: another engine was faster. The event
 * of these may have been taken since, and the poller has not found them. */
static bool
hid_others(const struct cq *cq, uint32_t end)
{
	/* Relaxed: the acquire in cq_notify() orders it. */
	uint8_t flags =
		__atomic_load_n(&cq->ring[end & cq->mask].flags, __ATOMIC_RELAXED);

	return (flags & CQE_PHASE) == cq_phase(cq, end);
}

void
cq_notify(struct cq *cq, bool solicited, uint32_t end, uint32_t n)
{
	uint8_t armed;

	/* Orders the store of the CQE's flags before the load of armed. Either the poller
	 * that has armed sees the CQE, or this load sees the arming. Pairs with the fence
	 * in cq_arm(). */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	/* Pairs with the arming in cq_arm(): completions whose event was taken before are
	 * visible. */
	armed = __atomic_load_n(&cq->armed, __ATOMIC_ACQUIRE);
	if (armed == CQ_IDLE)
		return;
	if ((armed & ~CQ_COUNTED) == CQ_ARMED_SOLICITED && !solicited &&
		!hid_others(cq, end))
		return;
	if ((cq->moderation.period_ns == 0 || cq_moderated_is_due(cq, n)) &&
		cq_event_raise(cq) && cq_moderator_counts(cq->moderator))
		__atomic_fetch_add(&cq->moderator->raised, 1, __ATOMIC_RELAXED);
}
