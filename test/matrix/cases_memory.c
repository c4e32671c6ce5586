/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory windows of both types, and invalidation by either end. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "matrix.h"

#define LEN 5000
#define INSIDE 128 /* offset of the window in target slot 0 */

enum how { BY_SEND_INV, BY_LOCAL_INV, BY_DEALLOC, BY_REBIND };

struct window {
	enum ibv_mw_type type;
	enum how how;
	unsigned size; /* index of the length of the SEND_WITH_INV */
	bool says;     /* its completion has IBV_WC_WITH_INV */
};

#define SIZES 7

static uint32_t
send_len(const struct matrix *t, const struct window *w)
{
	const uint32_t lens[SIZES] = {
		0, 1, t->mtu - 1, t->mtu, t->mtu + 1, 5 * t->mtu + 3, 1 << 20};

	return lens[w->size];
}

/* A SEND of 1 MiB needs infinite retries on a lossy wire: rxe counts the retries of a
 * message, not of a packet. */
static bool
needs_infinite_retries(const struct matrix *t, const struct window *w)
{
	return t->copies && w->size == SIZES - 1;
}

static const char *
need_type1(struct matrix *t, const void *arg)
{
	(void)arg;
	return (t->device.orig_attr.device_cap_flags & IBV_DEVICE_MEM_WINDOW) != 0
		       ? NULL
		       : "the device has no memory windows of type 1";
}

static const char *
need_type2(struct matrix *t, const void *arg)
{
	(void)arg;
	return (t->device.orig_attr.device_cap_flags &
		       (IBV_DEVICE_MEM_WINDOW_TYPE_2A | IBV_DEVICE_MEM_WINDOW_TYPE_2B)) !=
			       0
		       ? NULL
		       : "the device has no memory windows of type 2";
}

/* The passive end: owner of the window */

static const char *
window_bind(struct matrix *t, struct ibv_mw *mw, struct ibv_mr *mr, uint64_t len,
	uint32_t *rkey)
{
	struct ibv_mw_bind_info info = {
		.mr = mr,
		.addr = (uintptr_t)link_target(t, 0) + INSIDE,
		.length = len,
		.mw_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
	};
	struct ibv_wc wc;
	int err;

	if (len == 0)
		info.mw_access_flags = 0;
	if (mw->type == IBV_MW_TYPE_1) {
		struct ibv_mw_bind bind = {
			.wr_id = 9, .send_flags = IBV_SEND_SIGNALED, .bind_info = info};

		err = ibv_bind_mw(t->qp, mw, &bind);
		if (err != 0)
			return case_fail(t, "ibv_bind_mw(): %s", strerror(err));
		*rkey = mw->rkey;
	} else {
		struct ibv_send_wr wr = {.wr_id = 9,
			.opcode = IBV_WR_BIND_MW,
			.send_flags = IBV_SEND_SIGNALED};

		*rkey = ibv_inc_rkey(mw->rkey);
		wr.bind_mw.mw = mw;
		wr.bind_mw.rkey = *rkey;
		wr.bind_mw.bind_info = info;
		TRY(link_send(t, &wr));
	}
	TRY(link_done(t, t->send_cq, 9, &wc));
	NEED(t, wc.opcode == IBV_WC_BIND_MW);
	if (mw->type == IBV_MW_TYPE_2)
		mw->rkey = *rkey;
	return NULL;
}

static const char *
window_invalidate(struct matrix *t, const struct window *w, struct ibv_mw **mw,
	struct ibv_mr *mr, uint32_t rkey)
{
	struct ibv_send_wr wr = {.wr_id = 10,
		.opcode = IBV_WR_LOCAL_INV,
		.send_flags = IBV_SEND_SIGNALED,
		.invalidate_rkey = rkey};
	struct ibv_wc wc;

	switch (w->how) {
	case BY_SEND_INV:
		TRY(link_done(t, t->recv_cq, 8, &wc));
		NEED(t, !w->says || (wc.wc_flags & IBV_WC_WITH_INV) != 0);
		NEED(t, wc.invalidated_rkey == rkey);
		NEED(t, wc.byte_len == send_len(t, w));
		return data_check(t, link_target(t, 3), send_len(t, w), 2);
	case BY_LOCAL_INV:
		TRY(link_send(t, &wr));
		TRY(link_done(t, t->send_cq, 10, &wc));
		NEED(t, wc.opcode == IBV_WC_LOCAL_INV);
		return NULL;
	case BY_DEALLOC:
		NEED(t, ibv_dealloc_mw(*mw) == 0);
		*mw = NULL;
		return NULL;
	default:
		return window_bind(t, *mw, mr, 0, &rkey);
	}
}

static const char *
window_owner_run(
	struct matrix *t, const struct window *w, struct ibv_mw **mw, struct ibv_mr *mr)
{
	uint32_t rkey = 0, none;

	data_clear(link_target(t, 0), LEN + INSIDE);
	TRY(window_bind(t, *mw, mr, LEN, &rkey));
	data_clear(link_target(t, 3), send_len(t, w));
	TRY(link_recv(t, 8, link_target(t, 3), send_len(t, w) != 0 ? send_len(t, w) : 1));
	TRY(oob_swap(t, &rkey, &none, sizeof(rkey)));
	TRY(oob_sync(t)); /* the peer has written */
	TRY(data_check(t, link_target(t, 0) + INSIDE, LEN, 0));
	if (w->how != BY_SEND_INV)
		TRY(window_invalidate(t, w, mw, mr, rkey));
	TRY(oob_sync(t)); /* the peer may try again */
	if (w->how == BY_SEND_INV)
		TRY(window_invalidate(t, w, mw, mr, rkey));
	TRY(oob_sync(t));
	/* Only the first WRITE has arrived. */
	return data_check(t, link_target(t, 0) + INSIDE, LEN, 0);
}

/* The active end: user of the window */

static const char *
window_use(struct matrix *t, enum ibv_wr_opcode op, uint32_t rkey, unsigned slot,
	enum ibv_wc_status want)
{
	uint8_t *at =
		op == IBV_WR_RDMA_READ ? link_target(t, slot) : link_source(t, slot);
	struct ibv_sge sge = {(uintptr_t)at, LEN, t->mr->lkey};
	struct ibv_send_wr wr = {.wr_id = 1,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = op,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = {.remote_addr = link_remote(t, 0) + INSIDE, .rkey = rkey}};
	struct ibv_wc wc;

	if (op == IBV_WR_RDMA_READ)
		data_clear(at, LEN);
	else
		data_fill(t, at, LEN, slot);
	TRY(link_send(t, &wr));
	TRY(link_poll(t, t->send_cq, &wc));
	if (!link_refused(t, wc.status, want))
		return case_fail(t, "%s instead of %s", ibv_wc_status_str(wc.status),
			ibv_wc_status_str(want));
	return NULL;
}

static const char *
window_user_run(struct matrix *t, const struct window *w)
{
	struct ibv_send_wr inv = {.wr_id = 2,
		.opcode = IBV_WR_SEND_WITH_INV,
		.send_flags = IBV_SEND_SIGNALED};
	struct ibv_sge sge = {(uintptr_t)link_source(t, 2), send_len(t, w), t->mr->lkey};
	uint32_t rkey, none = 0;
	struct ibv_wc wc;

	TRY(oob_swap(t, &none, &rkey, sizeof(rkey)));
	TRY(window_use(t, IBV_WR_RDMA_WRITE, rkey, 0, IBV_WC_SUCCESS));
	TRY(window_use(t, IBV_WR_RDMA_READ, rkey, 0, IBV_WC_SUCCESS));
	TRY(data_check(t, link_target(t, 0), LEN, 0));
	TRY(oob_sync(t));
	TRY(oob_sync(t));
	if (w->how == BY_SEND_INV) {
		inv.sg_list = &sge;
		inv.num_sge = sge.length != 0;
		data_fill(t, link_source(t, 2), sge.length, 2);
		inv.invalidate_rkey = rkey;
		TRY(link_send(t, &inv));
		TRY(link_done(t, t->send_cq, 2, &wc));
	}
	/* With infinite retries it would wait forever if the NAK is lost. */
	if (!needs_infinite_retries(t, w))
		TRY(window_use(t, IBV_WR_RDMA_WRITE, rkey, 1, IBV_WC_REM_ACCESS_ERR));
	return oob_sync(t);
}

static const char *
window_case(struct matrix *t, const void *arg)
{
	const struct window *w = arg;
	const struct link_conf rc = {
		.type = IBV_QPT_RC, .finite_retries = !needs_infinite_retries(t, w)};
	struct ibv_mr *mr;
	struct ibv_mw *mw;
	const char *why;

	TRY(link_open(t, &rc));
	if (t->active)
		return window_user_run(t, w);
	mr = link_mr(t, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	mw = ibv_alloc_mw(t->pd, w->type);
	NEED(t, mr != NULL && mw != NULL);
	why = window_owner_run(t, w, &mw, mr);
	if (mw != NULL && ibv_dealloc_mw(mw) != 0 && why == NULL)
		why = case_fail(t, "ibv_dealloc_mw()");
	link_close(t);
	if (ibv_dereg_mr(mr) != 0 && why == NULL)
		why = case_fail(t, "ibv_dereg_mr()");
	return why;
}

void
cases_memory(struct matrix *t)
{
	static const struct window windows[] = {
		{.type = IBV_MW_TYPE_1, .how = BY_REBIND},
		{.type = IBV_MW_TYPE_1, .how = BY_DEALLOC},
		{.type = IBV_MW_TYPE_2, .how = BY_LOCAL_INV},
		{.type = IBV_MW_TYPE_2, .how = BY_DEALLOC},
		{.type = IBV_MW_TYPE_2, .how = BY_SEND_INV, .says = true},
	};

	matrix_case(t, "MW type 1, bound with length 0", need_type1, window_case,
		&windows[0]);
	matrix_case(t, "MW type 1, deallocated", need_type1, window_case, &windows[1]);
	for (unsigned i = 0; i < SIZES; i++) {
		const struct window w = {
			.type = IBV_MW_TYPE_2, .how = BY_SEND_INV, .size = i};
		char name[64];

		snprintf(name, sizeof(name), "MW type 2, SEND_WITH_INV %u",
			send_len(t, &w));
		matrix_case(t, name, need_type2, window_case, &w);
	}
	matrix_case(t, "MW type 2, LOCAL_INV", need_type2, window_case, &windows[2]);
	matrix_case(t, "MW type 2, deallocated", need_type2, window_case, &windows[3]);
	matrix_case(t, "MW type 2, SEND_WITH_INV flag in the completion", need_type2,
		window_case, &windows[4]);
}
