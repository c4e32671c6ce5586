/* SPDX-License-Identifier: BSD-3-Clause */
/* The link itself: hosts, their memory and queues, and their connection. qp_work.c posts
 * work requests, qp_wire.c moves frames. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "qp_link.h"

#define FILL_BYTES (UINT32_C(1) << 16) /* of larger memory the rest is zero */

static void *
counted_get(void *ctx, const char *name, size_t len)
{
	struct qp_link *p = ctx;
	void *mem = alloc_get(&alloc_plain, name, len);

	p->mem_used += mem != NULL ? len : 0;
	return mem;
}

static void
counted_put(void *ctx, void *mem, size_t len)
{
	struct qp_link *p = ctx;

	p->mem_used -= len;
	alloc_put(&alloc_plain, mem, len);
}

struct qp_link_conf
qp_link_defaults(void)
{
	return (struct qp_link_conf){
		.mtu = IBV_MTU_1024,
		.psn = {PSN_A, PSN_B},
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 6,
		.min_rnr_timer = 12,
		.send_wr = 64,
		.recv_wr = 64,
		.sge = 4,
		.cqe = 256,
		.peer_window = 1u << 20,
		.mem_bytes = 1u << 16,
	};
}

struct qp_link_conf
qp_link_defaults_rdma(void)
{
	struct qp_link_conf conf = qp_link_defaults();

	conf.access = ACCESS_REMOTE;
	conf.max_rd = conf.max_dest_rd = 4;
	return conf;
}

bool
qp_link_is_xrc(const struct qp_link *p)
{
	return p->conf.type == IBV_QPT_XRC_SEND;
}

static void
host_memory_init(struct host *h, uint32_t pd, uint32_t recv_pd)
{
	const struct qp_link_conf *conf = &h->link->conf;
	unsigned access = IBV_ACCESS_LOCAL_WRITE;

	key_table_init(&h->keys, &(struct random_key){{0}});
	h->mem = calloc(1, conf->mem_bytes);
	assert_non_null(h->mem);
	bytes_fill(h->mem, RTE_MIN(conf->mem_bytes, FILL_BYTES), pd);
	assert_int_equal(key_alloc(&h->keys, pd, (uintptr_t)h->mem, h->mem,
				 conf->mem_bytes, access, &h->lkey),
		0);
	assert_int_equal(key_alloc(&h->keys, recv_pd, (uintptr_t)h->mem, h->mem,
				 conf->mem_bytes, access, &h->recv_key),
		0);
	h->rkey = 0;
	if (conf->access != 0)
		assert_int_equal(
			key_alloc(&h->keys, qp_link_is_xrc(h->link) ? recv_pd : pd,
				(uintptr_t)h->mem, h->mem, conf->mem_bytes,
				access | conf->access, &h->rkey),
			0);
}

bool
host_has_srq(const struct host *h)
{
	return h->srq.ring.max_wr != 0;
}

static void
host_srq_init(struct host *h, uint32_t pd)
{
	const struct qp_link_conf *conf = &h->link->conf;

	assert_int_equal(srq_init(&h->srq, &h->link->mem, pd, conf->recv_wr, conf->sge,
				 &h->events, h),
		0);
	if (!qp_link_is_xrc(h->link)) {
		srq_attach(&h->srq, 0, NULL);
		return;
	}
	h->srq.xrcd = XRCD;
	h->srq.cq = &h->recv_cq;
	assert_int_equal(srq_table_put(&h->srqs, &h->srq), 0);
}

static void
host_init(struct host *h, uint32_t qpn, uint32_t pd, bool srq)
{
	const struct qp_link_conf *conf = &h->link->conf;
	const struct alloc *mem = &h->link->mem;
	uint32_t recv_pd = srq && conf->srq_pd ? PD_SRQ : pd;
	struct qp_conf qc = {
		.type = conf->type != 0 ? conf->type : IBV_QPT_RC,
		.send_cq = &h->send_cq,
		.recv_cq = &h->recv_cq,
		.srq = srq ? &h->srq : NULL,
		.pd = pd,
		.xrcd = XRCD,
		.max_send_wr = conf->send_wr,
		.max_send_sge = conf->sge,
		.max_inline = 512,
		.max_recv_wr = conf->recv_wr,
		.max_recv_sge = conf->sge,
		.sq_sig_all = conf->sig_all,
	};

	if (qp_link_is_xrc(h->link) && srq)
		qc.type = IBV_QPT_XRC_RECV;
	srq_table_init(&h->srqs, 0x123400);
	host_memory_init(h, pd, recv_pd);
	assert_int_equal(event_queue_init(&h->events), 0);
	fcntl(h->events.fd, F_SETFL, O_NONBLOCK);
	assert_int_equal(cq_init(&h->send_cq, mem, conf->cqe, &h->events, h), 0);
	assert_int_equal(cq_init(&h->recv_cq, mem, conf->cqe, &h->events, h), 0);
	if (srq)
		host_srq_init(h, recv_pd);
	h->shared = (struct qp_shared){.keys = &h->keys,
		.srqs = &h->srqs,
		.gids = (const uint8_t(*)[16])h->gid,
		.gid_count = 1,
		.stats = &h->stats,
		.claim = &h->claim,
		.times = &h->times};
	h->times.latencies = &h->times.own;
	h->times.slowest = &h->times.own_slowest;
	h->times.port_full_ns = &h->port_full_ns;
	peer_windows_init(&h->peer, conf->peer_window, &(struct cc_conf){.on = conf->cc});
	h->peer.qps = 1;
	assert_int_equal(qp_init(&h->qp, qpn, &qc, mem, &h->events, h), 0);
	h->qp.shared = &h->shared;
	h->qp.peer = &h->peer;
	cq_attach(&h->send_cq, 0);
	cq_attach(&h->recv_cq, 0);
}

void
qp_link_init(struct qp_link *p, const struct qp_link_conf *conf)
{
	memset(p, 0, sizeof(*p));
	p->conf = *conf;
	p->now = NS_PER_SEC;
	p->mem = (struct alloc){.get = counted_get, .put = counted_put, .ctx = p};
	p->a.link = p->b.link = p;
	p->a.other = &p->b;
	p->b.other = &p->a;
	host_init(&p->a, QPN_A, PD_A, false);
	host_init(&p->b, QPN_B, PD_B, conf->srq || qp_link_is_xrc(p));
	if (!conf->unconnected)
		qp_link_connect(p);
}

void
qp_link_init_default(struct qp_link *p)
{
	struct qp_link_conf conf = qp_link_defaults();

	qp_link_init(p, &conf);
}

static void
host_fini(struct host *h)
{
	assert_int_equal(h->wire_count, 0);
	expect_idle(h);
	qp_reset(&h->qp);
	assert_true(req_times_idle(&h->times));
	assert_int_equal(h->peer.send.inflight, 0);
	assert_int_equal(h->peer.read.inflight, 0);
	cq_detach(&h->send_cq, 0);
	cq_detach(&h->recv_cq, 0);
	if (host_has_srq(h)) {
		if (qp_link_is_xrc(h->link))
			srq_table_remove(&h->srqs, &h->srq);
		else
			srq_detach(&h->srq, 0);
		srq_fini(&h->srq);
	}
	srq_table_fini(&h->srqs);
	qp_fini(&h->qp);
	cq_fini(&h->send_cq);
	cq_fini(&h->recv_cq);
	event_queue_fini(&h->events);
	/* The test may have freed the keys. */
	(void)key_free(&h->keys, h->lkey);
	(void)key_free(&h->keys, h->recv_key);
	if (h->link->conf.access != 0)
		(void)key_free(&h->keys, h->rkey);
	assert_int_equal(h->keys.used, 0);
	key_table_fini(&h->keys);
	free(h->mem);
}

void
qp_link_fini(struct qp_link *p)
{
	host_fini(&p->a);
	host_fini(&p->b);
	assert_int_equal(p->mem_used, 0);
}

/* ---- Connection ---- */

static void
gid_of(const struct host *h, uint8_t gid[16])
{
	static const uint8_t v4[16] = {[10] = 0xFF, [11] = 0xFF, [12] = 192, 0, 2, 0};
	static const uint8_t v6[16] = {0x20, 0x01, 0x0d, 0xb8};

	memcpy(gid, h->link->conf.ipv6 ? v6 : v4, 16);
	gid[15] = h == &h->link->a ? 1 : 2;
}

struct qp_attr
host_attr(const struct host *h)
{
	const struct qp_link_conf *conf = &h->link->conf;
	bool a = h == &h->link->a;
	struct qp_attr attr = {
		.path_mtu = conf->mtu,
		.sq_psn = conf->psn[a ? 0 : 1],
		.rq_psn = conf->psn[a ? 1 : 0],
		.dest_qpn = h->other->qp.qpn,
		.qkey = QKEY,
		.port_num = 1,
		.timeout = conf->timeout,
		.retry_cnt = conf->retry_cnt,
		.rnr_retry = conf->rnr_retry,
		.min_rnr_timer = conf->min_rnr_timer,
		.access = conf->access,
		.max_rd_atomic = conf->max_rd,
		.max_dest_rd_atomic = conf->max_dest_rd,
		.path = {.hop_limit = 64, .port_num = 1},
	};

	gid_of(h, attr.path.sgid);
	gid_of(h->other, attr.path.dgid);
	return attr;
}

int
host_mask(const struct host *h, int mask)
{
	static const int not_uc = IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER |
				  IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				  IBV_QP_MAX_QP_RD_ATOMIC;

	switch (h->qp.type) {
	case IBV_QPT_XRC_SEND:
		return mask & ~(IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	case IBV_QPT_XRC_RECV:
		return mask &
		       ~(IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC);
	case IBV_QPT_UC:
		return mask & ~not_uc;
	case IBV_QPT_UD:
		return (mask & (IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				       IBV_QP_SQ_PSN)) |
		       (mask & IBV_QP_ACCESS_FLAGS ? IBV_QP_QKEY : 0);
	default:
		return mask;
	}
}

struct ud_dest
host_dest(const struct host *h)
{
	struct ud_dest dest = {.hop_limit = 64,
		.qpn = h->other->qp.qpn,
		.qkey = h->other->qp.params.qkey};

	memcpy(dest.dgid, h->other->gid[0], 16);
	return dest;
}

int
host_modify(struct host *h, enum ibv_qp_state state)
{
	struct qp_attr attr = {.state = state};

	return qp_modify(&h->qp, &attr, IBV_QP_STATE, IBV_MTU_4096);
}

void
host_modify_to_rts(struct host *h, struct qp_attr *attr, struct path_addr *addr)
{
	memcpy(h->gid[0], attr->path.sgid, 16);
	attr->state = IBV_QPS_INIT;
	assert_int_equal(
		qp_modify(&h->qp, attr, host_mask(h, MASK_INIT), IBV_MTU_4096), 0);
	attr->state = IBV_QPS_RTR;
	assert_int_equal(
		qp_modify(&h->qp, attr, host_mask(h, MASK_RTR), IBV_MTU_4096), 0);
	memcpy(addr->src_gid, attr->path.sgid, 16);
	memcpy(addr->dst_gid, attr->path.dgid, 16);
	path_hdr_init(&h->qp.hdr, addr);
	attr->state = IBV_QPS_RTS;
	assert_int_equal(
		qp_modify(&h->qp, attr, host_mask(h, MASK_RTS), IBV_MTU_4096), 0);
}

void
host_connect(struct host *h)
{
	struct qp_attr attr = host_attr(h);
	struct path_addr addr = {
		.src_mac = {2, 0, 0, 0, 0, 1},
		.dst_mac = {2, 0, 0, 0, 0, 2},
		.udp_sport = roce_udp_sport(0, h->qp.qpn, h->other->qp.qpn),
		.hop_limit = 64,
	};

	host_modify_to_rts(h, &attr, &addr);
}

void
qp_link_connect(struct qp_link *p)
{
	host_connect(&p->a);
	host_connect(&p->b);
}

void
qp_link_fini_reset(struct qp_link *p)
{
	assert_int_equal(host_modify(&p->a, IBV_QPS_RESET), 0);
	assert_int_equal(host_modify(&p->b, IBV_QPS_RESET), 0);
	qp_link_fini(p);
}

void
qp_link_fini_discard(struct qp_link *p)
{
	struct cqe cqe;

	while (host_poll(&p->b, &p->b.recv_cq, &cqe))
		;
	wire_drop_all(&p->a);
	wire_drop_all(&p->b);
	qp_link_fini_reset(p);
}
