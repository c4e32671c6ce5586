/* SPDX-License-Identifier: BSD-3-Clause */
/* Control path. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/futex.h"
#include "base/no_cancel.h"
#include "queue/event_queue.h"

/* The lock covers the list, the counts and the taker. The descriptor's count and the
 * taker's together are at least the number of unread events, except for two short times:
 * event_raise() adds to the list before it adds to the count, and event_next() takes from
 * the count before it takes from the list. */

int
event_queue_init(struct event_queue *q)
{
	rte_spinlock_init(&q->lock);
	STAILQ_INIT(&q->raised);
	q->taker = NULL;
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

/* Has the descriptor count n more events. Cannot fail or block: the count would have to
 * reach 2^64 - 1. */
static void
events_count(const struct event_queue *q, uint64_t n)
{
	ssize_t written = no_cancel_write(q->fd, &n, sizeof(n));

	assert(written == sizeof(n));
	(void)written;
}

/* The taker will look before it sleeps, or is woken. Returns the word to wake it by, NULL: it
 * is awake. */
static const uint32_t *
taker_give(struct event_taker *taker)
{
	taker->events++;
	if (!taker->asleep)
		return NULL;
	taker->asleep = false;
	__atomic_store_n(&taker->wakes, taker->wakes + 1, __ATOMIC_RELAXED);
	return &taker->wakes;
}

void
event_raise(struct async_event *ev, enum ibv_event_type type)
{
	struct event_queue *q = ev->queue;
	const uint32_t *wakes = NULL;
	bool linked, added, taken;

	if (q == NULL)
		return;
	rte_spinlock_lock(&q->lock);
	linked = has_unread(ev);
	added = pending_add(ev, type);
	if (!linked)
		STAILQ_INSERT_TAIL(&q->raised, ev, link);
	taken = q->taker != NULL;
	if (taken && added)
		wakes = taker_give(q->taker);
	rte_spinlock_unlock(&q->lock);
	/* Wake after unlocking: the woken thread may preempt us on this core and would
	 * then spin on the lock. The object, its queue and takers outlive this call: the
	 * caller holds an engine lock, or the object cannot be destroyed meanwhile. */
	if (wakes != NULL)
		futex_wake(wakes, false);
	else if (added && !taken)
		events_count(q, 1);
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

static bool
nothing_raised(struct event_queue *q)
{
	bool nothing;

	rte_spinlock_lock(&q->lock);
	nothing = STAILQ_EMPTY(&q->raised);
	rte_spinlock_unlock(&q->lock);
	return nothing;
}

bool
event_take_begin(struct event_queue *q, struct event_taker *taker)
{
	bool begun = false;
	int flags;

	if (!nothing_raised(q)) /* saves the system call */
		return false;
	flags = fcntl(q->fd, F_GETFL);
	if (flags < 0 || flags & O_NONBLOCK)
		return false;
	rte_spinlock_lock(&q->lock);
	if (STAILQ_EMPTY(&q->raised) && q->taker == NULL) {
		q->taker = taker;
		begun = true;
	}
	rte_spinlock_unlock(&q->lock);
	return begun;
}

bool
event_take_sleep(struct event_queue *q, uint32_t *wakes)
{
	bool sleep;

	rte_spinlock_lock(&q->lock);
	sleep = q->taker->events == 0;
	q->taker->asleep = sleep;
	*wakes = q->taker->wakes;
	rte_spinlock_unlock(&q->lock);
	return sleep;
}

void
event_take_awake(struct event_queue *q)
{
	rte_spinlock_lock(&q->lock);
	q->taker->asleep = false;
	rte_spinlock_unlock(&q->lock);
}

bool
event_take_ready(struct event_queue *q)
{
	bool events;

	rte_spinlock_lock(&q->lock);
	events = q->taker->events != 0;
	rte_spinlock_unlock(&q->lock);
	return events;
}

bool
event_take_end(struct event_queue *q, struct event_record *out)
{
	uint32_t events;
	bool taken = false;

	rte_spinlock_lock(&q->lock);
	events = q->taker->events;
	q->taker->events = 0;
	q->taker->asleep = false;
	q->taker = NULL;
	rte_spinlock_unlock(&q->lock);
	if (events != 0 && out != NULL) {
		/* False if it has been purged. */
		taken = event_pop(q, out);
		events--;
	}
	if (events != 0)
		events_count(q, events);
	return taken;
}

/* Takes one from the taker's or the descriptor's count. Never blocks, even if the
 * descriptor is in blocking mode: another reader may have taken the count already, and
 * will find no event in the list. */
static bool
event_uncount(struct event_queue *q)
{
	uint64_t one;
	struct iovec to = {.iov_base = &one, .iov_len = sizeof(one)};
	ssize_t got;
	int state;

	if (q->taker != NULL && q->taker->events != 0) {
		q->taker->events--;
		return true;
	}
	/* Kernels before 5.8 refuse RWF_NOWAIT on an eventfd. The descriptor then stays
	 * readable, and event_next() repeats its loop. */
	state = no_cancel_begin();
	got = preadv2(q->fd, &to, 1, -1, RWF_NOWAIT);
	no_cancel_end(state);
	return got == sizeof(one);
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
