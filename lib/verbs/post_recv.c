/* SPDX-License-Identifier: BSD-3-Clause */
/* ibv_post_recv(3), ibv_post_srq_recv(3), with the same steps as ibv_post_send(). */
#include "verbs/objects.h"
#include "verbs/context_ops.h"
#include "verbs/refusal.h"

/* Length of a receive SGE that was posted with length 0 (IBA 11.4.2.2 reserves 0 for
 * it). */
#define SGE_LEN_MAX (UINT32_C(1) << 31)

static inline void
recv_write(struct recv_slot *slot, const struct ibv_recv_wr *wr, uint32_t num_sge)
{
	slot->wr_id = wr->wr_id;
	slot->num_sge = num_sge;
	for (uint32_t i = 0; i < num_sge; i++) {
		const struct ibv_sge *sge = &wr->sg_list[i];

		slot->sge[i].addr = sge->addr;
		slot->sge[i].len = likely(sge->length != 0) ? sge->length : SGE_LEN_MAX;
		slot->sge[i].lkey = sge->lkey;
	}
}

/* Returns the number of SGEs, or a greater one than the ring allows if that is negative or too large. It is
 * read once: another thread may change it between the check and the copy, which may not exceed the slot. */
static inline uint32_t
recv_num_sge(const struct ibv_recv_wr *wr)
{
	return (uint32_t)__atomic_load_n(&wr->num_sge, __ATOMIC_RELAXED);
}

/* Writes the list up to the first request that is invalid (EINVAL) or finds the ring full
 * (ENOMEM). Called with the ring's lock held. */
static inline int
recv_list_write(struct recv_ring *ring, struct ibv_recv_wr **wr, uint32_t *prod)
{
	for (; *wr != NULL; *wr = (*wr)->next) {
		uint32_t num_sge = recv_num_sge(*wr);
		struct recv_slot *slot;

		if (unlikely(num_sge > ring->max_sge))
			return EINVAL;
		slot = recv_ring_next(ring, *prod);
		if (unlikely(slot == NULL))
			return ENOMEM;
		recv_write(slot, *wr, num_sge);
		(*prod)++;
	}
	return 0;
}

int
verbs_post_recv(struct ibv_qp *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	struct qp *qp = to_qp(ibv)->qp;
	struct recv_ring *ring = qp->rq;
	uint32_t prod;
	int err = EINVAL;

	if (unlikely(ring == NULL)) /* the QP has an SRQ */
		goto out;
	recv_ring_lock(ring);
	if (likely(qp_state(qp) != IBV_QPS_RESET)) {
		prod = ring->prod;
		err = recv_list_write(ring, &wr, &prod);
		recv_ring_publish(ring, prod);
	}
	recv_ring_unlock(ring);
	/* In ERR the engine must be told to flush the receive. Either it sees the
	 * publication, or this thread sees its state: pairs with the fence in
	 * qp_error(). */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (unlikely(qp_state(qp) == IBV_QPS_ERR))
		engine_doorbell(qp);
out:
	if (unlikely(err != 0)) {
		refusal_note(err, "ibv_post_recv", NULL);
		if (bad_wr != NULL)
			*bad_wr = wr;
	}
	return err;
}

/* An SRQ in the error state accepts every valid request, and discards it. */
static int RARE
srq_discard_list(const struct recv_ring *ring, struct ibv_recv_wr **wr)
{
	for (; *wr != NULL; *wr = (*wr)->next) {
		if (recv_num_sge(*wr) > ring->max_sge)
			return EINVAL;
	}
	return 0;
}

int
verbs_post_srq_recv(
	struct ibv_srq *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	struct srq *srq = &to_srq(ibv)->srq;
	struct recv_ring *ring = &srq->ring;
	bool failed;
	int err = 0;

	recv_ring_lock(ring);
	failed = srq_failed(srq);
	if (likely(!failed)) {
		uint32_t prod = ring->prod;

		err = recv_list_write(ring, &wr, &prod);
		failed = unlikely(err == ENOMEM) && srq_refuse(srq) == -EIO;
		if (likely(!failed))
			recv_ring_publish(ring, prod);
	}
	if (unlikely(failed))
		err = srq_discard_list(ring, &wr);
	recv_ring_unlock(ring);
	if (unlikely(err != 0)) {
		refusal_note(err, "ibv_post_srq_recv", NULL);
		if (bad_wr != NULL)
			*bad_wr = wr;
	}
	return err;
}
