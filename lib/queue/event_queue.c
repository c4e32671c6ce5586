/* SPDX-License-Identifier: BSD-3-Clause */
/* Control path. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/futex.h"
#include "base/no_cancel.h"
#include "queue/event_queue.h"

/* In one page, a byte that is not read yet can leave no room for others. */
#define PIPE_PAGES 2
#define WRITE_MAX 4096 /* bytes that are written in one call */

/*
 * The lock covers the list, the counts and the taker. The descriptor's count is its bytes and
 * `unwritten`. That and the taker's together are at least the number of unread events, except for two
 * short times: event_raise() adds to the list before it adds to the count, and event_next() takes from
 * the count before it takes from the list.
 */

/* The program's end is the one that pipe2(2) made for reading. Ours is open for both: the pipe then has a
 * reader also when the program has closed its end, so that no write raises SIGPIPE, and events can be
 * taken back without waiting. Without /proc ours is the one for writing: no event is taken back then, so
 * that the descriptor stays readable, and event_next() repeats its loop. */
static int
pipe_own_end(const int ends[2])
{
	char path[32];
	int fd;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", ends[0]);
	fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 && errno != EMFILE && errno != ENFILE && errno != ENOMEM)
		return ends[1];
	close(ends[1]);
	return fd < 0 ? -errno : fd;
}

/* Returns 0 or -errno. */
static int
pipe_open(struct event_queue *q)
{
	int ends[2];

	/* The status flags belong to each end: the program may change those of its own. */
	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0)
		return -errno;
	(void)fcntl(ends[0], F_SETFL, 0);
	/* The kernel limits the pages of all pipes of a user (pipe(7)). */
	(void)fcntl(ends[0], F_SETPIPE_SZ, PIPE_PAGES * (int)sysconf(_SC_PAGESIZE));
	q->own_fd = pipe_own_end(ends);
	if (q->own_fd < 0) {
		close(ends[0]);
		return q->own_fd;
	}
	q->fd = ends[0];
	return 0;
}

int
event_queue_init(struct event_queue *q)
{
	int state = no_cancel_begin(), rc;

	rte_spinlock_init(&q->lock);
	STAILQ_INIT(&q->raised);
	q->taker = NULL;
	q->unwritten = 0;
	q->unwaited = EVENT_UNWAITED;
	rc = pipe_open(q);
	no_cancel_end(state);
	return rc;
}

void
event_queue_fini(struct event_queue *q)
{
	int state = no_cancel_begin();

	assert(STAILQ_EMPTY(&q->raised));
	close(q->fd);
	close(q->own_fd);
	q->fd = q->own_fd = -1;
	no_cancel_end(state);
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

/* Writes n bytes, as far as the pipe has room. Returns how many it had no room for. */
static uint32_t
bytes_write(const struct event_queue *q, uint32_t n)
{
	static const uint8_t bytes[WRITE_MAX];

	while (n != 0) {
		ssize_t written =
			no_cancel_write(q->own_fd, bytes, RTE_MIN(n, WRITE_MAX));

		if (written <= 0)
			break;
		n -= (uint32_t)written;
	}
	return n;
}

/* Has the descriptor count n more events. Without room for them the pipe is readable already: who reads
 * from it writes them (event_pop()). */
static void
events_count(struct event_queue *q, uint32_t n)
{
	uint32_t left = bytes_write(q, n);

	if (left == 0)
		return;
	rte_spinlock_lock(&q->lock);
	/* Readers may have emptied the pipe before the lock was taken: they looked in vain. */
	q->unwritten = bytes_write(q, q->unwritten + left);
	rte_spinlock_unlock(&q->lock);
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
	if (q->unwritten != 0)
		q->unwritten = bytes_write(q, q->unwritten);
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
	uint32_t unwaited;
	uint8_t byte;

	/* Repeats if the event that was counted has been purged. */
	do {
		ssize_t got = read(q->fd, &byte, sizeof(byte));

		if (got < 0)
			return -errno;
	} while (!event_pop(q, out));
	unwaited = __atomic_load_n(&q->unwaited, __ATOMIC_RELAXED);
	if (unwaited != EVENT_UNWAITED)
		__atomic_store_n(&q->unwaited, unwaited + 1, __ATOMIC_RELAXED);
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
	/* O_ASYNC: the kernel raises SIGIO when the descriptor counts an event. */
	if (flags < 0 || flags & (O_NONBLOCK | O_ASYNC))
		return false;
	rte_spinlock_lock(&q->lock);
	if (STAILQ_EMPTY(&q->raised) && q->taker == NULL) {
		q->taker = taker;
		__atomic_store_n(&q->unwaited, 0, __ATOMIC_RELAXED);
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

/* Takes one from the taker's or the descriptor's count. Never blocks: another reader may have taken the
 * count already, and will find no event in the list. */
static bool
event_uncount(struct event_queue *q)
{
	uint8_t byte;
	ssize_t got;
	int state;

	if (q->taker != NULL && q->taker->events != 0) {
		q->taker->events--;
		return true;
	}
	if (q->unwritten != 0) {
		q->unwritten--;
		return true;
	}
	state = no_cancel_begin();
	got = read(q->own_fd, &byte, sizeof(byte));
	no_cancel_end(state);
	return got == sizeof(byte);
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
