/* SPDX-License-Identifier: BSD-3-Clause */
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "await.h"
#include "matrix.h"

#define GUARD 64
#define GUARD_BYTE 0xA5
#define QUIET_NS 5000000
#define LOST_MS 400 /* then a message counts as lost, and is sent again */

static uint64_t
clock_ns(void)
{
	struct timespec at;

	clock_gettime(CLOCK_MONOTONIC, &at);
	return (uint64_t)at.tv_sec * 1000000000 + (uint64_t)at.tv_nsec;
}

/* ---- Data ---- */

uint8_t *
link_source(struct matrix *t, unsigned slot)
{
	return t->mem + slot * MATRIX_SLOT;
}

uint8_t *
link_target(struct matrix *t, unsigned slot)
{
	return t->mem + MATRIX_HALF + slot * MATRIX_SLOT;
}

uint64_t
link_remote(struct matrix *t, unsigned slot)
{
	return t->peer.addr + MATRIX_HALF + slot * MATRIX_SLOT;
}

uint8_t
data_byte(const struct matrix *t, size_t i, unsigned slot)
{
	return (uint8_t)(t->seed * 31 + slot * 101 + i * 7 + (i >> 8) * 3 + (i >> 16));
}

void
data_fill(struct matrix *t, uint8_t *at, size_t len, unsigned slot)
{
	for (size_t i = 0; i < len; i++)
		at[i] = data_byte(t, i, slot);
}

void
data_clear(uint8_t *at, size_t len)
{
	memset(at, GUARD_BYTE, len + GUARD);
}

const char *
data_check(struct matrix *t, const uint8_t *at, size_t len, unsigned slot)
{
	for (size_t i = 0; i < len; i++) {
		if (at[i] != data_byte(t, i, slot))
			return case_fail(t,
				"slot %u: byte %zu of %zu is 0x%02x, not 0x%02x", slot, i,
				len, at[i], data_byte(t, i, slot));
	}
	for (size_t i = len; i < len + GUARD; i++) {
		if (at[i] != GUARD_BYTE)
			return case_fail(t, "slot %u: byte %zu after its end was written",
				slot, i - len);
	}
	return NULL;
}

/* ---- Queues ---- */

struct ibv_mr *
link_mr(struct matrix *t, int access)
{
	return ibv_reg_mr(t->pd, t->mem, MATRIX_BYTES, access);
}

const char *
link_recv(struct matrix *t, uint64_t wr_id, uint8_t *at, uint32_t len)
{
	struct ibv_sge sge = {(uintptr_t)at, len, t->mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1}, *bad;
	int err = t->srq != NULL ? ibv_post_srq_recv(t->srq, &wr, &bad)
				 : ibv_post_recv(t->qp, &wr, &bad);

	return err == 0 ? NULL : case_fail(t, "posting a receive: %s", strerror(err));
}

const char *
link_send(struct matrix *t, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;
	int err = ibv_post_send(t->qp, wr, &bad);

	return err == 0 ? NULL : case_fail(t, "posting a send: %s", strerror(err));
}

/* Returns n of ibv_poll_cq(), or -1 if that is neither 0 nor 1. */
static int
poll_result(struct matrix *t, int n)
{
	if (n == 0 || n == 1)
		return n;
	case_fail(t, "ibv_poll_cq() returned %d", n);
	return -1;
}

int
link_poll_for(struct matrix *t, struct ibv_cq *cq, struct ibv_wc *wc, unsigned ms)
{
	uint64_t end = clock_ns() + ms * UINT64_C(1000000);
	int n;

	while ((n = ibv_poll_cq(cq, 1, wc)) == 0 && clock_ns() <= end)
		sched_yield();
	return poll_result(t, n);
}

int
link_await(struct matrix *t, struct ibv_cq *cq, struct ibv_wc *wc)
{
	/* --wait: the first limit, for a partner that needs long by itself */
	struct await a = {.limit_ns = t->wait_s * UINT64_C(1000000000)};
	int n;

	while ((n = ibv_poll_cq(cq, 1, wc)) == 0 && await_goes_on(&a))
		sched_yield();
	return poll_result(t, n != 0 ? n : ibv_poll_cq(cq, 1, wc));
}

int
link_await_lossy(struct matrix *t, struct ibv_cq *cq, struct ibv_wc *wc)
{
	return t->lossy ? link_poll_for(t, cq, wc, LOST_MS) : link_await(t, cq, wc);
}

unsigned
link_sends(const struct matrix *t)
{
	return t->lossy ? 20 : 1;
}

const char *
link_poll(struct matrix *t, struct ibv_cq *cq, struct ibv_wc *wc)
{
	int n = link_await(t, cq, wc);

	if (n == 0)
		return case_fail(t, "waited in vain for a %s completion",
			cq == t->send_cq ? "send" : "receive");
	return n == 1 ? NULL : t->why;
}

const char *
link_done(struct matrix *t, struct ibv_cq *cq, uint64_t wr_id, struct ibv_wc *wc)
{
	TRY(link_poll(t, cq, wc));
	if (wc->status != IBV_WC_SUCCESS)
		return case_fail(t, "request %llu: %s (vendor_err %u)",
			(unsigned long long)wc->wr_id, ibv_wc_status_str(wc->status),
			wc->vendor_err);
	if (wc->wr_id != wr_id)
		return case_fail(t, "completion of request %llu, expected %llu",
			(unsigned long long)wc->wr_id, (unsigned long long)wr_id);
	return NULL;
}

bool
link_refused(const struct matrix *t, enum ibv_wc_status got, enum ibv_wc_status want)
{
	bool there = want == IBV_WC_REM_ACCESS_ERR || want == IBV_WC_REM_INV_REQ_ERR ||
		     want == IBV_WC_REM_OP_ERR || want == IBV_WC_RNR_RETRY_EXC_ERR;

	return got == want || (t->copies && there && got == IBV_WC_RETRY_EXC_ERR);
}

const char *
link_idle(struct matrix *t, struct ibv_cq *cq)
{
	uint64_t end = clock_ns() + QUIET_NS;
	struct ibv_wc wc;

	while (clock_ns() < end) {
		if (ibv_poll_cq(cq, 1, &wc) != 0)
			return case_fail(t,
				"an unexpected completion of request %llu: %s",
				(unsigned long long)wc.wr_id,
				ibv_wc_status_str(wc.status));
		sched_yield();
	}
	return NULL;
}

/* ---- Events ---- */

static bool
event_take(struct matrix *t, struct ibv_async_event *event)
{
	if (ibv_get_async_event(t->context, event) != 0)
		return false;
	ibv_ack_async_event(event);
	return true;
}

void
link_events_discard(struct matrix *t)
{
	struct pollfd p = {.fd = t->context->async_fd, .events = POLLIN};
	struct ibv_async_event event;

	while (poll(&p, 1, 0) == 1 && event_take(t, &event))
		;
}

const char *
link_event(struct matrix *t, enum ibv_event_type want)
{
	struct ibv_async_event event;

	if (!await_readable(t->context->async_fd) || !event_take(t, &event))
		return case_fail(t, "waited in vain for an event");
	if (event.event_type != want)
		return case_fail(t, "event \"%s\", expected \"%s\"",
			ibv_event_type_str(event.event_type), ibv_event_type_str(want));
	NEED(t, event.element.qp == t->qp);
	return NULL;
}

/* ---- Connections ---- */

static struct ibv_qp *
qp_create(struct matrix *t, const struct link_conf *conf)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = t->send_cq,
		.recv_cq = t->recv_cq,
		.srq = conf->srq ? t->srq : NULL,
		.cap = {.max_send_wr = MATRIX_WRS,
			.max_recv_wr = conf->srq ? 0 : MATRIX_WRS,
			.max_send_sge = 3,
			.max_recv_sge = conf->srq ? 0 : 3,
			.max_inline_data = 64},
		.qp_type = conf->type,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = t->pd,
	};
	struct ibv_qp_init_attr plain;

	if (conf->ops != 0) {
		attr.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
		attr.send_ops_flags = conf->ops;
		return ibv_create_qp_ex(t->context, &attr);
	}
	plain = (struct ibv_qp_init_attr){.send_cq = attr.send_cq,
		.recv_cq = attr.recv_cq,
		.srq = attr.srq,
		.cap = attr.cap,
		.qp_type = attr.qp_type};
	return ibv_create_qp(t->pd, &plain);
}

static bool
reliable(const struct ibv_qp *qp)
{
	return qp->qp_type != IBV_QPT_UC && qp->qp_type != IBV_QPT_UD;
}

int
link_to_init(struct matrix *t, struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qkey = MATRIX_QKEY,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
	};
	int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;

	if (reliable(qp))
		attr.qp_access_flags |= IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
	if (!t->active) {
		attr.qp_access_flags |= (unsigned)t->conf.access;
		attr.qp_access_flags &= (unsigned)~t->conf.denied_access;
	}
	return ibv_modify_qp(qp, &attr,
		mask | (qp->qp_type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS));
}

static struct ibv_ah_attr
path_to(const struct matrix *t, const uint8_t gid[16])
{
	struct ibv_ah_attr ah = {
		.is_global = 1,
		.port_num = 1,
		.grh = {.sgid_index = (uint8_t)t->gid_index, .hop_limit = 64},
	};

	memcpy(ah.grh.dgid.raw, gid, 16);
	return ah;
}

struct ibv_ah *
link_ah_of(struct matrix *t, const uint8_t gid[16], uint8_t hops, uint8_t class,
	uint32_t flow)
{
	struct ibv_ah_attr attr = path_to(t, gid);

	attr.grh.hop_limit = hops;
	attr.grh.traffic_class = class;
	attr.grh.flow_label = flow;
	return ibv_create_ah(t->pd, &attr);
}

struct ibv_ah *
link_ah(struct matrix *t, const uint8_t gid[16])
{
	struct ibv_ah_attr attr = path_to(t, gid);

	return ibv_create_ah(t->pd, &attr);
}

int
link_to_rtr(struct matrix *t, struct ibv_qp *qp, const struct matrix_end *peer)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = t->mtu_code,
		.dest_qp_num = peer->qpn,
		.rq_psn = peer->psn,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 12,
		.ah_attr = path_to(t, peer->gid),
	};
	int mask = IBV_QP_STATE;

	if (!t->active && t->conf.rd_atomic != 0)
		attr.max_dest_rd_atomic =
			t->conf.rd_atomic < 0 ? 0 : (uint8_t)t->conf.rd_atomic;
	if (!t->active && t->conf.half_mtu)
		attr.path_mtu = t->mtu_code - 1;
	if (qp->qp_type != IBV_QPT_UD)
		mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	if (qp->qp_type == IBV_QPT_RC || qp->qp_type == IBV_QPT_XRC_RECV)
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	return ibv_modify_qp(qp, &attr, mask);
}

int
link_to_rts(struct matrix *t, struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS,
		.sq_psn = t->own.psn,
		.timeout = t->conf.short_timeout ? 12
			   : t->conf.few_retries ? 14
						 : 16,
		.retry_cnt = t->conf.few_retries      ? 1
			     : t->conf.finite_retries ? 6
						      : 7,
		.rnr_retry = t->conf.few_retries ? 1 : 7,
		.max_rd_atomic = 4,
	};
	int mask = IBV_QP_STATE | IBV_QP_SQ_PSN;

	if (qp->qp_type == IBV_QPT_RC || qp->qp_type == IBV_QPT_XRC_SEND)
		mask |= IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
	if (reliable(qp))
		mask |= IBV_QP_TIMEOUT;
	return ibv_modify_qp(qp, &attr, mask);
}

static const char *
srq_create(struct matrix *t)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = MATRIX_WRS, .max_sge = 3}};

	t->srq = ibv_create_srq(t->pd, &attr);
	return t->srq != NULL ? NULL : case_fail(t, "no SRQ");
}

void
link_describe_own(struct matrix *t)
{
	t->own = (struct matrix_end){
		.psn = (t->seed * 7919 + t->server) & 0xFFFFFF,
		.rkey = t->mr->rkey,
		.addr = (uintptr_t)t->mem,
	};
	memcpy(t->own.gid, &t->gid, 16);
}

const char *
link_open(struct matrix *t, const struct link_conf *conf)
{
	link_describe_own(t);
	t->conf = *conf;
	if (conf->srq)
		TRY(srq_create(t));
	t->qp = qp_create(t, conf);
	NEED(t, t->qp != NULL);
	t->own.qpn = t->qp->qp_num;
	NEED(t, link_to_init(t, t->qp) == 0);
	TRY(oob_swap(t, &t->own, &t->peer, sizeof(t->own)));
	NEED(t, link_to_rtr(t, t->qp, &t->peer) == 0);
	if (t->active || !conf->stays_rtr)
		NEED(t, link_to_rts(t, t->qp) == 0);
	if (conf->type == IBV_QPT_UD) {
		t->ah = link_ah(t, t->peer.gid);
		NEED(t, t->ah != NULL);
	}
	return oob_sync(t);
}

void
link_close(struct matrix *t)
{
	struct ibv_wc wc;

	if (t->qp != NULL)
		ibv_destroy_qp(t->qp);
	if (t->ah != NULL)
		ibv_destroy_ah(t->ah);
	if (t->srq != NULL)
		ibv_destroy_srq(t->srq);
	t->qp = NULL;
	t->conf = (struct link_conf){0};
	t->ah = NULL;
	t->srq = NULL;
	/* Completions left by a failed case. */
	while (ibv_poll_cq(t->send_cq, 1, &wc) > 0 || ibv_poll_cq(t->recv_cq, 1, &wc) > 0)
		;
}
