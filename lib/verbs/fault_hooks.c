/* SPDX-License-Identifier: BSD-3-Clause */
/* What librocade-faults.so asks of this library. */
#include "qp/request_fault.h"
#include "verbs/context_ops.h"
#include "verbs/fault_hooks.h"
#include "verbs/refusal.h"
#include "verbs/wqe.h"

/* The checks of ibv_post_send() that a request of a program may not pass. */
static bool
is_valid(const struct verbs_qp *vqp, const struct ibv_send_wr *wr)
{
	const struct wr_row *row = send_row(wr);
	unsigned type = vqp->qp->type;
	uint32_t len;

	if (qp_state(vqp->qp) < IBV_QPS_RTS ||
		send_check(&vqp->qp->sq, wr, row, (uint32_t)wr->num_sge, &len) != 0 ||
		!wr_of_type(row, type))
		return false;
	return type != IBV_QPT_UD ||
	       (dest_allowed(vqp, wr->wr.ud.ah, wr->wr.ud.remote_qpn) &&
		       len <= mtu_bytes(to_ctx(vqp->ibv.context)->dev->active_mtu));
}

/* Writes what a request has that fails. Not by the code of posts, so that this is compiled as without it. With the SQ's
 * lock held. Returns 0, EINVAL or ENOMEM. */
static int
failing_write(struct verbs_qp *vqp, const struct ibv_send_wr *wr,
	const struct fault_completion *fault)
{
	struct sq *sq = &vqp->qp->sq;
	bool ud = vqp->qp->type == IBV_QPT_UD;
	struct send_wqe *wqe = sq_next(sq, sq->prod);

	if (!is_valid(vqp, wr))
		return EINVAL;
	if (wqe == NULL)
		return ENOMEM;
	wqe->wr_id = wr->wr_id;
	wqe->opcode = (uint8_t)wr->opcode;
	wqe->flags = (uint8_t)(wr->send_flags | sq->always);
	if (ud)
		dest_write(
			wqe, wr->wr.ud.ah, wr->wr.ud.remote_qpn, wr->wr.ud.remote_qkey);
	request_fault_set(wqe, ud, fault->status, fault->vendor_err);
	if (wqe->flags & IBV_SEND_SIGNALED) {
		vqp->last_signaled = sq->prod + 1;
		vqp->any_signaled = true;
	}
	sq_publish(sq, sq->prod + 1);
	return 0;
}

static int
post_failing(
	struct ibv_qp *qp, struct ibv_send_wr *wr, const struct fault_completion *fault)
{
	struct verbs_qp *vqp = to_qp(qp);
	int err;

	if (!vqp->sends)
		return EINVAL;
	sq_lock(&vqp->qp->sq);
	err = failing_write(vqp, wr, fault);
	sq_unlock(&vqp->qp->sq);
	if (err != 0)
		return refusal_note(err, "ibv_post_send", NULL);
	engine_doorbell(vqp->qp);
	return 0;
}

/* Also the request that is being built: ibv_wr_complete() takes it. */
static unsigned
batch_count(struct ibv_qp_ex *ex)
{
	const struct verbs_qp *vqp = ex_to_qp(ex);
	const struct verbs_wr *wr = &vqp->wr;

	return wr->err == 0 ? wr->prod - vqp->qp->sq.prod + (wr->wqe != NULL) : 0;
}

static struct send_wqe *
batch_slot(struct ibv_qp_ex *ex, unsigned index)
{
	struct sq *sq = &ex_to_qp(ex)->qp->sq;

	return sq_ring_slot(&sq->post, sq->prod + index);
}

static struct fault_request
batch_request(struct ibv_qp_ex *ex, unsigned index)
{
	const struct send_wqe *wqe = batch_slot(ex, index);

	return (struct fault_request){
		.opcode = (enum ibv_wr_opcode)wqe->opcode, .len = wqe->len};
}

static void
batch_fail(struct ibv_qp_ex *ex, unsigned index, const struct fault_completion *fault)
{
	request_fault_set(batch_slot(ex, index), ex_to_qp(ex)->qp->type == IBV_QPT_UD,
		fault->status, fault->vendor_err);
}

static void
qp_fatal(struct ibv_qp *qp)
{
	dev_qp_fail(to_ctx(qp->context)->dev, to_qp(qp)->qp);
}

static void
cq_error(struct ibv_cq *cq)
{
	(void)cq_overrun(&to_cq(cq)->cq);
}

/* As an SRQ whose ring is found corrupted. */
static void
srq_error(struct ibv_srq *ibv)
{
	struct srq *srq = &to_srq(ibv)->srq;

	if (!__atomic_exchange_n(&srq->error, true, __ATOMIC_RELAXED))
		event_raise(&srq->events, IBV_EVENT_SRQ_ERR);
}

static void
device_fatal(struct ibv_context *context)
{
	dev_fail(to_ctx(context)->dev);
}

static uint32_t
posted(struct ibv_qp *qp)
{
	return sq_posted(&to_qp(qp)->qp->sq);
}

EXPORT const struct fault_hooks *
rocade_fault_hooks(void)
{
	static const struct fault_hooks hooks = {
		.post_failing = post_failing,
		.batch_count = batch_count,
		.batch_request = batch_request,
		.batch_fail = batch_fail,
		.qp_fatal = qp_fatal,
		.cq_error = cq_error,
		.srq_error = srq_error,
		.device_fatal = device_fatal,
		.posted = posted,
		.wire_watch = fault_wire_watch,
	};

	return &hooks;
}
