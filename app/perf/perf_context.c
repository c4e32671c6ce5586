/* SPDX-License-Identifier: BSD-3-Clause */
/* Opening and closing one end, and what the measuring loops share. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "perf_context.h"

#define LOOK_MS 20
#define STALL_S 10

void
bed_blame(struct bed *bed, const char *format, ...)
{
	va_list args;

	if (bed->reason[0] != '\0')
		return;
	va_start(args, format);
	vsnprintf(bed->reason, sizeof(bed->reason), format, args);
	va_end(args);
}

/* Whether this end sleeps until a receive completes (--events). */
static bool
sleeps(const struct bed *bed)
{
	return bed->plan.events && (bed->conf->server || bed->plan.mode == MODE_PINGPONG);
}

static int
port_open(struct bed *bed)
{
	const struct plan *plan = &bed->plan;
	struct rocade_port_conf conf = {.size = sizeof(conf),
		.addresses = bed->conf->addr,
		.ethdev = (uint16_t)bed->conf->port,
		.rx_desc = (uint16_t)plan->rxd,
		.tx_desc = (uint16_t)plan->txd,
		.qpn_base = (uint32_t)plan->qpn_base,
		.engines = (uint16_t)plan->engines,
		.max_qp = plan->qps > 65536 / 2 ? 131072 : 0,
		.peer_window = (uint32_t)plan->peer_window};

	/* IPv6 header, UDP, BTH and extension headers, ICRC. Below 2048 the 1500 bytes of
	 * Ethernet suffice. */
	if (plan->mtu >= 2048)
		conf.mtu = (uint32_t)plan->mtu + 84;
	if (rocade_open_port(&conf, &bed->port) != 0) {
		bed_blame(bed, "cannot open port %u: %s", conf.ethdev, rocade_error());
		return -1;
	}
	if (!sleeps(bed)) {
		bed->n_engines = (unsigned)plan->engines;
		for (unsigned i = 0; i < bed->n_engines; i++)
			bed->engines[i] = rocade_port_engine(bed->port, i);
	} else if (events_launch(bed) != 0)
		return -1;
	bed->ctx = ibv_open_device(rocade_port_device(bed->port));
	return 0;
}

/* Opens the device by name. The library that provides it runs the engine. */
static int
device_open(struct bed *bed)
{
	int n = 0;
	struct ibv_device **list = ibv_get_device_list(&n);

	for (int i = 0; i < n; i++) {
		if (strcmp(ibv_get_device_name(list[i]), bed->conf->device) == 0)
			bed->ctx = ibv_open_device(list[i]);
	}
	if (list != NULL)
		ibv_free_device_list(list);
	return 0;
}

/* All queues are used by this thread only and need no locks. */
static int
domain_open(struct bed *bed)
{
	struct ibv_td_init_attr td = {0};
	struct ibv_parent_domain_init_attr attr = {.pd = bed->base_pd};

	bed->td = ibv_alloc_td(bed->ctx, &td);
	attr.td = bed->td;
	if (bed->td != NULL)
		bed->pd = ibv_alloc_parent_domain(bed->ctx, &attr);
	if (bed->pd == NULL)
		bed_blame(bed, "cannot create a thread domain: %s", strerror(errno));
	return bed->pd != NULL ? 0 : -1;
}

static int
context_open(struct bed *bed)
{
	if ((bed->conf->device[0] != '\0' ? device_open(bed) : port_open(bed)) != 0)
		return -1;
	bed->base_pd = bed->ctx != NULL ? ibv_alloc_pd(bed->ctx) : NULL;
	if (bed->base_pd == NULL) {
		bed_blame(bed, "cannot open the device: %s", strerror(errno));
		return -1;
	}
	return domain_open(bed);
}

/* Polled by one thread. */
static struct ibv_cq *
cq_create(struct bed *bed, uint64_t entries, struct ibv_comp_channel *channel)
{
	struct ibv_cq_init_attr_ex attr = {.cqe = (uint32_t)entries,
		.channel = channel,
		.comp_mask = IBV_CQ_INIT_ATTR_MASK_PD,
		.parent_domain = bed->pd};
	struct ibv_cq_ex *cq = ibv_create_cq_ex(bed->ctx, &attr);

	return cq != NULL ? ibv_cq_ex_to_cq(cq) : NULL;
}

static int
queues_create(struct bed *bed)
{
	const struct plan *plan = &bed->plan;
	struct ibv_srq_init_attr srq = {
		.attr = {.max_wr = (uint32_t)plan->depth, .max_sge = 1}};
	/* Outstanding signaled requests per QP at most, and room for flushed ones. */
	uint64_t send = plan->qps * (plan->sq_depth / plan->signal_every + 1) + 64;
	uint64_t before;

	if (sleeps(bed) && (bed->channel = ibv_create_comp_channel(bed->ctx)) == NULL) {
		bed_blame(bed, "cannot create a completion channel: %s", strerror(errno));
		return -1;
	}
	bed->send_cq = cq_create(bed, send, NULL);
	bed->recv_cq = cq_create(bed, bed->n_recv + 64, bed->channel);
	if (bed->send_cq == NULL || bed->recv_cq == NULL) {
		bed_blame(bed, "cannot create CQs of %lu and %lu entries: %s",
			(unsigned long)send, (unsigned long)bed->n_recv, strerror(errno));
		return -1;
	}
	if (plan->rq)
		return 0;
	before = memory_in_use();
	bed->srq = ibv_create_srq(bed->pd, &srq);
	bed->srq_memory = memory_in_use() - before;
	if (bed->srq == NULL)
		bed_blame(bed, "cannot create an SRQ of --depth %u: %s", srq.attr.max_wr,
			strerror(errno));
	return bed->srq != NULL ? 0 : -1;
}

static int
flow_create(struct bed *bed, uint64_t i)
{
	const struct plan *plan = &bed->plan;
	struct flow *flow = &bed->flows[i];
	struct ibv_qp_init_attr init = {.send_cq = bed->send_cq,
		.recv_cq = bed->recv_cq,
		.srq = bed->srq,
		.qp_type = plan->ud ? IBV_QPT_UD : IBV_QPT_RC,
		.cap = {.max_send_wr = (uint32_t)plan->sq_depth,
			.max_send_sge = 1,
			.max_recv_wr = plan->rq ? (uint32_t)plan->depth : 0,
			.max_recv_sge = plan->rq ? 1 : 0,
			.max_inline_data = (uint32_t)plan->inline_max}};

	flow->qp = ibv_create_qp(bed->pd, &init);
	if (flow->qp != NULL && i == 0)
		bed->qpn = flow->qp->qp_num;
	if (flow->qp == NULL || flow->qp->qp_num != bed->qpn + i) {
		bed_blame(bed, "cannot create QP %lu of %lu: %s", (unsigned long)i + 1,
			(unsigned long)plan->qps, strerror(errno));
		return -1;
	}
	return 0;
}

static void
requests_prepare(struct bed *bed)
{
	const struct plan *plan = &bed->plan;
	enum ibv_wr_opcode opcode = IBV_WR_SEND;
	bool inlined = plan->size <= plan->inline_max && plan->inline_max != 0;

	if (plan->mode == MODE_WRITE || plan->mode == MODE_WRITE_LAT)
		opcode = IBV_WR_RDMA_WRITE;
	else if (plan->mode == MODE_READ || plan->mode == MODE_READ_LAT)
		opcode = IBV_WR_RDMA_READ;
	if (opcode == IBV_WR_RDMA_READ)
		inlined = false;
	bed->flags = inlined ? IBV_SEND_INLINE : 0;
	for (unsigned i = 0; i < BURST_MAX; i++) {
		bed->sge[i] = (struct ibv_sge){.addr = (uintptr_t)bed->source,
			.length = (uint32_t)plan->size,
			.lkey = bed->mr->lkey};
		bed->wr[i] = (struct ibv_send_wr){.next = &bed->wr[i + 1],
			.sg_list = &bed->sge[i],
			.num_sge = 1,
			.opcode = opcode};
		if (bed->ah != NULL) {
			bed->wr[i].wr.ud.ah = bed->ah;
			bed->wr[i].wr.ud.remote_qkey = BED_QKEY;
		} else {
			bed->wr[i].wr.rdma.rkey = bed->rkey;
		}
	}
}

static int
ready_send(struct bed *bed)
{
	struct msg msg = {.kind = MSG_READY,
		.ready = {.addr = (uintptr_t)bed->target,
			.rkey = bed->mr->rkey,
			.qpn = bed->qpn}};

	return link_send(bed->link, &msg);
}

static int
ready_wait(struct bed *bed)
{
	struct msg msg;

	if (link_wait(bed->link, MSG_READY, &msg) != 0) {
		bed_blame(bed, "the peer failed to start");
		return -1;
	}
	bed->remote_addr = msg.ready.addr;
	bed->rkey = msg.ready.rkey;
	bed->peer_qpn = msg.ready.qpn;
	return 0;
}

static int
end_open(struct bed *bed)
{
	size_t bytes = RTE_CACHE_LINE_ROUNDUP(bed->plan.qps * sizeof(*bed->flows));
	uint64_t before;

	bed->flows = aligned_alloc(RTE_CACHE_LINE_SIZE, bytes);
	if (bed->flows == NULL) {
		bed_blame(bed, "out of memory");
		return -1;
	}
	memset(bed->flows, 0, bytes);
	if (context_open(bed) != 0)
		return -1;
	bed->memory_before = memory_in_use();
	if (bed_memory(bed) != 0 || queues_create(bed) != 0)
		return -1;
	before = memory_in_use();
	for (uint64_t i = 0; i < bed->plan.qps; i++) {
		if (flow_create(bed, i) != 0)
			return -1;
	}
	bed->qp_memory = memory_in_use() - before;
	return 0;
}

static int
end_connect(struct bed *bed)
{
	/* Excludes what the port allocates when its link comes up between end_open() and
	 * here. */
	uint64_t before = memory_in_use();

	if (bed_connect(bed) != 0)
		return -1;
	bed->qp_memory += memory_in_use() - before;
	bed->memory = memory_in_use() - bed->memory_before + bed->mem_len;
	for (uint64_t i = 0; i < bed->plan.qps; i++) {
		if (bed->plan.ud)
			bed->flows[i].target = bed->peer_qpn + i;
		else
			bed->flows[i].target =
				bed->remote_addr + i % bed->slots * bed->stride;
	}
	requests_prepare(bed);
	return 0;
}

/* The server opens its port before the client: a memif client tries to connect only once.
 * The server's QPs are connected before the client begins to send. */
static int
ends_meet(struct bed *bed)
{
	if (!bed->conf->server)
		return ready_wait(bed) != 0 || end_open(bed) != 0 ||
				       end_connect(bed) != 0 || ready_send(bed) != 0 ||
				       ready_wait(bed) != 0
			       ? -1
			       : 0;
	return end_open(bed) != 0 || ready_send(bed) != 0 || ready_wait(bed) != 0 ||
			       end_connect(bed) != 0 || ready_send(bed) != 0
		       ? -1
		       : 0;
}

int
bed_open(struct bed *bed)
{
	struct rocade_impair impair = {
		.loss_ppm = (uint32_t)bed->plan.loss_ppm, .seed = 1};

	if (ends_meet(bed) != 0)
		return -1;
	if (impair.loss_ppm != 0 && rocade_port_impair(bed->port, &impair) != 0) {
		bed_blame(bed, "--loss-ppm: %s", rocade_error());
		return -1;
	}
	return 0;
}

void
bed_close(struct bed *bed)
{
	for (uint64_t i = 0; bed->flows != NULL && i < bed->plan.qps; i++) {
		if (bed->flows[i].qp != NULL)
			ibv_destroy_qp(bed->flows[i].qp);
	}
	if (bed->ah != NULL)
		ibv_destroy_ah(bed->ah);
	if (bed->srq != NULL)
		ibv_destroy_srq(bed->srq);
	if (bed->send_cq != NULL)
		ibv_destroy_cq(bed->send_cq);
	if (bed->recv_cq != NULL)
		ibv_destroy_cq(bed->recv_cq);
	if (bed->channel != NULL)
		ibv_destroy_comp_channel(bed->channel);
	if (bed->mr != NULL)
		ibv_dereg_mr(bed->mr);
	if (bed->mem != NULL)
		munmap(bed->mem, bed->mem_len);
	if (bed->pd != NULL)
		ibv_dealloc_pd(bed->pd);
	if (bed->td != NULL)
		ibv_dealloc_td(bed->td);
	if (bed->base_pd != NULL)
		ibv_dealloc_pd(bed->base_pd);
	if (bed->ctx != NULL)
		ibv_close_device(bed->ctx);
	if (bed->lcore != 0)
		rocade_engine_stop(rocade_port_engine(bed->port, 0));
	if (bed->port != NULL)
		rocade_close_port(bed->port);
	free(bed->flows);
	free(bed->recv_wr);
	free(bed->recv_sge);
}

int64_t
bed_reap(struct bed *bed)
{
	struct ibv_wc wc[POLL_MAX];
	int n = bed_poll_cq(bed, bed->send_cq, POLL_MAX, wc);
	int64_t done = 0;

	for (int i = 0; i < n; i++) {
		struct flow *flow = &bed->flows[wc[i].qp_num - bed->qpn];

		if (unlikely(wc[i].status != IBV_WC_SUCCESS)) {
			bed_blame(bed, "request of QP 0x%x failed: %s (vendor_err %u)",
				wc[i].qp_num, ibv_wc_status_str(wc[i].status),
				wc[i].vendor_err);
			return -1;
		}
		done += (uint32_t)wc[i].wr_id - flow->acked;
		flow->acked = (uint32_t)wc[i].wr_id;
	}
	bed->progress += (uint64_t)done;
	return n < 0 ? -1 : done;
}

/* Posts a list of receives to the SRQ or to the receive queue of one QP. */
static int
post_run(struct bed *bed, struct flow *flow, struct ibv_recv_wr *first)
{
	uint64_t since = bed_cycles_now();
	struct ibv_recv_wr *bad;
	int rc;

	if (bed->srq != NULL)
		rc = ibv_post_srq_recv(bed->srq, first, &bad);
	else
		rc = ibv_post_recv(flow->qp, first, &bad);
	bed->repost_cycles += bed_cycles_now() - since;
	if (unlikely(rc != 0))
		bed_blame(bed, "posting a receive failed: %s", strerror(rc));
	return rc == 0 ? 0 : -1;
}

int
bed_repost(struct bed *bed, const struct ibv_wc *wc, int n)
{
	struct ibv_recv_wr *first = NULL, *last = NULL;
	uint32_t qpn = 0;

	for (int i = 0; i < n; i++) {
		struct ibv_recv_wr *wr = &bed->recv_wr[wc[i].wr_id];

		if (unlikely(wc[i].status != IBV_WC_SUCCESS)) {
			/* A flushed receive has no cause of its own: report a failed
			 * request first, if there is one. */
			bed_reap(bed);
			bed_blame(bed, "receive failed: %s (vendor_err %u)",
				ibv_wc_status_str(wc[i].status), wc[i].vendor_err);
			return -1;
		}
		if (last != NULL && (bed->srq != NULL || wc[i].qp_num == qpn)) {
			last->next = wr;
		} else {
			if (first != NULL &&
				post_run(bed, &bed->flows[qpn - bed->qpn], first) != 0)
				return -1;
			first = wr;
		}
		qpn = wc[i].qp_num;
		last = wr;
		wr->next = NULL;
	}
	bed->progress += (unsigned)n;
	if (first == NULL)
		return 0;
	return post_run(bed, &bed->flows[qpn - bed->qpn], first);
}

static void
stall_watch(struct bed *bed, uint64_t now)
{
	if (bed->progress != bed->counted || bed->progress_tsc == 0) {
		bed->counted = bed->progress;
		bed->progress_tsc = now;
	} else if (!bed->conf->server &&
		   now - bed->progress_tsc > STALL_S * rte_get_tsc_hz()) {
		bed_blame(bed, "no completion for %d s", STALL_S);
		bed->gone = true;
	}
}

bool
bed_look(struct bed *bed, struct msg *msg)
{
	uint64_t now = rte_rdtsc();

	if (now < bed->look_tsc)
		return false;
	bed->look_tsc = now + rte_get_tsc_hz() / 1000 * LOOK_MS;
	stall_watch(bed, now);
	if (!link_poll(bed->link, msg))
		return false;
	bed->gone |= msg->kind == MSG_GONE;
	return true;
}
