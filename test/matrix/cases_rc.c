/* SPDX-License-Identifier: BSD-3-Clause */
/* Atomics, fences, solicited events, and a QP connected to itself. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "await.h"
#include "matrix.h"

static const struct link_conf rc = {.type = IBV_QPT_RC};

static const char *
need_atomics(struct matrix *t, const void *arg)
{
	(void)arg;
	return t->device.orig_attr.atomic_cap == IBV_ATOMIC_NONE
		       ? "the device has no atomics"
		       : NULL;
}

/* ---- Atomics ---- */

struct atomic {
	enum ibv_wr_opcode op;
	bool unsignaled;
};

#define START UINT64_C(0x0123456789ABCDEF)
#define ADD UINT64_C(0xFEDCBA9876543210)

static uint64_t *
word(uint8_t *at)
{
	return (uint64_t *)(void *)at;
}

/* Four atomics in a row. Each FETCH_ADD adds. The third CMP_AND_SWP compares with a wrong
 * value. */
static void
atomic_plan(
	const struct atomic *a, uint64_t before[4], uint64_t compare[4], uint64_t *after)
{
	uint64_t value = START;

	for (unsigned i = 0; i < 4; i++) {
		before[i] = value;
		compare[i] = i == 2 ? ~value : value;
		if (a->op == IBV_WR_ATOMIC_FETCH_AND_ADD)
			value += ADD + i;
		else if (i != 2)
			value = ADD + i;
	}
	*after = value;
}

static const char *
atomic_active(struct matrix *t, const struct atomic *a)
{
	uint64_t before[4], compare[4], after;
	struct ibv_wc wc;

	atomic_plan(a, before, compare, &after);
	for (unsigned i = 0; i < 4; i++) {
		struct ibv_sge sge = {
			(uintptr_t)(link_target(t, 1) + 8 * i), 8, t->mr->lkey};
		struct ibv_send_wr wr = {
			.wr_id = i, .sg_list = &sge, .num_sge = 1, .opcode = a->op};

		wr.send_flags = a->unsignaled && i != 3 ? 0 : IBV_SEND_SIGNALED;
		wr.wr.atomic.remote_addr = link_remote(t, 0);
		wr.wr.atomic.rkey = t->peer.rkey;
		wr.wr.atomic.compare_add =
			a->op == IBV_WR_ATOMIC_FETCH_AND_ADD ? ADD + i : compare[i];
		wr.wr.atomic.swap = ADD + i;
		*word(link_target(t, 1) + 8 * i) = 0;
		TRY(link_send(t, &wr));
	}
	for (unsigned i = a->unsignaled ? 3 : 0; i < 4; i++) {
		TRY(link_done(t, t->send_cq, i, &wc));
		NEED(t, wc.opcode == (a->op == IBV_WR_ATOMIC_FETCH_AND_ADD
						     ? IBV_WC_FETCH_ADD
						     : IBV_WC_COMP_SWAP));
	}
	for (unsigned i = 0; i < 4; i++)
		NEED(t, *word(link_target(t, 1) + 8 * i) == before[i]);
	return NULL;
}

static const char *
atomic_case(struct matrix *t, const void *arg)
{
	const struct atomic *a = arg;
	uint64_t before[4], compare[4], after;

	TRY(link_open(t, &rc));
	atomic_plan(a, before, compare, &after);
	*word(link_target(t, 0)) = START;
	*word(link_target(t, 0) + 8) = ~START;
	TRY(oob_sync(t));
	if (t->active)
		TRY(atomic_active(t, a));
	TRY(oob_sync(t));
	if (!t->active) {
		NEED(t, *word(link_target(t, 0)) == after);
		NEED(t, *word(link_target(t, 0) + 8) == ~START);
	}
	return NULL;
}

/* Ordering */

/* A WRITE sends what the READ before it fetches. Only the fence makes that the new
 * data. */
static const char *
fence_case(struct matrix *t, const void *arg)
{
	const uint32_t len = 100000;
	struct ibv_sge sge = {(uintptr_t)link_target(t, 1), len, t->mr->lkey};
	struct ibv_send_wr wr = {
		.wr_id = 1, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_READ};
	struct ibv_wc wc;

	(void)arg;
	TRY(link_open(t, &rc));
	data_clear(link_target(t, 1), len);
	data_clear(link_target(t, 2), len);
	data_fill(t, link_target(t, 0), len, 0);
	TRY(oob_sync(t));
	if (t->active) {
		wr.wr.rdma.remote_addr = link_remote(t, 0);
		wr.wr.rdma.rkey = t->peer.rkey;
		TRY(link_send(t, &wr));
		wr.wr_id = 2;
		wr.opcode = IBV_WR_RDMA_WRITE;
		wr.send_flags = IBV_SEND_FENCE | IBV_SEND_SIGNALED;
		wr.wr.rdma.remote_addr = link_remote(t, 2);
		TRY(link_send(t, &wr));
		TRY(link_done(t, t->send_cq, 2, &wc));
		TRY(data_check(t, link_target(t, 1), len, 0));
	}
	TRY(oob_sync(t));
	return t->active ? NULL : data_check(t, link_target(t, 2), len, 0);
}

/* Events */

static bool
fd_readable(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, 0) == 1;
}

/* The passive end waits on its completion channel. A plain SEND does not wake it, a
 * solicited one does. */
static const char *
solicited_passive(struct matrix *t, struct ibv_comp_channel *channel, struct ibv_cq *cq)
{
	struct ibv_cq *woken;
	struct ibv_wc wc;
	void *context;

	NEED(t, ibv_req_notify_cq(cq, 1) == 0);
	for (unsigned i = 0; i < 2; i++)
		TRY(link_recv(t, i, link_target(t, i), 64));
	TRY(oob_sync(t));
	TRY(oob_sync(t)); /* the plain one has arrived */
	TRY(link_done(t, cq, 0, &wc));
	TRY(link_idle(t, cq));
	NEED(t, !fd_readable(channel->fd));
	TRY(oob_sync(t));
	NEED(t, await_readable(channel->fd));
	NEED(t, ibv_get_cq_event(channel, &woken, &context) == 0 && woken == cq);
	ibv_ack_cq_events(cq, 1);
	return link_done(t, cq, 1, &wc);
}

static const char *
solicited_active(struct matrix *t)
{
	struct ibv_sge sge = {(uintptr_t)t->mem, 10, t->mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED};
	struct ibv_wc wc;

	TRY(oob_sync(t));
	TRY(link_send(t, &wr));
	TRY(link_done(t, t->send_cq, 0, &wc));
	TRY(oob_sync(t));
	TRY(oob_sync(t));
	wr.send_flags |= IBV_SEND_SOLICITED;
	TRY(link_send(t, &wr));
	return link_done(t, t->send_cq, 0, &wc);
}

static const char *
solicited_case(struct matrix *t, const void *arg)
{
	struct ibv_comp_channel *channel = ibv_create_comp_channel(t->context);
	struct ibv_cq *mine = t->recv_cq, *cq;
	const char *why;

	(void)arg;
	NEED(t, channel != NULL);
	cq = ibv_create_cq(t->context, 16, NULL, channel, 0);
	NEED(t, cq != NULL);
	t->recv_cq = cq;
	why = link_open(t, &rc);
	if (why == NULL)
		why = t->active ? solicited_active(t) : solicited_passive(t, channel, cq);
	if (why == NULL)
		why = oob_sync(t); /* the last ACK may have to be resent */
	link_close(t);
	t->recv_cq = mine;
	NEED(t, ibv_destroy_cq(cq) == 0 && ibv_destroy_comp_channel(channel) == 0);
	return why;
}

/* Loopback */

/* A QP that is connected to itself. */
static const char *
self_case(struct matrix *t, const void *arg)
{
	struct ibv_send_wr wr = {.wr_id = 2,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED};
	const uint32_t len = 5 * t->mtu + 1;
	struct ibv_sge sge = {(uintptr_t)link_source(t, 0), len, t->mr->lkey};
	struct ibv_qp_init_attr init = {
		.send_cq = t->send_cq,
		.recv_cq = t->recv_cq,
		.cap = {.max_send_wr = 4,
			.max_recv_wr = 4,
			.max_send_sge = 1,
			.max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_wc wc;

	(void)arg;
	link_describe_own(t);
	t->qp = ibv_create_qp(t->pd, &init);
	NEED(t, t->qp != NULL);
	t->own.qpn = t->qp->qp_num;
	NEED(t, link_to_init(t, t->qp) == 0);
	NEED(t, link_to_rtr(t, t->qp, &t->own) == 0);
	NEED(t, link_to_rts(t, t->qp) == 0);
	data_fill(t, link_source(t, 0), len, 0);
	data_clear(link_target(t, 0), len);
	TRY(link_recv(t, 1, link_target(t, 0), len));
	wr.sg_list = &sge;
	TRY(link_send(t, &wr));
	TRY(link_done(t, t->recv_cq, 1, &wc));
	TRY(link_done(t, t->send_cq, 2, &wc));
	return data_check(t, link_target(t, 0), len, 0);
}

void
cases_rc(struct matrix *t)
{
	static const struct atomic atomics[] = {
		{IBV_WR_ATOMIC_CMP_AND_SWP, false},
		{IBV_WR_ATOMIC_CMP_AND_SWP, true},
		{IBV_WR_ATOMIC_FETCH_AND_ADD, false},
		{IBV_WR_ATOMIC_FETCH_AND_ADD, true},
	};

	matrix_case(t, "RC CMP_AND_SWP", need_atomics, atomic_case, &atomics[0]);
	matrix_case(
		t, "RC CMP_AND_SWP unsignaled", need_atomics, atomic_case, &atomics[1]);
	matrix_case(t, "RC FETCH_AND_ADD", need_atomics, atomic_case, &atomics[2]);
	matrix_case(
		t, "RC FETCH_AND_ADD unsignaled", need_atomics, atomic_case, &atomics[3]);
	matrix_case(t, "RC fence", need_nothing, fence_case, NULL);
	matrix_case(t, "RC solicited event", need_nothing, solicited_case, NULL);
	matrix_case(t, "RC connected to itself", need_nothing, self_case, NULL);
}
