/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ends.h"

#define MEM_BYTES ((size_t)ENDS_SLOT * (2 + ENDS_RECEIVES))
#define ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)
#define QPN_BASE 0x100
#define QKEY 0x11
#define RD_ATOMIC 16
#define TIMEOUT 14 /* 67 ms */

void
must(int good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "cost: failed: %s\n", what);
	exit(1);
}

static void
queues_create(struct end *end, unsigned qps)
{
	struct ibv_srq_init_attr srq = {.attr = {.max_wr = ENDS_RECEIVES, .max_sge = 1}};

	end->send_cq =
		ibv_create_cq(end->context, (int)qps * ENDS_SQ_DEPTH, NULL, NULL, 0);
	end->recv_cq = ibv_create_cq(end->context, ENDS_RECEIVES, NULL, NULL, 0);
	end->srq = ibv_create_srq(end->pd, &srq);
	must(end->send_cq != NULL && end->recv_cq != NULL && end->srq != NULL,
		"creation of CQs and SRQ");
	ends_srq_prepare(end);
}

static void
end_open(struct end *end, struct rocade_port *port, unsigned qps, enum ibv_qp_type type)
{
	end->port = port;
	end->engine = rocade_port_engine(port, 0);
	end->context = ibv_open_device(rocade_port_device(port));
	must(end->context != NULL, "ibv_open_device");
	end->pd = ibv_alloc_pd(end->context);
	end->mem = aligned_alloc(4096, MEM_BYTES);
	must(end->pd != NULL && end->mem != NULL, "PD or memory");
	memset(end->mem, 0, MEM_BYTES);
	end->mr = ibv_reg_mr(end->pd, end->mem, MEM_BYTES, ACCESS);
	must(end->mr != NULL, "ibv_reg_mr");
	queues_create(end, qps);
	for (unsigned i = 0; i < qps; i++) {
		struct ibv_qp_init_attr init = {.send_cq = end->send_cq,
			.recv_cq = end->recv_cq,
			.srq = end->srq,
			.qp_type = type,
			.cap = {.max_send_wr = ENDS_SQ_DEPTH, .max_send_sge = 1}};

		end->qp[i] = ibv_create_qp(end->pd, &init);
		must(end->qp[i] != NULL, "ibv_create_qp");
	}
}

static void
path_fill(struct ibv_ah_attr *ah, const char *peer)
{
	*ah = (struct ibv_ah_attr){.is_global = 1, .port_num = 1, .grh.hop_limit = 64};
	must(rocade_gid_parse(peer, &ah->grh.dgid) == 0, "rocade_gid_parse");
}

static void
qp_connect_rc(struct ibv_qp *qp, const char *peer)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ};

	must(ibv_modify_qp(qp, &attr,
		     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			     IBV_QP_ACCESS_FLAGS) == 0,
		"INIT");
	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_4096,
		.dest_qp_num = qp->qp_num,
		.max_dest_rd_atomic = RD_ATOMIC,
		.min_rnr_timer = 1};
	path_fill(&attr.ah_attr, peer);
	must(ibv_modify_qp(qp, &attr,
		     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
			     IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
			     IBV_QP_MIN_RNR_TIMER) == 0,
		"RTR");
	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
		.timeout = TIMEOUT,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = RD_ATOMIC};
	must(ibv_modify_qp(qp, &attr,
		     IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			     IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC) == 0,
		"RTS");
}

static void
qp_connect_ud(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY};

	must(ibv_modify_qp(qp, &attr,
		     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY) == 0,
		"INIT");
	attr.qp_state = IBV_QPS_RTR;
	must(ibv_modify_qp(qp, &attr, IBV_QP_STATE) == 0, "RTR");
	attr.qp_state = IBV_QPS_RTS;
	must(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN) == 0, "RTS");
}

static void
receives_post(struct end *end)
{
	struct ibv_recv_wr *bad;

	for (unsigned i = 0; i < ENDS_RECEIVES; i++) {
		end->recv_sge[i] = (struct ibv_sge){
			.addr = (uintptr_t)(end->mem + (size_t)ENDS_SLOT * (2 + i)),
			.length = ENDS_SLOT,
			.lkey = end->mr->lkey};
		end->recv_wr[i] = (struct ibv_recv_wr){
			.wr_id = i, .sg_list = &end->recv_sge[i], .num_sge = !end->mbufs};
		must(ibv_post_srq_recv(end->srq, &end->recv_wr[i], &bad) == 0,
			"ibv_post_srq_recv");
	}
}

void
ends_open(struct ends *ends, unsigned qps, enum ibv_qp_type type)
{
	struct rocade_port_conf conf[2] = {
		{.size = sizeof(conf[0]),
			.addresses = "192.0.2.1/24",
			.qpn_base = QPN_BASE},
		{.size = sizeof(conf[0]),
			.addresses = "192.0.2.2/24",
			.qpn_base = QPN_BASE},
	};

	ends->qps = qps;
	ends_ports_open(conf, ends->port);
	end_open(&ends->client, ends->port[0], qps, type);
	end_open(&ends->server, ends->port[1], qps, type);
	for (unsigned i = 0; i < qps; i++) {
		if (type == IBV_QPT_UD) {
			qp_connect_ud(ends->client.qp[i]);
			qp_connect_ud(ends->server.qp[i]);
			continue;
		}
		qp_connect_rc(ends->client.qp[i], "192.0.2.2");
		qp_connect_rc(ends->server.qp[i], "192.0.2.1");
	}
	receives_post(&ends->client);
	receives_post(&ends->server);
}

static void
end_close(struct end *end, unsigned qps)
{
	for (unsigned i = 0; i < qps; i++)
		must(ibv_destroy_qp(end->qp[i]) == 0, "ibv_destroy_qp");
	must(ibv_destroy_srq(end->srq) == 0, "ibv_destroy_srq");
	must(ibv_destroy_cq(end->send_cq) == 0, "ibv_destroy_cq");
	must(ibv_destroy_cq(end->recv_cq) == 0, "ibv_destroy_cq");
	must(ibv_dereg_mr(end->mr) == 0, "ibv_dereg_mr");
	must(ibv_dealloc_pd(end->pd) == 0, "ibv_dealloc_pd");
	must(ibv_close_device(end->context) == 0, "ibv_close_device");
	ends_port_close(end->port);
	free(end->mem);
}

void
ends_close(struct ends *ends)
{
	end_close(&ends->client, ends->qps);
	end_close(&ends->server, ends->qps);
}
