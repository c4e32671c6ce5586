/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pairs.h"

#define MEM_BYTES (2 * PAIR_BYTES + (size_t)PAIR_SEND_BYTES * PAIR_RECEIVES)
#define ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)
#define RD_ATOMIC 16
#define TIMEOUT 14 /* 67 ms */
/* A wr_id has the index of its pair in the upper half. */
#define ID_SHIFT 32

/* ---- Opening and closing ---- */

static struct ibv_cq *
pair_cq_create(struct ibv_context *context, struct ibv_pd *domain, uint32_t entries)
{
	struct ibv_cq_init_attr_ex attr = {.cqe = entries,
		.comp_mask = IBV_CQ_INIT_ATTR_MASK_PD,
		.parent_domain = domain};
	struct ibv_cq_ex *cq;

	if (domain == NULL)
		return ibv_create_cq(context, (int)entries, NULL, NULL, 0);
	cq = ibv_create_cq_ex(context, &attr);
	return cq != NULL ? ibv_cq_ex_to_cq(cq) : NULL;
}

static struct ibv_srq *
pair_srq_create(struct ibv_pd *pd, uint32_t receives)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = receives, .max_sge = 1}};

	return ibv_create_srq(pd, &attr);
}

static const char *
pairs_device_open(struct pairs_device *device, const struct pairs_conf *conf)
{
	device->context = ibv_open_device(rocade_port_device(device->port));
	if (device->context == NULL)
		return "ibv_open_device()";
	device->pd = ibv_alloc_pd(device->context);
	if (device->pd == NULL)
		return "ibv_alloc_pd()";
	if (conf->share == SHARE_CQ) {
		device->send_cq = pair_cq_create(
			device->context, NULL, conf->pairs * PAIR_SQ_DEPTH);
		device->recv_cq = pair_cq_create(
			device->context, NULL, conf->pairs * PAIR_RECEIVES);
		if (device->send_cq == NULL || device->recv_cq == NULL)
			return "ibv_create_cq()";
	}
	if (conf->share == SHARE_SRQ) {
		/* Half of it stays free, so that posts are rarely refused. */
		device->srq =
			pair_srq_create(device->pd, 2 * conf->pairs * PAIR_RECEIVES);
		if (device->srq == NULL)
			return "ibv_create_srq()";
	}
	return NULL;
}

static const char *
end_domain_create(struct pair_end *end, const struct pairs_device *device)
{
	struct ibv_td_init_attr td = {0};
	struct ibv_parent_domain_init_attr attr = {.pd = device->pd};

	attr.td = end->td = ibv_alloc_td(device->context, &td);
	if (end->td != NULL)
		end->pd = ibv_alloc_parent_domain(device->context, &attr);
	return end->pd != NULL ? NULL : "a thread domain";
}

static const char *
end_queues_create(
	struct pair_end *end, const struct pairs_device *device, enum pairs_share share)
{
	/* With SHARE_CQ any thread posts the receives again. */
	struct ibv_pd *pd = share == SHARE_CQ ? device->pd : end->pd;
	struct ibv_qp_init_attr init = {.srq = device->srq,
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = PAIR_SQ_DEPTH,
			.max_send_sge = 1,
			.max_recv_wr = device->srq == NULL ? PAIR_RECEIVES : 0,
			.max_recv_sge = device->srq == NULL}};

	end->srq = device->srq;
	end->send_cq = device->send_cq;
	end->recv_cq = device->recv_cq;
	if (share != SHARE_CQ) {
		end->send_cq = pair_cq_create(device->context, end->pd, PAIR_SQ_DEPTH);
		/* Of an SRQ one QP may take all receives. */
		end->recv_cq = pair_cq_create(device->context, end->pd,
			PAIR_RECEIVES * (share == SHARE_SRQ ? PAIRS_MAX : 1));
	}
	if (end->send_cq == NULL || end->recv_cq == NULL)
		return "ibv_create_cq_ex()";
	init.send_cq = end->send_cq;
	init.recv_cq = end->recv_cq;
	end->qp = ibv_create_qp(pd, &init);
	return end->qp != NULL ? NULL : "ibv_create_qp()";
}

static const char *
end_open(struct pair_end *end, const struct pairs_device *device, unsigned engine,
	enum pairs_share share)
{
	const char *failed = end_domain_create(end, device);

	if (failed != NULL)
		return failed;
	end->engine = rocade_port_engine(device->port, engine);
	end->mem = aligned_alloc(PAIR_BYTES, MEM_BYTES);
	if (end->mem == NULL)
		return "memory for the messages";
	memset(end->mem, 0, MEM_BYTES);
	/* Any QP of the device may take a receive of an SRQ. */
	end->mr = ibv_reg_mr(device->pd, end->mem, MEM_BYTES, ACCESS);
	if (end->mr == NULL)
		return "ibv_reg_mr()";
	if (end->engine == NULL ||
		rocade_context_set_engine(device->context, (int)engine) != 0)
		return "rocade_context_set_engine()";
	return end_queues_create(end, device, share);
}

const char *
pair_qp_connect(struct ibv_qp *qp, const struct ibv_qp *peer, const union ibv_gid *to)
{
	const int init =
		IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
	const int rtr = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
			IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	const int rts = IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
			IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC;
	struct ibv_qp_attr attr = {.port_num = 1,
		.qp_access_flags = ACCESS,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = peer->qp_num,
		.max_dest_rd_atomic = RD_ATOMIC,
		.max_rd_atomic = RD_ATOMIC,
		.min_rnr_timer = 1,
		.timeout = TIMEOUT,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.ah_attr = {.is_global = 1,
			.port_num = 1,
			.grh = {.dgid = *to, .hop_limit = 64}}};

	attr.qp_state = IBV_QPS_INIT;
	if (ibv_modify_qp(qp, &attr, init) != 0)
		return "ibv_modify_qp() to INIT";
	attr.qp_state = IBV_QPS_RTR;
	if (ibv_modify_qp(qp, &attr, rtr) != 0)
		return "ibv_modify_qp() to RTR";
	attr.qp_state = IBV_QPS_RTS;
	return ibv_modify_qp(qp, &attr, rts) == 0 ? NULL : "ibv_modify_qp() to RTS";
}

/* Posts the receives again whose completions these are: those that belong to pair `of`, or with
 * an SRQ all. The requests are built anew, because those of another pair are on cache lines of
 * its thread. */
static bool
pair_receives_post(struct pair *pair, struct pair *of, const struct ibv_wc *wc, int n)
{
	struct pair_end *end = &of->receiver;
	struct ibv_recv_wr *next = pair->recv_wr, *last = NULL;
	unsigned posts = 0;
	int rc;

	for (int i = 0; i < n; i++) {
		struct pair *owner = &pair->all->pair[wc[i].wr_id >> ID_SHIFT];
		uint32_t slot = (uint32_t)wc[i].wr_id;

		if (end->srq == NULL && owner != of)
			continue;
		last = &pair->recv_wr[posts];
		pair->recv_sge[posts] = (struct ibv_sge){
			.addr = (uintptr_t)owner->receiver.mem + 2 * PAIR_BYTES +
				(size_t)PAIR_SEND_BYTES * slot,
			.length = PAIR_SEND_BYTES,
			.lkey = owner->receiver.mr->lkey};
		*last = (struct ibv_recv_wr){.wr_id = wc[i].wr_id,
			.sg_list = &pair->recv_sge[posts],
			.num_sge = 1,
			.next = last + 1};
		posts++;
	}
	if (posts == 0)
		return true;
	last->next = NULL;
	/* An engine whose thread has lost its core between the claim of a receive and its copy
	 * keeps the slot, and the SRQ refuses what comes there (recv_ring.h). */
	do
		rc = end->srq != NULL ? ibv_post_srq_recv(end->srq, next, &next)
				      : ibv_post_recv(end->qp, next, &next);
	while (rc == ENOMEM);
	return rc == 0;
}

static const char *
pair_connect(struct pair *pair, const union ibv_gid gid[2])
{
	const struct pairs_conf *conf = &pair->all->conf;
	unsigned peer = conf->crossed ? (pair->index + 1) % conf->pairs : pair->index;
	struct ibv_qp *to = pair->all->pair[peer].receiver.qp;
	const char *failed = pair_qp_connect(pair->sender.qp, to, &gid[1]);

	pair_requests_set(pair, IBV_WR_SEND);
	return failed == NULL ? pair_qp_connect(to, pair->sender.qp, &gid[0]) : failed;
}

static const char *
pair_receives_begin(struct pair *pair)
{
	for (unsigned i = 0; i < PAIR_RECEIVES; i++) {
		struct ibv_wc wc = {.wr_id = (uint64_t)pair->index << ID_SHIFT | i};

		if (!pair_receives_post(pair, pair, &wc, 1))
			return "the first receives";
	}
	return NULL;
}

const char *
pairs_open(struct pairs *pairs, const struct pairs_conf *conf)
{
	const char *failed;
	union ibv_gid gid[2];

	pairs->conf = *conf;
	failed = pairs_device_open(&pairs->sending, conf);
	if (failed == NULL)
		failed = pairs_device_open(&pairs->receiving, conf);
	for (unsigned i = 0; failed == NULL && i < conf->pairs; i++) {
		struct pair *pair = &pairs->pair[i];

		pair->index = i;
		pair->all = pairs;
		failed = end_open(
			&pair->sender, &pairs->sending, i % conf->engines, conf->share);
		if (failed == NULL)
			failed = end_open(&pair->receiver, &pairs->receiving,
				i % conf->engines, conf->share);
	}
	if (failed == NULL &&
		(ibv_query_gid(pairs->sending.context, 1, 0, &gid[0]) != 0 ||
			ibv_query_gid(pairs->receiving.context, 1, 0, &gid[1]) != 0))
		failed = "ibv_query_gid()";
	for (unsigned i = 0; failed == NULL && i < conf->pairs; i++)
		failed = pair_connect(&pairs->pair[i], gid);
	for (unsigned i = 0; failed == NULL && i < conf->pairs; i++)
		failed = pair_receives_begin(&pairs->pair[i]);
	return failed;
}

static void
end_close(struct pair_end *end, const struct pairs_device *device)
{
	if (end->qp != NULL)
		ibv_destroy_qp(end->qp);
	if (end->send_cq != NULL && end->send_cq != device->send_cq)
		ibv_destroy_cq(end->send_cq);
	if (end->recv_cq != NULL && end->recv_cq != device->recv_cq)
		ibv_destroy_cq(end->recv_cq);
	if (end->mr != NULL)
		ibv_dereg_mr(end->mr);
	if (end->pd != NULL)
		ibv_dealloc_pd(end->pd);
	if (end->td != NULL)
		ibv_dealloc_td(end->td);
	free(end->mem);
}

static void
pairs_device_close(struct pairs_device *device)
{
	if (device->srq != NULL)
		ibv_destroy_srq(device->srq);
	if (device->send_cq != NULL)
		ibv_destroy_cq(device->send_cq);
	if (device->recv_cq != NULL)
		ibv_destroy_cq(device->recv_cq);
	if (device->pd != NULL)
		ibv_dealloc_pd(device->pd);
	if (device->context != NULL)
		ibv_close_device(device->context);
}

void
pairs_close(struct pairs *pairs)
{
	for (unsigned i = 0; i < pairs->conf.pairs; i++) {
		end_close(&pairs->pair[i].sender, &pairs->sending);
		end_close(&pairs->pair[i].receiver, &pairs->receiving);
	}
	pairs_device_close(&pairs->sending);
	pairs_device_close(&pairs->receiving);
}

/* ---- A pass ---- */

void
pair_requests_set(struct pair *pair, enum ibv_wr_opcode opcode)
{
	pair->send_sge = (struct ibv_sge){.addr = (uintptr_t)pair->sender.mem,
		.length = opcode == IBV_WR_SEND ? PAIR_SEND_BYTES : PAIR_BYTES,
		.lkey = pair->sender.mr->lkey};
	for (unsigned i = 0; i < PAIR_BURST; i++)
		pair->send_wr[i] = (struct ibv_send_wr){.sg_list = &pair->send_sge,
			.num_sge = 1,
			.opcode = opcode,
			.next = i + 1 < PAIR_BURST ? &pair->send_wr[i + 1] : NULL,
			.wr.rdma = {
				.remote_addr = (uintptr_t)pair->receiver.mem + PAIR_BYTES,
				.rkey = pair->receiver.mr->rkey}};
}

static bool
pair_fail(struct pair *pair, const char *failed)
{
	pair->failed = failed;
	return false;
}

static bool
pair_post(struct pair *pair)
{
	uint64_t outstanding =
		pair->posted - __atomic_load_n(&pair->completed, __ATOMIC_RELAXED);
	struct ibv_send_wr *bad;

	if (outstanding + PAIR_BURST > PAIR_SQ_DEPTH)
		return true;
	for (unsigned i = 0; i < PAIR_BURST; i++) {
		uint64_t id = ++pair->posted;

		pair->send_wr[i].wr_id = (uint64_t)pair->index << ID_SHIFT | (uint32_t)id;
		pair->send_wr[i].send_flags =
			id % PAIR_SIGNAL_EVERY == 0 ? IBV_SEND_SIGNALED : 0;
	}
	return ibv_post_send(pair->sender.qp, pair->send_wr, &bad) == 0 ||
	       pair_fail(pair, "a post");
}

static bool
pair_reap(struct pair *pair)
{
	struct ibv_wc wc[PAIR_POLL];
	int n = ibv_poll_cq(pair->sender.send_cq, PAIR_POLL, wc);

	for (int i = 0; i < n; i++) {
		struct pair *of = &pair->all->pair[wc[i].wr_id >> ID_SHIFT];

		if (wc[i].status != IBV_WC_SUCCESS)
			return pair_fail(pair, ibv_wc_status_str(wc[i].status));
		if (pair->all->conf.share == SHARE_CQ)
			__atomic_fetch_add(
				&of->completed, PAIR_SIGNAL_EVERY, __ATOMIC_RELAXED);
		else
			of->completed += PAIR_SIGNAL_EVERY;
	}
	return n >= 0 || pair_fail(pair, "ibv_poll_cq()");
}

static bool
pair_receive(struct pair *pair)
{
	struct ibv_wc wc[PAIR_POLL];
	int n = ibv_poll_cq(pair->receiver.recv_cq, PAIR_POLL, wc);
	bool all = pair->all->conf.share == SHARE_CQ;

	for (int i = 0; i < n; i++) {
		if (wc[i].status != IBV_WC_SUCCESS)
			return pair_fail(pair, ibv_wc_status_str(wc[i].status));
	}
	if (n <= 0)
		return n == 0 || pair_fail(pair, "ibv_poll_cq()");
	pair->received += (uint64_t)n;
	for (unsigned i = 0; i < pair->all->conf.pairs; i++) {
		if ((all || i == pair->index) &&
			!pair_receives_post(pair, &pair->all->pair[i], wc, n))
			return pair_fail(pair, "a receive");
	}
	return true;
}

void
pairs_engines_poll(struct pairs *pairs, unsigned engine)
{
	/* Pair i is of engine i, if there are as many engines. */
	rocade_engine_poll(pairs->pair[engine].sender.engine);
	rocade_engine_poll(pairs->pair[engine].receiver.engine);
}

bool
pair_work(struct pair *pair, bool post)
{
	return (!post || pair_post(pair)) && pair_receive(pair) && pair_reap(pair);
}

bool
pair_pass(struct pair *pair, bool post)
{
	if (post && !pair_post(pair))
		return false;
	rocade_engine_poll(pair->sender.engine);
	rocade_engine_poll(pair->receiver.engine);
	return pair_receive(pair) && pair_reap(pair);
}
