/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completion queue. Engines write, application threads poll. With QPs of one engine a write is
 * plain; with more, a slot is reserved by compare-and-swap on head. A slot's phase bit says
 * that its CQE is there: it flips with every round of the ring. A full queue never overwrites:
 * it goes to the error state and raises IBV_EVENT_CQ_ERR once (IBA 11.6.3.1).
 */
#ifndef ROCADE_QUEUE_CQ_H
#define ROCADE_QUEUE_CQ_H

#include <rte_spinlock.h>

#include "base/alloc.h"
#include "queue/event.h"

#define CQ_MAX_CQE ((1u << 22) - 1)

struct cqe {
	uint64_t wr_id;
	uint32_t byte_len; /* in an error completion: vendor_err */
	uint32_t imm;	   /* immediate data as on the wire, or the invalidated rkey */
	uint32_t qpn;
	uint32_t src_qpn; /* UD; the SL above bit 24 */
	uint32_t sq_end;  /* of a send: polling this CQE frees the SQ up to this index */
	uint8_t opcode;	  /* enum ibv_wc_opcode, also in an error completion */
	uint8_t status;	  /* enum ibv_wc_status */
	uint8_t wc_flags; /* IBV_WC_* */
	uint8_t mark;	  /* CQE_*: written last, with release */
};
static_assert(sizeof(struct cqe) == 32, "two to a line");

#define CQE_PHASE 0x01
#define CQE_SOLICITED 0x04 /* the writer's: the peer asked for an event, see cq_notify() */
#define CQE_DEAD 0x02 /* its QP was reset or destroyed: polling skips it */

enum cq_armed { CQ_IDLE, CQ_ARMED_SOLICITED, CQ_ARMED };

struct cq {
	struct cqe *ring;
	uint32_t mask; /* size - 1; the size is a power of two, as asked for or above */
	uint32_t size;
	bool shared;   /* QPs of several engines write, or CQEs have stamps: not the plain way */
	bool unlocked; /* single-threaded poller by a thread domain */
	bool error;
	bool notifies; /* comp_event has a queue: a completion channel */
	uint8_t armed; /* enum cq_armed: set by pollers, taken by the engine that fires */
	uint32_t engines; /* control path: bit per engine; qps: attached QPs (twice if both) */
	uint32_t qps;
	uint64_t *stamps; /* when CQE i was written, in the engines' time; NULL: not asked for */
	const struct alloc *mem;
	struct async_event error_event;
	struct async_event comp_event;
	/* engines */
	uint32_t head LINE_ALIGNED;
	uint32_t tail_seen; /* a tail read earlier: spares the writers the pollers' line */
	/* pollers */
	rte_spinlock_t lock LINE_ALIGNED;
	uint32_t tail; /* release; acquired by the engines before they reuse a slot */
};

/* -EINVAL unless cqe in 1..CQ_MAX_CQE; -ENOMEM. The actual capacity is size. */
int cq_init(struct cq *cq, const struct alloc *mem, uint32_t cqe, struct event_queue *events,
	void *object);
void cq_fini(struct cq *cq); /* no QP attached (asserted) */

/* From now on every CQE has a time stamp. Before the first QP is attached. -ENOMEM. */
int cq_stamp(struct cq *cq);

/* An empty queue of this capacity with stamps if cq has them, for cq_replace(). As cq_init(). */
int cq_like(const struct cq *cq, uint32_t cqe, struct cq *out);

/*
 * Resize: what is not polled moves, in its order, to the ring of an empty queue made by
 * cq_like(), which gets the old one. -EINVAL, and nothing has changed, where that is more than
 * cqe. All gates held by the caller; takes the pollers' lock.
 */
int cq_replace(struct cq *cq, struct cq *with, uint32_t cqe);

/* Control path, all gates held by the caller. */
void cq_attach(struct cq *cq, unsigned engine);
void cq_detach(struct cq *cq);

/* Marks every CQE of this QP that has not been polled dead and gives their slots back; in an
 * unlocked queue they keep them until a poll goes past: a poller of a thread domain may hold its
 * place. All gates held by the caller; takes the pollers' lock. */
void cq_purge(struct cq *cq, uint32_t qpn);

/* Completions raise events on this queue from now on, when they were asked for. Before the first
 * QP is attached. */
void cq_set_channel(struct cq *cq, struct event_queue *channel, void *object);

/* ibv_req_notify_cq(3): one event for the next completion, or the next that is solicited or in
 * error. The caller polls once more afterwards: what came before raises none. */
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

static inline uint8_t
cq_phase(const struct cq *cq, uint32_t index)
{
	return (index & cq->size) == 0 ? CQE_PHASE : 0;
}

/* ---- What cq_put() is made of ---- */

/* Once in error always in error: nothing is overwritten, nothing is written any more (IBA
 * 11.6.3.1). Several engines may find it. Returns false. */
bool cq_overrun(struct cq *cq);
/* Reserves an index by exchange, and notes the time where that was asked for; -ENOSPC: full. */
int64_t cq_reserve(struct cq *cq, const uint64_t *now);
/* A CQE has been written; solicited: or in error. */
void cq_notify(struct cq *cq, bool solicited);

/*
 * Whether index head is free. Signed: head may be an old value and the tail beyond it,
 * which the exchange of a shared writer finds out. A head too old makes the queue look
 * emptier, never fuller.
 */
static inline bool
cq_room(struct cq *cq, uint32_t head)
{
	uint32_t tail;

	/* Pairs with the release below, of another engine: with its tail comes its leave
	 * to write to the slots before it. */
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

	/* Two to a line: the line after the next, for the next one a poller may be
	 * watching. */
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
	/* Pairs with the acquire in cq_peek(). */
	__atomic_store_n(&cqe->mark, cq_phase(cq, index), __ATOMIC_RELEASE);
}

static inline void
cqe_put_at(struct cq *cq, uint32_t index, const struct cqe *cqe)
{
	cqe_write(cq, index, cqe);
	if (unlikely(cq->notifies))
		cq_notify(cq, (cqe->mark & CQE_SOLICITED) != 0 ||
				      cqe->status != IBV_WC_SUCCESS);
}

/* Whether cq_put() would just write a CQE. */
static inline bool
cq_plain(struct cq *cq)
{
	return !cq->shared && !__atomic_load_n(&cq->error, __ATOMIC_RELAXED) &&
	       cq_room(cq, cq->head);
}

/* Then this is all of it. */
static inline void
cq_put_plain(struct cq *cq, const struct cqe *cqe)
{
	cqe_put_at(cq, cq->head++, cqe);
}

/* Data path: false when the queue is (now) in error and the CQE was not written. cqe->mark
 * need not be set but for CQE_SOLICITED: what the slot gets is made here. *now, the engine's
 * time, is looked at only for a CQ with stamps. */
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
	cqe_put_at(cq, index, cqe);
	return true;
}

/* Under the pollers' lock: the CQE at *tail (a local copy of cq->tail), skipping dead ones and
 * moving *tail to it; NULL when there is none. The poller reads it, adds 1 to *tail, goes on,
 * and at last stores the tail with cq_consume(). */
static inline const struct cqe *
cq_peek(const struct cq *cq, uint32_t *tail)
{
	for (;;) {
		const struct cqe *cqe = &cq->ring[*tail & cq->mask];
		/* Pairs with the release in cq_put(). */
		uint8_t mark = __atomic_load_n(&cqe->mark, __ATOMIC_ACQUIRE);

		if ((mark & CQE_PHASE) != cq_phase(cq, *tail))
			return NULL;
		if (likely((mark & CQE_DEAD) == 0))
			return cqe;
		(*tail)++;
	}
}

static inline void
cq_consume(struct cq *cq, uint32_t tail)
{
	/* Pairs with the acquire of tail in cq_put(). */
	__atomic_store_n(&cq->tail, tail, __ATOMIC_RELEASE);
}

#endif
