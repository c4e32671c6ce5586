/* SPDX-License-Identifier: BSD-3-Clause */
/* INIT_QP_ATTR: the attributes of a QP for its next state, from what both sides have
 * announced. */
#include <errno.h>
#include <string.h>

#include "ucm/id.h"
#include "ucm/ucm_addr.h"

#define RNR_RETRY_INFINITE 7
#define RNR_TIMER_SHORT 12  /* 0.64 ms (IBA 9.7.5.2.8, table 45) */
#define RNR_TIMER_LONGEST 0 /* 655 ms */

static int
init_fill(const struct ucm_id *id, struct ib_uverbs_qp_attr *attr)
{
	attr->port_num = 1;
	attr->qp_attr_mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
	if (ucm_id_is_ud(id)) {
		attr->qkey = UCM_QKEY;
		attr->qp_attr_mask |= IBV_QP_QKEY;
		return 0;
	}
	attr->qp_attr_mask |= IBV_QP_ACCESS_FLAGS;
	if (ucm_id_has_conn(id))
		attr->qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
	if (ucm_id_has_conn(id) && (id->local.responder_resources != 0 ||
					   id->remote.responder_resources != 0))
		attr->qp_access_flags |=
			IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
	return 0;
}

/*
 * Returns the code of the RNR timer: how long the peer waits after an RNR NAK. Linux
 * announces the longest time. A peer that retries without limit gains nothing from a long
 * wait, so a short time is announced to it. The peer's retry count is the one that this
 * side has announced. A passive side announces it only in its REP, after RTR: until then
 * the count in the peer's REQ is used.
 */
static uint8_t
rnr_timer(const struct ucm_id *id)
{
	uint8_t retry = id->local.qpn != 0 ? id->local.rnr_retry : id->remote.rnr_retry;

	return retry == RNR_RETRY_INFINITE ? RNR_TIMER_SHORT : RNR_TIMER_LONGEST;
}

static int
rtr_fill(const struct ucm_id *id, struct ib_uverbs_qp_attr *attr)
{
	int rc;

	attr->qp_attr_mask = IBV_QP_STATE;
	if (ucm_id_is_ud(id))
		return 0;
	if (!id->has_remote)
		return -EINVAL;
	rc = ucm_ah_fill(id, &attr->ah_attr);
	if (rc != 0)
		return rc;
	attr->path_mtu = id->path_mtu;
	attr->dest_qp_num = id->remote.qpn;
	/* Each side announces the starting PSN of the other (IBA 12.7.31). */
	attr->rq_psn = id->psn;
	attr->qp_attr_mask |=
		IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	if (id->qp_type == IBV_QPT_UC || id->qp_type == IBV_QPT_XRC_SEND)
		return 0;
	/* The program's values if it has connected or accepted, else the peer's. */
	attr->max_dest_rd_atomic = id->local.qpn != 0 ? id->local.responder_resources
						      : id->remote.responder_resources;
	attr->min_rnr_timer = rnr_timer(id);
	attr->qp_attr_mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	return 0;
}

static int
rts_fill(const struct ucm_id *id, struct ib_uverbs_qp_attr *attr)
{
	attr->qp_attr_mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
	attr->sq_psn = id->psn;
	if (ucm_id_is_ud(id))
		return 0;
	if (!id->has_remote)
		return -EINVAL;
	attr->sq_psn = id->remote.psn;
	if (id->qp_type == IBV_QPT_UC)
		return 0;
	/* An XRC target sends no requests, but has to notice when its peer has gone. */
	attr->qp_attr_mask |= IBV_QP_TIMEOUT;
	attr->timeout = id->ack_timeout;
	if (id->qp_type == IBV_QPT_XRC_RECV)
		return 0;
	/* The REQ carries the active side's retry count. A passive side that sets none
	 * uses it. */
	attr->retry_cnt = id->local.qpn != 0 && id->local.retry_count != 0
				  ? id->local.retry_count
				  : id->remote.retry_count;
	attr->rnr_retry = id->remote.rnr_retry;
	/* The peer answers no more at once than the responder resources in its REQ or REP,
	 * which `remote` has as the depth of this end. */
	attr->max_rd_atomic = id->remote.initiator_depth;
	if (id->local.qpn != 0)
		attr->max_rd_atomic =
			RTE_MIN(attr->max_rd_atomic, id->local.initiator_depth);
	attr->qp_attr_mask |=
		IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
	return 0;
}

int
ucm_do_init_qp_attr(struct ucm_call *call)
{
	const struct rdma_ucm_init_qp_attr *cmd = call->in;
	struct ib_uverbs_qp_attr *attr = call->out;
	struct ucm_id *id = ucm_id_find(call, cmd->id);

	if (id == NULL)
		return -ENOENT;
	if (id->device == NULL)
		return -EINVAL;
	attr->qp_state = cmd->qp_state;
	switch (cmd->qp_state) {
	case IBV_QPS_INIT:
		return init_fill(id, attr);
	case IBV_QPS_RTR:
		return rtr_fill(id, attr);
	case IBV_QPS_RTS:
		return rts_fill(id, attr);
	default:
		return -EINVAL;
	}
}
