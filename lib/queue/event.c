/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <sys/eventfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include "queue/event.h"

/* The lock covers the list and the counts; the descriptor's count is at least the sum of
 * raised less the readers that have read one and not locked yet. */

int
event_queue_init(struct event_queue *q)
{
	rte_spinlock_init(&q->lock);
	STAILQ_INIT(&q->raised);
	q->fd = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
	return q->fd < 0 ? -errno : 0;
}

void
event_queue_fini(struct event_queue *q)
{
	assert(STAILQ_EMPTY(&q->raised));
	close(q->fd);
	q->fd = -1;
}

void
async_event_init(struct async_event *ev, struct event_queue *q, enum ibv_event_type type,
	void *object)
{
	ev->queue = q;
	ev->object = object;
	ev->type = type;
	ev->raised = 0;
	ev->delivered = 0;
}

void
event_raise(struct async_event *ev)
{
	struct event_queue *q = ev->queue;
	const uint64_t one = 1;
	ssize_t written;

	if (q == NULL)
		return;
	rte_spinlock_lock(&q->lock);
	if (ev->raised++ == 0)
		STAILQ_INSERT_TAIL(&q->raised, ev, link);
	rte_spinlock_unlock(&q->lock);
	/* Not under the lock: who is woken may run on this core, at once and before us. The
	 * object, and so its queue, stays until we are done: we are called inside of a gate,
	 * or for an object that nobody can take away meanwhile.
	 * Cannot fail or block: the count would have to reach 2^64 - 1. */
	written = write(q->fd, &one, sizeof(one));
	assert(written == sizeof(one));
	(void)written;
}

/* False when there is none. */
static bool
event_pop(struct event_queue *q, struct event_record *out)
{
	struct async_event *ev;

	rte_spinlock_lock(&q->lock);
	ev = STAILQ_FIRST(&q->raised);
	if (ev != NULL) {
		STAILQ_REMOVE_HEAD(&q->raised, link);
		/* Raised again meanwhile: to the end, behind what others raised since. */
		if (--ev->raised != 0)
			STAILQ_INSERT_TAIL(&q->raised, ev, link);
		ev->delivered++;
		out->type = ev->type;
		out->object = ev->object;
	}
	rte_spinlock_unlock(&q->lock);
	return ev != NULL;
}

int
event_next(struct event_queue *q, struct event_record *out)
{
	uint64_t one;

	/* More than once where what was counted has been purged. */
	do {
		ssize_t got = read(q->fd, &one, sizeof(one));

		if (got < 0)
			return -errno;
	} while (!event_pop(q, out));
	return 0;
}

/* Takes one from the descriptor's count, without waiting whatever its flags say: another
 * reader may have been faster, and finds nothing in the list. */
static bool
event_uncount(struct event_queue *q)
{
	uint64_t one;
	struct iovec to = {.iov_base = &one, .iov_len = sizeof(one)};

	/* Kernels before 5.8 refuse this on an eventfd: then the descriptor stays
	 * readable, and event_next() goes around once more. */
	return preadv2(q->fd, &to, 1, -1, RWF_NOWAIT) == sizeof(one);
}

uint32_t
event_purge(struct async_event *ev)
{
	struct event_queue *q = ev->queue;
	uint32_t delivered;

	if (q == NULL)
		return 0;
	rte_spinlock_lock(&q->lock);
	if (ev->raised != 0)
		STAILQ_REMOVE(&q->raised, ev, async_event, link);
	while (ev->raised != 0 && event_uncount(q))
		ev->raised--;
	ev->raised = 0;
	delivered = ev->delivered;
	rte_spinlock_unlock(&q->lock);
	return delivered;
}
