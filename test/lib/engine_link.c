/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "../unit/rand.h"
#include "engine/engine_state.h"

#include "engine_link.h"

#define PD 1

static void *
counted_get(void *ctx, const char *name, size_t len)
{
	struct engine_link *l = ctx;
	void *mem = alloc_get(&alloc_plain, name, len);

	l->mem_used += mem != NULL ? len : 0;
	return mem;
}

static void
counted_put(void *ctx, void *mem, size_t len)
{
	struct engine_link *l = ctx;

	l->mem_used -= len;
	alloc_put(&alloc_plain, mem, len);
}

static void
side_init(struct link_side *s, struct engine_link *l, uint8_t id)
{
	unsigned engines = l->conf.engines[id - 1];
	struct dev_conf conf = {
		.name = "fake",
		.mtu = 4200,
		.qpn_base = 0x100u * id,
		.max_qp = l->conf.max_qp != 0 ? l->conf.max_qp : 64,
		.peer_window = l->conf.peer_window,
		.cc = {.on = l->conf.cc, .delay_unknown = l->conf.delay_unknown},
		.paths = (uint8_t)l->conf.paths,
	};
	struct net_addr *addr = &conf.net.addr[conf.net.addr_count++];

	s->link = l;
	assert_int_equal(gid_parse("192.0.2.0/24", addr->gid, &addr->prefix_len), 0);
	addr->gid[15] = id;
	fake_init(&s->port, engines != 0 ? engines : 1, id);
	s->port.rss = l->conf.rss;
	if (l->conf.rings) {
		fake_share_rounds(&s->port, l->rounds, l->rounds->count);
		l->rounds->count += engines != 0 ? engines : 1;
	}
	assert_int_equal(dev_create(&conf, &s->port.port, &l->mem, &s->dev), 0);
	assert_int_equal(event_queue_init(&s->events), 0);
	fcntl(s->events.fd, F_SETFL, O_NONBLOCK);
	assert_int_equal(srq_init(&s->srq, &l->mem, PD, 256, 2, &s->events, s), 0);
	s->mem = calloc(1, l->conf.mem_bytes);
	assert_non_null(s->mem);
	assert_int_equal(key_alloc(&s->dev->keys, PD, (uintptr_t)s->mem, s->mem,
				 l->conf.mem_bytes, IBV_ACCESS_LOCAL_WRITE, &s->lkey),
		0);
}

void
engine_link_init(struct engine_link *l, const struct engine_link_conf *conf)
{
	memset(l, 0, sizeof(*l));
	if (conf != NULL)
		l->conf = *conf;
	if (l->conf.mem_bytes == 0)
		l->conf.mem_bytes = 1u << 16;
	l->now = NS_PER_SEC;
	l->mem = (struct alloc){counted_get, counted_put, l};
	if (l->conf.rings) {
		l->rounds =
			alloc_get(&alloc_plain, "rounds", rounds_size(2 * FAKE_QUEUES));
		assert_non_null(l->rounds);
	}
	side_init(&l->a, l, 1);
	side_init(&l->b, l, 2);
}

static void
side_fini(struct link_side *s)
{
	struct event_record event;

	assert_int_equal(event_next(&s->events, &event), -EAGAIN);
	event_queue_fini(&s->events);
	srq_fini(&s->srq);
	assert_int_equal(key_free(&s->dev->keys, s->lkey), 0);
	dev_destroy(s->dev);
	fake_fini(&s->port);
	free(s->mem);
}

void
engine_link_fini(struct engine_link *l)
{
	side_fini(&l->a);
	side_fini(&l->b);
	alloc_put(&alloc_plain, l->rounds, rounds_size(2 * FAKE_QUEUES));
	assert_int_equal(l->mem_used, 0);
}

/* ---- Link ---- */

static bool
is_roce(const struct pkt *frame)
{
	return frame->len > 40 && frame->data[12] == 8 && frame->data[13] == 0 &&
	       frame->data[23] == 17;
}

/* The receive queue of a frame: by RSS over its IPv4 header and UDP ports. */
static unsigned
queue_of(const struct link_side *to, const struct pkt *frame)
{
	struct port_flow flow;
	int queue;

	if (to->port.rss == NULL || !is_roce(frame))
		return to->queue;
	memset(flow.src, 0, 10);
	memset(flow.src + 10, 0xFF, 2);
	memcpy(flow.dst, flow.src, 12);
	memcpy(flow.src + 12, frame->data + 26, 4);
	memcpy(flow.dst + 12, frame->data + 30, 4);
	flow.sport = (uint16_t)(frame->data[34] << 8 | frame->data[35]);
	flow.dport = (uint16_t)(frame->data[36] << 8 | frame->data[37]);
	queue = rss_queue(to->port.rss, &flow);
	assert_in_range(queue, 0, to->dev->engine_count - 1);
	return (unsigned)queue;
}

static unsigned
side_deliver(struct engine_link *l, struct link_side *from, struct link_side *to)
{
	struct pkt frame;
	unsigned n = 0;

	for (; fake_sent(&from->port, &frame); n++) {
		bool lost = to->deaf || rand_below(&l->rand, 1000) < to->drop;

		if (is_roce(&frame)) {
			to->roce_frames++;
			to->roce_bytes += frame.len;
		}
		if (!lost)
			fake_arrive(&to->port, queue_of(to, &frame), &frame);
		free(frame.data);
	}
	return n;
}

unsigned
engine_link_deliver(struct engine_link *l)
{
	return side_deliver(l, &l->a, &l->b) + side_deliver(l, &l->b, &l->a);
}

static unsigned
side_pass(struct link_side *s)
{
	unsigned moved = 0;

	for (unsigned i = 0; i < s->dev->engine_count && !s->stopped; i++)
		moved += engine_run(s->dev->engines[i], s->link->now);
	return moved;
}

unsigned
engine_link_pass(struct engine_link *l)
{
	unsigned moved = side_pass(&l->a) + side_pass(&l->b);

	return moved + engine_link_deliver(l);
}

unsigned
engine_link_blocked(const struct engine *e)
{
	const struct peer_window *w;
	const struct qp *qp;
	unsigned n = 0;

	TAILQ_FOREACH (w, &e->peers.blocked, blocked_link) {
		assert_false(TAILQ_EMPTY(&w->blocked));
		TAILQ_FOREACH (qp, &w->blocked, blocked_link) {
			assert_ptr_equal(w, qp->sched.on_blocked == BLOCKED_READ
						    ? &qp->peer->read
						    : &qp->peer->send);
			assert_int_not_equal(qp->sched.on_blocked, BLOCKED_NOT);
			n++;
		}
	}
	return n;
}

void
engine_link_drain(struct engine_link *l)
{
	while (engine_link_pass(l) != 0)
		;
}

static uint64_t
side_deadline(struct link_side *s)
{
	uint64_t when = TIME_NEVER;

	for (unsigned i = 0; i < s->dev->engine_count && !s->stopped; i++)
		when = RTE_MIN(when, engine_deadline(s->dev->engines[i]));
	return when;
}

void
engine_link_advance(struct engine_link *l, uint64_t ns)
{
	uint64_t end = l->now + ns;

	for (;;) {
		uint64_t next;

		engine_link_drain(l);
		next = RTE_MIN(side_deadline(&l->a), side_deadline(&l->b));
		/* Advance by at least one tick: a deadline may be that of a timer wheel
		 * slot. */
		next = RTE_MAX(next, l->now + WHEEL_TICK_NS);
		if (next >= end)
			break;
		l->now = next;
	}
	l->now = end;
	engine_link_drain(l);
}

/* ---- QPs ---- */

static uint32_t
wr_of(const struct link_qp_conf *conf)
{
	return conf->wr != 0 ? conf->wr : 256;
}

void
link_qp_create(struct link_side *s, struct link_qp *q, const struct link_qp_conf *conf)
{
	struct qp_conf qc = {
		.type = IBV_QPT_RC,
		.send_cq = &q->send_cq,
		.recv_cq = &q->recv_cq,
		.srq = conf->srq ? &s->srq : NULL,
		.pd = PD,
		.max_send_wr = wr_of(conf),
		.max_send_sge = 2,
		.max_recv_wr = wr_of(conf),
		.max_recv_sge = 2,
	};

	q->side = s;
	assert_int_equal(
		cq_init(&q->send_cq, &s->link->mem, 2 * wr_of(conf), &s->events, q), 0);
	assert_int_equal(
		cq_init(&q->recv_cq, &s->link->mem, 2 * wr_of(conf), &s->events, q), 0);
	q->qp = &q->core;
	assert_int_equal(dev_qp_init(s->dev, q->qp, &qc, conf->engine, &s->events, q), 0);
}

void
link_qp_destroy(struct link_qp *q)
{
	dev_qp_stop(q->side->dev, q->qp, q->side->link->now);
	event_purge(&q->qp->events);
	dev_qp_fini(q->side->dev, q->qp);
	cq_fini(&q->send_cq);
	cq_fini(&q->recv_cq);
}

struct qp_attr
link_qp_attr(const struct link_qp *q, const struct link_qp *to,
	const struct link_qp_conf *conf)
{
	struct qp_attr attr = {
		.path_mtu = conf->mtu != 0 ? conf->mtu : IBV_MTU_1024,
		.dest_qpn = to->qp->qpn,
		.port_num = 1,
		.timeout = conf->no_timeout     ? 0
			   : conf->timeout != 0 ? conf->timeout
						: 14,
		.retry_cnt = conf->retry_cnt != 0 ? conf->retry_cnt : 7,
		.rnr_retry = 7,
		.min_rnr_timer = conf->rnr_timer,
		.path = {.port_num = 1},
	};

	memcpy(attr.path.sgid, q->side->dev->gids[0], 16);
	memcpy(attr.path.dgid, to->side->dev->gids[0], 16);
	return attr;
}

static void
link_qp_to_rts(
	struct link_qp *q, const struct link_qp *to, const struct link_qp_conf *conf)
{
	struct qp_attr attr = link_qp_attr(q, to, conf);

	attr.state = IBV_QPS_INIT;
	assert_int_equal(dev_qp_modify(q->side->dev, q->qp, &attr,
				 IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
					 IBV_QP_ACCESS_FLAGS),
		0);
	attr.state = IBV_QPS_RTR;
	assert_int_equal(
		dev_qp_modify(q->side->dev, q->qp, &attr,
			IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				IBV_QP_MIN_RNR_TIMER),
		0);
	attr.state = IBV_QPS_RTS;
	assert_int_equal(
		dev_qp_modify(q->side->dev, q->qp, &attr,
			IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC),
		0);
}

void
link_qp_connect(struct link_qp *a, struct link_qp *b, const struct link_qp_conf *conf)
{
	link_qp_to_rts(a, b, conf);
	link_qp_to_rts(b, a, conf);
}

void
link_qps_create(struct engine_link *l, struct link_qp *a, struct link_qp *b, unsigned n,
	const struct link_qp_conf *conf)
{
	for (unsigned i = 0; i < n; i++) {
		link_qp_create(&l->a, &a[i], conf);
		link_qp_create(&l->b, &b[i], conf);
		link_qp_connect(&a[i], &b[i], conf);
	}
}

void
link_qps_destroy(struct link_qp *a, struct link_qp *b, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		link_qp_destroy(&a[i]);
		link_qp_destroy(&b[i]);
	}
}

void
link_qps_fini(struct engine_link *link, struct link_qp *a, struct link_qp *b, unsigned n)
{
	link_qps_destroy(a, b, n);
	engine_link_fini(link);
}

int
link_qp_modify(struct link_qp *q, enum ibv_qp_state state)
{
	struct qp_attr attr = {.state = state};

	return dev_qp_modify(q->side->dev, q->qp, &attr, IBV_QP_STATE);
}

int
link_qp_send(
	struct link_qp *q, uint64_t wr_id, uint32_t offset, uint32_t len, unsigned flags)
{
	struct sge sge = {(uintptr_t)q->side->mem + offset, len, q->side->lkey};
	struct send_req req = {
		.wr_id = wr_id, .flags = flags, .sge = &sge, .num_sge = len != 0};
	int rc = sq_post(&q->qp->sq, &req);

	if (rc == 0)
		engine_doorbell(q->qp);
	return rc;
}

int
link_qp_recv(struct link_qp *q, uint64_t wr_id, uint32_t offset, uint32_t len)
{
	struct sge sge = {(uintptr_t)q->side->mem + offset, len, q->side->lkey};
	struct recv_ring *ring = q->qp->srq != NULL ? &q->qp->srq->ring : q->qp->rq;
	int rc = ring_post(ring, wr_id, &sge, len != 0);

	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (qp_state(q->qp) == IBV_QPS_ERR)
		engine_doorbell(q->qp);
	return rc;
}

bool
link_qp_poll_send(struct link_qp *q, struct cqe *cqe)
{
	return cq_take(&q->send_cq, &q->qp->sq, cqe);
}

bool
link_qp_poll_recv(struct link_qp *q, struct cqe *cqe)
{
	return cq_take(&q->recv_cq, &q->qp->sq, cqe);
}

void
link_qp_expect_sent(
	struct link_qp *q, uint64_t first, unsigned n, enum ibv_wc_status status)
{
	for (unsigned i = 0; i < n; i++) {
		struct cqe cqe;

		assert_true(link_qp_poll_send(q, &cqe));
		assert_int_equal(cqe.wr_id, first + i);
		assert_int_equal(cqe.status, status);
	}
}

void
link_qp_expect_received(struct link_qp *q, uint64_t first, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		struct cqe cqe;

		assert_true(link_qp_poll_recv(q, &cqe));
		assert_int_equal(cqe.wr_id, first + i);
		assert_int_equal(cqe.status, IBV_WC_SUCCESS);
	}
}

void
link_qp_message(struct link_qp *from, struct link_qp *to, uint64_t wr_id)
{
	assert_int_equal(link_qp_recv(to, wr_id, 0, 64), 0);
	assert_int_equal(link_qp_send(from, wr_id, 0, 8, IBV_SEND_SIGNALED), 0);
}

void
link_qp_expect_message(struct link_qp *from, struct link_qp *to, uint64_t wr_id)
{
	link_qp_expect_sent(from, wr_id, 1, IBV_WC_SUCCESS);
	link_qp_expect_received(to, wr_id, 1);
}
