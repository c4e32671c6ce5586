/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
#include <errno.h>

#include <rte_prefetch.h>

#include "queue/recv_ring.h"

static uint32_t
recv_slot_bytes(uint32_t max_sge)
{
	/* Room for at least one SGE: slot_copy() copies the first unconditionally. */
	return sizeof(struct recv_slot) + RTE_MAX(max_sge, 1u) * sizeof(struct sge);
}

/* Numbers all slots as free, for the indices from cons on. */
static void
slots_set_seq(struct recv_ring *r, uint32_t cons)
{
	for (uint32_t i = 0; i < r->max_wr; i++)
		__atomic_store_n(
			&recv_ring_slot(r, cons + i)->seq, cons + i, __ATOMIC_RELAXED);
}

/* Control path. */

static int
slots_alloc(struct recv_ring *r, uint32_t max_wr, uint32_t max_sge, uint32_t cons)
{
	uint32_t size = max_wr == 0 ? 1 : rte_align32pow2(max_wr);
	uint32_t stride = recv_slot_bytes(max_sge);

	/* Above 2^31 the power of two has wrapped around to 0. */
	if (size == 0)
		return -ENOMEM;
	r->slots = alloc_get(r->mem, "recv ring", (size_t)size * stride);
	if (r->slots == NULL)
		return -ENOMEM;
	r->mask = size - 1;
	r->stride = stride;
	r->max_wr = size;
	r->max_sge = max_sge;
	slots_set_seq(r, cons);
	return 0;
}

void
recv_ring_fini(struct recv_ring *r)
{
	alloc_put(r->mem, r->slots, (size_t)r->max_wr * r->stride);
	r->slots = NULL;
}

/* Data path. */

int
recv_ring_init(
	struct recv_ring *r, const struct alloc *mem, uint32_t max_wr, uint32_t max_sge)
{
	assert(max_sge <= RECV_MAX_SGE);
	*r = (struct recv_ring){.mem = mem};
	rte_spinlock_init(&r->lock);
	return slots_alloc(r, max_wr, max_sge, 0);
}

static inline void
sge_copy(struct sge *to, const struct sge *from, uint32_t num)
{
	for (uint32_t i = 0; i < num; i++)
		to[i] = from[i];
}

int
recv_ring_resize(struct recv_ring *r, uint32_t max_wr)
{
	struct recv_ring to = {.mem = r->mem};
	int rc;

	/* The first check also bounds the loops below if the indices are corrupted. */
	if (r->prod - r->cons > r->max_wr || r->prod - r->cons > max_wr)
		return -EINVAL;
	rc = slots_alloc(&to, max_wr, r->max_sge, r->cons);
	if (rc != 0)
		return rc;

	for (uint32_t i = r->cons; i != r->prod; i++) {
		const struct recv_slot *from = recv_ring_slot(r, i);
		struct recv_slot *slot = recv_ring_slot(&to, i);

		slot->wr_id = from->wr_id;
		slot->num_sge = from->num_sge;
		sge_copy(slot->sge, from->sge, from->num_sge);
	}
	recv_ring_fini(r);
	r->slots = to.slots;
	r->mask = to.mask;
	r->stride = to.stride;
	r->max_wr = to.max_wr;
	return 0;
}

void
recv_ring_clear(struct recv_ring *r)
{
	/* Starts at cons, because prod may be corrupted. */
	slots_set_seq(r, r->cons);
	recv_ring_publish(r, r->cons);
}

/* Copies one SGE without a branch, because most receives have one. */
static inline int
slot_copy(uint32_t max_sge, const struct recv_slot *slot, struct recv_wqe *out)
{
	uint32_t num = slot->num_sge;

	out->wr_id = slot->wr_id;
	out->num_sge = num;
	out->sge[0] = slot->sge[0];
	if (likely(num <= 1))
		return 0;
	if (unlikely(num > max_sge))
		return -EIO;
	sge_copy(&out->sge[1], &slot->sge[1], num - 1);
	return 0;
}

int
recv_ring_take(struct recv_ring *r, struct recv_wqe *out)
{
	uint32_t cons = r->cons;
	/* Pairs with the release in recv_ring_publish(). */
	uint32_t count = __atomic_load_n(&r->prod, __ATOMIC_ACQUIRE) - cons;
	struct recv_slot *slot = recv_ring_slot(r, cons);
	int rc;

	/* One comparison for both bounds: a count of 0 wraps around. */
	if (unlikely(count - 1 >= r->max_wr))
		return count == 0 ? -EAGAIN : -EIO;
	rte_prefetch0(recv_ring_slot(r, cons + 1));
	rc = slot_copy(r->max_sge, slot, out);
	/* Ordered by the release of cons, which the poster acquires first. */
	__atomic_store_n(&slot->seq, cons + r->max_wr, __ATOMIC_RELAXED);
	/* Pairs with the acquire of cons in recv_ring_next(). */
	__atomic_store_n(&r->cons, cons + 1, __ATOMIC_RELEASE);
	return rc;
}

bool
recv_ring_slot_wait(const struct recv_slot *slot, uint32_t prod)
{
	for (unsigned i = 0; i < RECV_RING_TRIES; i++) {
		/* Pairs with the release of seq in recv_ring_take_shared(). */
		if (__atomic_load_n(&slot->seq, __ATOMIC_ACQUIRE) == prod)
			return true;
		rte_pause();
	}
	return false;
}

/*
 * Claims up to `most` indices, from *index on, and returns their number. cons is read before prod:
 * with the opposite order prod could be the older value, and cons ahead of it would look like a
 * corrupted ring. In this order prod may be too far ahead of a cons that other engines have moved
 * since. Empty or corrupted is therefore returned only if cons is unchanged afterwards. A try fails
 * only if another taker has claimed an index meanwhile.
 */
static inline int
cons_claim(struct recv_ring *r, uint32_t most, uint32_t *index)
{
	/* Pairs with the exchange below in another engine, which passes on its view of
	 * prod. */
	uint32_t cons = __atomic_load_n(&r->cons, __ATOMIC_ACQUIRE);

	for (unsigned i = 0; i < RECV_RING_TRIES; i++) {
		/* Pairs with the release in recv_ring_publish(). */
		uint32_t count = __atomic_load_n(&r->prod, __ATOMIC_ACQUIRE) - cons;
		uint32_t n;

		if (unlikely(count - 1 >= r->max_wr)) {
			uint32_t again = __atomic_load_n(&r->cons, __ATOMIC_ACQUIRE);

			if (again == cons)
				return count == 0 ? -EAGAIN : -EIO;
			cons = again;
			continue;
		}
		n = RTE_MIN(most, (count + 1) / 2);
		*index = cons;
		if (__atomic_compare_exchange_n(&r->cons, &cons, cons + n, false,
			    __ATOMIC_SEQ_CST, __ATOMIC_ACQUIRE))
			return (int)n;
	}
	return -EAGAIN;
}

int
recv_ring_take_shared(struct recv_ring *r, struct recv_wqe *out)
{
	struct recv_slot *slot;
	uint32_t index;
	int rc = cons_claim(r, 1, &index);

	if (unlikely(rc < 0))
		return rc;
	slot = recv_ring_slot(r, index);
	rte_prefetch0(recv_ring_slot(r, index + 1));
	rc = slot_copy(r->max_sge, slot, out);
	/* Returns the slot to the poster. Pairs with the acquire of seq in
	 * recv_ring_next(). */
	__atomic_store_n(&slot->seq, index + r->max_wr, __ATOMIC_RELEASE);
	return rc;
}

static_assert(sizeof(struct recv_slot) + RECV_MAX_SGE * sizeof(struct sge) ==
		      sizeof(struct recv_wqe),
	"a claim has room for the largest WQEs");

/* Copies a slot as it is. The number of its SGEs is checked when the copy is used. */
static inline void
slot_keep(const struct recv_ring *r, const struct recv_slot *slot, struct recv_slot *to)
{
	uint32_t num = slot->num_sge;

	to->wr_id = slot->wr_id;
	to->num_sge = num;
	to->sge[0] = slot->sge[0];
	for (uint32_t i = 1; unlikely(i < RTE_MIN(num, r->max_sge)); i++)
		to->sge[i] = slot->sge[i];
}

static inline struct recv_slot *
claim_slot(struct recv_claim *claim, uint32_t i)
{
	return (struct recv_slot *)((uint8_t *)claim->wqes + (size_t)i * claim->stride);
}

int
recv_ring_claim(struct recv_ring *r, uint32_t most, struct recv_claim *claim)
{
	uint32_t index;
	int n = cons_claim(r, RTE_MIN(most, RECV_CLAIM_MAX + 0u), &index);

	claim->next = claim->count = 0;
	if (unlikely(n < 0))
		return n;
	/* All lines are requested before the first is used. */
	for (int i = 0; i < n; i++)
		__builtin_prefetch(recv_ring_slot(r, index + i), 1);
	claim->stride = r->stride;
	claim->max_sge = r->max_sge;
	claim->count = (uint32_t)n;
	for (int i = 0; i < n; i++) {
		struct recv_slot *slot = recv_ring_slot(r, index + i);

		slot_keep(r, slot, claim_slot(claim, i));
		/* Returns the slot to the poster. Pairs with the acquire of seq in
		 * recv_ring_next(). */
		__atomic_store_n(&slot->seq, index + i + r->max_wr, __ATOMIC_RELEASE);
	}
	return 0;
}

int
recv_claim_take(struct recv_claim *claim, struct recv_wqe *out)
{
	return slot_copy(claim->max_sge, claim_slot(claim, claim->next++), out);
}
