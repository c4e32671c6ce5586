/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests posted with the ibv_wr_*() calls, see ibv_wr_post(3). */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "matrix.h"

#define LEN 10000
#define OLD UINT64_C(0x1122334455667788)
#define NEW UINT64_C(0x99AABBCCDDEEFF00)

struct op {
	const char *name;
	uint64_t flag;
	bool word;   /* it consumes a receive */
	bool pieces; /* two SGEs */
};

static const struct op list[] = {
	{"SEND", IBV_QP_EX_WITH_SEND, true, false},
	{"SEND_WITH_IMM", IBV_QP_EX_WITH_SEND_WITH_IMM, true, false},
	{"WRITE", IBV_QP_EX_WITH_RDMA_WRITE, false, false},
	{"WRITE of 2 SGEs", IBV_QP_EX_WITH_RDMA_WRITE, false, true},
	{"WRITE_WITH_IMM", IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM, true, false},
	{"READ", IBV_QP_EX_WITH_RDMA_READ, false, false},
	{"CMP_AND_SWP", IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP, false, false},
	{"FETCH_AND_ADD", IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD, false, false},
	{"ATOMIC_WRITE", IBV_QP_EX_WITH_ATOMIC_WRITE, false, false},
};

/* Returns NULL if a QP with the operation can be created. */
static const char *
qp_can_create(struct matrix *t, uint64_t flag)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = t->send_cq,
		.recv_cq = t->recv_cq,
		.cap = {.max_send_wr = 1,
			.max_recv_wr = 1,
			.max_send_sge = 1,
			.max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = t->pd,
		.send_ops_flags = flag,
	};
	struct ibv_qp *qp = ibv_create_qp_ex(t->context, &attr);

	if (qp == NULL)
		return "a QP with this operation cannot be created";
	ibv_destroy_qp(qp);
	return NULL;
}

static const char *
need_op(struct matrix *t, const void *arg)
{
	return qp_can_create(t, ((const struct op *)arg)->flag);
}

static const char *
wr_complete(struct matrix *t, struct ibv_qp_ex *ex)
{
	struct ibv_wc wc;
	int err = ibv_wr_complete(ex);

	if (err != 0)
		return case_fail(t, "ibv_wr_complete(): %s", strerror(err));
	return link_done(t, t->send_cq, 3, &wc);
}

static bool
is_atomic(const struct op *op)
{
	return op->flag == IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP ||
	       op->flag == IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;
}

static void
wr_build(struct matrix *t, struct ibv_qp_ex *ex, const struct op *op)
{
	uint64_t far = link_remote(t, 0);
	uint32_t rkey = t->peer.rkey, imm = htonl(t->seed), value[2];
	uint64_t word = NEW;

	switch (op->flag) {
	case IBV_QP_EX_WITH_SEND:
		ibv_wr_send(ex);
		break;
	case IBV_QP_EX_WITH_SEND_WITH_IMM:
		ibv_wr_send_imm(ex, imm);
		break;
	case IBV_QP_EX_WITH_RDMA_WRITE:
		ibv_wr_rdma_write(ex, rkey, far);
		break;
	case IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM:
		ibv_wr_rdma_write_imm(ex, rkey, far, imm);
		break;
	case IBV_QP_EX_WITH_RDMA_READ:
		ibv_wr_rdma_read(ex, rkey, far);
		break;
	case IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP:
		ibv_wr_atomic_cmp_swp(ex, rkey, far, OLD, NEW);
		break;
	case IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD:
		ibv_wr_atomic_fetch_add(ex, rkey, far, NEW - OLD);
		break;
	default:
		memcpy(value, &word, sizeof(value));
		ibv_wr_atomic_write(ex, rkey, far, value);
	}
}

static const char *
wr_active(struct matrix *t, const struct op *op)
{
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(t->qp);
	bool reads = op->flag == IBV_QP_EX_WITH_RDMA_READ || is_atomic(op);
	uint32_t len = is_atomic(op) ? 8 : LEN;
	uint8_t *at = reads ? link_target(t, 1) : link_source(t, 0);
	struct ibv_sge two[2] = {{(uintptr_t)at, 1000, t->mr->lkey},
		{(uintptr_t)at + 1000, LEN - 1000, t->mr->lkey}};
	uint64_t got;

	NEED(t, ex != NULL);
	if (reads)
		data_clear(at, len);
	else
		data_fill(t, at, len, 0);
	ibv_wr_start(ex);
	ex->wr_id = 3;
	ex->wr_flags = IBV_SEND_SIGNALED;
	wr_build(t, ex, op);
	if (op->pieces)
		ibv_wr_set_sge_list(ex, 2, two);
	else if (op->flag != IBV_QP_EX_WITH_ATOMIC_WRITE)
		ibv_wr_set_sge(ex, t->mr->lkey, (uintptr_t)at, len);
	TRY(wr_complete(t, ex));
	if (op->flag == IBV_QP_EX_WITH_RDMA_READ)
		return data_check(t, at, len, 0);
	memcpy(&got, at, sizeof(got));
	NEED(t, !is_atomic(op) || got == OLD);
	return NULL;
}

static const char *
wr_passive(struct matrix *t, const struct op *op)
{
	uint64_t word;
	struct ibv_wc wc;

	if (op->word) {
		TRY(link_done(t, t->recv_cq, 4, &wc));
		NEED(t, wc.byte_len == LEN);
		NEED(t, (wc.wc_flags & IBV_WC_WITH_IMM) == 0 ||
				ntohl(wc.imm_data) == t->seed);
	}
	if (op->flag == IBV_QP_EX_WITH_RDMA_READ)
		return NULL;
	if (!is_atomic(op) && op->flag != IBV_QP_EX_WITH_ATOMIC_WRITE)
		return data_check(t, link_target(t, 0), LEN, 0);
	memcpy(&word, link_target(t, 0), sizeof(word));
	NEED(t, word == NEW);
	return NULL;
}

static const char *
wr_case(struct matrix *t, const void *arg)
{
	const struct op *op = arg;
	struct link_conf conf = {.type = IBV_QPT_RC, .ops = op->flag};
	uint64_t word = OLD;

	TRY(link_open(t, &conf));
	if (!t->active) {
		data_clear(link_target(t, 0), LEN);
		if (op->flag == IBV_QP_EX_WITH_RDMA_READ)
			data_fill(t, link_target(t, 0), LEN, 0);
		else
			memcpy(link_target(t, 0), &word, sizeof(word));
		TRY(link_recv(t, 4, link_target(t, 0), LEN));
	}
	TRY(oob_sync(t));
	if (t->active)
		TRY(wr_active(t, op));
	TRY(oob_sync(t));
	return t->active ? NULL : wr_passive(t, op);
}

/* FLUSH, with the values of rdma-core 47, which an earlier header lacks. */
#define WITH_FLUSH (1u << 11)
#define ACCESS_FLUSH_GLOBAL (1 << 8)
#define WC_FLUSH 8
#define FLUSH_GLOBAL 1
#define FLUSH_RIGHTS                                                                     \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | ACCESS_FLUSH_GLOBAL)

/* Of a range (level 0), or of the whole region (1). wr_flush is the member behind wr_atomic_write. */
static void
wr_flush(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t far, uint8_t level)
{
	void (*flush)(struct ibv_qp_ex * qp, uint32_t key, uint64_t addr, size_t len,
		uint8_t type, uint8_t of);

	memcpy(&flush, (uint8_t *)&ex->wr_atomic_write + sizeof(flush), sizeof(flush));
	flush(ex, rkey, far, level == 0 ? LEN : 0, FLUSH_GLOBAL, level);
}

static const char *
need_flush(struct matrix *t, const void *arg)
{
	struct ibv_mr *mr;

	(void)arg;
	TRY(qp_can_create(t, IBV_QP_EX_WITH_RDMA_WRITE | WITH_FLUSH));
	mr = link_mr(t, FLUSH_RIGHTS);
	if (mr == NULL)
		return "a region with the right for FLUSH cannot be registered";
	ibv_dereg_mr(mr);
	return NULL;
}

/* The data of the WRITE is there when the FLUSH behind it completes. */
static const char *
flush_active(struct matrix *t, uint32_t rkey, uint8_t level)
{
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(t->qp);
	struct ibv_wc wc;
	int err;

	NEED(t, ex != NULL);
	ibv_wr_start(ex);
	ex->wr_id = 2;
	ex->wr_flags = 0;
	ibv_wr_rdma_write(ex, rkey, link_remote(t, 0));
	ibv_wr_set_sge(ex, t->mr->lkey, (uintptr_t)link_source(t, 0), LEN);
	ex->wr_id = 3;
	ex->wr_flags = IBV_SEND_SIGNALED;
	wr_flush(ex, rkey, link_remote(t, 0), level);
	err = ibv_wr_complete(ex);
	if (err != 0)
		return case_fail(t, "ibv_wr_complete(): %s", strerror(err));
	TRY(link_done(t, t->send_cq, 3, &wc));
	NEED(t, (int)wc.opcode == WC_FLUSH);
	return NULL;
}

static const char *
flush_both(struct matrix *t, uint32_t own_rkey, uint8_t level)
{
	uint32_t rkey;

	data_fill(t, link_source(t, 0), LEN, 0);
	data_clear(link_target(t, 0), LEN);
	TRY(oob_swap(t, &own_rkey, &rkey, sizeof(rkey)));
	if (t->active)
		TRY(flush_active(t, rkey, level));
	TRY(oob_sync(t));
	return t->active ? NULL : data_check(t, link_target(t, 0), LEN, 0);
}

static const char *
flush_case(struct matrix *t, const void *arg)
{
	static const struct link_conf conf = {.type = IBV_QPT_RC,
		.ops = IBV_QP_EX_WITH_RDMA_WRITE | WITH_FLUSH,
		.access = ACCESS_FLUSH_GLOBAL};
	struct ibv_mr *mr;
	const char *why;

	TRY(link_open(t, &conf));
	mr = link_mr(t, FLUSH_RIGHTS);
	NEED(t, mr != NULL);
	why = flush_both(t, mr->rkey, *(const uint8_t *)arg);
	link_close(t);
	if (ibv_dereg_mr(mr) != 0 && why == NULL)
		why = case_fail(t, "ibv_dereg_mr()");
	return why;
}

void
cases_wr(struct matrix *t)
{
	static const uint8_t levels[] = {0, 1};

	for (unsigned i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
		char name[64];

		snprintf(name, sizeof(name), "RC %s by ibv_wr_post", list[i].name);
		matrix_case(t, name, need_op, wr_case, &list[i]);
	}
	matrix_case(t, "RC WRITE and FLUSH of the range by ibv_wr_post", need_flush,
		flush_case, &levels[0]);
	matrix_case(t, "RC WRITE and FLUSH of the region by ibv_wr_post", need_flush,
		flush_case, &levels[1]);
}
