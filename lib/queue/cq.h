/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/*
 * Completion queue. Engines write, application threads poll. If all QPs belong to one
 * engine, a write is plain; otherwise a writer reserves a slot by compare-and-swap on
 * head. The phase bit of a slot tells whether its CQE is valid; it flips with every round
 * of the ring. A full queue is never overwritten: it enters the error state and raises
 * IBV_EVENT_CQ_ERR once (IBA 11.6.3.1).
 */
#ifndef ROCADE_QUEUE_CQ_H
#define ROCADE_QUEUE_CQ_H

#include <rte_spinlock.h>

#include "base/base_alloc.h"
#include "base/usdt.h"
#include "queue/app_locks.h"
#include "queue/cq_moderate.h"
#include "queue/event_queue.h"

#define CQ_MAX_CQE ((1u << 22) - 1)

struct cqe {
	uint64_t wr_id;
	uint32_t byte_len; /* in an error completion: vendor_err */
	uint32_t imm;      /* immediate data as on the wire, or the invalidated rkey */
	uint32_t qpn;
	uint32_t src_qpn; /* UD; bits 24 and up: the SL */
	/* send completion: polling this CQE frees the SQ slots before this index */
	uint32_t sq_end;
	uint8_t opcode;   /* enum ibv_wc_opcode, also in an error completion */
	uint8_t status;   /* enum ibv_wc_status */
	uint8_t wc_flags; /* IBV_WC_* */
	uint8_t flags;    /* CQE_*: written last, with release */
};
static_assert(sizeof(struct cqe) == 32, "two per cache line");

#define CQE_PHASE 0x01
/* only in the CQE passed to cq_put(): the peer set SE (solicited event), see
 * cq_notify() */
#define CQE_SOLICITED 0x04
#define CQE_CLEANED 0x02 /* its QP was reset or destroyed: polling skips it */

/* In wc_flags, beside IBV_WC_*, and not reported: wr_id is an mbuf (qp/mbuf_receive.h). */
#define CQE_WC_MBUF 0x80
#define CQE_WC_REPORTED 0x7F

/* CQ_COUNTED: a bit beside, see struct cq_moderator */
enum cq_armed { CQ_IDLE, CQ_ARMED_SOLICITED, CQ_ARMED, CQ_COUNTED = 4 };

struct cq {
	struct cqe *ring;
	uint32_t mask; /* size - 1; size is a power of two, at least the size requested */
	uint32_t size;
	/* QPs of several engines write, or CQEs have time stamps */
	bool shared;
	/* polled by one thread at a time (thread domain): pollers take no lock */
	bool unlocked;
	bool error;
	bool notifies; /* comp_event has a queue: the CQ has a completion channel */
	/* enum cq_armed: set by pollers, cleared by the engine that raises the event */
	uint8_t armed;
	uint32_t engines;                 /* control path: engines with attached QPs */
	uint32_t engine_qps[ENGINES_MAX]; /* attached, of each engine */
	/* time of each CQE's write, on the engines' clock; NULL: not enabled */
	uint64_t *stamps;
	const struct alloc *mem;
	struct async_event error_event;
	struct async_event comp_event;
	struct cq_moderator *moderator; /* the device's */
	/* Used only while moderation.period_ns is not 0. */
	struct cq_moderation moderation;
	/* written by engines */
	uint32_t head LINE_ALIGNED;
	/* cached tail: spares the writers a read of the pollers' cache line */
	uint32_t tail_seen;
	/* written by pollers */
	rte_spinlock_t lock LINE_ALIGNED;
	/* stored with release; engines acquire it before they reuse a slot */
	uint32_t tail;
};

/* Returns -EINVAL unless cqe is in 1..CQ_MAX_CQE, or -ENOMEM. The actual capacity is
 * size. */
int cq_init(struct cq *cq, const struct alloc *mem, uint32_t cqe,
	struct event_queue *events, void *object);
void cq_fini(struct cq *cq); /* no QP attached (asserted) */

/* Enables time stamps of CQEs. To be called before the first QP is attached. On
 * -ENOMEM the CQ is released. */
int cq_enable_stamps(struct cq *cq);

/* Initialises an empty CQ for cq_replace(): of this capacity, with time stamps if cq has
 * them. Returns the errors of cq_init(). */
int cq_init_like(const struct cq *cq, uint32_t cqe, struct cq *out);

/*
 * Resizes: moves the unpolled CQEs, in order, to the ring of with, an empty CQ made by
 * cq_init_like(), and exchanges the rings. Returns -EINVAL, without any change, if more
 * than cqe are unpolled. The caller holds the locks of cq_engines() and the pollers' lock.
 */
int cq_replace(struct cq *cq, struct cq *with, uint32_t cqe);

/* Control path. The engines whose QPs are attached, a bit each: with their locks held none writes the CQ.
 * The device's lock is held. */
static inline uint32_t
cq_engines(const struct cq *cq)
{
	return engines_used(cq->engine_qps);
}

/* Control path. The caller holds the locks of cq_engines(), and of this engine. */
void cq_attach(struct cq *cq, unsigned engine);
void cq_detach(struct cq *cq, unsigned engine);

/* Cleans the CQ: marks every unpolled CQE of this QP as cleaned and frees its slot in the
 * CQ. In an unlocked CQ, whose poller may be between cq_peek() and cq_consume(), polling
 * frees the slots when it skips the CQEs. The caller holds the locks of cq_engines() and the
 * pollers' lock. */
void cq_clean(struct cq *cq, uint32_t qpn);

/* Sets the completion channel: armed completions raise events on this queue. To be called
 * before the first QP is attached. */
void cq_set_channel(struct cq *cq, struct event_queue *channel, void *object);

/* ibv_req_notify_cq(3): requests one event for the next completion, or for the next that
 * is solicited or in error. The caller polls once more afterwards, because earlier
 * completions raise none. */
void cq_arm(struct cq *cq, bool solicited_only);

static inline void
cq_lock(struct cq *cq)
{
	if (!cq->unlocked)
		rte_spinlock_lock(&cq->lock);
}

static inline void
cq_unlock(struct cq *cq)
{
	if (!cq->unlocked)
		rte_spinlock_unlock(&cq->lock);
}

/* Adds the pollers' lock, which they keep from ibv_start_poll() to ibv_end_poll(). */
static inline void
cq_add_lock(struct cq *cq, struct app_locks *set)
{
	if (!cq->unlocked)
		app_locks_add(set, &cq->lock);
}

static inline uint8_t
cq_phase(const struct cq *cq, uint32_t index)
{
	return (index & cq->size) == 0 ? CQE_PHASE : 0;
}

/* ---- The parts of cq_put() ---- */

/* Enters the error state, which is permanent: nothing is overwritten or written any more
 * (IBA 11.6.3.1). Several engines may call it; the event is raised once. Returns
 * false. */
bool cq_overrun(struct cq *cq);
/* Reserves an index by compare-and-swap and stores its time stamp if enabled. -ENOSPC if
 * full. */
int64_t cq_reserve(struct cq *cq, const uint64_t *now);
/* To be called after n CQEs before index end were written. solicited: a completion is
 * solicited or in error. */
void cq_notify(struct cq *cq, bool solicited, uint32_t end, uint32_t n);

/*
 * Returns whether index head is free. The comparison is signed, because another engine
 * may have moved head since, and the tail may be beyond the value given. The CQ then
 * looks emptier than it is, never fuller, and the compare-and-swap of cq_reserve() fails.
 */
static inline bool
cq_room(struct cq *cq, uint32_t head)
{
	uint32_t tail;

	/* Pairs with the release below in another engine: what that engine acquired from
	 * cq_consume() holds here, too. */
	tail = __atomic_load_n(&cq->tail_seen, __ATOMIC_ACQUIRE);
	if (likely((int32_t)(head - tail) < (int32_t)cq->size))
		return true;
	/* Pairs with the release in cq_consume(). */
	tail = __atomic_load_n(&cq->tail, __ATOMIC_ACQUIRE);
	__atomic_store_n(&cq->tail_seen, tail, __ATOMIC_RELEASE);
	return (int32_t)(head - tail) < (int32_t)cq->size;
}

static inline void
cqe_write(struct cq *cq, uint32_t index, const struct cqe *from)
{
	struct cqe *cqe = &cq->ring[index & cq->mask];

	/* Two CQEs share a cache line. Prefetches the line after the next, because a
	 * poller may be reading the next one. */
	__builtin_prefetch(&cq->ring[(index + 4) & cq->mask], 1);
	cqe->wr_id = from->wr_id;
	cqe->byte_len = from->byte_len;
	cqe->imm = from->imm;
	cqe->qpn = from->qpn;
	cqe->src_qpn = from->src_qpn;
	cqe->sq_end = from->sq_end;
	cqe->opcode = from->opcode;
	cqe->status = from->status;
	cqe->wc_flags = from->wc_flags;
	USDT_IN_MEMORY(completion, cqe->qpn, cqe->wr_id, cqe->opcode, cqe->status,
		cqe->byte_len);
	/* Pairs with the acquire in cq_peek(). */
	__atomic_store_n(&cqe->flags, cq_phase(cq, index), __ATOMIC_RELEASE);
}

/* Data path. Writes a completion. Returns false, and writes none, if the CQ is in the
 * error state; a full CQ enters it. Of cqe->flags only CQE_SOLICITED is read; the phase
 * is set here. *now, the engine's time, is read only if the CQ has time stamps. */
static inline bool
cq_put(struct cq *cq, const struct cqe *cqe, const uint64_t *now)
{
	uint32_t index;

	if (unlikely(__atomic_load_n(&cq->error, __ATOMIC_RELAXED)))
		return false;
	if (likely(!cq->shared)) {
		index = cq->head;
		if (unlikely(!cq_room(cq, index)))
			return cq_overrun(cq);
		cq->head = index + 1;
	} else {
		int64_t reserved = cq_reserve(cq, now);

		if (unlikely(reserved < 0))
			return cq_overrun(cq);
		index = (uint32_t)reserved;
	}
	cqe_write(cq, index, cqe);
	if (unlikely(cq->notifies))
		cq_notify(cq,
			(cqe->flags & CQE_SOLICITED) != 0 ||
				cqe->status != IBV_WC_SUCCESS,
			index + 1, 1);
	return true;
}

/* Returns the CQE at *tail, a local copy of cq->tail, or NULL if there is none. Skips
 * cleaned CQEs and moves *tail past them. The caller holds the pollers' lock, adds 1 to
 * *tail per CQE read and finally stores it with cq_consume(). */
static inline const struct cqe *
cq_peek(const struct cq *cq, uint32_t *tail)
{
	for (;;) {
		const struct cqe *cqe = &cq->ring[*tail & cq->mask];
		/* Pairs with the release in cqe_write(). */
		uint8_t flags = __atomic_load_n(&cqe->flags, __ATOMIC_ACQUIRE);

		if ((flags & CQE_PHASE) != cq_phase(cq, *tail))
			return NULL;
		if (likely((flags & CQE_CLEANED) == 0))
			return cqe;
		(*tail)++;
	}
}

static inline void
cq_consume(struct cq *cq, uint32_t tail)
{
	/* Pairs with the acquire of tail in cq_room(). */
	__atomic_store_n(&cq->tail, tail, __ATOMIC_RELEASE);
}

#endif
