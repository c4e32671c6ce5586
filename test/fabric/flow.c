/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "check.h"
#include "flow.h"
#include "post.h"
#include "wire/extensions.h"

#define TIMEOUT 14 /* 67 ms */
#define RETRIES 7

static bool
post(struct flow *flow)
{
	uint32_t len = flow->hello != 0        ? HELLO_BYTES
		       : flow->conf.bytes != 0 ? (uint32_t)flow->conf.bytes
					       : flow->conf.message;
	bool read = flow->conf.read;
	struct sge sge = {0, len, flow->poster->key};
	struct send_req req = {
		.wr_id = (uintptr_t)flow,
		.opcode = read ? IBV_WR_RDMA_READ : WR_RDMA_WRITE,
		.flags = IBV_SEND_SIGNALED,
		.sge = &sge,
		.num_sge = 1,
		.rkey = read ? flow->from->key : flow->to->key,
	};

	return sq_post(&flow->requester->sq, &req) == 0;
}

/* Posts one message, or, if it is endless, as many as the send queue holds. */
static void
posts_fill(struct flow *flow)
{
	const struct sq *sq = &flow->requester->sq;

	do
		CHECK(post(flow), "a new send queue is full");
	while (flow->conf.bytes == 0 && flow->hello == 0 && sq_next(sq, sq->prod));
	engine_doorbell(flow->requester);
}

static void
start(struct event *event)
{
	struct flow *flow = container_of(event, struct flow, start);

	flow->hello = flow->conf.hello;
	posts_fill(flow);
	host_wake(flow->poster);
}

static void
modify(struct qp *qp, struct qp_attr *attr, struct host *h, enum ibv_qp_state state,
	int mask)
{
	attr->state = state;
	CHECK(dev_qp_modify(h->dev, qp, attr, IBV_QP_STATE | mask) == 0, "qp_modify");
}

static void
stop(struct event *event)
{
	struct flow *flow = container_of(event, struct flow, stop);
	struct qp_attr attr = {0};

	flow->stopped = true;
	modify(flow->requester, &attr, flow->poster, IBV_QPS_ERR, 0);
	host_wake(flow->poster);
}

/* The application of every host. */
static void
completions_read(struct host *h)
{
	struct flow *flow;
	struct cqe cqe;

	while (h->send_cq.head != h->send_cq.tail) {
		uint32_t tail = h->send_cq.tail;
		const struct cqe *next = cq_peek(&h->send_cq, &tail);

		if (next == NULL)
			break;
		flow = (struct flow *)(uintptr_t)next->wr_id;
		CHECK(cq_take(&h->send_cq, &flow->requester->sq, &cqe), "a CQE is gone");
		if (flow->stopped)
			continue;
		CHECK(cqe.status == IBV_WC_SUCCESS, "host %u to %u: status %u, %u",
			flow->conf.src, flow->conf.dst, cqe.status, cqe.byte_len);
		if (flow->hello != 0) {
			flow->hello--;
			posts_fill(flow);
		} else if (flow->conf.bytes != 0) {
			flow->finished = clock_ps;
		} else {
			CHECK(post(flow), "a send queue is full");
			engine_doorbell(flow->requester);
		}
	}
}

/* ---- Connections ---- */

static void
qp_create(struct host *h, struct qp *qp, uint32_t depth)
{
	struct qp_conf conf = {
		.type = IBV_QPT_RC,
		.send_cq = &h->send_cq,
		.recv_cq = &h->recv_cq,
		.pd = HOST_PD,
		.max_send_wr = depth,
		.max_send_sge = 1,
		.max_recv_wr = 1,
		.max_recv_sge = 1,
	};

	CHECK(dev_qp_init(h->dev, qp, &conf, 0, &h->events, h) == 0,
		"host %u: no QP is left", h->index);
}

static void
qp_connect(struct host *h, struct qp *qp, const struct host *other, const struct qp *to,
	const struct flow_conf *conf)
{
	struct qp_attr attr = {
		.path_mtu = (enum ibv_mtu)(__builtin_ctz(conf->mtu) - 7),
		.dest_qpn = to->qpn,
		.port_num = 1,
		.timeout = TIMEOUT,
		.retry_cnt = RETRIES,
		.rnr_retry = RETRIES,
		.max_rd_atomic = QP_MAX_RD_ATOMIC,
		.max_dest_rd_atomic = QP_MAX_RD_ATOMIC,
		.access = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
		.path = {.port_num = 1, .tclass = conf->tclass, .hop_limit = 64},
	};

	memcpy(attr.path.sgid, h->dev->gids[0], 16);
	memcpy(attr.path.dgid, other->dev->gids[0], 16);
	modify(qp, &attr, h, IBV_QPS_INIT,
		IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	modify(qp, &attr, h, IBV_QPS_RTR,
		IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	modify(qp, &attr, h, IBV_QPS_RTS,
		IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			IBV_QP_MAX_QP_RD_ATOMIC);
}

void
flow_init(struct flow *flow, struct fabric *f, const struct flow_conf *conf)
{
	uint32_t depth = conf->bytes != 0   ? 1
			 : conf->depth != 0 ? conf->depth
					    : FLOW_DEPTH;

	memset(flow, 0, sizeof(*flow));
	flow->conf = *conf;
	if (conf->message == 0)
		flow->conf.message = FLOW_MSG;
	if (conf->mtu == 0)
		flow->conf.mtu = FLOW_MTU;
	flow->from = &f->hosts[conf->src];
	flow->to = &f->hosts[conf->dst];
	flow->from->app = flow->to->app = completions_read;
	flow->start.run = start;
	flow->stop.run = stop;
	flow->poster = conf->read ? flow->to : flow->from;
	flow->requester = conf->read ? &flow->receiver : &flow->sender;
	qp_create(flow->from, &flow->sender, depth);
	qp_create(flow->to, &flow->receiver, depth);
	/* As RDMA-CM would. Otherwise some QPs learn late what their peer understands. */
	if (f->conf.paths > 1)
		CHECK(dev_qp_agree(&flow->sender, EXT_ALL) == 0 &&
				dev_qp_agree(&flow->receiver, EXT_ALL) == 0,
			"dev_qp_agree");
	qp_connect(flow->from, &flow->sender, flow->to, &flow->receiver, &flow->conf);
	qp_connect(flow->to, &flow->receiver, flow->from, &flow->sender, &flow->conf);
	host_resolve(flow->from, flow->to);
	host_resolve(flow->to, flow->from);
	event_at(&flow->start, conf->start);
	if (conf->stop != 0)
		event_at(&flow->stop, conf->stop);
}

void
flow_fini(struct flow *flow)
{
	event_cancel(&flow->start);
	event_cancel(&flow->stop);
	dev_qp_stop(flow->from->dev, &flow->sender, clock_ns);
	dev_qp_stop(flow->to->dev, &flow->receiver, clock_ns);
	event_purge(&flow->sender.events);
	event_purge(&flow->receiver.events);
	dev_qp_fini(flow->from->dev, &flow->sender);
	dev_qp_fini(flow->to->dev, &flow->receiver);
}

uint64_t
flow_packets(struct flow *flow)
{
	uint32_t epsn =
		flow->conf.read ? flow->receiver.req.una_psn : flow->receiver.resp.epsn;

	flow->packets += (epsn - flow->epsn) & PSN_MASK;
	flow->epsn = epsn;
	return flow->packets;
}
