/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory windows of both types, and invalidation by either end. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tour.h"

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
send_len(const struct tour *t, const struct window *w)
{
	const uint32_t lens[SIZES] = {
		0, 1, t->mtu - 1, t->mtu, t->mtu + 1, 5 * t->mtu + 3, 1 << 20};

	return lens[w->size];
}

/* A SEND of 1 MiB needs infinite retries on a lossy wire: rxe counts the retries of a
 * message, not of a packet. */
static bool
endless(const struct tour *t, const struct window *w)
{
	return t->copies && w->size == SIZES - 1;
}

static const char *
need_type1(struct tour *t, const void *arg)
{
	(void)arg;
	return (t->device.orig_attr.device_cap_flags & IBV_DEVICE_MEM_WINDOW) != 0
		       ? NULL
		       : "the device has no memory windows of type 1";
}

static const char *
need_type2(struct tour *t, const void *arg)
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
bind_now(struct tour *t, struct ibv_mw *mw, struct ibv_mr *mr, uint64_t len,
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
			return tour_fail(t, "ibv_bind_mw(): %s", strerror(err));
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
invalidate(struct tour *t, const struct window *w, struct ibv_mw **mw, struct ibv_mr *mr,
	uint32_t rkey)
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
		return bind_now(t, *mw, mr, 0, &rkey);
	}
}

static const char *
owner(struct tour *t, const struct window *w, struct ibv_mw **mw, struct ibv_mr *mr)
{
	uint32_t rkey = 0, none;

	data_clear(link_target(t, 0), LEN + INSIDE);
	TRY(bind_now(t, *mw, mr, LEN, &rkey));
	data_clear(link_target(t, 3), send_len(t, w));
	TRY(link_recv(t, 8, link_target(t, 3), send_len(t, w) != 0 ? send_len(t, w) : 1));
	TRY(oob_swap(t, &rkey, &none, sizeof(rkey)));
	TRY(tour_sync(t)); /* the peer has written */
	TRY(data_check(t, link_target(t, 0) + INSIDE, LEN, 0));
	if (w->how != BY_SEND_INV)
		TRY(invalidate(t, w, mw, mr, rkey));
	TRY(tour_sync(t)); /* the peer may try again */
	if (w->how == BY_SEND_INV)
		TRY(invalidate(t, w, mw, mr, rkey));
	TRY(tour_sync(t));
	/* Only the first WRITE has arrived. */
	return data_check(t, link_target(t, 0) + INSIDE, LEN, 0);
}

/* The active end: user of the window */

static const char *
use(struct tour *t, enum ibv_wr_opcode op, uint32_t rkey, unsigned slot,
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
		return tour_fail(t, "%s instead of %s", ibv_wc_status_str(wc.status),
			ibv_wc_status_str(want));
	return NULL;
}

static const char *
user(struct tour *t, const struct window *w)
{
	struct ibv_send_wr inv = {.wr_id = 2,
		.opcode = IBV_WR_SEND_WITH_INV,
		.send_flags = IBV_SEND_SIGNALED};
	struct ibv_sge sge = {(uintptr_t)link_source(t, 2), send_len(t, w), t->mr->lkey};
	uint32_t rkey, none = 0;
	struct ibv_wc wc;

	TRY(oob_swap(t, &none, &rkey, sizeof(rkey)));
	TRY(use(t, IBV_WR_RDMA_WRITE, rkey, 0, IBV_WC_SUCCESS));
	TRY(use(t, IBV_WR_RDMA_READ, rkey, 0, IBV_WC_SUCCESS));
	TRY(data_check(t, link_target(t, 0), LEN, 0));
	TRY(tour_sync(t));
	TRY(tour_sync(t));
	if (w->how == BY_SEND_INV) {
		inv.sg_list = &sge;
		inv.num_sge = sge.length != 0;
		data_fill(t, link_source(t, 2), sge.length, 2);
		inv.invalidate_rkey = rkey;
		TRY(link_send(t, &inv));
		TRY(link_done(t, t->send_cq, 2, &wc));
	}
	/* With infinite retries it would wait forever if the NAK is lost. */
	if (!endless(t, w))
		TRY(use(t, IBV_WR_RDMA_WRITE, rkey, 1, IBV_WC_REM_ACCESS_ERR));
	return tour_sync(t);
}

static const char *
window_cell(struct tour *t, const void *arg)
{
	const struct window *w = arg;
	const struct link_conf rc = {.type = IBV_QPT_RC, .finite = !endless(t, w)};
	struct ibv_mr *mr;
	struct ibv_mw *mw;
	const char *why;

	TRY(link_open(t, &rc));
	if (t->active)
		return user(t, w);
	mr = link_mr(t, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	mw = ibv_alloc_mw(t->pd, w->type);
	NEED(t, mr != NULL && mw != NULL);
	why = owner(t, w, &mw, mr);
	if (mw != NULL && ibv_dealloc_mw(mw) != 0 && why == NULL)
		why = tour_fail(t, "ibv_dealloc_mw()");
	link_close(t);
	if (ibv_dereg_mr(mr) != 0 && why == NULL)
		why = tour_fail(t, "ibv_dereg_mr()");
	return why;
}

void
cells_memory(struct tour *t)
{
	static const struct window windows[] = {
		{.type = IBV_MW_TYPE_1, .how = BY_REBIND},
		{.type = IBV_MW_TYPE_1, .how = BY_DEALLOC},
		{.type = IBV_MW_TYPE_2, .how = BY_LOCAL_INV},
		{.type = IBV_MW_TYPE_2, .how = BY_DEALLOC},
		{.type = IBV_MW_TYPE_2, .how = BY_SEND_INV, .says = true},
	};

	tour_cell(
		t, "MW type 1, rebound to nothing", need_type1, window_cell, &windows[0]);
	tour_cell(t, "MW type 1, deallocated", need_type1, window_cell, &windows[1]);
	for (unsigned i = 0; i < SIZES; i++) {
		const struct window w = {
			.type = IBV_MW_TYPE_2, .how = BY_SEND_INV, .size = i};
		char name[64];

		snprintf(name, sizeof(name), "MW type 2, SEND_WITH_INV %u",
			send_len(t, &w));
		tour_cell(t, name, need_type2, window_cell, &w);
	}
	tour_cell(t, "MW type 2, LOCAL_INV", need_type2, window_cell, &windows[2]);
	tour_cell(t, "MW type 2, deallocated", need_type2, window_cell, &windows[3]);
	tour_cell(t, "MW type 2, SEND_WITH_INV with its flag", need_type2, window_cell,
		&windows[4]);
}
