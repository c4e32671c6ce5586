/* SPDX-License-Identifier: BSD-3-Clause */
/* Connects QP i of one end to QP i of the other, with the same starting PSN on both. */
#include <errno.h>
#include <string.h>

#include "perf_context.h"

/* Picks the first own address of the peer's family that is not link-local. */
static int
perf_source_choose(struct perf_context *ctx)
{
	static const uint8_t v4[12] = {[10] = 0xff, [11] = 0xff};
	bool is_v4 = memcmp(ctx->peer.raw, v4, sizeof(v4)) == 0;

	for (uint8_t i = 0; i < 16; i++) {
		union ibv_gid gid;

		if (ibv_query_gid(ctx->verbs.context, 1, i, &gid) != 0 ||
			gid.global.interface_id == 0)
			continue;
		if (gid.raw[0] == 0xfe || (memcmp(gid.raw, v4, sizeof(v4)) == 0) != is_v4)
			continue;
		ctx->sgid_index = i;
		return 0;
	}
	return perf_set_error(ctx,
		"invalid value '%s' for --addr: expected an address of the family of "
		"--peer %s that is not link-local",
		ctx->conf->addr, ctx->conf->peer);
}

static int
perf_path_choose(struct perf_context *ctx, enum ibv_mtu *mtu)
{
	struct ibv_port_attr port;

	ctx->code = EXIT_USAGE;
	if (rocade_gid_parse(ctx->conf->peer, &ctx->peer) != 0 ||
		ibv_query_port(ctx->verbs.context, 1, &port) != 0)
		return perf_set_error(ctx, "invalid value '%s' for --peer: %s",
			ctx->conf->peer, rocade_error());
	*mtu = port.active_mtu;
	if (ctx->plan.mtu != 0)
		*mtu = (enum ibv_mtu)(__builtin_ctzll(ctx->plan.mtu) - 7);
	if (*mtu > port.active_mtu)
		return perf_set_error(ctx,
			"invalid value '%lu' for --mtu: expected at most %u, "
			"the port's active MTU",
			(unsigned long)ctx->plan.mtu, 128u << port.active_mtu);
	ctx->plan.mtu = 128u << *mtu;
	if (perf_source_choose(ctx) != 0)
		return -1;
	ctx->code = EXIT_ENVIRONMENT;
	return 0;
}

/* Creates the address handle that all QPs send to. Each request names its destination
 * QP. */
static int
perf_ah_create(struct perf_context *ctx)
{
	struct ibv_ah_attr attr = {.is_global = 1,
		.port_num = 1,
		.grh = {.dgid = ctx->peer,
			.sgid_index = ctx->sgid_index,
			.hop_limit = 64}};

	ctx->verbs.ah = ibv_create_ah(ctx->verbs.pd, &attr);
	return ctx->verbs.ah != NULL ? 0 : errno;
}

static int
conn_connect_ud(struct perf_context *ctx, struct conn *conn)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = PERF_QKEY};
	int rc = ibv_modify_qp(conn->qp, &attr,
		IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);

	attr.qp_state = IBV_QPS_RTR;
	if (rc == 0)
		rc = ibv_modify_qp(conn->qp, &attr, IBV_QP_STATE);
	attr.qp_state = IBV_QPS_RTS;
	attr.sq_psn = (uint32_t)ctx->plan.psn;
	if (rc == 0)
		rc = ibv_modify_qp(conn->qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
	return rc;
}

static int
conn_connect_rc(struct perf_context *ctx, struct conn *conn, enum ibv_mtu mtu)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ};
	int rc = ibv_modify_qp(conn->qp, &attr,
		IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);

	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
		.path_mtu = mtu,
		.dest_qp_num = ctx->peer_qpns[conn - ctx->conns],
		.rq_psn = (uint32_t)ctx->plan.psn,
		.max_dest_rd_atomic = (uint8_t)ctx->plan.reads,
		.min_rnr_timer = 1,
		.ah_attr = {.is_global = 1,
			.port_num = 1,
			.grh = {.dgid = ctx->peer,
				.sgid_index = ctx->sgid_index,
				.hop_limit = 64}}};
	if (rc == 0)
		rc = ibv_modify_qp(conn->qp, &attr,
			IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				IBV_QP_MIN_RNR_TIMER);
	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
		.timeout = (uint8_t)ctx->plan.timeout,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.sq_psn = (uint32_t)ctx->plan.psn,
		.max_rd_atomic = (uint8_t)ctx->plan.reads};
	if (rc == 0)
		rc = ibv_modify_qp(conn->qp, &attr,
			IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
				IBV_QP_MAX_QP_RD_ATOMIC);
	return rc;
}

/* Posts plan.depth receives to the SRQ, or to the receive queue of one QP. */
static int
receives_post(struct perf_context *ctx, struct conn *conn, uint64_t first)
{
	struct ibv_recv_wr *bad;
	int rc = 0;

	for (uint64_t i = first; i < first + ctx->plan.depth && rc == 0; i++) {
		ctx->buffers.recv_wr[i].next = NULL;
		if (ctx->verbs.srq != NULL)
			rc = ibv_post_srq_recv(
				ctx->verbs.srq, &ctx->buffers.recv_wr[i], &bad);
		else
			rc = ibv_post_recv(conn->qp, &ctx->buffers.recv_wr[i], &bad);
	}
	return rc;
}

int
perf_connect(struct perf_context *ctx)
{
	enum ibv_mtu mtu = IBV_MTU_256;
	int rc = 0;

	if (perf_path_choose(ctx, &mtu) != 0)
		return -1;
	if (ctx->plan.ud)
		rc = perf_ah_create(ctx);
	if (rc == 0 && ctx->buffers.n_recv != 0 && ctx->verbs.srq != NULL)
		rc = receives_post(ctx, NULL, 0);
	for (uint64_t i = 0; i < ctx->plan.qps && rc == 0; i++) {
		if (ctx->plan.ud)
			rc = conn_connect_ud(ctx, &ctx->conns[i]);
		else
			rc = conn_connect_rc(ctx, &ctx->conns[i], mtu);
		if (rc == 0 && ctx->buffers.n_recv != 0 && ctx->verbs.srq == NULL)
			rc = receives_post(ctx, &ctx->conns[i], i * ctx->plan.depth);
	}
	if (rc != 0)
		perf_set_error(ctx, "cannot connect the QPs: %s", strerror(rc));
	return rc == 0 ? 0 : -1;
}
