/* SPDX-License-Identifier: BSD-3-Clause */
/* Control path. */
#include <errno.h>

#include "qp/flight.h"
#include "qp/qp_state.h"
#include "qp/req.h"
#include "qp/resp.h"
#include "qp/send_age.h"

#define MAX_TIMEOUT_CODE 31
#define MAX_RETRY 7

/* Checks the values of the attributes in mask (ibv_modify_qp(3)). */
static int
qp_attr_check(const struct qp_attr *a, int mask, enum ibv_mtu path_mtu_max)
{
	if (mask & IBV_QP_PORT && a->port_num != 1)
		return -EINVAL;
	if (mask & IBV_QP_PKEY_INDEX && a->pkey_index != 0)
		return -EINVAL;
	if (mask & IBV_QP_AV && a->path.port_num != 1)
		return -EINVAL;
	if (mask & IBV_QP_PATH_MTU &&
		(a->path_mtu < IBV_MTU_256 || a->path_mtu > path_mtu_max))
		return -EINVAL;
	if ((mask & IBV_QP_DEST_QPN && a->dest_qpn > PSN_MASK) ||
		(mask & IBV_QP_RQ_PSN && a->rq_psn > PSN_MASK) ||
		(mask & IBV_QP_SQ_PSN && a->sq_psn > PSN_MASK))
		return -EINVAL;
	if (mask & IBV_QP_TIMEOUT && a->timeout > MAX_TIMEOUT_CODE)
		return -EINVAL;
	if (mask & IBV_QP_MIN_RNR_TIMER && a->min_rnr_timer > MAX_TIMEOUT_CODE)
		return -EINVAL;
	if ((mask & IBV_QP_RETRY_CNT && a->retry_cnt > MAX_RETRY) ||
		(mask & IBV_QP_RNR_RETRY && a->rnr_retry > MAX_RETRY))
		return -EINVAL;
	if ((mask & IBV_QP_MAX_QP_RD_ATOMIC && a->max_rd_atomic > QP_MAX_RD_ATOMIC) ||
		(mask & IBV_QP_MAX_DEST_RD_ATOMIC &&
			a->max_dest_rd_atomic > QP_MAX_RD_ATOMIC))
		return -EINVAL;
	return 0;
}

static void
apply_path(struct qp *qp, const struct qp_attr *a, int mask)
{
	if (mask & IBV_QP_AV) {
		qp->path = a->path;
		qp->sched.resolved = false;
	}
	if (mask & IBV_QP_PATH_MTU) {
		qp->params.path_mtu = (uint8_t)a->path_mtu;
		qp->pmtu_shift = (uint8_t)(7 + a->path_mtu);
	}
	if (mask & IBV_QP_DEST_QPN)
		qp->dest_qpn = a->dest_qpn;
	if (mask & IBV_QP_RQ_PSN)
		resp_reset(qp, a->rq_psn);
	if (mask & IBV_QP_SQ_PSN)
		req_reset(qp, a->sq_psn);
}

/* Requests that are under way are subject to the new timeout, too (C9-141; 0: none). After an RNR NAK
 * none is under way. */
static void
timeout_change(struct qp *qp, uint8_t timeout)
{
	struct requester *req = &qp->req;

	send_age_keep(qp);
	qp->params.timeout = timeout;
	if (timeout == 0)
		req->ack_deadline = req->tlp_deadline = TIME_NEVER;
	else if (req->next_psn != req->una_psn)
		req->ack_deadline = qp->shared->now + req_timeout_ns(qp);
}

static void
apply_limits(struct qp *qp, const struct qp_attr *a, int mask)
{
	if (mask & IBV_QP_ACCESS_FLAGS)
		qp->access = a->access;
	if (mask & IBV_QP_QKEY)
		qp->params.qkey = a->qkey;
	if (mask & IBV_QP_PKEY_INDEX)
		qp->params.pkey_index = a->pkey_index;
	if (mask & IBV_QP_MIN_RNR_TIMER)
		qp->params.min_rnr_timer = a->min_rnr_timer;
	if (mask & IBV_QP_TIMEOUT)
		timeout_change(qp, a->timeout);
	if (mask & IBV_QP_RETRY_CNT)
		qp->params.retry_cnt = qp->req.retry_left = a->retry_cnt;
	if (mask & IBV_QP_RNR_RETRY)
		qp->params.rnr_retry = qp->req.rnr_left = a->rnr_retry;
	if (mask & IBV_QP_MAX_QP_RD_ATOMIC)
		qp->params.max_rd_atomic = a->max_rd_atomic;
	if (mask & IBV_QP_MAX_DEST_RD_ATOMIC)
		qp->params.max_dest_rd_atomic = a->max_dest_rd_atomic;
}

static void
enter_state(struct qp *qp, enum ibv_qp_state to, const struct qp_attr *a, int mask)
{
	if (to == IBV_QPS_RESET) {
		qp_reset(qp);
		return;
	}
	if (to == IBV_QPS_ERR) {
		qp_error(qp);
		/* IBA 10.3.1.7: nothing is sent any more. A fatal error, whose NAK is
		 * sent, does not come here. */
		qp->aeth_pending = 0;
		qp->resp.res_next = qp->resp.res_end;
		resp_due_changed(qp);
		return;
	}
	/* Requests posted in SQE are flushed, not sent in the next state. */
	if (qp->state == IBV_QPS_SQE)
		qp_flush(qp);
	/* The CQ had no room for them. */
	if (qp->state == IBV_QPS_ERR)
		return;
	if (to == IBV_QPS_SQD && qp->state == IBV_QPS_RTS) {
		qp->req.draining = true;
		qp->params.sqd_notify = (mask & IBV_QP_EN_SQD_ASYNC_NOTIFY) != 0 &&
					a->en_sqd_async_notify;
	}
	if (qp->state != to)
		flight_note(qp, FLIGHT_STATE, 0, flight_pair(qp->state, to));
	__atomic_store_n(&qp->state, (uint8_t)to, __ATOMIC_RELEASE);
	if (to == IBV_QPS_SQD)
		req_check_drained(qp);
}

int
qp_modify_check(const struct qp *qp, const struct qp_attr *attr, int mask,
	enum ibv_mtu path_mtu_max)
{
	enum ibv_qp_state from = qp_state(qp);
	enum ibv_qp_state to = mask & IBV_QP_STATE ? attr->state : from;
	int rc;

	if (mask == 0)
		return 0; /* ibv_modify_qp(3) allows it: nothing to change */
	if (mask & IBV_QP_CUR_STATE && attr->cur_state != from)
		return -EINVAL;
	rc = qp_transition_check((enum ibv_qp_type)qp->type, from, to, mask);
	if (rc == 0)
		rc = qp_attr_check(attr, mask, path_mtu_max);
	if (rc != 0)
		return rc;
	/* IBA 10.3.1.5: SQD -> RTS only once the queue has drained. */
	if (from == IBV_QPS_SQD && to == IBV_QPS_RTS && qp->req.draining)
		return -EINVAL;
	/* READ requests under way may be more than the new limit, see order_allows(). */
	if (mask & IBV_QP_MAX_QP_RD_ATOMIC && qp->req.draining)
		return -EINVAL;
	/* The peer waits for the responses. */
	return mask & IBV_QP_MAX_DEST_RD_ATOMIC &&
			       resp_unanswered(qp) > attr->max_dest_rd_atomic
		       ? -EBUSY
		       : 0;
}

int
qp_modify(struct qp *qp, const struct qp_attr *attr, int mask, enum ibv_mtu path_mtu_max)
{
	int rc = qp_modify_check(qp, attr, mask, path_mtu_max);

	/* First, because it changes nothing that is visible if the other one fails. */
	if (rc == 0 && mask & IBV_QP_MAX_QP_RD_ATOMIC && attr->max_rd_atomic != 0)
		rc = sq_allow_reads(&qp->sq);
	if (rc == 0 && mask & IBV_QP_MAX_DEST_RD_ATOMIC)
		rc = resp_set_depth(qp, attr->max_dest_rd_atomic);
	if (rc != 0)
		return rc;
	/* Point of no return. */
	apply_path(qp, attr, mask);
	apply_limits(qp, attr, mask);
	if (mask & IBV_QP_STATE)
		enter_state(qp, attr->state, attr, mask);
	return 0;
}

void
qp_rtr_undo(struct qp *qp)
{
	if (qp->state == IBV_QPS_RTR)
		enter_state(qp, IBV_QPS_INIT, NULL, 0);
}

void
qp_query(const struct qp *qp, struct qp_attr *attr)
{
	*attr = (struct qp_attr){
		.state = qp_state(qp),
		.cur_state = qp_state(qp),
		.path_mtu = (enum ibv_mtu)qp->params.path_mtu,
		.rq_psn = qp->resp.epsn,
		.sq_psn = qp->req.next_psn,
		.dest_qpn = qp->dest_qpn,
		.qkey = qp->params.qkey,
		.access = qp->access,
		.pkey_index = qp->params.pkey_index,
		.port_num = 1,
		.timeout = qp->params.timeout,
		.retry_cnt = qp->params.retry_cnt,
		.rnr_retry = qp->params.rnr_retry,
		.min_rnr_timer = qp->params.min_rnr_timer,
		.max_rd_atomic = qp->params.max_rd_atomic,
		.max_dest_rd_atomic = qp->params.max_dest_rd_atomic,
		.en_sqd_async_notify = qp->params.sqd_notify,
		.sq_draining = qp->req.draining,
		.path = qp->path,
	};
}
