/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions of this library for librocade-faults.so. */
#include "qp/request_fault.h"
#include "verbs/context_ops.h"
#include "verbs/device_source.h"
#include "verbs/fault_hooks.h"
#include "verbs/refusal.h"
#include "verbs/wqe.h"

/* Checks a request as ibv_post_send() does. Returns its slot, or NULL with EINVAL or ENOMEM. With the SQ's lock held. */
static struct send_wqe *
checked_slot(struct verbs_qp *vqp, const struct ibv_send_wr *wr, int *err)
{
	const struct wr_row *row = send_row(wr);
	struct sq *sq = &vqp->qp->sq;
	struct send_wqe *wqe = NULL;
	uint32_t len;

	*err = EINVAL;
	if (qp_state(vqp->qp) < IBV_QPS_RTS ||
		send_check(sq, wr, row, (uint32_t)wr->num_sge, &len) != 0 ||
		!send_type_check(vqp, wr, row, len))
		return NULL;
	wqe = sq_next(sq, sq->prod);
	*err = wqe != NULL ? 0 : ENOMEM;
	return wqe;
}

/* Writes what a request has that fails. Not by the code of posts, so that this is compiled as without it. With the SQ's
 * lock held. Returns 0, EINVAL or ENOMEM. */
static int
failing_write(struct verbs_qp *vqp, const struct ibv_send_wr *wr,
	const struct fault_completion *fault)
{
	struct sq *sq = &vqp->qp->sq;
	bool ud = vqp->qp->type == IBV_QPT_UD;
	int err;
	struct send_wqe *wqe = checked_slot(vqp, wr, &err);

	if (err == ENOMEM)
		send_count_full(vqp, "ibv_post_send");
	if (err != 0)
		return err;
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

static bool
post_possible(struct ibv_qp *qp, const struct ibv_send_wr *wr)
{
	struct verbs_qp *vqp = to_qp(qp);
	int err;

	if (!vqp->sends)
		return false;
	sq_lock(&vqp->qp->sq);
	checked_slot(vqp, wr, &err);
	sq_unlock(&vqp->qp->sq);
	return err == 0;
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

	return (struct fault_request){.opcode = (enum ibv_wr_opcode)wqe->opcode,
		.len = wqe->len,
		.is_inline = (wqe->flags & IBV_SEND_INLINE) != 0};
}

static void
batch_fail(struct ibv_qp_ex *ex, unsigned index, const struct fault_completion *fault)
{
	request_fault_set(batch_slot(ex, index), ex_to_qp(ex)->qp->type == IBV_QPT_UD,
		fault->status, fault->vendor_err);
}

static bool
event_possible(enum ibv_event_type type, struct ibv_qp *qp, struct ibv_srq *srq)
{
	enum ibv_qp_state state;

	switch (type) {
	case IBV_EVENT_QP_FATAL:
		state = qp_state(to_qp(qp)->qp);
		return state != IBV_QPS_RESET && state != IBV_QPS_ERR;
	case IBV_EVENT_CQ_ERR:
		return !__atomic_load_n(&to_cq(qp->send_cq)->cq.error, __ATOMIC_RELAXED);
	case IBV_EVENT_SRQ_ERR:
		return !__atomic_load_n(&to_srq(srq)->srq.error, __ATOMIC_RELAXED);
	default:
		return true;
	}
}

static void
asked_event_cause(enum ibv_event_type type, struct ibv_qp *qp, struct ibv_srq *srq)
{
	struct dev *dev = to_ctx(qp != NULL ? qp->context : srq->context)->dev;

	switch (type) {
	case IBV_EVENT_QP_FATAL:
		dev_qp_fail(dev, to_qp(qp)->qp);
		break;
	case IBV_EVENT_CQ_ERR:
		(void)cq_overrun(&to_cq(qp->send_cq)->cq);
		break;
	case IBV_EVENT_SRQ_ERR:
		(void)srq_fail(&to_srq(srq)->srq);
		break;
	default: /* IBV_EVENT_DEVICE_FATAL */
		dev_fail(dev);
		break;
	}
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
		.post_possible = post_possible,
		.batch_end = wr_batch_end,
		.batch_request = batch_request,
		.batch_fail = batch_fail,
		.event_possible = event_possible,
		.event_cause = asked_event_cause,
		.posted = posted,
		.wire_watch = fault_wire_watch,
		.links_own = device_source_own_links,
		.link_watch = fault_link_watch,
		.links_cut = device_source_link_cut,
		.clock = engine_clock,
		.thread_start = own_thread_start,
	};

	return &hooks;
}
