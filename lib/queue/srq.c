/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
#include <errno.h>

#include "queue/srq.h"

#define LIMIT_MASK UINT64_C(0xFFFFFFFF)
#define ARMING_ONE (LIMIT_MASK + 1)

#define MODIFY_MASK ((int)IBV_SRQ_MAX_WR | (int)IBV_SRQ_LIMIT)

static bool
srq_size_valid(uint32_t max_wr, uint32_t max_sge)
{
	return max_wr >= 1 && max_wr <= SRQ_MAX_WR && max_sge >= 1 &&
	       max_sge <= RECV_MAX_SGE;
}

int
srq_init(struct srq *srq, const struct alloc *mem, uint32_t pd, uint32_t max_wr,
	uint32_t max_sge, struct event_queue *events, void *object)
{
	if (!srq_size_valid(max_wr, max_sge))
		return -EINVAL;
	*srq = (struct srq){.pd = pd};
	async_event_init(&srq->events, events, object);
	return recv_ring_init(&srq->ring, mem, max_wr, max_sge);
}

int
srq_set_mbufs(struct srq *srq, const struct srq_mbufs *mbufs)
{
	int rc = -EBUSY;

	recv_ring_lock(&srq->ring);
	if (srq->qps == 0 && recv_ring_outstanding(&srq->ring) == 0) {
		srq->mbufs = *mbufs;
		srq->ring.max_sge = 0;
		rc = 0;
	}
	recv_ring_unlock(&srq->ring);
	return rc;
}

void
srq_fini(struct srq *srq)
{
	assert(srq->qps == 0);
	recv_ring_fini(&srq->ring);
}

/* A plain take and a claiming take leave the ring in the same state, so the engine locks
 * alone make the switch safe. */
static void
sharing_set(struct srq *srq)
{
	srq->shared = srq->engines > 1;
	for (unsigned i = 0; i < ENGINES_MAX; i++) {
		if (srq->engine_qps[i] != 0)
			srq->taken_list = srq->taken_lists[i];
	}
	srq->seen = srq->limit; /* every take so far has been counted */
}

/* The producer lock is taken, as in every control call on an SRQ. */
void
srq_attach(struct srq *srq, unsigned engine, struct srq **taken_list)
{
	recv_ring_lock(&srq->ring);
	srq->qps++;
	srq->engines += srq->engine_qps[engine]++ == 0;
	srq->taken_lists[engine] = taken_list;
	sharing_set(srq);
	recv_ring_unlock(&srq->ring);
}

void
srq_detach(struct srq *srq, unsigned engine)
{
	assert(srq->engine_qps[engine] != 0);
	recv_ring_lock(&srq->ring);
	srq->qps--;
	srq->engines -= --srq->engine_qps[engine] == 0;
	sharing_set(srq);
	recv_ring_unlock(&srq->ring);
}

/* Several engines and a poster may call it. */
int
srq_fail(struct srq *srq)
{
	if (!__atomic_exchange_n(&srq->error, true, __ATOMIC_RELAXED))
		event_raise(&srq->events, IBV_EVENT_SRQ_ERR);
	return -EIO;
}

static bool
ring_indices_valid(const struct recv_ring *r)
{
	return recv_ring_outstanding(r) <= r->max_wr;
}

int
srq_refuse(struct srq *srq)
{
	/* Under the producer lock prod does not change, and cons only advances. */
	return ring_indices_valid(&srq->ring) ? -ENOMEM : srq_fail(srq);
}

/* Returns 0 or -EIO. Under the producer lock. */
static int
srq_check(struct srq *srq)
{
	if (srq_failed(srq))
		return -EIO;
	return ring_indices_valid(&srq->ring) ? 0 : srq_fail(srq);
}

/* Checks the attributes after the change against the present state. Returns 0 or
 * -EINVAL. */
static int
modify_check(const struct srq *srq, const struct srq_attr *want, bool resize)
{
	if (want->limit > want->max_wr)
		return -EINVAL;
	if (!resize)
		return 0;
	/* With mbufs max_sge is 0. */
	if (!srq_size_valid(want->max_wr, RTE_MAX(srq->ring.max_sge, 1u)))
		return -EINVAL;
	return want->max_wr < recv_ring_outstanding(&srq->ring) ? -EINVAL : 0;
}

static void
srq_raise_limit(struct srq *srq)
{
	__atomic_fetch_add(&srq->limit_fired, 1, __ATOMIC_RELAXED);
	event_raise(&srq->events, IBV_EVENT_SRQ_LIMIT_REACHED);
}

/* Fires the arming that was read in this word, unless another thread does. */
static void RARE
srq_fire(struct srq *srq, uint64_t armed)
{
	if (__atomic_compare_exchange_n(&srq->limit, &armed, armed & ~LIMIT_MASK, false,
		    __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		srq_raise_limit(srq);
}

/*
 * Sets the limit (0: disarms it), with the producer lock held, while engines take. For a
 * take at the same time, either this thread sees the new cons and counts without that
 * WQE, or the engine reads the new limit after the take and compares:
 * - several engines: srq_take_shared() and srq_claim() read the limit after cons_claim();
 * - one engine: the next srq_take_alone(), or srq_settle() at the end of the pass, finds
 *   another limit word than srq->seen and calls srq_look().
 */
static void
srq_arm_limit(struct srq *srq, uint32_t limit)
{
	/* A taker may fire meanwhile, which leaves the number of the arming. */
	uint64_t last = __atomic_load_n(&srq->limit, __ATOMIC_RELAXED);
	uint64_t arming = (last & ~LIMIT_MASK) + ARMING_ONE;

	__atomic_store_n(&srq->armed_prod, srq->ring.prod, __ATOMIC_RELAXED);
	/* Pairs with the acquires of the takers, which then read armed_prod. */
	__atomic_store_n(&srq->limit, arming | limit, __ATOMIC_RELEASE);
	/* Orders the store of the limit before the load of cons. Pairs with the fence in
	 * srq_settle() and with the compare-and-swap of cons in cons_claim(). */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (recv_ring_outstanding(&srq->ring) < limit)
		srq_fire(srq, arming | limit);
}

static int
modify_locked(struct srq *srq, struct srq_attr *attr, int mask)
{
	bool resize = (mask & IBV_SRQ_MAX_WR) != 0;
	struct srq_attr want = {
		.max_wr = srq->ring.max_wr,
		.limit = srq_limit(srq),
	};
	int rc = srq_check(srq);

	if (rc != 0)
		return rc;
	if ((mask & ~MODIFY_MASK) != 0)
		return -EINVAL;
	if (resize)
		want.max_wr = attr->max_wr;
	if ((mask & IBV_SRQ_LIMIT) != 0)
		want.limit = attr->limit;
	rc = modify_check(srq, &want, resize);
	if (rc == 0 && resize)
		rc = recv_ring_resize(&srq->ring, want.max_wr);
	if (rc != 0)
		return rc;

	/* Point of no return. */
	if ((mask & IBV_SRQ_LIMIT) != 0)
		srq_arm_limit(srq, want.limit);
	if (resize) {
		attr->max_wr = srq->ring.max_wr;
		attr->max_sge = srq->ring.max_sge;
	}
	return 0;
}

int
srq_modify(struct srq *srq, struct srq_attr *attr, int mask)
{
	int rc;

	recv_ring_lock(&srq->ring);
	rc = modify_locked(srq, attr, mask);
	recv_ring_unlock(&srq->ring);
	return rc;
}

int
srq_query(struct srq *srq, struct srq_attr *attr)
{
	if (srq_failed(srq))
		return -EIO;
	/* Excludes a resize in another thread. */
	recv_ring_lock(&srq->ring);
	attr->max_wr = srq->ring.max_wr;
	attr->max_sge = srq->ring.max_sge;
	attr->limit = srq_limit(srq);
	recv_ring_unlock(&srq->ring);
	return 0;
}

/*
 * Called after a take with the limit word that was read before the count. The take comes
 * before the count, so the event is never early: the count is at least the number of WQEs
 * that the take left. If a post came between, the order "post, then take" is equally
 * valid.
 */
static void
srq_check_limit(struct srq *srq, uint64_t armed)
{
	if (recv_ring_outstanding(&srq->ring) < (uint32_t)armed)
		srq_fire(srq, armed);
}

/*
 * One engine: the limit word is another than the engine has read last. The thread that
 * armed the limit may have counted before it could see the last takes. So this counts
 * again: the WQEs that were posted when the limit was armed and are not taken yet. If
 * they are fewer than the limit, the limit fires. WQEs posted later do not count. If one of
 * them is taken already, because the engine has seen the limit late, none is left, and cons is
 * beyond armed_prod: so the difference is signed.
 */
static void RARE
srq_look(struct srq *srq, uint64_t armed)
{
	uint32_t prod = __atomic_load_n(&srq->armed_prod, __ATOMIC_RELAXED);
	int32_t left = (int32_t)(prod - srq->ring.cons), limit = (int32_t)(uint32_t)armed;

	srq->seen = armed;
	if (limit != 0 && left < limit)
		srq_fire(srq, armed);
}

void
srq_settle(struct srq **taken_list)
{
	struct srq *srq;

	/* Orders the stores of cons before the loads of the limits. Pairs with the fence
	 * in srq_arm_limit(). */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	while ((srq = *taken_list) != NULL) {
		uint64_t armed = __atomic_load_n(&srq->limit, __ATOMIC_ACQUIRE);

		*taken_list = srq->next_taken;
		srq->taken = false;
		if (unlikely(armed != srq->seen))
			srq_look(srq, armed);
	}
}

static void
srq_note_take(struct srq *srq)
{
	if (srq->taken_list == NULL)
		return;
	srq->taken = true;
	srq->next_taken = *srq->taken_list;
	*srq->taken_list = srq;
}

/* The result of a take. armed: the limit word, see srq_check_limit(). */
static inline int
srq_taken(struct srq *srq, uint64_t armed, int rc)
{
	if (likely(rc == 0)) {
		if (unlikely((uint32_t)armed != 0))
			srq_check_limit(srq, armed);
		return 0;
	}
	return rc == -EIO ? srq_fail(srq) : rc;
}

int
srq_take_alone(struct srq *srq, struct recv_wqe *out)
{
	uint64_t armed;
	int rc;

	if (unlikely(srq_failed(srq)))
		return -EIO;
	armed = __atomic_load_n(&srq->limit, __ATOMIC_ACQUIRE);
	if (unlikely(armed != srq->seen))
		srq_look(srq, armed);
	rc = recv_ring_take(&srq->ring, out);
	if (!srq->taken)
		srq_note_take(srq);
	return srq_taken(srq, armed, rc);
}

int
srq_take_shared(struct srq *srq, struct recv_wqe *out)
{
	int rc;

	if (unlikely(srq_failed(srq)))
		return -EIO;
	rc = recv_ring_take_shared(&srq->ring, out);
	/* After the claim: pairs with the fence in srq_arm_limit(). */
	return srq_taken(srq, __atomic_load_n(&srq->limit, __ATOMIC_SEQ_CST), rc);
}

int
srq_claim_take(struct srq *srq, struct recv_claim *claim, struct recv_wqe *out)
{
	if (unlikely(srq_failed(srq)))
		return -EIO;
	if (likely(recv_claim_take(claim, out) == 0))
		return 0;
	claim->next--;
	return srq_fail(srq);
}

int
srq_claim(struct srq *srq, uint32_t more, struct recv_claim *claim, struct recv_wqe *out)
{
	int rc;

	if (unlikely(srq_failed(srq)))
		return -EIO;
	rc = recv_ring_claim(&srq->ring, more + 1, claim);
	/* As in srq_take_shared(). */
	rc = srq_taken(srq, __atomic_load_n(&srq->limit, __ATOMIC_SEQ_CST), rc);
	return likely(rc == 0) ? srq_claim_take(srq, claim, out) : rc;
}
