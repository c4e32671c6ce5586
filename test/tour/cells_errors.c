/* SPDX-License-Identifier: BSD-3-Clause */
/* RC requests that must fail, each with its status at both ends; and receives that come
 * late. */
#include <time.h>

#include "tour.h"

#define LEN 1000
#define WRONG 0x5A /* what makes another key of one */

static const struct link_conf rc = {.type = IBV_QPT_RC};

struct fault {
	const char *name;
	enum ibv_wr_opcode op;
	bool limited; /* the passive end's region allows less: this */
	int access;
	uint64_t offset; /* of the address, from target slot 0 */
	bool wrong_lkey, wrong_recv_lkey;
	uint32_t room; /* of the receive; 0: there is none */
	enum ibv_wc_status active, passive;
};

static const char *
need_nothing(struct tour *t, const void *arg)
{
	(void)arg;
	(void)t;
	return NULL;
}

static const char *
expect(struct tour *t, struct ibv_cq *cq, enum ibv_wc_status want)
{
	struct ibv_wc wc;

	TRY(link_poll(t, cq, &wc));
	if (wc.status != want)
		return tour_fail(t, "\"%s\" instead of \"%s\"",
			ibv_wc_status_str(wc.status), ibv_wc_status_str(want));
	NEED(t, wc.wr_id == 1);
	return NULL;
}

static bool
is_atomic(enum ibv_wr_opcode op)
{
	return op == IBV_WR_ATOMIC_CMP_AND_SWP || op == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

/* ---- Requests ---- */

static const char *
request(struct tour *t, const struct fault *f, uint32_t rkey)
{
	struct ibv_sge sge = {(uintptr_t)link_source(t, 0), is_atomic(f->op) ? 8 : LEN,
		t->mr->lkey ^ (f->wrong_lkey ? WRONG : 0)};
	struct ibv_send_wr wr = {.wr_id = 1,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = f->op,
		.send_flags = IBV_SEND_SIGNALED};

	if (is_atomic(f->op)) {
		wr.wr.atomic.remote_addr = link_remote(t, 0) + f->offset;
		wr.wr.atomic.rkey = rkey;
	} else if (f->op != IBV_WR_SEND) {
		wr.wr.rdma.remote_addr = link_remote(t, 0) + f->offset;
		wr.wr.rdma.rkey = rkey;
	}
	TRY(link_send(t, &wr));
	return expect(t, t->send_cq, f->active);
}

static const char *
receive(struct tour *t, const struct fault *f)
{
	struct ibv_sge sge = {(uintptr_t)link_target(t, 0), f->room,
		t->mr->lkey ^ (f->wrong_recv_lkey ? WRONG : 0)};
	struct ibv_recv_wr wr = {.wr_id = 1, .sg_list = &sge, .num_sge = 1}, *bad;

	NEED(t, ibv_post_recv(t->qp, &wr, &bad) == 0);
	return NULL;
}

/* Both ends, with the key of the passive end's region; nothing is written there. */
static const char *
attempt(struct tour *t, const struct fault *f, uint32_t mine)
{
	uint32_t rkey;

	TRY(oob_swap(t, &mine, &rkey, sizeof(mine)));
	if (t->active)
		TRY(request(t, f, rkey));
	TRY(tour_sync(t));
	if (t->active)
		return NULL;
	if (f->room != 0)
		TRY(expect(t, t->recv_cq, f->passive));
	for (unsigned i = 0; i < LEN && f->room == 0; i++)
		NEED(t, link_target(t, 0)[i] == link_target(t, 0)[LEN]);
	return NULL;
}

static const char *
fault_cell(struct tour *t, const void *arg)
{
	const struct fault *f = arg;
	struct ibv_mr *mr = NULL;
	const char *why;

	TRY(link_open(t, &rc));
	data_clear(link_target(t, 0), LEN);
	data_fill(t, link_source(t, 0), LEN, 0);
	if (!t->active && f->room != 0)
		TRY(receive(t, f));
	if (!t->active && f->limited) {
		mr = link_mr(t, f->access);
		NEED(t, mr != NULL);
	}
	why = attempt(t, f, mr != NULL ? mr->rkey : t->mr->rkey);
	link_close(t);
	if (mr != NULL && ibv_dereg_mr(mr) != 0 && why == NULL)
		why = tour_fail(t, "ibv_dereg_mr()");
	return why;
}

/* ---- Receives ---- */

/* The SEND is there before what receives it: it is asked to come again. */
static const char *
late_cell(struct tour *t, const void *arg)
{
	const struct timespec while_ = {.tv_nsec = 30000000};
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
		TRY(tour_sync(t));
		TRY(link_done(t, t->send_cq, 1, &wc));
		return tour_sync(t);
	}
	TRY(tour_sync(t));
	nanosleep(&while_, NULL);
	TRY(link_recv(t, 1, link_target(t, 0), len));
	TRY(link_done(t, t->recv_cq, 1, &wc));
	TRY(tour_sync(t));
	return data_check(t, link_target(t, 0), len, 0);
}

/* ---- Retries ---- */

/* No receive for a SEND, or nobody for a WRITE. */
static const char *
spent_cell(struct tour *t, const void *arg)
{
	static const struct link_conf soon = {.type = IBV_QPT_RC, .impatient = true};
	const struct fault *f = arg;

	TRY(link_open(t, &soon));
	if (!t->active && f->op == IBV_WR_RDMA_WRITE) {
		NEED(t, ibv_destroy_qp(t->qp) == 0);
		t->qp = NULL;
	}
	TRY(tour_sync(t));
	if (t->active)
		TRY(request(t, f, t->peer.rkey));
	return tour_sync(t);
}

void
cells_errors(struct tour *t)
{
	static const struct link_conf own = {.type = IBV_QPT_RC},
				      shared = {.type = IBV_QPT_RC, .srq = true};
	static const int local = IBV_ACCESS_LOCAL_WRITE;
#define REFUSED .active = IBV_WC_REM_ACCESS_ERR
	static const struct fault list[] = {
		{"RC WRITE where it may not", IBV_WR_RDMA_WRITE, .limited = true,
			.access = local | IBV_ACCESS_REMOTE_READ, REFUSED},
		{"RC READ where it may not", IBV_WR_RDMA_READ, .limited = true,
			.access = local | IBV_ACCESS_REMOTE_WRITE, REFUSED},
		{"RC CMP_AND_SWP where it may not", IBV_WR_ATOMIC_CMP_AND_SWP,
			.limited = true,
			.access =
				local | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
			REFUSED},
		{"RC WRITE beyond the region", IBV_WR_RDMA_WRITE,
			.offset = TOUR_HALF - LEN + 1, REFUSED},
		{"RC READ beyond the region", IBV_WR_RDMA_READ,
			.offset = TOUR_HALF - LEN + 1, REFUSED},
		{"RC SEND longer than its receive", IBV_WR_SEND, .room = LEN - 1,
			.active = IBV_WC_REM_INV_REQ_ERR, .passive = IBV_WC_LOC_LEN_ERR},
		{"RC SEND into a receive with a wrong key", IBV_WR_SEND, .room = LEN,
			.wrong_recv_lkey = true, .active = IBV_WC_REM_OP_ERR,
			.passive = IBV_WC_LOC_PROT_ERR},
		{"RC WRITE with a wrong local key", IBV_WR_RDMA_WRITE, .wrong_lkey = true,
			.active = IBV_WC_LOC_PROT_ERR},
	};
	static const struct fault no_receive = {
		.op = IBV_WR_SEND, .active = IBV_WC_RNR_RETRY_EXC_ERR};
	static const struct fault nobody = {
		.op = IBV_WR_RDMA_WRITE, .active = IBV_WC_RETRY_EXC_ERR};

	for (unsigned i = 0; i < sizeof(list) / sizeof(list[0]); i++)
		tour_cell(t, list[i].name, need_nothing, fault_cell, &list[i]);
	tour_cell(t, "RC with a late receive", need_nothing, late_cell, &own);
	tour_cell(t, "RC with SRQ and a late receive", need_nothing, late_cell, &shared);
	tour_cell(t, "RC SEND without a receive", need_nothing, spent_cell, &no_receive);
	tour_cell(t, "RC WRITE to nobody", need_nothing, spent_cell, &nobody);
}
