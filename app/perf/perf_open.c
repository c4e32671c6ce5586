/* SPDX-License-Identifier: BSD-3-Clause */
/* Opening and closing one end. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "perf_context.h"

/* Whether this end sleeps until a receive completes (--events). */
static bool
sleeps_on_completions(const struct perf_context *ctx)
{
	return ctx->plan.events && (ctx->conf->server || ctx->plan.mode == MODE_PINGPONG);
}

static int
perf_port_open(struct perf_context *ctx)
{
	const struct plan *plan = &ctx->plan;
	struct rocade_port_conf conf = {.size = sizeof(conf),
		.addresses = ctx->conf->addr,
		.ethdev = (uint16_t)ctx->conf->port,
		.rx_desc = (uint16_t)plan->rxd,
		.tx_desc = (uint16_t)plan->txd,
		.qpn_base = (uint32_t)plan->qpn_base,
		.engines = (uint16_t)plan->engines,
		.max_qp = plan->qps > 65536 / 2 ? 131072 : 0,
		.peer_window = (uint32_t)plan->peer_window};
	struct rocade_cc_conf cc;
	int err = 0;

	/* IPv6 header, UDP, BTH and extension headers, ICRC. Below 2048 the 1500 bytes of
	 * Ethernet suffice. */
	if (plan->mtu >= 2048)
		conf.mtu = (uint32_t)plan->mtu + 88;
	if (ctx->conf->cc != NULL) {
		err = rocade_cc_parse(ctx->conf->cc, &cc);
		conf.cc = &cc;
	}
	if (err == 0)
		err = rocade_open_port(&conf, &ctx->port);
	if (err == EINVAL)
		ctx->code = EXIT_USAGE;
	if (err != 0)
		return perf_set_error(
			ctx, "cannot open port %u: %s", conf.ethdev, rocade_error());
	if (!sleeps_on_completions(ctx)) {
		ctx->n_engines = (unsigned)plan->engines;
		for (unsigned i = 0; i < ctx->n_engines; i++)
			ctx->engines[i] = rocade_port_engine(ctx->port, i);
	} else if (events_engine_launch(ctx) != 0)
		return -1;
	ctx->verbs.context = ibv_open_device(rocade_port_device(ctx->port));
	return 0;
}

/* Opens the device by name. The library that provides it runs the engine. */
static int
perf_device_open(struct perf_context *ctx)
{
	int n = 0, found = 0;
	struct ibv_device **list = ibv_get_device_list(&n);

	while (found < n &&
		strcmp(ibv_get_device_name(list[found]), ctx->conf->device) != 0)
		found++;
	if (found < n)
		ctx->verbs.context = ibv_open_device(list[found]);
	if (list != NULL)
		ibv_free_device_list(list);
	return found < n
		       ? 0
		       : perf_set_error(ctx,
				 "no device '%s' for --device: expected one of the %d that "
				 "ibv_devices(1) shows, under rocade-run(1)",
				 ctx->conf->device, n);
}

/* Creates a thread domain: only this thread uses the queues, so they need no locks. */
static int
perf_domain_open(struct perf_context *ctx)
{
	struct ibv_td_init_attr td = {0};
	struct ibv_parent_domain_init_attr attr = {.pd = ctx->verbs.base_pd};

	ctx->verbs.td = ibv_alloc_td(ctx->verbs.context, &td);
	attr.td = ctx->verbs.td;
	if (ctx->verbs.td != NULL)
		ctx->verbs.pd = ibv_alloc_parent_domain(ctx->verbs.context, &attr);
	if (ctx->verbs.pd == NULL)
		perf_set_error(ctx, "cannot create a thread domain: %s", strerror(errno));
	return ctx->verbs.pd != NULL ? 0 : -1;
}

static int
perf_context_open(struct perf_context *ctx)
{
	if ((ctx->conf->device != NULL ? perf_device_open(ctx) : perf_port_open(ctx)) !=
		0)
		return -1;
	ctx->verbs.base_pd =
		ctx->verbs.context != NULL ? ibv_alloc_pd(ctx->verbs.context) : NULL;
	if (ctx->verbs.base_pd == NULL)
		return perf_set_error(ctx, "cannot open the device: %s", strerror(errno));
	return perf_domain_open(ctx);
}

/* Creates a CQ that only this thread polls. */
static struct ibv_cq *
perf_cq_create(
	struct perf_context *ctx, uint64_t entries, struct ibv_comp_channel *channel)
{
	struct ibv_cq_init_attr_ex attr = {.cqe = (uint32_t)entries,
		.channel = channel,
		.comp_mask = IBV_CQ_INIT_ATTR_MASK_PD,
		.parent_domain = ctx->verbs.pd};
	struct ibv_cq_ex *cq = ibv_create_cq_ex(ctx->verbs.context, &attr);

	return cq != NULL ? ibv_cq_ex_to_cq(cq) : NULL;
}

static int
perf_queues_create(struct perf_context *ctx)
{
	const struct plan *plan = &ctx->plan;
	struct ibv_srq_init_attr srq = {
		.attr = {.max_wr = (uint32_t)plan->depth, .max_sge = 1}};
	/* At most this many signaled requests are outstanding; 64 more for flushed
	 * ones. */
	uint64_t send = plan->qps * (plan->sq_depth / plan->signal_every + 1) + 64;
	uint64_t before;

	if (sleeps_on_completions(ctx) && (ctx->verbs.channel = ibv_create_comp_channel(
						   ctx->verbs.context)) == NULL)
		return perf_set_error(
			ctx, "cannot create a completion channel: %s", strerror(errno));
	ctx->verbs.send_cq = perf_cq_create(ctx, send, NULL);
	ctx->verbs.recv_cq =
		perf_cq_create(ctx, ctx->buffers.n_recv + 64, ctx->verbs.channel);
	if (ctx->verbs.send_cq == NULL || ctx->verbs.recv_cq == NULL)
		return perf_set_error(ctx, "cannot create CQs of %lu and %lu entries: %s",
			(unsigned long)send, (unsigned long)ctx->buffers.n_recv,
			strerror(errno));
	if (plan->rq)
		return 0;
	before = perf_memory_in_use();
	ctx->verbs.srq = ibv_create_srq(ctx->verbs.pd, &srq);
	ctx->used.srq_memory = perf_memory_in_use() - before;
	if (ctx->verbs.srq == NULL)
		perf_set_error(ctx, "cannot create an SRQ of --depth %u: %s",
			srq.attr.max_wr, strerror(errno));
	return ctx->verbs.srq != NULL ? 0 : -1;
}

static int
conn_create_qp(struct perf_context *ctx, uint64_t i)
{
	const struct plan *plan = &ctx->plan;
	struct conn *conn = &ctx->conns[i];
	struct ibv_qp_init_attr init = {.send_cq = ctx->verbs.send_cq,
		.recv_cq = ctx->verbs.recv_cq,
		.srq = ctx->verbs.srq,
		.qp_type = plan->ud ? IBV_QPT_UD : IBV_QPT_RC,
		.cap = {.max_send_wr = (uint32_t)plan->sq_depth,
			.max_send_sge = 1,
			.max_recv_wr = plan->rq ? (uint32_t)plan->depth : 0,
			.max_recv_sge = plan->rq ? 1 : 0,
			.max_inline_data = (uint32_t)plan->inline_max}};

	conn->qp = ibv_create_qp(ctx->verbs.pd, &init);
	if (conn->qp == NULL)
		return perf_set_error(ctx, "cannot create QP %lu of %lu: %s",
			(unsigned long)i + 1, (unsigned long)plan->qps, strerror(errno));
	return 0;
}

static void
requests_prepare(struct perf_context *ctx)
{
	const struct plan *plan = &ctx->plan;
	enum ibv_wr_opcode opcode = IBV_WR_SEND;
	bool inlined = plan->size <= plan->inline_max && plan->inline_max != 0;

	if (plan->mode == MODE_WRITE || plan->mode == MODE_WRITE_LAT)
		opcode = IBV_WR_RDMA_WRITE;
	else if (plan->mode == MODE_READ || plan->mode == MODE_READ_LAT)
		opcode = IBV_WR_RDMA_READ;
	if (opcode == IBV_WR_RDMA_READ)
		inlined = false;
	ctx->flags = inlined ? IBV_SEND_INLINE : 0;
	for (unsigned i = 0; i < BURST_MAX; i++) {
		ctx->sge[i] = (struct ibv_sge){.addr = (uintptr_t)ctx->buffers.source,
			.length = (uint32_t)plan->size,
			.lkey = ctx->buffers.mr->lkey};
		ctx->wr[i] = (struct ibv_send_wr){.next = &ctx->wr[i + 1],
			.sg_list = &ctx->sge[i],
			.num_sge = 1,
			.opcode = opcode};
		if (ctx->verbs.ah != NULL) {
			ctx->wr[i].wr.ud.ah = ctx->verbs.ah;
			ctx->wr[i].wr.ud.remote_qkey = PERF_QKEY;
		} else {
			ctx->wr[i].wr.rdma.rkey = ctx->buffers.rkey;
		}
	}
}

static int
peer_lost(struct perf_context *ctx)
{
	ctx->code = EXIT_RUN;
	return perf_set_error(
		ctx, "the peer disconnected before it was ready (see its messages)");
}

static int
perf_ready_send(struct perf_context *ctx)
{
	struct msg msg = {.kind = MSG_READY,
		.ready = {.addr = (uintptr_t)ctx->buffers.target,
			.rkey = ctx->buffers.mr->rkey}};
	int rc = link_send(ctx->link, &msg);

	for (uint64_t i = 0; i < ctx->plan.qps && rc == 0; i++) {
		msg.kind = MSG_QPNS;
		msg.qpns[i % LINK_QPNS] = ctx->conns[i].qp->qp_num;
		if ((i + 1) % LINK_QPNS == 0 || i + 1 == ctx->plan.qps)
			rc = link_send(ctx->link, &msg);
	}
	return rc == 0 ? 0 : peer_lost(ctx);
}

static int
perf_ready_wait(struct perf_context *ctx)
{
	struct msg msg;

	if (link_recv(ctx->link, MSG_READY, &msg) != 0)
		return peer_lost(ctx);
	ctx->buffers.remote_addr = msg.ready.addr;
	ctx->buffers.rkey = msg.ready.rkey;
	for (uint64_t i = 0; i < ctx->plan.qps; i++) {
		if (i % LINK_QPNS == 0 && link_recv(ctx->link, MSG_QPNS, &msg) != 0)
			return peer_lost(ctx);
		ctx->peer_qpns[i] = msg.qpns[i % LINK_QPNS];
	}
	return 0;
}

static int
perf_end_open(struct perf_context *ctx)
{
	size_t bytes = RTE_CACHE_LINE_ROUNDUP(ctx->plan.qps * sizeof(*ctx->conns));
	uint64_t before;

	ctx->conns = aligned_alloc(RTE_CACHE_LINE_SIZE, bytes);
	if (ctx->conns == NULL)
		return perf_set_error(ctx, "out of memory");
	memset(ctx->conns, 0, bytes);
	if (perf_context_open(ctx) != 0)
		return -1;
	ctx->used.memory_before = perf_memory_in_use();
	if (perf_alloc_buffers(ctx) != 0 || perf_queues_create(ctx) != 0)
		return -1;
	before = perf_memory_in_use();
	for (uint64_t i = 0; i < ctx->plan.qps; i++) {
		if (conn_create_qp(ctx, i) != 0)
			return -1;
	}
	ctx->used.qp_memory = perf_memory_in_use() - before;
	return 0;
}

static int
perf_end_connect(struct perf_context *ctx)
{
	/* Excludes what the port allocates when its link comes up between perf_end_open()
	 * and here. */
	uint64_t before = perf_memory_in_use();

	if (perf_connect(ctx) != 0)
		return -1;
	ctx->used.qp_memory += perf_memory_in_use() - before;
	ctx->used.memory =
		perf_memory_in_use() - ctx->used.memory_before + ctx->buffers.mem_len;
	for (uint64_t i = 0; i < ctx->plan.qps; i++) {
		if (ctx->plan.ud)
			ctx->conns[i].dest = ctx->peer_qpns[i];
		else
			ctx->conns[i].dest = ctx->buffers.remote_addr +
					     i % ctx->buffers.slots * ctx->buffers.stride;
	}
	requests_prepare(ctx);
	return 0;
}

/* The server opens its port before the client: a memif client tries to connect only once.
 * The server's QPs are connected before the client begins to send. */
static int
perf_ends_connect(struct perf_context *ctx)
{
	if (!ctx->conf->server)
		return perf_ready_wait(ctx) != 0 || perf_end_open(ctx) != 0 ||
				       perf_end_connect(ctx) != 0 ||
				       perf_ready_send(ctx) != 0 ||
				       perf_ready_wait(ctx) != 0
			       ? -1
			       : 0;
	return perf_end_open(ctx) != 0 || perf_ready_send(ctx) != 0 ||
			       perf_ready_wait(ctx) != 0 || perf_end_connect(ctx) != 0 ||
			       perf_ready_send(ctx) != 0
		       ? -1
		       : 0;
}

int
perf_open(struct perf_context *ctx)
{
	struct rocade_impair impair = {
		.loss_ppm = (uint32_t)ctx->plan.loss_ppm, .seed = 1};

	ctx->code = EXIT_ENVIRONMENT;
	ctx->peer_qpns = calloc(ctx->plan.qps, sizeof(*ctx->peer_qpns));
	if (ctx->peer_qpns == NULL)
		return perf_set_error(ctx, "out of memory");
	if (perf_ends_connect(ctx) != 0)
		return -1;
	if (impair.loss_ppm != 0 && rocade_port_impair(ctx->port, &impair) != 0)
		return perf_set_error(ctx, "--loss-ppm: %s", rocade_error());
	ctx->code = EXIT_RUN;
	return 0;
}

void
perf_close(struct perf_context *ctx)
{
	for (uint64_t i = 0; ctx->conns != NULL && i < ctx->plan.qps; i++) {
		if (ctx->conns[i].qp != NULL)
			ibv_destroy_qp(ctx->conns[i].qp);
	}
	if (ctx->verbs.ah != NULL)
		ibv_destroy_ah(ctx->verbs.ah);
	if (ctx->verbs.srq != NULL)
		ibv_destroy_srq(ctx->verbs.srq);
	if (ctx->verbs.send_cq != NULL)
		ibv_destroy_cq(ctx->verbs.send_cq);
	if (ctx->verbs.recv_cq != NULL)
		ibv_destroy_cq(ctx->verbs.recv_cq);
	if (ctx->verbs.channel != NULL)
		ibv_destroy_comp_channel(ctx->verbs.channel);
	if (ctx->buffers.mr != NULL)
		ibv_dereg_mr(ctx->buffers.mr);
	if (ctx->buffers.mem != NULL)
		munmap(ctx->buffers.mem, ctx->buffers.mem_len);
	if (ctx->verbs.pd != NULL)
		ibv_dealloc_pd(ctx->verbs.pd);
	if (ctx->verbs.td != NULL)
		ibv_dealloc_td(ctx->verbs.td);
	if (ctx->verbs.base_pd != NULL)
		ibv_dealloc_pd(ctx->verbs.base_pd);
	if (ctx->verbs.context != NULL)
		ibv_close_device(ctx->verbs.context);
	events_engine_stop(ctx);
	if (ctx->port != NULL)
		rocade_close_port(ctx->port);
	free(ctx->conns);
	free(ctx->peer_qpns);
	free(ctx->buffers.recv_wr);
	free(ctx->buffers.recv_sge);
}
