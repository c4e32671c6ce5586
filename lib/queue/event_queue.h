/* SPDX-License-Identifier: BSD-3-Clause */
/* Control path. */
/*
 * Asynchronous events (ibv_get_async_event(3)). They are embedded in the object that
 * raises them, with a count of unread events for each type. Raising therefore allocates
 * nothing and may be done by an engine. Events are rare, so raising may take the queue's
 * lock and write to its descriptor.
 */
#ifndef ROCADE_QUEUE_EVENT_QUEUE_H
#define ROCADE_QUEUE_EVENT_QUEUE_H

#include <sys/queue.h>

#include <infiniband/verbs.h>
#include <rte_spinlock.h>

#include "base/common.h"

/* A thread that waits for an event of a queue and meanwhile causes events itself. Those
 * that are raised meanwhile are not counted by the queue's descriptor. */
struct event_taker {
	uint32_t wakes; /* a futex: changes to wake the taker */
	uint32_t events;
	bool asleep;
};

struct event_queue {
	rte_spinlock_t lock;
	STAILQ_HEAD(, async_event) raised;
	/* A pipe with a byte for each unread event. As of the kernel's channels, the program's end is never
	 * writable, each event is an edge (EPOLLET), and O_ASYNC raises SIGIO. An eventfd is always
	 * writable and raises no signal. */
	int fd;             /* for reading: the program's */
	int own_fd;         /* non-blocking */
	uint32_t unwritten; /* unread events for which the pipe had no room */
	struct event_taker *taker;
	/* Events in a row that were raised before the program asked for them; stops at EVENT_UNWAITED. */
	uint32_t unwaited;
};

/* After this number of events the program is taken for one that sleeps in poll(2) or epoll_wait(2). */
#define EVENT_UNWAITED 16
#define EVENT_TYPES_MAX 6     /* types that one object can raise */
#define EVENT_UNREAD_MAX 2047 /* per type and object; further events are dropped */

/* A type with unread events. */
struct event_pending {
	uint16_t type : 5; /* enum ibv_event_type */
	uint16_t unread : 11;
};
static_assert(IBV_EVENT_WQ_FATAL < 32, "event_pending.type has five bits");

/* All events of an object. Kept small because every QP has one. */
struct async_event {
	STAILQ_ENTRY(async_event) link;
	struct event_queue *queue; /* NULL: no reader, raising does nothing */
	void *object;              /* passed to the reader: the verbs object */
	/* events read so far; destroy waits until as many are acknowledged */
	uint32_t delivered;
	/* Oldest type first, then free elements (unread == 0). The object is linked in
	 * the queue if the first is in use. */
	struct event_pending pending[EVENT_TYPES_MAX];
};
static_assert(sizeof(struct async_event) == 40, "smaller than a cache line");

struct event_record {
	enum ibv_event_type type;
	void *object;
};

/* Returns -errno of pipe2(2) or open(2). */
int event_queue_init(struct event_queue *q);
/* All events must have been read or purged (asserted). */
void event_queue_fini(struct event_queue *q);

void async_event_init(struct async_event *ev, struct event_queue *q, void *object);

/* May be called from any thread. An object may raise at most EVENT_TYPES_MAX types
 * (asserted). */
void event_raise(struct async_event *ev, enum ibv_event_type type);

/*
 * Returns the oldest event. Objects with several unread events take turns: after each
 * read the object moves to the end of the queue. Likewise a type that an object raised
 * several times moves behind its other types. Blocks in read(2) on the queue's
 * descriptor, or returns -EAGAIN if the reader set O_NONBLOCK on it. Returns -EINTR after
 * a signal whose handler does not restart calls (SA_RESTART).
 */
int event_next(struct event_queue *q, struct event_record *out);

/*
 * event_take_begin() makes the caller the taker, which must be all zeros but for wakes. It
 * returns false, and event_next() is to be called, if events are raised, the reader set
 * O_NONBLOCK or O_ASYNC on the descriptor, or the queue has a taker. The taker may sleep while
 * event_take_sleep() returns true, until *wakes changes; after that it calls
 * event_take_awake(). event_take_ready() returns whether events were raised.
 * event_take_end() returns the first of them and has the descriptor count the others. It
 * returns false if there is none. out: NULL returns none.
 */
bool event_take_begin(struct event_queue *q, struct event_taker *taker);
bool event_take_sleep(struct event_queue *q, uint32_t *wakes);
void event_take_awake(struct event_queue *q);
bool event_take_ready(struct event_queue *q);
bool event_take_end(struct event_queue *q, struct event_record *out);

/* Returns whether the program sleeps on the descriptor, and not as the taker. */
static inline bool
event_is_slept_for(const struct event_queue *q)
{
	return __atomic_load_n(&q->unwaited, __ATOMIC_RELAXED) == EVENT_UNWAITED;
}

/* The caller reads the descriptor next: it sleeps there, as in poll(2), although it was the taker before. */
static inline void
event_sleep_note(struct event_queue *q)
{
	__atomic_store_n(&q->unwaited, EVENT_UNWAITED, __ATOMIC_RELAXED);
}

/* Discards the unread events of an object that is about to be destroyed. Returns how many
 * of its events have been read over its lifetime. */
uint32_t event_purge(struct async_event *ev);

#endif
