/* SPDX-License-Identifier: BSD-3-Clause */
/* rocade/cm.h: IDs, and the states and event listeners of their QPs. */
#include <rocade/cm.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "verbs/verbs_cm.h"
#include "wire/extensions.h"

#define HOP_LIMIT 64

struct rocade_cm_id *
cm_id_new(struct rocade_cm *cm, void *user)
{
	struct rocade_cm_id *id = calloc(1, sizeof(*id));

	if (id == NULL) {
		(void)rocade_fail(ENOMEM, "no memory for a connection");
		return NULL;
	}
	id->cm = cm;
	id->user = user;
	return id;
}

int
cm_id_ask(struct rocade_cm_id *id)
{
	int rc = cm_connect(
		cm_port_lock(id->cm->port), &id->asked, id, engine_clock(), &id->conn);

	cm_port_unlock(id->cm->port);
	return rc;
}

struct cm_ece
cm_qp_ece(struct ibv_qp *qp)
{
	struct ibv_ece ece;

	if (ibv_query_ece(qp, &ece) != 0)
		return (struct cm_ece){.vendor_id = 0};
	return (struct cm_ece){.vendor_id = ece.vendor_id, .options = ece.options};
}

struct cm_ece
cm_qp_agree(struct ibv_qp *qp, const struct cm_ece *offered, const struct cm_ece *peer)
{
	struct ibv_ece ece = {.vendor_id = EXT_VENDOR_ID,
		.options = ext_options(ext_common(offered->vendor_id, offered->options) &
				       ext_common(peer->vendor_id, peer->options))};

	/* The options that are written back have no version if they are empty. */
	if (ibv_set_ece(qp, &ece) != 0 || peer->vendor_id != EXT_VENDOR_ID)
		return (struct cm_ece){.vendor_id = 0};
	return (struct cm_ece){.vendor_id = ece.vendor_id, .options = ece.options};
}

int
cm_qp_rtr(const struct rocade_cm_id *id, const struct cm_event *peer, unsigned mtu)
{
	const struct rocade_cm_param *p = &id->param;
	int index = gid_find(id->cm->ctx->dev->gids, DEV_GIDS, peer->path.sgid);
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = (enum ibv_mtu)mtu,
		.dest_qp_num = peer->qp.qpn,
		.rq_psn = p->psn,
		.max_dest_rd_atomic =
			RTE_MIN(p->responder_resources, peer->qp.responder_resources),
		.min_rnr_timer = p->min_rnr_timer,
		.ah_attr = {.is_global = 1,
			.port_num = 1,
			.grh = {.sgid_index = (uint8_t)index, .hop_limit = HOP_LIMIT}},
	};

	if (index < 0)
		return EADDRNOTAVAIL; /* the address was removed */
	memcpy(attr.ah_attr.grh.dgid.raw, peer->path.dgid, 16);
	return ibv_modify_qp(id->qp, &attr,
		IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
			IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
}

int
cm_qp_rts(const struct rocade_cm_id *id, const struct cm_event *peer, unsigned timeout,
	unsigned retry_count)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS,
		.timeout = (uint8_t)timeout,
		.retry_cnt = (uint8_t)retry_count,
		.rnr_retry = peer->qp.rnr_retry,
		.sq_psn = peer->qp.psn,
		.max_rd_atomic =
			RTE_MIN(id->param.initiator_depth, peer->qp.initiator_depth),
	};

	return ibv_modify_qp(id->qp, &attr,
		IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

void
cm_qp_listener_add(struct rocade_cm_id *id)
{
	async_event_init(&id->qp_listener.events, &id->cm->events, id);
	dev_qp_listen(to_qp(id->qp)->qp, &id->qp_listener);
	id->listening = true;
}

void
cm_qp_listener_remove(struct rocade_cm_id *id)
{
	if (!id->listening)
		return;
	dev_qp_unlisten(id->cm->ctx->dev, &id->qp_listener);
	(void)event_purge(&id->qp_listener.events);
	id->listening = false;
}
