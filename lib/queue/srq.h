/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shared receive queue (ibv_create_srq(3), ibv_modify_srq(3), IBA 10.2.9, 11.5.2.18): a receive
 * ring, a limit and an error state. Engines take; application threads post; modify, attach and
 * destroy are control calls that run with every engine's gate held.
 */
#ifndef ROCADE_QUEUE_SRQ_H
#define ROCADE_QUEUE_SRQ_H

#include <sys/queue.h>

#include "queue/event.h"
#include "queue/recv_ring.h"

#define SRQ_MAX_WR (1u << 20) /* the device's max_srq_wr */

struct cq;

struct srq {
	struct recv_ring ring;
	/*
	 * The armed limit in the low half (0: none), the number of the arming in the high half:
	 * an engine reads it before it counts, and fires by exchanging it for the same number
	 * with 0, so a count taken before a new arming cannot fire that one.
	 */
	uint64_t limit;
	bool shared;   /* QPs of more than one engine: takes claim atomically */
	bool error;    /* the ring was found impossible: only destroy leaves this */
	uint64_t limit_fired; /* limit events raised so far */
	uint32_t srqn;
	uint32_t pd;   /* whose keys the SGEs name */
	uint32_t xrcd; /* the XRC domain's number, 0: not an XRC SRQ */
	struct cq *cq; /* of an XRC SRQ: what was received from it completes there */
	LIST_ENTRY(srq) link; /* of the device's; under its lock */
	uint32_t engines; /* bit per engine with attached QPs; control path */
	uint32_t qps;	  /* attached; control path */
	struct async_event events;
};

/* What modify takes; fields count only where their flag is set. */
struct srq_attr {
	uint32_t max_wr;
	uint32_t max_sge; /* with IBV_SRQ_MAX_WR: 0 keeps the present value */
	uint32_t limit;
};

/* -EINVAL unless max_wr in 1..SRQ_MAX_WR and max_sge in 1..RECV_MAX_SGE; -ENOMEM. The actual
 * sizes are ring.max_wr and ring.max_sge. events may be NULL; object is what its events name. */
int srq_init(struct srq *srq, const struct alloc *mem, uint32_t pd, uint32_t max_wr,
	uint32_t max_sge, struct event_queue *events, void *object);
/* No QP may be attached (asserted). Purging events is the caller's (it also waits for acks). */
void srq_fini(struct srq *srq);

/* A QP of this engine comes or goes. The caller holds every gate; the producer lock is taken
 * here. */
void srq_attach(struct srq *srq, unsigned engine);
void srq_detach(struct srq *srq);

/*
 * mask: IBV_SRQ_MAX_WR and/or IBV_SRQ_LIMIT, else -EINVAL; 0 succeeds and does nothing. Both
 * apply or none does: the limit must not exceed the size (as asked for, where both come); a
 * size that, as asked for and before rounding up, is below what is outstanding or below the
 * armed limit (the new one, where both come) or outside the caps is -EINVAL, and so is a
 * max_sge below that of an outstanding WQE; -ENOMEM; -EIO in the error state. On success of a
 * resize attr holds the actual sizes. Raises the limit event at once when fewer than the limit
 * are outstanding. The caller holds every gate; the producer lock is taken here.
 */
int srq_modify(struct srq *srq, struct srq_attr *attr, int mask);

/* -EIO in the error state. The limit reads 0 once it has fired. */
int srq_query(struct srq *srq, struct srq_attr *attr);

/* Data path: 0, -EAGAIN when empty, -EIO in the error state (which it may just have found:
 * IBV_EVENT_SRQ_ERR is raised once). Fires the limit. */
int srq_take(struct srq *srq, struct recv_wqe *out);

/*
 * A post, under the producer lock. In the error state posting still succeeds and stores
 * nothing: ask srq_failed() once a list. When recv_ring_next() has no slot, srq_refuse() tells
 * why: -ENOMEM, or -EIO when the ring is found impossible here (IBV_EVENT_SRQ_ERR is raised
 * once; accept the rest of the list, store nothing, publish nothing).
 */
static inline bool
srq_failed(const struct srq *srq)
{
	return __atomic_load_n(&srq->error, __ATOMIC_RELAXED);
}

int srq_refuse(struct srq *srq);

/* The armed limit, 0 when none is. */
static inline uint32_t
srq_limit(const struct srq *srq)
{
	return (uint32_t)__atomic_load_n(&srq->limit, __ATOMIC_ACQUIRE);
}

#endif
