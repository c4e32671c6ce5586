/* SPDX-License-Identifier: BSD-3-Clause */
/* RC requests that must fail, with the status that each end must see. Receives posted
 * late. */
#include <time.h>

#include "matrix.h"

#define LEN 1000
#define WRONG 0x5A /* XOR mask that invalidates a key */

struct fault {
	const char *name;
	enum ibv_wr_opcode op;
	bool limited; /* the passive end's region has fewer access rights: `access` */
	int access;
	uint64_t offset; /* of the address, from target slot 0 */
	bool wrong_rkey, wrong_lkey, wrong_recv_lkey;
	int denied_access; /* access rights that the passive end's QP lacks */
	int rd_atomic;     /* see struct link_conf */
	bool short_timeout;
	uint32_t room; /* size of the receive for a SEND */
	/* passive: of its receive, which is flushed at least; success: the receive is not
	 * used */
	enum ibv_wc_status active, passive;
};

static const char *
expect_completion(struct matrix *t, struct ibv_cq *cq, enum ibv_wc_status want)
{
	struct ibv_wc wc;

	TRY(link_poll(t, cq, &wc));
	if (!link_refused(t, wc.status, want))
		return case_fail(t, "\"%s\" instead of \"%s\"",
			ibv_wc_status_str(wc.status), ibv_wc_status_str(want));
	NEED(t, wc.wr_id == 1);
	return NULL;
}

static bool
is_send(enum ibv_wr_opcode op)
{
	return op == IBV_WR_SEND || op == IBV_WR_SEND_WITH_INV;
}

static bool
is_atomic(enum ibv_wr_opcode op)
{
	return op == IBV_WR_ATOMIC_CMP_AND_SWP || op == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

/* ---- Requests ---- */

/* The request fails, and the next one is flushed: the QP is in ERR. */
static const char *
fault_request(struct matrix *t, const struct fault *f, uint32_t rkey)
{
	struct ibv_sge sge = {(uintptr_t)link_source(t, 0), is_atomic(f->op) ? 8 : LEN,
		t->mr->lkey ^ (f->wrong_lkey ? WRONG : 0)};
	struct ibv_send_wr wr = {.wr_id = 1,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = f->op,
		.send_flags = IBV_SEND_SIGNALED};

	if (f->wrong_rkey)
		rkey ^= WRONG;
	if (is_atomic(f->op)) {
		wr.wr.atomic.remote_addr = link_remote(t, 0) + f->offset;
		wr.wr.atomic.rkey = rkey;
	} else if (f->op == IBV_WR_SEND_WITH_INV) {
		wr.invalidate_rkey = rkey;
	} else if (f->op != IBV_WR_SEND) {
		wr.wr.rdma.remote_addr = link_remote(t, 0) + f->offset;
		wr.wr.rdma.rkey = rkey;
	}
	TRY(link_send(t, &wr));
	TRY(expect_completion(t, t->send_cq, f->active));
	TRY(link_send(t, &wr));
	return expect_completion(t, t->send_cq, IBV_WC_WR_FLUSH_ERR);
}

static const char *
fault_receive(struct matrix *t, const struct fault *f)
{
	struct ibv_sge sge = {(uintptr_t)link_target(t, 0),
		is_send(f->op) ? f->room : LEN,
		t->mr->lkey ^ (f->wrong_recv_lkey ? WRONG : 0)};
	struct ibv_recv_wr wr = {.wr_id = 1, .sg_list = &sge, .num_sge = 1}, *bad;

	NEED(t, ibv_post_recv(t->qp, &wr, &bad) == 0);
	return NULL;
}

/* Runs both ends with the key of the passive end's region. Nothing may be written. */
static const char *
fault_attempt(struct matrix *t, const struct fault *f, uint32_t mine)
{
	uint32_t rkey;

	TRY(oob_swap(t, &mine, &rkey, sizeof(mine)));
	if (t->active)
		TRY(fault_request(t, f, rkey));
	TRY(oob_sync(t));
	if (t->active)
		return NULL;
	if (f->passive != IBV_WC_SUCCESS)
		TRY(expect_completion(t, t->recv_cq, f->passive));
	for (unsigned i = 0; i < LEN && !is_send(f->op); i++)
		NEED(t, link_target(t, 0)[i] == link_target(t, 0)[LEN]);
	return NULL;
}

static const char *
fault_case(struct matrix *t, const void *arg)
{
	const struct fault *f = arg;
	const struct link_conf conf = {.type = IBV_QPT_RC,
		.finite_retries = true,
		.denied_access = f->denied_access,
		.rd_atomic = f->rd_atomic};
	struct ibv_mr *mr = NULL;
	const char *why;

	TRY(link_open(t, &conf));
	data_clear(link_target(t, 0), LEN);
	data_fill(t, link_source(t, 0), LEN, 0);
	if (!t->active)
		TRY(fault_receive(t, f));
	if (!t->active && f->limited) {
		mr = link_mr(t, f->access);
		NEED(t, mr != NULL);
	}
	why = fault_attempt(t, f, mr != NULL ? mr->rkey : t->mr->rkey);
	link_close(t);
	if (mr != NULL && ibv_dereg_mr(mr) != 0 && why == NULL)
		why = case_fail(t, "ibv_dereg_mr()");
	return why;
}

/* Message size and depth */

/* The receiver's path MTU is half of the sender's: the first packet is too long. */
static const char *
need_half_mtu(struct matrix *t, const void *arg)
{
	(void)arg;
	return t->mtu > 256 ? NULL : "no path MTU below 256";
}

static const char *
half_mtu_case(struct matrix *t, const void *arg)
{
	static const struct link_conf half = {
		.type = IBV_QPT_RC, .finite_retries = true, .half_mtu = true};
	struct ibv_sge sge = {(uintptr_t)link_source(t, 0), 2 * t->mtu, t->mr->lkey};
	struct ibv_send_wr wr = {.wr_id = 1,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED};

	(void)arg;
	TRY(link_open(t, &half));
	if (!t->active)
		TRY(link_recv(t, 1, link_target(t, 0), 2 * t->mtu));
	TRY(oob_sync(t));
	if (t->active) {
		TRY(link_send(t, &wr));
		TRY(expect_completion(t, t->send_cq, IBV_WC_REM_INV_REQ_ERR));
	}
	TRY(oob_sync(t));
	return t->active ? NULL : expect_completion(t, t->recv_cq, IBV_WC_WR_FLUSH_ERR);
}

/* Four READs at a time, where the responder takes one. */
static const char *
depth_case(struct matrix *t, const void *arg)
{
	static const struct link_conf one = {
		.type = IBV_QPT_RC, .finite_retries = true, .rd_atomic = 1};
	struct ibv_wc wc = {0};

	(void)arg;
	TRY(link_open(t, &one));
	for (unsigned i = 0; i < 4 && t->active; i++) {
		struct ibv_sge sge = {(uintptr_t)link_target(t, i), 1 << 20, t->mr->lkey};
		struct ibv_send_wr wr = {.wr_id = i,
			.sg_list = &sge,
			.num_sge = 1,
			.opcode = IBV_WR_RDMA_READ,
			.send_flags = IBV_SEND_SIGNALED};

		wr.wr.rdma.remote_addr = link_remote(t, i);
		wr.wr.rdma.rkey = t->peer.rkey;
		TRY(link_send(t, &wr));
	}
	for (unsigned i = 0; i < 4 && t->active && wc.status == IBV_WC_SUCCESS; i++)
		TRY(link_poll(t, t->send_cq, &wc));
	if (t->active && !link_refused(t, wc.status, IBV_WC_REM_INV_REQ_ERR))
		return case_fail(t, "\"%s\"", ibv_wc_status_str(wc.status));
	return oob_sync(t);
}

/* Receives */

/* The SEND arrives before the receive is posted: RNR NAK, then a retry. */
static const char *
late_receive_case(struct matrix *t, const void *arg)
{
	const uint32_t len = 3 * t->mtu;
	struct ibv_sge sge = {(uintptr_t)link_source(t, 0), len, t->mr->lkey};
	struct ibv_send_wr wr = {.wr_id = 1,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED};
	struct ibv_wc wc;

	TRY(link_open(t, arg));
	data_fill(t, link_source(t, 0), len, 0);
	data_clear(link_target(t, 0), len);
	if (t->active) {
		TRY(link_send(t, &wr));
		TRY(oob_sync(t));
		TRY(link_done(t, t->send_cq, 1, &wc));
		return oob_sync(t);
	}
	TRY(oob_sync(t));
	TRY(link_idle(t, t->recv_cq)); /* most often it has arrived meanwhile */
	TRY(link_recv(t, 1, link_target(t, 0), len));
	TRY(link_done(t, t->recv_cq, 1, &wc));
	TRY(oob_sync(t));
	return data_check(t, link_target(t, 0), len, 0);
}

/* Retries */

/* A SEND without a receive, or a WRITE to a QP that does not answer. */
static const char *
retries_spent_case(struct matrix *t, const void *arg)
{
	const struct fault *f = arg;
	const struct link_conf soon = {.type = IBV_QPT_RC,
		.few_retries = !f->short_timeout,
		.short_timeout = f->short_timeout};

	TRY(link_open(t, &soon));
	if (!t->active && f->op == IBV_WR_RDMA_WRITE) {
		NEED(t, ibv_destroy_qp(t->qp) == 0);
		t->qp = NULL;
	}
	TRY(oob_sync(t));
	if (t->active)
		TRY(fault_request(t, f, t->peer.rkey));
	return oob_sync(t);
}

void
cases_errors(struct matrix *t)
{
	static const struct link_conf own = {.type = IBV_QPT_RC},
				      shared = {.type = IBV_QPT_RC, .srq = true};
	static const int local = IBV_ACCESS_LOCAL_WRITE;
#define REFUSED .active = IBV_WC_REM_ACCESS_ERR, .passive = IBV_WC_WR_FLUSH_ERR
#define INVALID .active = IBV_WC_REM_INV_REQ_ERR, .passive = IBV_WC_WR_FLUSH_ERR
	static const struct fault list[] = {
		{"RC WRITE beyond the region's rights", IBV_WR_RDMA_WRITE,
			.limited = true, .access = local | IBV_ACCESS_REMOTE_READ,
			REFUSED},
		{"RC READ beyond the region's rights", IBV_WR_RDMA_READ, .limited = true,
			.access = local | IBV_ACCESS_REMOTE_WRITE, REFUSED},
		{"RC CMP_AND_SWP beyond the region's rights", IBV_WR_ATOMIC_CMP_AND_SWP,
			.limited = true,
			.access =
				local | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
			REFUSED},
		{"RC WRITE beyond the region", IBV_WR_RDMA_WRITE,
			.offset = MATRIX_HALF - LEN + 1, REFUSED},
		{"RC READ beyond the region", IBV_WR_RDMA_READ,
			.offset = MATRIX_HALF - LEN + 1, REFUSED},
		{"RC WRITE with a wrong key", IBV_WR_RDMA_WRITE, .wrong_rkey = true,
			REFUSED},
		{"RC READ with a wrong key", IBV_WR_RDMA_READ, .wrong_rkey = true,
			REFUSED},
		{"RC FETCH_AND_ADD with a wrong key", IBV_WR_ATOMIC_FETCH_AND_ADD,
			.wrong_rkey = true, REFUSED},
		{"RC WRITE beyond the QP's rights", IBV_WR_RDMA_WRITE,
			.denied_access = IBV_ACCESS_REMOTE_WRITE, INVALID},
		{"RC READ beyond the QP's rights", IBV_WR_RDMA_READ,
			.denied_access = IBV_ACCESS_REMOTE_READ, INVALID},
		{"RC FETCH_AND_ADD beyond the QP's rights", IBV_WR_ATOMIC_FETCH_AND_ADD,
			.denied_access = IBV_ACCESS_REMOTE_ATOMIC, INVALID},
		{"RC READ beyond a depth of 0", IBV_WR_RDMA_READ, .rd_atomic = -1,
			INVALID},
		{"RC SEND longer than its receive", IBV_WR_SEND, .room = LEN - 1,
			.active = IBV_WC_REM_INV_REQ_ERR, .passive = IBV_WC_LOC_LEN_ERR},
		{"RC SEND into a receive with a wrong key", IBV_WR_SEND, .room = LEN,
			.wrong_recv_lkey = true, .active = IBV_WC_REM_OP_ERR,
			.passive = IBV_WC_LOC_PROT_ERR},
		{"RC SEND_WITH_INV of a wrong key", IBV_WR_SEND_WITH_INV, .room = LEN,
			.wrong_rkey = true, .active = IBV_WC_REM_ACCESS_ERR,
			.passive = IBV_WC_REM_INV_REQ_ERR},
		{"RC WRITE with a wrong local key", IBV_WR_RDMA_WRITE, .wrong_lkey = true,
			.active = IBV_WC_LOC_PROT_ERR},
	};
	static const struct fault no_receive = {
		.op = IBV_WR_SEND, .active = IBV_WC_RNR_RETRY_EXC_ERR};
	static const struct fault destroyed_qp = {
		.op = IBV_WR_RDMA_WRITE, .active = IBV_WC_RETRY_EXC_ERR};
	static const struct fault seven = {.op = IBV_WR_RDMA_WRITE,
		.short_timeout = true,
		.active = IBV_WC_RETRY_EXC_ERR};

	for (unsigned i = 0; i < sizeof(list) / sizeof(list[0]); i++)
		matrix_case(t, list[i].name, need_nothing, fault_case, &list[i]);
	matrix_case(t, "RC with a late receive", need_nothing, late_receive_case, &own);
	matrix_case(t, "RC with SRQ and a late receive", need_nothing, late_receive_case,
		&shared);
	matrix_case(t, "RC SEND without a receive", need_nothing, retries_spent_case,
		&no_receive);
	matrix_case(t, "RC WRITE to a destroyed QP", need_nothing, retries_spent_case,
		&destroyed_qp);
	matrix_case(t, "RC WRITE to a destroyed QP, 7 retries", need_nothing,
		retries_spent_case, &seven);
	matrix_case(t, "RC SEND longer than the path MTU", need_half_mtu, half_mtu_case,
		NULL);
	matrix_case(t, "RC READs beyond the depth", need_nothing, depth_case, NULL);
}
