/* SPDX-License-Identifier: BSD-3-Clause */
/* SEND, WRITE and READ: RC, UC and UD, with and without an SRQ. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "matrix.h"

struct xfer {
	enum ibv_qp_type type;
	enum ibv_wr_opcode op;
	uint32_t len;
	bool srq;
	bool unsignaled;
	bool inlined;
	bool pieces; /* three SGEs */
};

static bool
is_write(const struct xfer *x)
{
	return x->op == IBV_WR_RDMA_WRITE || x->op == IBV_WR_RDMA_WRITE_WITH_IMM;
}

static bool
has_imm(const struct xfer *x)
{
	return x->op == IBV_WR_SEND_WITH_IMM || x->op == IBV_WR_RDMA_WRITE_WITH_IMM;
}

static bool
is_send(const struct xfer *x)
{
	return x->op == IBV_WR_SEND || x->op == IBV_WR_SEND_WITH_IMM;
}

static bool
lossy(const struct xfer *x)
{
	return x->type != IBV_QPT_RC;
}

/* Number of messages. Where data arrives without a completion at the passive end, an
 * empty SEND follows, which is not counted. */
static unsigned
message_count(const struct xfer *x)
{
	return lossy(x) && !x->unsignaled ? 1 : 3;
}

static unsigned
needs_marker(const struct xfer *x)
{
	return x->op == IBV_WR_RDMA_WRITE && lossy(x);
}

/* The active end */

/* Cuts a message into up to three SGEs of odd lengths. */
static int
sge_split(
	const struct matrix *t, const struct xfer *x, uint8_t *at, struct ibv_sge sge[3])
{
	uint32_t first = x->len / 3, second = x->len / 2;

	if (!x->pieces || x->len < 3) {
		sge[0] = (struct ibv_sge){(uintptr_t)at, x->len, t->mr->lkey};
		return x->len != 0;
	}
	sge[0] = (struct ibv_sge){(uintptr_t)at, first, t->mr->lkey};
	sge[1] = (struct ibv_sge){(uintptr_t)at + first, second - first, t->mr->lkey};
	sge[2] = (struct ibv_sge){(uintptr_t)at + second, x->len - second, t->mr->lkey};
	return 3;
}

static const char *
post_one(struct matrix *t, const struct xfer *x, unsigned i, bool last)
{
	struct ibv_sge sge[3];
	struct ibv_send_wr wr = {.wr_id = i, .sg_list = sge, .opcode = x->op};
	uint8_t *at = x->op == IBV_WR_RDMA_READ ? link_target(t, i) : link_source(t, i);
	const char *why;

	if (x->op == IBV_WR_RDMA_READ)
		data_clear(at, x->len);
	else
		data_fill(t, at, x->len, i);
	wr.num_sge = sge_split(t, x, at, sge);
	if (!x->unsignaled || last)
		wr.send_flags |= IBV_SEND_SIGNALED;
	if (x->inlined)
		wr.send_flags |= IBV_SEND_INLINE;
	if (has_imm(x))
		wr.imm_data = htonl(t->seed * 16 + i);
	if (!is_send(x)) {
		wr.wr.rdma.remote_addr = link_remote(t, i);
		wr.wr.rdma.rkey = t->peer.rkey;
	}
	if (x->type == IBV_QPT_UD) {
		wr.wr.ud.ah = t->ah;
		wr.wr.ud.remote_qpn = t->peer.qpn;
		wr.wr.ud.remote_qkey = MATRIX_QKEY;
	}
	why = link_send(t, &wr);
	if (x->inlined)
		memset(at, 0, x->len); /* inline data has been copied */
	return why;
}

static const char *
post_marker(struct matrix *t)
{
	struct ibv_send_wr wr = {
		.wr_id = 100, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};

	return link_send(t, &wr);
}

static enum ibv_wc_opcode
wc_opcode(const struct xfer *x)
{
	if (x->op == IBV_WR_RDMA_READ)
		return IBV_WC_RDMA_READ;
	return is_write(x) ? IBV_WC_RDMA_WRITE : IBV_WC_SEND;
}

static const char *
transfer_active(struct matrix *t, const struct xfer *x)
{
	unsigned n = message_count(x);
	struct ibv_wc wc;

	for (unsigned i = 0; i < n; i++)
		TRY(post_one(t, x, i, i + 1 == n));
	if (needs_marker(x))
		TRY(post_marker(t));
	for (unsigned i = x->unsignaled ? n - 1 : 0; i < n; i++) {
		TRY(link_done(t, t->send_cq, i, &wc));
		NEED(t, wc.opcode == wc_opcode(x));
		NEED(t, wc.qp_num == t->qp->qp_num);
	}
	if (needs_marker(x))
		TRY(link_done(t, t->send_cq, 100, &wc));
	if (x->op == IBV_WR_RDMA_READ) {
		/* The completion also covers earlier unsignaled READs. */
		for (unsigned i = 0; i < n; i++)
			TRY(data_check(t, link_target(t, i), x->len, i));
	}
	return link_idle(t, t->send_cq);
}

/* The passive end */

static const char *
transfer_prepare(struct matrix *t, const struct xfer *x)
{
	uint32_t head = x->type == IBV_QPT_UD ? MATRIX_GRH : 0;

	for (unsigned i = 0; i < message_count(x) + needs_marker(x); i++) {
		data_clear(link_target(t, i), x->len + head);
		if (x->op == IBV_WR_RDMA_READ)
			data_fill(t, link_target(t, i), x->len, i);
		else if (is_send(x))
			TRY(link_recv(t, i, link_target(t, i),
				x->len + head != 0 ? x->len + head : 1));
		else if (has_imm(x) || needs_marker(x))
			TRY(link_recv(t, i, t->mem, 1));
	}
	return NULL;
}

/* Checks the header before a datagram: from the peer's address to ours. */
static const char *
grh_check(struct matrix *t, const uint8_t *at)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

	if (memcmp(t->peer.gid, mapped, 12) == 0) {
		NEED(t, at[20] == 0x45);
		NEED(t, memcmp(at + 32, t->peer.gid + 12, 4) == 0);
		NEED(t, memcmp(at + 36, t->own.gid + 12, 4) == 0);
		return NULL;
	}
	NEED(t, at[0] >> 4 == 6);
	NEED(t, memcmp(at + 8, t->peer.gid, 16) == 0);
	NEED(t, memcmp(at + 24, t->own.gid, 16) == 0);
	return NULL;
}

static const char *
receive_check(struct matrix *t, const struct xfer *x, unsigned i, const struct ibv_wc *wc)
{
	uint32_t head = x->type == IBV_QPT_UD ? MATRIX_GRH : 0;

	if (wc->status != IBV_WC_SUCCESS)
		return case_fail(t, "receive %u: %s", i, ibv_wc_status_str(wc->status));
	NEED(t, wc->wr_id == i);
	NEED(t, wc->qp_num == t->qp->qp_num);
	NEED(t, wc->opcode == (is_write(x) && has_imm(x) ? IBV_WC_RECV_RDMA_WITH_IMM
							 : IBV_WC_RECV));
	NEED(t, ((wc->wc_flags & IBV_WC_WITH_IMM) != 0) == has_imm(x));
	NEED(t, !has_imm(x) || ntohl(wc->imm_data) == t->seed * 16 + i);
	NEED(t, needs_marker(x) || wc->byte_len == x->len + head);
	if (x->type != IBV_QPT_UD)
		return NULL;
	NEED(t, wc->src_qp == t->peer.qpn);
	NEED(t, (wc->wc_flags & IBV_WC_GRH) != 0);
	return grh_check(t, link_target(t, i));
}

/* *arrived: for messages that may be lost, whether all have arrived. */
static const char *
transfer_passive(struct matrix *t, const struct xfer *x, bool *arrived)
{
	unsigned words = is_send(x) || has_imm(x) ? message_count(x) : needs_marker(x);
	uint32_t head = x->type == IBV_QPT_UD ? MATRIX_GRH : 0;

	for (unsigned i = 0; i < words; i++) {
		struct ibv_wc wc;
		int got = lossy(x) ? link_await_lossy(t, t->recv_cq, &wc)
				   : link_await(t, t->recv_cq, &wc);

		if (got == 0 && lossy(x)) {
			*arrived = false;
			return NULL;
		}
		NEED(t, got == 1);
		/* From an SRQ: the receive of a message that was partly lost. */
		if (lossy(x) && wc.status == IBV_WC_REM_INV_REQ_ERR) {
			*arrived = false;
			return NULL;
		}
		if (lossy(x) && wc.status == IBV_WC_SUCCESS && has_imm(x) &&
			ntohl(wc.imm_data) != t->seed * 16 + i) {
			*arrived = false; /* an earlier message is lost */
			return NULL;
		}
		TRY(receive_check(t, x, i, &wc));
	}
	for (unsigned i = 0; i < message_count(x) && x->op != IBV_WR_RDMA_READ; i++) {
		const char *why = data_check(t, link_target(t, i) + head, x->len, i);

		if (why != NULL && lossy(x)) {
			*arrived = false;
			return NULL;
		}
		TRY(why);
	}
	return link_idle(t, t->recv_cq);
}

static const char *
transfer_once(struct matrix *t, const struct xfer *x, bool *arrived)
{
	struct link_conf conf = {.type = x->type, .srq = x->srq};
	uint8_t mine, theirs;

	TRY(link_open(t, &conf));
	if (!t->active)
		TRY(transfer_prepare(t, x));
	TRY(oob_sync(t));
	if (t->active)
		TRY(transfer_active(t, x));
	TRY(oob_sync(t));
	*arrived = true;
	if (!t->active)
		TRY(transfer_passive(t, x, arrived));
	mine = *arrived;
	TRY(oob_swap(t, &mine, &theirs, 1));
	*arrived = mine && theirs;
	return NULL;
}

static const char *
transfer_case(struct matrix *t, const void *arg)
{
	for (unsigned i = 0; i < link_sends(t); i++) {
		bool arrived;

		TRY(transfer_once(t, arg, &arrived));
		if (arrived)
			return NULL;
		link_close(t);
	}
	return case_fail(t, "lost %u times", link_sends(t));
}

/* The list of cases */

static void
transfer_add(
	struct matrix *t, const char *service, const char *name, const struct xfer *x)
{
	char full[96];

	snprintf(full, sizeof(full), "%s %s %u%s%s%s", service, name, x->len,
		x->inlined ? " inline" : "", x->pieces ? " 3 SGEs" : "",
		x->unsignaled ? " unsignaled" : "");
	matrix_case(t, full, need_nothing, transfer_case, x);
}

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

static void
service_cases(struct matrix *t, const char *name, enum ibv_qp_type type, bool srq,
	unsigned op_count)
{
	/* UC has no window and resends nothing. So three messages have to fit into every
	 * queue of the path. The kernel's shortest one has 1000 packets. */
	uint32_t longest = type == IBV_QPT_UC ? 256 * t->mtu : 1 << 20;
	const uint32_t lens[] = {
		0, 1, t->mtu - 1, t->mtu, t->mtu + 1, 5 * t->mtu + 3, longest};
	const unsigned n = type == IBV_QPT_UD ? 4 : 7;

	for (unsigned o = 0; o < op_count; o++) {
		for (unsigned i = 0; i < 2 * n; i++) {
			struct xfer x = {.type = type,
				.srq = srq,
				.op = ops[o].op,
				.len = lens[i / 2],
				.unsignaled = i % 2 != 0};

			transfer_add(t, name, ops[o].name, &x);
		}
	}
	for (unsigned o = 0; o < op_count; o++) {
		struct xfer x = {
			.type = type, .srq = srq, .op = ops[o].op, .len = t->mtu - 5};

		x.pieces = true;
		transfer_add(t, name, ops[o].name, &x);
		x.pieces = false;
		x.len = 61;
		x.inlined = true;
		if (ops[o].op != IBV_WR_RDMA_READ)
			transfer_add(t, name, ops[o].name, &x);
	}
}

void
cases_transfer(struct matrix *t)
{
	service_cases(t, "RC", IBV_QPT_RC, false, 5);
	service_cases(t, "RC with SRQ", IBV_QPT_RC, true, 2);
	service_cases(t, "UC", IBV_QPT_UC, false, 4);
	service_cases(t, "UC with SRQ", IBV_QPT_UC, true, 2);
	service_cases(t, "UD", IBV_QPT_UD, false, 2);
	service_cases(t, "UD with SRQ", IBV_QPT_UD, true, 2);
}
