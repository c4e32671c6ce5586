/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Asynchronous events (ibv_get_async_event(3)). An event lives inside the object that can
 * raise it, one for each type, with a count of how often it was raised and not read yet:
 * raising allocates nothing and can be done by an engine. Rare by nature, so it may take the
 * queue's lock and write its descriptor.
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

struct async_event {
	STAILQ_ENTRY(async_event) link;
	struct event_queue *queue; /* NULL: nobody listens, raising does nothing */
	void *object;		   /* what the reader gets: the verbs object */
	enum ibv_event_type type;
	uint32_t raised;    /* not read yet; > 0: linked */
	uint32_t delivered; /* read so far: destroy waits until as many are acknowledged */
};

struct event_record {
	enum ibv_event_type type;
	void *object;
};

/* -errno of eventfd(2). */
int event_queue_init(struct event_queue *q);
/* Every event has been read or purged (asserted). */
void event_queue_fini(struct event_queue *q);

void async_event_init(struct async_event *ev, struct event_queue *q, enum ibv_event_type type,
	void *object);

/* From any thread. */
void event_raise(struct async_event *ev);

/*
 * The oldest event; one that was raised several times goes to the end of the line after each
 * reading. Blocks in read(2) on the queue's descriptor unless the reader set O_NONBLOCK on it:
 * then -EAGAIN; -EINTR on a signal whose handler does not restart calls (SA_RESTART).
 */
int event_next(struct event_queue *q, struct event_record *out);

/* Takes back what was raised and not read; the object is about to go. Returns how many of
 * this event were delivered in its life. */
uint32_t event_purge(struct async_event *ev);

#endif
