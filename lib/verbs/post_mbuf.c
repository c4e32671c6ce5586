/* SPDX-License-Identifier: BSD-3-Clause */
/* rocade_post_send_mbuf(): as ibv_post_send(3), for one request. */
#include <rte_mbuf_core.h>

#include <rocade/mbuf.h>

#include "qp/mbuf_send.h"
#include "verbs/forward.h"
#include "verbs/wqe.h"

#define SEGMENTS_MAX 64

/* Returns whether the segments have as many bytes as the first one says, each within its buffer. */
static bool
segments_fit(const struct rte_mbuf *m)
{
	uint32_t len = m->pkt_len, segs = m->nb_segs;

	if (segs == 0 || segs > SEGMENTS_MAX)
		return false;
	for (; m != NULL && segs != 0; m = m->next, segs--) {
		if (m->data_len > len || m->data_off + m->data_len > m->buf_len)
			return false;
		len -= m->data_len;
	}
	return len == 0 && m == NULL && segs == 0;
}

static int
request_check(const struct verbs_qp *vqp, const struct ibv_send_wr *wr,
	const struct wr_row *row, const struct rte_mbuf *m)
{
	const struct qp *qp = vqp->qp;

	if (to_ctx(vqp->ibv.context)->dev->port.mbufs == NULL)
		return rocade_fail(EOPNOTSUPP,
			"the frames of the QP's port are no mbufs: it is not one of "
			"rocade_open_port() or rocade_open_shared()");
	if (!vqp->sends || qp->type == IBV_QPT_UD || qp_state(qp) < IBV_QPS_RTS)
		return rocade_fail(EINVAL, "the QP is not an RC, UC or XRC one in RTS");
	if (row == NULL || row->kind > WR_WRITE || !wr_of_type(row, qp->type))
		return rocade_fail(EINVAL,
			"opcode: %d is not a SEND or RDMA WRITE that the QP can send",
			(int)wr->opcode);
	if ((wr->send_flags & ~(unsigned)row->flags) != 0 ||
		(wr->send_flags & IBV_SEND_INLINE) != 0)
		return rocade_fail(EINVAL,
			"send_flags: 0x%x has others than FENCE, SIGNALED and SOLICITED",
			wr->send_flags);
	if (wr->num_sge != 0 || wr->next != NULL)
		return rocade_fail(
			EINVAL, "a request from an mbuf has no SGE and no next");
	if (qp->type == IBV_QPT_XRC_SEND && wr->qp_type.xrc.remote_srqn > 0xFFFFFF)
		return rocade_fail(EINVAL, "remote_srqn: %u is not in 0..%u",
			wr->qp_type.xrc.remote_srqn, 0xFFFFFF);
	if (!segments_fit(m))
		return rocade_fail(EINVAL,
			"the mbuf has more than %d segments, one is longer than its buffer, "
			"or pkt_len is not their sum",
			SEGMENTS_MAX);
	return 0;
}

EXPORT int
rocade_post_send_mbuf(struct ibv_qp *ibv, struct ibv_send_wr *wr, struct rte_mbuf *m)
{
	const struct wr_row *row;
	struct verbs_qp *vqp = to_qp(ibv);
	struct qp *qp;
	struct send_wqe *wqe;
	unsigned flags;
	int err;

	if (ibv == NULL || wr == NULL || m == NULL)
		return rocade_fail(EINVAL, "the QP, the request or the mbuf is NULL");
	if (!context_is_ours(ibv->context))
		return rocade_fail(EINVAL, "the QP is not of a Rocade device");
	row = send_row(wr);
	err = request_check(vqp, wr, row, m);
	if (err != 0)
		return err;
	qp = sender_qp(vqp);
	sq_lock(&qp->sq);
	wqe = sq_next(&qp->sq, qp->sq.prod);
	if (unlikely(wqe == NULL)) {
		send_count_full(vqp, "rocade_post_send_mbuf");
		sq_unlock(&qp->sq);
		return rocade_fail(ENOMEM, "the send queue is full");
	}
	flags = wr->send_flags | qp->sq.always;
	send_write(wqe, wr, row, 0, m->pkt_len, flags | WQE_MBUF,
		qp->type == IBV_QPT_XRC_SEND, qp->type);
	USDT_IN_MEMORY(post, qp->qpn, wqe->wr_id, wqe->opcode, wqe->len);
	mbuf_send_write(wqe, m);
	if (flags & IBV_SEND_SIGNALED) {
		vqp->last_signaled = qp->sq.prod + 1;
		vqp->any_signaled = true;
	}
	sq_publish(&qp->sq, qp->sq.prod + 1);
	sq_unlock(&qp->sq);
	engine_doorbell(qp);
	return 0;
}
