/* SPDX-License-Identifier: BSD-3-Clause */
/* Control path. */
#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include "queue/event_queue.h"

/* The lock covers the list and the counts. The descriptor's count is at least the number
 * of unread events, except for two short times: event_raise() adds to the list before it
 * adds to the count, and event_next() takes from the count before it takes from the
 * list. */

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
async_event_init(struct async_event *ev, struct event_queue *q, void *object)
{
	*ev = (struct async_event){.queue = q, .object = object};
}

static bool
has_unread(const struct async_event *ev)
{
	return ev->pending[0].unread != 0;
}

/* Returns false if the count is at its limit. */
static bool
pending_add(struct async_event *ev, enum ibv_event_type type)
{
	struct event_pending *p = ev->pending;

	while (p->unread != 0 && p->type != type) {
		p++;
		assert(p < ev->pending + EVENT_TYPES_MAX);
	}
	if (p->unread == EVENT_UNREAD_MAX)
		return false;
	p->type = type;
	p->unread++;
	return true;
}

/* Takes one event of the oldest type. If more of that type are unread, it moves behind
 * the others. */
static enum ibv_event_type
pending_take(struct async_event *ev)
{
	struct event_pending first = ev->pending[0];
	unsigned n = 1;

	for (; n < EVENT_TYPES_MAX && ev->pending[n].unread != 0; n++)
		ev->pending[n - 1] = ev->pending[n];
	first.unread--;
	ev->pending[n - 1] = first;
	return (enum ibv_event_type)first.type;
}

void
event_raise(struct async_event *ev, enum ibv_event_type type)
{
	struct event_queue *q = ev->queue;
	const uint64_t one = 1;
	ssize_t written;
	bool linked, added;

	if (q == NULL)
		return;
	rte_spinlock_lock(&q->lock);
	linked = has_unread(ev);
	added = pending_add(ev, type);
	if (!linked)
		STAILQ_INSERT_TAIL(&q->raised, ev, link);
	rte_spinlock_unlock(&q->lock);
	if (!added)
		return;
	/* Write after unlocking: the woken thread may preempt us on this core and would
	 * then spin on the lock. The object and its queue outlive this call: the caller
	 * holds an engine lock, or the object cannot be destroyed meanwhile.
	 *
	 * Cannot fail or block: the count would have to reach 2^64 - 1. */
	written = write(q->fd, &one, sizeof(one));
	assert(written == sizeof(one));
	(void)written;
}

/* Returns false if no event is raised. */
static bool
event_pop(struct event_queue *q, struct event_record *out)
{
	struct async_event *ev;

	rte_spinlock_lock(&q->lock);
	ev = STAILQ_FIRST(&q->raised);
	if (ev != NULL) {
		STAILQ_REMOVE_HEAD(&q->raised, link);
		out->type = pending_take(ev);
		/* More events are unread: the object moves behind those that were raised
		 * meanwhile. */
		if (has_unread(ev))
			STAILQ_INSERT_TAIL(&q->raised, ev, link);
		ev->delivered++;
		out->object = ev->object;
	}
	rte_spinlock_unlock(&q->lock);
	return ev != NULL;
}

int
event_next(struct event_queue *q, struct event_record *out)
{
	uint64_t one;

	/* Repeats if the event that was counted has been purged. */
	do {
		ssize_t got = read(q->fd, &one, sizeof(one));

		if (got < 0)
			return -errno;
	} while (!event_pop(q, out));
	return 0;
}

/* Takes one from the descriptor's count. Never blocks, even if the descriptor is in
 * blocking mode: another reader may have taken the count already, and will find no event
 * in the list. */
static bool
event_uncount(struct event_queue *q)
{
	uint64_t one;
	struct iovec to = {.iov_base = &one, .iov_len = sizeof(one)};

	/* Kernels before 5.8 refuse RWF_NOWAIT on an eventfd. The descriptor then stays
	 * readable, and event_next() repeats its loop. */
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
	if (has_unread(ev))
		STAILQ_REMOVE(&q->raised, ev, async_event, link);
	while (has_unread(ev) && event_uncount(q))
		pending_take(ev);
	memset(ev->pending, 0, sizeof(ev->pending));
	delivered = ev->delivered;
	rte_spinlock_unlock(&q->lock);
	return delivered;
}
