/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Posting: ibv_post_send(3), ibv_post_recv(3), ibv_post_srq_recv(3). Requests are checked
 * whole, then written straight into their slots, and a list is published once. Nothing
 * here allocates, calls the system or takes a lock but the queue's own.
 */
#include <string.h>

#include "verbs/objects.h"

/* So that SGEs are copied as they are. */
static_assert(sizeof(struct sge) == sizeof(struct ibv_sge) &&
		      offsetof(struct sge, addr) == offsetof(struct ibv_sge, addr) &&
		      offsetof(struct sge, len) == offsetof(struct ibv_sge, length) &&
		      offsetof(struct sge, lkey) == offsetof(struct ibv_sge, lkey),
	"struct sge is struct ibv_sge");

#define MSG_MAX (UINT64_C(1) << 31)
/* A receive SGE of length 0 (IBA 11.4.2.2 leaves 0 for it). */
#define SGE_LEN_MAX (UINT32_C(1) << 31)

#define SEND_FLAGS                                                                       \
	(IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED | IBV_SEND_INLINE)

#define READ_FLAGS (SEND_FLAGS & ~IBV_SEND_INLINE)

/* What a request may be, by opcode: flags it may carry, whether it names remote memory.
 */
static const struct post_row {
	uint8_t flags; /* 0: not an opcode of ours */
	bool remote;
	bool atomic;
	bool answered; /* RC alone has it */
	bool ud;       /* UD has it too */
} post_rows[] = {
	[IBV_WR_RDMA_WRITE] = {.flags = SEND_FLAGS, .remote = true},
	[IBV_WR_RDMA_WRITE_WITH_IMM] = {.flags = SEND_FLAGS, .remote = true},
	[IBV_WR_SEND] = {.flags = SEND_FLAGS, .ud = true},
	[IBV_WR_SEND_WITH_IMM] = {.flags = SEND_FLAGS, .ud = true},
	[IBV_WR_RDMA_READ] = {.flags = READ_FLAGS, .remote = true, .answered = true},
	[IBV_WR_ATOMIC_CMP_AND_SWP] = {.flags = READ_FLAGS,
		.remote = true,
		.atomic = true,
		.answered = true},
	[IBV_WR_ATOMIC_FETCH_AND_ADD] = {.flags = READ_FLAGS,
		.remote = true,
		.atomic = true,
		.answered = true},
};

/* 0 and the message's length, or EINVAL. */
static inline int
send_check(const struct sq *sq, const struct ibv_send_wr *wr, uint32_t *len)
{
	const struct post_row *row;
	uint64_t total = 0;

	if (unlikely((unsigned)wr->opcode >= RTE_DIM(post_rows)))
		return EINVAL;
	row = &post_rows[wr->opcode];
	if (unlikely(row->flags == 0 || (wr->send_flags & ~(unsigned)row->flags) != 0))
		return EINVAL;
	if (unlikely(wr->num_sge < 0 || (uint32_t)wr->num_sge > sq->max_sge))
		return EINVAL;
	for (int i = 0; i < wr->num_sge; i++)
		total += wr->sg_list[i].length;
	if (unlikely(total > MSG_MAX))
		return EINVAL;
	if (wr->send_flags & IBV_SEND_INLINE && unlikely(total > sq->max_inline))
		return EINVAL;
	/* C9-91: an atomic is on an aligned word of 8 bytes. */
	if (unlikely(row->atomic) && (total != 8 || wr->wr.atomic.remote_addr % 8 != 0))
		return EINVAL;
	*len = (uint32_t)total;
	return 0;
}

static inline void
remote_write(struct send_wqe *wqe, const struct ibv_send_wr *wr)
{
	if (post_rows[wr->opcode].atomic) {
		wqe->remote_va = wr->wr.atomic.remote_addr;
		wqe->rkey = wr->wr.atomic.rkey;
		wqe->compare_add = wr->wr.atomic.compare_add;
		wqe->swap = wr->wr.atomic.swap;
	} else {
		wqe->remote_va = wr->wr.rdma.remote_addr;
		wqe->rkey = wr->wr.rdma.rkey;
	}
}

static inline void
inline_copy(uint8_t *to, const struct ibv_send_wr *wr)
{
	for (int i = 0; i < wr->num_sge; i++) {
		const struct ibv_sge *sge = &wr->sg_list[i];

		if (sge->length == 0)
			continue;
		memcpy(to, (const void *)(uintptr_t)sge->addr, sge->length);
		to += sge->length;
	}
}

/* What the SGEs or the inline data of a datagram stand behind. */
static inline uint32_t
dest_write(struct send_wqe *wqe, const struct ibv_send_wr *wr)
{
	struct ud_dest dest = to_ah(wr->wr.ud.ah)->dest;

	dest.qpn = wr->wr.ud.remote_qpn;
	dest.qkey = wr->wr.ud.remote_qkey;
	memcpy(wqe->inline_data, &dest, sizeof(dest));
	return sizeof(dest);
}

static inline void
send_write(struct send_wqe *wqe, const struct ibv_send_wr *wr, uint32_t len,
	unsigned flags, bool ud)
{
	uint32_t offset = unlikely(ud) ? dest_write(wqe, wr) : 0;

	wqe->wr_id = wr->wr_id;
	wqe->len = len;
	wqe->imm = wr->imm_data;
	wqe->opcode = (uint8_t)wr->opcode;
	wqe->flags = (uint8_t)flags;
	if (post_rows[wr->opcode].remote)
		remote_write(wqe, wr);
	if (flags & IBV_SEND_INLINE) {
		wqe->num_sge = 0;
		inline_copy(wqe->inline_data + offset, wr);
		return;
	}
	wqe->num_sge = (uint8_t)wr->num_sge;
	for (int i = 0; i < wr->num_sge; i++)
		memcpy(wqe->inline_data + offset + (size_t)i * sizeof(struct sge),
			&wr->sg_list[i], sizeof(struct sge));
}

/* A datagram fits one packet, and has somewhere to go. */
static bool
dest_check(const struct verbs_qp *vqp, const struct ibv_send_wr *wr, uint32_t len)
{
	const struct ibv_ah *ah = wr->wr.ud.ah;

	return post_rows[wr->opcode].ud && ah != NULL && ah->pd == vqp->ibv.pd &&
	       wr->wr.ud.remote_qpn <= 0xFFFFFF &&
	       len <= mtu_bytes(to_ctx(vqp->ibv.context)->dev->active_mtu);
}

/* What the other services have not. */
static bool
type_check(const struct verbs_qp *vqp, const struct ibv_send_wr *wr, uint32_t len)
{
	return vqp->qp->type == IBV_QPT_UD ? dest_check(vqp, wr, len)
					   : !post_rows[wr->opcode].answered;
}

/* The queue is full: for good, if nothing in it will ever make a completion. */
static void __rte_cold
send_count_full(struct verbs_qp *vqp)
{
	struct qp *qp = vqp->qp;
	uint32_t freed = __atomic_load_n(&qp->sq.freed, __ATOMIC_RELAXED);
	bool signaled = vqp->any_signaled && (int32_t)(vqp->last_signaled - freed) > 0;

	if (!signaled && qp_state(qp) == IBV_QPS_RTS)
		qp->sq_full_unsignaled++;
}

/* Under the SQ's lock. *prod is the index behind the last request written. */
static inline int
send_list(struct verbs_qp *vqp, struct ibv_send_wr **wr, uint32_t *prod)
{
	struct qp *qp = vqp->qp;
	struct sq *sq = &qp->sq;
	unsigned always = qp->sq_sig_all ? IBV_SEND_SIGNALED : 0;
	enum ibv_qp_state state = qp_state(qp);
	bool ud = qp->type == IBV_QPT_UD;

	/* IBA 10.8.2: before RTS there is nothing to post to. */
	if (unlikely(state < IBV_QPS_RTS))
		return EINVAL;
	for (; *wr != NULL; *wr = (*wr)->next) {
		struct send_wqe *wqe;
		uint32_t len;
		unsigned flags;

		if (unlikely(send_check(sq, *wr, &len) != 0))
			return EINVAL;
		if (unlikely(qp->type != IBV_QPT_RC && !type_check(vqp, *wr, len)))
			return EINVAL;
		wqe = sq_next(sq, *prod);
		if (unlikely(wqe == NULL)) {
			send_count_full(vqp);
			return ENOMEM;
		}
		flags = (*wr)->send_flags | always;
		send_write(wqe, *wr, len, flags, ud);
		(*prod)++;
		if (flags & IBV_SEND_SIGNALED) {
			vqp->last_signaled = *prod;
			vqp->any_signaled = true;
		}
	}
	return 0;
}

int
verbs_post_send(struct ibv_qp *ibv, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
	struct verbs_qp *vqp = to_qp(ibv);
	struct sq *sq = &vqp->qp->sq;
	uint32_t first, prod;
	int err;

	sq_lock(sq);
	first = prod = sq->prod;
	err = send_list(vqp, &wr, &prod);
	if (likely(prod != first))
		sq_publish(sq, prod);
	sq_unlock(sq);
	if (likely(prod != first))
		engine_doorbell(vqp->qp);
	if (unlikely(err != 0) && bad_wr != NULL)
		*bad_wr = wr;
	return err;
}

static inline void
recv_write(struct recv_slot *slot, const struct ibv_recv_wr *wr)
{
	slot->wr_id = wr->wr_id;
	slot->num_sge = (uint32_t)wr->num_sge;
	for (int i = 0; i < wr->num_sge; i++) {
		const struct ibv_sge *sge = &wr->sg_list[i];

		slot->sge[i].addr = sge->addr;
		slot->sge[i].len = likely(sge->length != 0) ? sge->length : SGE_LEN_MAX;
		slot->sge[i].lkey = sge->lkey;
	}
}

static inline int
recv_check(const struct recv_ring *ring, const struct ibv_recv_wr *wr)
{
	return unlikely(wr->num_sge < 0 || (uint32_t)wr->num_sge > ring->max_sge) ? EINVAL
										  : 0;
}

/* Under the ring's lock. Stops at the first request that is bad (EINVAL) or finds the
 * ring full (ENOMEM). */
static inline int
recv_list(struct recv_ring *ring, struct ibv_recv_wr **wr, uint32_t *prod)
{
	for (; *wr != NULL; *wr = (*wr)->next) {
		struct recv_slot *slot;

		if (unlikely(recv_check(ring, *wr) != 0))
			return EINVAL;
		slot = recv_ring_next(ring, *prod);
		if (unlikely(slot == NULL))
			return ENOMEM;
		recv_write(slot, *wr);
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
		err = recv_list(ring, &wr, &prod);
		recv_ring_publish(ring, prod);
	}
	recv_ring_unlock(ring);
	/* In ERR the engine flushes what is posted, and has to be told. Either it sees
	 * our publication, or we see its state: pairs with the fence in qp_error(). */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (unlikely(qp_state(qp) == IBV_QPS_ERR))
		engine_doorbell(qp);
out:
	if (unlikely(err != 0) && bad_wr != NULL)
		*bad_wr = wr;
	return err;
}

/* An SRQ in the error state takes everything that is well formed, and keeps nothing. */
static int __rte_cold
srq_swallow(const struct recv_ring *ring, struct ibv_recv_wr **wr)
{
	for (; *wr != NULL; *wr = (*wr)->next) {
		if (recv_check(ring, *wr) != 0)
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

		err = recv_list(ring, &wr, &prod);
		failed = unlikely(err == ENOMEM) && srq_refuse(srq) == -EIO;
		if (likely(!failed))
			recv_ring_publish(ring, prod);
	}
	if (unlikely(failed))
		err = srq_swallow(ring, &wr);
	recv_ring_unlock(ring);
	if (unlikely(err != 0) && bad_wr != NULL)
		*bad_wr = wr;
	return err;
}
