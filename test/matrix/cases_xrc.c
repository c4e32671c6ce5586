/* SPDX-License-Identifier: BSD-3-Clause */
/* XRC: an initiator at one end, a target at the other, and the SRQ that the request
 * names. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "matrix.h"

struct xrc {
	struct ibv_xrcd *xrcd;
	struct ibv_srq *srq;
	struct ibv_qp *target;
	struct ibv_qp *initiator;
};

struct job {
	enum ibv_wr_opcode op;
	uint32_t len; /* from 0xFFFF0000 on: path MTU plus the low bits */
};

static const char *
need_xrc(struct matrix *t, const void *arg)
{
	(void)arg;
	return (t->device.orig_attr.device_cap_flags & IBV_DEVICE_XRC) != 0
		       ? NULL
		       : "the device has no XRC";
}

static const char *
objects_create(struct matrix *t, struct xrc *x)
{
	struct ibv_xrcd_init_attr domain = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1,
		.oflags = O_CREAT,
	};
	struct ibv_srq_init_attr_ex srq = {
		.attr = {.max_wr = MATRIX_WRS, .max_sge = 1},
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
		.srq_type = IBV_SRQT_XRC,
		.pd = t->pd,
		.cq = t->recv_cq,
	};
	struct ibv_qp_init_attr_ex target = {
		.qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_XRCD};
	struct ibv_qp_init_attr_ex initiator = {
		.qp_type = IBV_QPT_XRC_SEND,
		.send_cq = t->send_cq,
		.cap = {.max_send_wr = MATRIX_WRS, .max_send_sge = 1},
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = t->pd,
	};

	x->xrcd = ibv_open_xrcd(t->context, &domain);
	NEED(t, x->xrcd != NULL);
	srq.xrcd = target.xrcd = x->xrcd;
	x->srq = ibv_create_srq_ex(t->context, &srq);
	NEED(t, x->srq != NULL);
	x->target = ibv_create_qp_ex(t->context, &target);
	NEED(t, x->target != NULL);
	x->initiator = ibv_create_qp_ex(t->context, &initiator);
	NEED(t, x->initiator != NULL);
	return NULL;
}

static const char *
objects_destroy(struct matrix *t, struct xrc *x)
{
	int left = 0;

	if (x->initiator != NULL)
		left += ibv_destroy_qp(x->initiator) != 0;
	if (x->target != NULL)
		left += ibv_destroy_qp(x->target) != 0;
	if (x->srq != NULL)
		left += ibv_destroy_srq(x->srq) != 0;
	if (x->xrcd != NULL)
		left += ibv_close_xrcd(x->xrcd) != 0;
	t->qp = NULL;
	t->srq = NULL;
	return left == 0 ? NULL : case_fail(t, "%d objects could not be destroyed", left);
}

/* Connects each initiator with the target of the other end. */
static const char *
targets_connect(struct matrix *t, struct xrc *x)
{
	struct matrix_end to_target, to_initiator;

	link_describe_own(t);
	t->own.qpn = x->initiator->qp_num;
	t->own.extra[0] = x->target->qp_num;
	NEED(t, ibv_get_srq_num(x->srq, &t->own.srqn) == 0);
	TRY(oob_swap(t, &t->own, &t->peer, sizeof(t->own)));
	to_initiator = to_target = t->peer;
	to_target.qpn = t->peer.extra[0];
	NEED(t, link_to_init(t, x->initiator) == 0 && link_to_init(t, x->target) == 0);
	NEED(t, link_to_rtr(t, x->initiator, &to_target) == 0);
	NEED(t, link_to_rtr(t, x->target, &to_initiator) == 0);
	NEED(t, link_to_rts(t, x->initiator) == 0);
	return oob_sync(t);
}

static const char *
xrc_active(struct matrix *t, struct xrc *x, const struct job *j, uint32_t len)
{
	uint8_t *at = j->op == IBV_WR_RDMA_READ ? link_target(t, 0) : link_source(t, 0);
	struct ibv_sge sge = {(uintptr_t)at, len, t->mr->lkey};
	struct ibv_send_wr wr = {.wr_id = 1,
		.sg_list = &sge,
		.num_sge = len != 0,
		.opcode = j->op,
		.send_flags = IBV_SEND_SIGNALED,
		.imm_data = htonl(t->seed)};
	struct ibv_wc wc;

	data_clear(at, len);
	if (j->op != IBV_WR_RDMA_READ)
		data_fill(t, at, len, 0);
	wr.wr.rdma.remote_addr = link_remote(t, 0);
	wr.wr.rdma.rkey = t->peer.rkey;
	wr.qp_type.xrc.remote_srqn = t->peer.srqn;
	t->qp = x->initiator;
	TRY(link_send(t, &wr));
	TRY(link_done(t, t->send_cq, 1, &wc));
	return j->op == IBV_WR_RDMA_READ ? data_check(t, at, len, 0) : NULL;
}

static const char *
xrc_passive(struct matrix *t, struct xrc *x, const struct job *j, uint32_t len)
{
	bool word = j->op != IBV_WR_RDMA_READ && j->op != IBV_WR_RDMA_WRITE;
	struct ibv_wc wc;

	if (word) {
		TRY(link_done(t, t->recv_cq, 5, &wc));
		NEED(t, wc.byte_len == len);
		NEED(t, wc.qp_num == x->target->qp_num);
		NEED(t, j->op == IBV_WR_SEND || ntohl(wc.imm_data) == t->seed);
	}
	return j->op == IBV_WR_RDMA_READ ? NULL
					 : data_check(t, link_target(t, 0), len, 0);
}

static const char *
job_run(struct matrix *t, struct xrc *x, const struct job *j)
{
	uint32_t len = j->len < 0xFFFF0000 ? j->len : 3 * t->mtu + (j->len & 0xFFFF);

	TRY(objects_create(t, x));
	TRY(targets_connect(t, x));
	if (!t->active) {
		t->srq = x->srq;
		data_clear(link_target(t, 0), len);
		if (j->op == IBV_WR_RDMA_READ)
			data_fill(t, link_target(t, 0), len, 0);
		TRY(link_recv(t, 5, link_target(t, 0), len != 0 ? len : 1));
	}
	TRY(oob_sync(t));
	if (t->active)
		TRY(xrc_active(t, x, j, len));
	TRY(oob_sync(t));
	return t->active ? NULL : xrc_passive(t, x, j, len);
}

/* Atomics */

#define OLD UINT64_C(0x1122334455667788)
#define NEW UINT64_C(0x99AABBCCDDEEFF00)

static const char *
atomic_active(struct matrix *t, struct xrc *x, enum ibv_wr_opcode op)
{
	struct ibv_sge sge = {(uintptr_t)link_target(t, 1), 8, t->mr->lkey};
	struct ibv_send_wr wr = {.wr_id = 1,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = op,
		.send_flags = IBV_SEND_SIGNALED};
	struct ibv_wc wc;
	uint64_t got;

	wr.wr.atomic.remote_addr = link_remote(t, 0);
	wr.wr.atomic.rkey = t->peer.rkey;
	wr.wr.atomic.compare_add = op == IBV_WR_ATOMIC_FETCH_AND_ADD ? NEW - OLD : OLD;
	wr.wr.atomic.swap = NEW;
	wr.qp_type.xrc.remote_srqn = t->peer.srqn;
	t->qp = x->initiator;
	TRY(link_send(t, &wr));
	TRY(link_done(t, t->send_cq, 1, &wc));
	memcpy(&got, link_target(t, 1), sizeof(got));
	NEED(t, got == OLD);
	return NULL;
}

static const char *
atomic_job_run(struct matrix *t, struct xrc *x, const struct job *j)
{
	uint64_t word = OLD;

	TRY(objects_create(t, x));
	TRY(targets_connect(t, x));
	memcpy(link_target(t, 0), &word, sizeof(word));
	TRY(oob_sync(t));
	if (t->active)
		TRY(atomic_active(t, x, j->op));
	TRY(oob_sync(t));
	memcpy(&word, link_target(t, 0), sizeof(word));
	NEED(t, word == (t->active ? OLD : NEW));
	return NULL;
}

static bool
is_atomic(const struct job *j)
{
	return j->op == IBV_WR_ATOMIC_CMP_AND_SWP || j->op == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

static const char *
xrc_case(struct matrix *t, const void *arg)
{
	struct xrc x = {0};
	const char *why = (is_atomic(arg) ? atomic_job_run : job_run)(t, &x, arg);
	char keep[sizeof(t->why)];
	const char *after;

	memcpy(keep, t->why, sizeof(keep));
	after = objects_destroy(t, &x);
	if (why == NULL)
		return after;
	return memcpy(t->why, keep, sizeof(keep));
}

void
cases_xrc(struct matrix *t)
{
	static const struct {
		enum ibv_wr_opcode op;
		const char *name;
	} ops[] = {
		{IBV_WR_SEND, "SEND"},
		{IBV_WR_SEND_WITH_IMM, "SEND_WITH_IMM"},
		{IBV_WR_RDMA_WRITE, "WRITE"},
		{IBV_WR_RDMA_WRITE_WITH_IMM, "WRITE_WITH_IMM"},
		{IBV_WR_RDMA_READ, "READ"},
	};
	static const uint32_t lens[] = {0, 1, 0xFFFF0001, 1 << 20};

	for (unsigned o = 0; o < sizeof(ops) / sizeof(ops[0]); o++) {
		for (unsigned i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
			struct job j = {ops[o].op, lens[i]};
			char name[64];

			snprintf(name, sizeof(name), "XRC %s %s", ops[o].name,
				(const char *[]){"0", "1", "several MTU", "1 MiB"}[i]);
			matrix_case(t, name, need_xrc, xrc_case, &j);
		}
	}
	for (unsigned i = 0; i < 2; i++) {
		struct job j = {
			i == 0 ? IBV_WR_ATOMIC_CMP_AND_SWP : IBV_WR_ATOMIC_FETCH_AND_ADD,
			8};

		matrix_case(t, i == 0 ? "XRC CMP_AND_SWP" : "XRC FETCH_AND_ADD", need_xrc,
			xrc_case, &j);
	}
}
