/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "flow_end.h"

/* two seconds: on a busy machine the peer may not run for a while */
#define ACK_TIMEOUT 19

void
die(const char *what)
{
	fprintf(stderr, "flow: %s: %s\n", what, strerror(errno));
	_exit(1);
}

bool
input_ended(int timeout_ms)
{
	struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
	char c;

	return poll(&in, 1, timeout_ms) > 0 && read(STDIN_FILENO, &c, 1) <= 0;
}

uint64_t
now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

struct ibv_qp *
qp_make(const struct end *e, enum ibv_qp_type type, struct ibv_srq *srq)
{
	struct ibv_qp_init_attr init = {.send_cq = e->cq,
		.recv_cq = e->cq,
		.srq = srq,
		.cap = {.max_send_wr = DEPTH,
			.max_recv_wr = srq != NULL ? 0 : 2 * DEPTH,
			.max_send_sge = 1,
			.max_recv_sge = 1},
		.qp_type = type};

	return ibv_create_qp(e->pd, &init);
}

bool
device_open(struct end *e)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	memset(e, 0, sizeof(*e));
	if (list == NULL)
		return false;
	for (unsigned i = 0; list[i] != NULL && e->ctx == NULL; i++) {
		if (strcmp(ibv_get_device_name(list[i]), "rocade0") == 0)
			e->ctx = ibv_open_device(list[i]);
	}
	ibv_free_device_list(list);
	return e->ctx != NULL;
}

void
end_open(struct end *e)
{
	if (!device_open(e))
		die("device rocade0 not found");
	e->buf = calloc(2 * DEPTH, SIZE);
	e->pd = ibv_alloc_pd(e->ctx);
	if (e->buf == NULL || e->pd == NULL)
		die("ibv_alloc_pd or calloc");
	e->channel = ibv_create_comp_channel(e->ctx);
	e->cq = ibv_create_cq(e->ctx, 4 * DEPTH, NULL, e->channel, 0);
	e->mr = ibv_reg_mr(e->pd, e->buf, (size_t)2 * DEPTH * SIZE,
		IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	if (e->channel == NULL || e->cq == NULL || e->mr == NULL)
		die("completion channel, CQ or MR");
	e->qp = qp_make(e, IBV_QPT_RC, NULL);
	if (e->qp == NULL)
		die("QP");
}

int
end_close(struct end *e)
{
	int rc = ibv_destroy_qp(e->qp);

	rc = rc != 0 ? rc : ibv_dereg_mr(e->mr);
	rc = rc != 0 ? rc : ibv_destroy_cq(e->cq);
	rc = rc != 0 ? rc : ibv_destroy_comp_channel(e->channel);
	rc = rc != 0 ? rc : ibv_dealloc_pd(e->pd);
	rc = rc != 0 ? rc : ibv_close_device(e->ctx);
	free(e->buf);
	return rc;
}

int
qp_init(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE};

	return ibv_modify_qp(qp, &attr,
		IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS);
}

struct ibv_qp *
datagram_qp(const struct end *e)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = 1};
	struct ibv_qp *qp = qp_make(e, IBV_QPT_UD, NULL);

	if (qp == NULL)
		die("ibv_create_qp");
	if (ibv_modify_qp(qp, &attr,
		    IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX | IBV_QP_QKEY) != 0)
		die("ibv_modify_qp to INIT");
	attr.qp_state = IBV_QPS_RTR;
	if (ibv_modify_qp(qp, &attr, IBV_QP_STATE) != 0)
		die("ibv_modify_qp to RTR");
	attr.qp_state = IBV_QPS_RTS;
	if (ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN) != 0)
		die("ibv_modify_qp to RTS");
	return qp;
}

int
qp_connect(struct ibv_qp *qp, uint32_t dest)
{
	union ibv_gid own;
	int rc = ibv_query_gid(qp->context, 1, 0, &own);

	return rc != 0 ? rc : qp_connect_to(qp, &own, dest);
}

int
qp_connect_to(struct ibv_qp *qp, const union ibv_gid *gid, uint32_t dest)
{
	return qp_connect_timeout(qp, gid, dest, ACK_TIMEOUT);
}

int
qp_connect_timeout(
	struct ibv_qp *qp, const union ibv_gid *gid, uint32_t dest, uint8_t timeout)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_4096,
		.dest_qp_num = dest,
		.rq_psn = 77,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 1,
		.ah_attr = {.is_global = 1,
			.port_num = 1,
			.grh = {.dgid = *gid, .hop_limit = 1}}};
	int rc = ibv_modify_qp(qp, &attr,
		IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
			IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);

	attr.qp_state = IBV_QPS_RTS;
	attr.timeout = timeout;
	attr.retry_cnt = attr.rnr_retry = 7;
	attr.sq_psn = 77;
	attr.max_rd_atomic = 1;
	if (rc == 0)
		rc = ibv_modify_qp(qp, &attr,
			IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
				IBV_QP_MAX_QP_RD_ATOMIC);
	return rc;
}

void
message_fill(uint8_t *buf, uint64_t n)
{
	for (size_t at = 0; at < SIZE; at += 8) {
		uint64_t word = (n * SIZE + at) * UINT64_C(0x9E3779B97F4A7C15) ^ n;

		memcpy(buf + at, &word, 8);
	}
}

int
recv_post(struct end *e, unsigned slot)
{
	struct ibv_sge sge = {.addr = (uintptr_t)(e->buf + (size_t)slot * SIZE),
		.length = SIZE,
		.lkey = e->mr->lkey};
	struct ibv_recv_wr *bad, wr = {.wr_id = slot, .sg_list = &sge, .num_sge = 1};

	return ibv_post_recv(e->qp, &wr, &bad);
}

int
send_post(struct end *e, unsigned slot)
{
	struct ibv_sge sge = {.addr = (uintptr_t)(e->buf + (size_t)slot * SIZE),
		.length = SIZE,
		.lkey = e->mr->lkey};
	struct ibv_send_wr *bad, wr = {.wr_id = slot,
					 .sg_list = &sge,
					 .num_sge = 1,
					 .opcode = IBV_WR_SEND,
					 .send_flags = IBV_SEND_SIGNALED};

	return ibv_post_send(e->qp, &wr, &bad);
}

void
end_run(struct end *e)
{
	if (qp_init(e->qp) != 0 || qp_connect(e->qp, e->qp->qp_num) != 0)
		die("connecting the QP to itself");
	for (unsigned i = 0; i < DEPTH; i++)
		(void)recv_post(e, i);
	if (ibv_req_notify_cq(e->cq, 0) != 0)
		die("ibv_req_notify_cq");
	printf("running\n");
	fflush(stdout);
}
