/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Asynchronous events (ibv_get_async_event(3)). They live inside the object that can raise
 * them, with a count for each type of how often it was raised and not read yet: raising
 * allocates nothing and can be done by an engine. Rare by nature, so it may take the queue's
 * lock and write its descriptor.
 */
#ifndef ROCADE_QUEUE_EVENT_H
#define ROCADE_QUEUE_EVENT_H

#include <sys/queue.h>

#include <infiniband/verbs.h>
#include <rte_spinlock.h>

#include "base/common.h"

struct event_queue {
	rte_spinlock_t lock;
	STAILQ_HEAD(, async_event) raised;
	int fd; /* eventfd, EFD_SEMAPHORE | EFD_CLOEXEC: counts what is raised and not read */
};

#define EVENT_TYPES_MAX 6   /* that one object can raise */
#define EVENT_UNREAD_MAX 2047 /* of one type and object; more are not counted */

/* A type that was raised. */
struct event_pending {
	uint16_t type : 5; /* enum ibv_event_type */
	uint16_t unread : 11;
};
static_assert(IBV_EVENT_WQ_FATAL < 32, "five bits");

/* All events of an object: every QP has one, which is why it is small. */
struct async_event {
	STAILQ_ENTRY(async_event) link;
	struct event_queue *queue; /* NULL: nobody listens, raising does nothing */
	void *object;		   /* what the reader gets: the verbs object */
	uint32_t delivered; /* read so far: destroy waits until as many are acknowledged */
	/* Oldest first, then free ones, of which nothing is unread. The first is not free:
	 * linked. */
	struct event_pending pending[EVENT_TYPES_MAX];
};
static_assert(sizeof(struct async_event) == 40, "less than a line");

struct event_record {
	enum ibv_event_type type;
	void *object;
};

/* -errno of eventfd(2). */
int event_queue_init(struct event_queue *q);
/* Every event has been read or purged (asserted). */
void event_queue_fini(struct event_queue *q);

void async_event_init(struct async_event *ev, struct event_queue *q, void *object);

/* From any thread. An object has EVENT_TYPES_MAX types at the most (asserted). */
void event_raise(struct async_event *ev, enum ibv_event_type type);

/*
 * The oldest event; an object that has more goes to the end of the line after each reading,
 * and so does, in the object, a type that was raised several times. Blocks in read(2) on the queue's descriptor unless the reader set O_NONBLOCK on it:
 * then -EAGAIN; -EINTR on a signal whose handler does not restart calls (SA_RESTART).
 */
int event_next(struct event_queue *q, struct event_record *out);

/* Takes back what was raised and not read; the object is about to go. Returns how many of
 * these events were delivered in its life. */
uint32_t event_purge(struct async_event *ev);

#endif
