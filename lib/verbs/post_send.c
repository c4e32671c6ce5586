/* SPDX-License-Identifier: BSD-3-Clause */
/* ibv_post_send(3). Each request is checked as a whole and then written into its slot; a
 * list is published once. No allocation, no system call, and no lock but the queue's. */
#include "verbs/context_ops.h"
#include "verbs/refusal.h"
#include "verbs/wqe.h"

/* Writes the list up to the first request that is invalid (EINVAL) or finds the queue full
 * (ENOMEM). Called with the SQ's lock held. *prod: index behind the last request
 * written. */
static inline int
send_list_write(
	struct verbs_qp *vqp, struct qp *qp, struct ibv_send_wr **wr, uint32_t *prod)
{
	struct sq *sq = &qp->sq;
	unsigned always = sq->always;
	enum ibv_qp_state state = qp_state(qp);
	unsigned type = qp->type;
	bool addressed = type == IBV_QPT_UD || type == IBV_QPT_XRC_SEND;

	/* IBA 10.8.2: no posts before RTS. */
	if (unlikely(state < IBV_QPS_RTS))
		return EINVAL;
	for (; *wr != NULL; *wr = (*wr)->next) {
		const struct wr_row *row = send_row(*wr);
		/* Read once. Negative values are too large. */
		uint32_t num =
			(uint32_t)__atomic_load_n(&(*wr)->num_sge, __ATOMIC_RELAXED);
		struct send_wqe *wqe;
		uint32_t len;
		unsigned flags;

		if (unlikely(send_check(sq, *wr, row, num, &len) != 0))
			return EINVAL;
		if (unlikely(type != IBV_QPT_RC && !send_type_check(vqp, *wr, row, len)))
			return EINVAL;
		wqe = sq_next(sq, *prod);
		if (unlikely(wqe == NULL)) {
			send_count_full(vqp, "ibv_post_send");
			return ENOMEM;
		}
		flags = (*wr)->send_flags | always;
		send_write(wqe, *wr, row, num, len, flags, addressed, type);
		USDT_IN_MEMORY(post, qp->qpn, wqe->wr_id, wqe->opcode, wqe->len);
		(*prod)++;
		if (flags & IBV_SEND_SIGNALED) {
			vqp->last_signaled = *prod;
			vqp->any_signaled = true;
		}
	}
	return 0;
}

/* An XRC target has no send queue. */
static int RARE
post_refuse_target(struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
	if (wr == NULL)
		return 0;
	if (bad_wr != NULL)
		*bad_wr = wr;
	return refusal_note(EINVAL, "ibv_post_send", NULL);
}

int
verbs_post_send(struct ibv_qp *ibv, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
	struct verbs_qp *vqp = to_qp(ibv);
	struct qp *qp = sender_qp(vqp);
	struct sq *sq = &qp->sq;
	uint32_t first, prod;
	int err;

	if (unlikely(!vqp->sends))
		return post_refuse_target(wr, bad_wr);
	sq_lock(sq);
	first = prod = sq->prod;
	err = send_list_write(vqp, qp, &wr, &prod);
	if (likely(prod != first))
		sq_publish(sq, prod);
	sq_unlock(sq);
	if (likely(prod != first))
		engine_doorbell(qp);
	if (unlikely(err != 0)) {
		refusal_note(err, "ibv_post_send", NULL);
		if (bad_wr != NULL)
			*bad_wr = wr;
	}
	return err;
}
