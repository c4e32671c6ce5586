/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/*
 * Shared receive queue (ibv_create_srq(3), ibv_modify_srq(3), IBA 10.2.9, 11.5.2.18): a
 * receive ring, a limit and an error state. Engines take; application threads post, and
 * arm the limit beside running engines. Resize, attach and destroy are control calls that
 * run with the locks of its engines held (srq_engines()).
 */
#ifndef ROCADE_QUEUE_SRQ_H
#define ROCADE_QUEUE_SRQ_H

#include <sys/queue.h>

#include "queue/event_queue.h"
#include "queue/recv_ring.h"

#define SRQ_MAX_WR (1u << 20) /* the device's max_srq_wr */

struct cq;
struct rte_mempool;

/* Messages are handed over in mbufs: qp/mbuf_receive.h. Set before a QP is attached. */
struct srq_mbufs {
	struct rte_mempool *pool; /* for payload that is copied; NULL: the SRQ has SGEs */
	uint32_t max_message;     /* bytes */
};
#define SRQ_MBUFS_MAX_MESSAGE                                                            \
	(UINT32_C(8) << 20) /* fewer than 2^16 packets of 256 bytes */

struct srq {
	struct recv_ring ring;
	/*
	 * Low half: the armed limit, 0 if none. High half: the number of the arming. A
	 * thread reads the word before it counts and fires by exchanging it for the same
	 * number with 0. A count from before a new arming therefore cannot fire the new
	 * one, and one of several threads fires.
	 */
	uint64_t limit;
	uint32_t armed_prod; /* ring.prod when the limit was armed */
	bool taken;          /* linked in *taken_list */
	/* One engine: the limit word that the last take has read, see srq_look(). */
	uint64_t seen;
	struct srq *next_taken;
	struct srq **taken_list; /* the engine's SRQs with takes in this pass; or NULL */
	/* QPs of more than one engine are attached: takes claim atomically */
	bool shared;
	bool error; /* the ring was found corrupted; the SRQ can only be destroyed */
	uint64_t limit_fired; /* limit events raised so far */
	uint32_t srqn;
	uint32_t pd;   /* protection domain of the SGEs' keys */
	uint32_t xrcd; /* number of the XRC domain; 0: not an XRC SRQ */
	struct cq *cq; /* XRC SRQ: the CQ of its completions */
	struct srq_mbufs mbufs;
	LIST_ENTRY(srq) link; /* in the device's list; protected by the device's lock */
	/* Control path: the attached QPs and their engines, and of each engine its QPs and its
	 * list for taken_list. */
	uint32_t qps;
	uint32_t engines;
	uint32_t engine_qps[ENGINES_MAX];
	struct srq **taken_lists[ENGINES_MAX];
	struct async_event events;
};

/* Attributes for srq_modify(). A field is used only if its flag is set. */
struct srq_attr {
	uint32_t max_wr;
	uint32_t max_sge; /* no flag: only written back */
	uint32_t limit;
};

/* Returns -EINVAL unless max_wr is in 1..SRQ_MAX_WR and max_sge in 1..RECV_MAX_SGE, or
 * -ENOMEM. The actual sizes are ring.max_wr and ring.max_sge. events may be NULL. object
 * is passed with its events. */
int srq_init(struct srq *srq, const struct alloc *mem, uint32_t pd, uint32_t max_wr,
	uint32_t max_sge, struct event_queue *events, void *object);
/* No QP may be attached (asserted). The caller purges the events and waits for their
 * acknowledgement. */
void srq_fini(struct srq *srq);

/* Control path. Its messages are handed over in mbufs from now on: receives have no SGEs then.
 * -EBUSY: a QP is attached, or receives are posted. Takes the producer lock. */
int srq_set_mbufs(struct srq *srq, const struct srq_mbufs *mbufs);

static inline bool
srq_has_mbufs(const struct srq *srq)
{
	return srq != NULL && srq->mbufs.pool != NULL;
}

/* The engines that take from it, a bit each. The device's lock is held. */
static inline uint32_t
srq_engines(const struct srq *srq)
{
	return srq->cq != NULL ? ENGINES_ALL : engines_used(srq->engine_qps);
}

/* Attaches or detaches a QP of this engine. taken_list: the engine's, for srq_settle().
 * The caller holds the locks of srq_engines(), and of this engine; takes the producer lock. */
void srq_attach(struct srq *srq, unsigned engine, struct srq **taken_list);
void srq_detach(struct srq *srq, unsigned engine);

/*
 * mask: IBV_SRQ_MAX_WR, IBV_SRQ_LIMIT or both; 0 succeeds and does nothing. Both changes
 * apply or none.
 *
 * Returns -EINVAL if mask has other bits; if the limit exceeds the size; if the size is
 * below the number of outstanding WQEs, below the armed limit or outside the device's
 * limits. The size counts as requested, before rounding up; with both bits set, the new
 * size and the new limit are compared. Returns -ENOMEM, or -EIO in the error state.
 *
 * After a successful resize attr holds the actual sizes. Raises the limit event at once
 * if fewer WQEs than the limit are outstanding. Takes the producer lock. For
 * IBV_SRQ_MAX_WR the caller holds the locks of srq_engines().
 */
int srq_modify(struct srq *srq, struct srq_attr *attr, int mask);

/* Returns -EIO in the error state. The limit reads 0 once its event was raised. */
int srq_query(struct srq *srq, struct srq_attr *attr);

/* Of an SRQ that one engine uses, and of one that several use (srq->shared): see srq_take(). */
int srq_take_alone(struct srq *srq, struct recv_wqe *out);
int srq_take_shared(struct srq *srq, struct recv_wqe *out);

/* Data path. Returns 0, -EAGAIN if empty, or -EIO in the error state. If this call finds
 * the ring corrupted, it raises IBV_EVENT_SRQ_ERR once. Raises the limit event if due. */
static inline int
srq_take(struct srq *srq, struct recv_wqe *out)
{
	return unlikely(srq->shared) ? srq_take_shared(srq, out)
				     : srq_take_alone(srq, out);
}

/*
 * As srq_take(), of a shared SRQ, with up to `more` receives behind the first one, for messages
 * that have arrived and are going to take them: by one atomic operation. They count as taken.
 * claim has those that are not used yet; srq_claim_take() takes them in turn. At the call it has
 * none.
 */
int srq_claim(
	struct srq *srq, uint32_t more, struct recv_claim *claim, struct recv_wqe *out);
/* As srq_take(), of a claim that is not used up. With -EIO the receive stays in the claim. */
int srq_claim_take(struct srq *srq, struct recv_claim *claim, struct recv_wqe *out);

/* To be called at the end of a pass that has taken from SRQs: fires the limits that were
 * armed while the pass took, and empties the list. */
void srq_settle(struct srq **taken_list);

/*
 * Posting, under the producer lock. In the error state posting succeeds and stores
 * nothing: check srq_failed() once per list. If recv_ring_next() returns no slot,
 * srq_refuse() returns the reason: -ENOMEM, or -EIO if it finds the ring corrupted
 * (IBV_EVENT_SRQ_ERR is raised once; accept the rest of the list, store nothing, publish
 * nothing).
 */
static inline bool
srq_failed(const struct srq *srq)
{
	return __atomic_load_n(&srq->error, __ATOMIC_RELAXED);
}

int srq_refuse(struct srq *srq);

/* Enters the error state: no WQE is fetched any more (IBA 11.5.2.18). The first call raises IBV_EVENT_SRQ_ERR.
 * Returns -EIO. */
int srq_fail(struct srq *srq);

/* Returns the armed limit, 0 if none. */
static inline uint32_t
srq_limit(const struct srq *srq)
{
	return (uint32_t)__atomic_load_n(&srq->limit, __ATOMIC_ACQUIRE);
}

#endif
