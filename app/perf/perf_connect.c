/* SPDX-License-Identifier: BSD-3-Clause */
/* Connects QP i of one end to QP i of the other, with the same starting PSN on both. The
 * QPNs of an end are consecutive, so only the first is exchanged. */
#include <errno.h>
#include <string.h>

#include "perf_context.h"

/* Picks the first own address of the peer's family that is not link-local. */
static int
source_choose(struct bed *bed)
{
	static const uint8_t v4[12] = {[10] = 0xff, [11] = 0xff};
	bool is_v4 = memcmp(bed->peer.raw, v4, sizeof(v4)) == 0;

	for (uint8_t i = 0; i < 16; i++) {
		union ibv_gid gid;

		if (ibv_query_gid(bed->ctx, 1, i, &gid) != 0 ||
			gid.global.interface_id == 0)
			continue;
		if (gid.raw[0] == 0xfe || (memcmp(gid.raw, v4, sizeof(v4)) == 0) != is_v4)
			continue;
		bed->sgid_index = i;
		return 0;
	}
	bed_blame(bed,
		"invalid value '%s' for --addr: no address of the family of "
		"--peer %s",
		bed->conf->addr, bed->conf->peer);
	return -1;
}

static int
path_choose(struct bed *bed, enum ibv_mtu *mtu)
{
	struct ibv_port_attr port;

	if (rocade_gid_parse(bed->conf->peer, &bed->peer) != 0 ||
		ibv_query_port(bed->ctx, 1, &port) != 0) {
		bed_blame(bed, "invalid value '%s' for --peer: %s", bed->conf->peer,
			rocade_error());
		return -1;
	}
	*mtu = port.active_mtu;
	if (bed->plan.mtu != 0)
		*mtu = (enum ibv_mtu)(__builtin_ctzll(bed->plan.mtu) - 7);
	if (*mtu > port.active_mtu) {
		bed_blame(bed,
			"invalid value '%lu' for --mtu: expected at most %u, "
			"the port's active MTU",
			(unsigned long)bed->plan.mtu, 128u << port.active_mtu);
		return -1;
	}
	bed->plan.mtu = 128u << *mtu;
	return source_choose(bed);
}

/* Creates the address handle that all QPs send to. Each request names its destination
 * QP. */
static int
address_create(struct bed *bed)
{
	struct ibv_ah_attr attr = {.is_global = 1,
		.port_num = 1,
		.grh = {.dgid = bed->peer,
			.sgid_index = bed->sgid_index,
			.hop_limit = 64}};

	bed->ah = ibv_create_ah(bed->pd, &attr);
	return bed->ah != NULL ? 0 : errno;
}

static int
flow_connect_ud(struct bed *bed, struct flow *flow)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = BED_QKEY};
	int rc = ibv_modify_qp(flow->qp, &attr,
		IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);

	attr.qp_state = IBV_QPS_RTR;
	if (rc == 0)
		rc = ibv_modify_qp(flow->qp, &attr, IBV_QP_STATE);
	attr.qp_state = IBV_QPS_RTS;
	attr.sq_psn = (uint32_t)bed->plan.psn;
	if (rc == 0)
		rc = ibv_modify_qp(flow->qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
	return rc;
}

static int
flow_connect(struct bed *bed, struct flow *flow, enum ibv_mtu mtu)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ};
	int rc = ibv_modify_qp(flow->qp, &attr,
		IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);

	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
		.path_mtu = mtu,
		.dest_qp_num = bed->peer_qpn + (uint32_t)(flow - bed->flows),
		.rq_psn = (uint32_t)bed->plan.psn,
		.max_dest_rd_atomic = (uint8_t)bed->plan.reads,
		.min_rnr_timer = 1,
		.ah_attr = {.is_global = 1,
			.port_num = 1,
			.grh = {.dgid = bed->peer,
				.sgid_index = bed->sgid_index,
				.hop_limit = 64}}};
	if (rc == 0)
		rc = ibv_modify_qp(flow->qp, &attr,
			IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				IBV_QP_MIN_RNR_TIMER);
	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
		.timeout = (uint8_t)bed->plan.timeout,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.sq_psn = (uint32_t)bed->plan.psn,
		.max_rd_atomic = (uint8_t)bed->plan.reads};
	if (rc == 0)
		rc = ibv_modify_qp(flow->qp, &attr,
			IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
				IBV_QP_MAX_QP_RD_ATOMIC);
	return rc;
}

/* Posts plan.depth receives to the SRQ, or to the receive queue of one QP. */
static int
receives_post(struct bed *bed, struct flow *flow, uint64_t first)
{
	struct ibv_recv_wr *bad;
	int rc = 0;

	for (uint64_t i = first; i < first + bed->plan.depth && rc == 0; i++) {
		bed->recv_wr[i].next = NULL;
		if (bed->srq != NULL)
			rc = ibv_post_srq_recv(bed->srq, &bed->recv_wr[i], &bad);
		else
			rc = ibv_post_recv(flow->qp, &bed->recv_wr[i], &bad);
	}
	return rc;
}

int
bed_connect(struct bed *bed)
{
	enum ibv_mtu mtu;
	int rc = 0;

	if (path_choose(bed, &mtu) != 0)
		return -1;
	if (bed->plan.ud)
		rc = address_create(bed);
	if (rc == 0 && bed->n_recv != 0 && bed->srq != NULL)
		rc = receives_post(bed, NULL, 0);
	for (uint64_t i = 0; i < bed->plan.qps && rc == 0; i++) {
		if (bed->plan.ud)
			rc = flow_connect_ud(bed, &bed->flows[i]);
		else
			rc = flow_connect(bed, &bed->flows[i], mtu);
		if (rc == 0 && bed->n_recv != 0 && bed->srq == NULL)
			rc = receives_post(bed, &bed->flows[i], i * bed->plan.depth);
	}
	if (rc != 0)
		bed_blame(bed, "cannot connect the QPs: %s", strerror(rc));
	return rc == 0 ? 0 : -1;
}
