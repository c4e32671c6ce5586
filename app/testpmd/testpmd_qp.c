/* SPDX-License-Identifier: BSD-3-Clause */
/* The QPs of a host are created. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include <rocade/flush.h>

#include "host.h"

/* A receiver posts nothing but binds. */
uint32_t
host_sq_depth(const struct host *host)
{
	uint32_t binds = host->conf->binds && host->ops->receives ? MWS_OF_QP : 0;
	uint32_t sends = host->ops->sends ? (uint32_t)host->conf->sq_depth : 0;

	return sends + binds != 0 ? sends + binds : 1;
}

static struct ibv_qp *
xrc_target_create(struct host *host)
{
	struct ibv_qp_init_attr_ex init = {.qp_type = IBV_QPT_XRC_RECV,
		.comp_mask = IBV_QP_INIT_ATTR_XRCD,
		.xrcd = host->verbs.xrcd};

	return ibv_create_qp_ex(host->verbs.ctx, &init);
}

/* With rocade_wr_flush() beside ibv_post_send(3). */
static struct ibv_qp *
flush_qp_create(struct host *host, const struct ibv_qp_init_attr *plain)
{
	struct ibv_qp_init_attr_ex init = {.qp_type = plain->qp_type,
		.send_cq = plain->send_cq,
		.recv_cq = plain->recv_cq,
		.srq = plain->srq,
		.cap = plain->cap,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = host->verbs.pd,
		.send_ops_flags = ROCADE_QP_EX_WITH_FLUSH};

	return ibv_create_qp_ex(host->verbs.ctx, &init);
}

/* The QP that sends, or the only one. */
static struct ibv_qp *
conn_qp_create(struct host *host)
{
	static const enum ibv_qp_type types[] = {[TYPE_RC] = IBV_QPT_RC,
		[TYPE_UC] = IBV_QPT_UC,
		[TYPE_UD] = IBV_QPT_UD,
		[TYPE_XRC] = IBV_QPT_XRC_SEND};
	const struct conf *conf = host->conf;
	bool xrc = conf->type == TYPE_XRC;
	bool own_rq = host->rxqs != NULL && host->verbs.srq == NULL;
	struct ibv_qp_init_attr init = {.qp_type = types[conf->type],
		.send_cq = host->verbs.send_cq,
		.recv_cq = host->verbs.recv_cq,
		.srq = xrc ? NULL : host->verbs.srq,
		.cap = {.max_send_wr = host_sq_depth(host),
			.max_send_sge = 1,
			.max_recv_wr = own_rq ? (uint32_t)conf->depth : 1,
			.max_recv_sge = 1,
			.max_inline_data =
				host->ops->sends ? (uint32_t)conf->inline_max : 0}};

	if (xrc && !host->ops->sends)
		return xrc_target_create(host);
	return conf->flushes && host->ops->sends ? flush_qp_create(host, &init)
						 : ibv_create_qp(host->verbs.pd, &init);
}

static int
conn_create(struct host *host, unsigned i, char err[ERR_MAX])
{
	const struct conf *conf = host->conf;
	struct conn *conn = &host->conns[i];
	bool own_rq = host->rxqs != NULL && host->verbs.srq == NULL;
	uint32_t index = (host->first_conn + i) << host->two_qpns;

	conn->qp = conn_qp_create(host);
	if (conn->qp != NULL && host->two_qpns != 0)
		conn->xrc_target = xrc_target_create(host);
	if (conn->qp == NULL || (host->two_qpns != 0 && conn->xrc_target == NULL))
		return error_set(err,
			"cannot create QP %u of %u (--sq-depth %" PRIu64
			", --depth %" PRIu64 ", --inline %" PRIu64 "): %s",
			host->first_conn + i + 1, (unsigned)conf->qps, conf->sq_depth,
			conf->depth, conf->inline_max, strerror(errno));
	conn->qpn = conn->qp->qp_num;
	if (conn->qpn != conf->qpn_base + index ||
		(conn->xrc_target != NULL && conn->xrc_target->qp_num != conn->qpn + 1))
		return error_set(err, "QP %u has QPN 0x%x instead of --qpn-base + %u",
			host->first_conn + i, conn->qpn, index);
	if (host->rxqs == NULL)
		return 0;
	conn->rxq = &host->rxqs[host->verbs.srq != NULL ? 0 : i];
	if (own_rq) {
		rxq_init(conn->rxq, NULL, conn->qp);
		conn->rxq->capacity = (uint32_t)conf->depth;
	}
	return 0;
}

int
host_conns_create(struct host *host, char err[ERR_MAX])
{
	for (unsigned i = 0; i < host->n_conns; i++) {
		if (conn_create(host, i, err) != 0)
			return -1;
	}
	return 0;
}
