/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
#include "queue/cq.h"

void
cq_moderator_init(struct cq_moderator *m)
{
	*m = (struct cq_moderator){.due_ns = TIME_NEVER};
	rte_spinlock_init(&m->lock);
	TAILQ_INIT(&m->waiting);
}

void
cq_moderator_count(struct cq_moderator *m, uint8_t old, uint8_t armed)
{
	/* With CQ_COUNTED there is one. */
	if ((old ^ armed) & CQ_COUNTED)
		__atomic_fetch_add(
			&m->armed, armed & CQ_COUNTED ? 1u : -1u, __ATOMIC_RELAXED);
}

bool
cq_event_raise(struct cq *cq)
{
	/* One event per arming: of several engines, the first one here raises it. */
	uint8_t armed = __atomic_exchange_n(&cq->armed, CQ_IDLE, __ATOMIC_ACQ_REL);

	if (armed == CQ_IDLE)
		return false;
	cq_moderator_count(cq->moderator, armed, CQ_IDLE);
	/* The type is ignored: every event of a completion channel is a completion. */
	event_raise(&cq->comp_event, IBV_EVENT_CQ_ERR);
	return true;
}

static void
moderation_remove(struct cq_moderator *m, struct cq_moderation *wait)
{
	TAILQ_REMOVE(&m->waiting, wait, link);
	wait->waits = false;
	wait->written = 0;
}

void
cq_moderator_run(struct cq_moderator *m, uint64_t now)
{
	struct cq_moderation *wait, *next;
	uint64_t due = TIME_NEVER;

	rte_spinlock_lock(&m->lock);
	for (wait = TAILQ_FIRST(&m->waiting); wait != NULL; wait = next) {
		next = TAILQ_NEXT(wait, link);
		if (wait->due_ns == 0)
			wait->due_ns = now + wait->period_ns;
		if (wait->due_ns <= now) {
			moderation_remove(m, wait);
			(void)cq_event_raise(container_of(wait, struct cq, moderation));
		} else {
			due = RTE_MIN(due, wait->due_ns);
		}
	}
	__atomic_store_n(&m->due_ns, due, __ATOMIC_RELAXED);
	rte_spinlock_unlock(&m->lock);
}

void
cq_moderate(struct cq *cq, uint16_t count, uint16_t period_us)
{
	struct cq_moderation *wait = &cq->moderation;
	bool on = count != 0 && period_us != 0, raise;

	rte_spinlock_lock(&cq->moderator->lock);
	raise = wait->waits;
	if (wait->waits)
		moderation_remove(cq->moderator, wait);
	wait->count = count;
	wait->period_ns = on ? period_us * NS_PER_US : 0;
	rte_spinlock_unlock(&cq->moderator->lock);
	if (raise)
		(void)cq_event_raise(cq);
}

bool
cq_moderated_is_due(struct cq *cq, uint32_t n)
{
	struct cq_moderator *m = cq->moderator;
	struct cq_moderation *wait = &cq->moderation;
	bool is_due;

	rte_spinlock_lock(&m->lock);
	wait->written += n;
	is_due = wait->written >= wait->count;
	if (is_due && wait->waits) {
		moderation_remove(m, wait);
	} else if (!is_due && !wait->waits) {
		wait->waits = true;
		wait->due_ns = 0;
		TAILQ_INSERT_TAIL(&m->waiting, wait, link);
		__atomic_store_n(&m->due_ns, 0, __ATOMIC_RELAXED);
	}
	if (is_due)
		wait->written = 0;
	rte_spinlock_unlock(&m->lock);
	return is_due;
}
