/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "../unit/rand.h"
#include "engine_bed.h"

#define PD 1

static void *
counted_get(void *ctx, const char *name, size_t len)
{
	struct bed *bed = ctx;
	void *mem = alloc_get(&alloc_plain, name, len);

	bed->mem_used += mem != NULL ? len : 0;
	return mem;
}

static void
counted_put(void *ctx, void *mem, size_t len)
{
	struct bed *bed = ctx;

	bed->mem_used -= len;
	alloc_put(&alloc_plain, mem, len);
}

static void
side_init(struct side *s, struct bed *bed, uint8_t id)
{
	unsigned engines = bed->conf.engines[id - 1];
	struct dev_conf conf = {
		.name = "fake",
		.mtu = 4200,
		.qpn_base = 0x100u * id,
		.max_qp = bed->conf.max_qp != 0 ? bed->conf.max_qp : 64,
		.peer_window = bed->conf.peer_window,
	};
	struct net_addr *addr = &conf.net.addr[conf.net.addr_count++];

	s->bed = bed;
	assert_int_equal(gid_parse("192.0.2.0/24", addr->gid, &addr->prefix_len), 0);
	addr->gid[15] = id;
	fake_init(&s->port, engines != 0 ? engines : 1, id);
	assert_int_equal(dev_create(&conf, &s->port.port, &bed->mem, &s->dev), 0);
	assert_int_equal(event_queue_init(&s->events), 0);
	fcntl(s->events.fd, F_SETFL, O_NONBLOCK);
	assert_int_equal(srq_init(&s->srq, &bed->mem, PD, 256, 2, &s->events, s), 0);
	s->mem = calloc(1, bed->conf.mem_bytes);
	assert_non_null(s->mem);
	assert_int_equal(key_alloc(&s->dev->keys, PD, (uintptr_t)s->mem, s->mem,
				 bed->conf.mem_bytes, IBV_ACCESS_LOCAL_WRITE, &s->lkey),
		0);
}

void
bed_init(struct bed *bed, const struct bed_conf *conf)
{
	memset(bed, 0, sizeof(*bed));
	if (conf != NULL)
		bed->conf = *conf;
	if (bed->conf.mem_bytes == 0)
		bed->conf.mem_bytes = 1u << 16;
	bed->now = SEC_NS;
	bed->mem = (struct alloc){counted_get, counted_put, bed};
	side_init(&bed->a, bed, 1);
	side_init(&bed->b, bed, 2);
}

static void
side_fini(struct side *s)
{
	struct event_record event;

	assert_int_equal(event_next(&s->events, &event), -EAGAIN);
	event_queue_fini(&s->events);
	srq_fini(&s->srq);
	assert_int_equal(dev_key_free(s->dev, s->lkey), 0);
	dev_destroy(s->dev);
	fake_fini(&s->port);
	free(s->mem);
}

void
bed_fini(struct bed *bed)
{
	side_fini(&bed->a);
	side_fini(&bed->b);
	assert_int_equal(bed->mem_used, 0);
}

/* ---- Link ---- */

static bool
is_roce(const struct pkt *frame)
{
	return frame->len > 40 && frame->data[12] == 8 && frame->data[13] == 0 &&
	       frame->data[23] == 17;
}

static unsigned
carry(struct bed *bed, struct side *from, struct side *to)
{
	struct pkt frame;
	unsigned n = 0;

	for (; fake_sent(&from->port, &frame); n++) {
		bool lost = to->deaf || rand_below(&bed->rand, 1000) < to->drop;

		if (is_roce(&frame)) {
			to->roce_frames++;
			to->roce_bytes += frame.len;
		}
		if (!lost)
			fake_arrive(&to->port, to->queue, &frame);
		free(frame.data);
	}
	return n;
}

unsigned
bed_carry(struct bed *bed)
{
	return carry(bed, &bed->a, &bed->b) + carry(bed, &bed->b, &bed->a);
}

unsigned
bed_turn(struct bed *bed)
{
	unsigned moved = 0;

	for (unsigned i = 0; i < bed->a.dev->engine_count; i++)
		moved += engine_run(bed->a.dev->engines[i], bed->now);
	for (unsigned i = 0; i < bed->b.dev->engine_count; i++)
		moved += engine_run(bed->b.dev->engines[i], bed->now);
	return moved + bed_carry(bed);
}

void
bed_settle(struct bed *bed)
{
	while (bed_turn(bed) != 0)
		;
}

static uint64_t
side_deadline(struct side *s)
{
	uint64_t when = TIME_NEVER;

	for (unsigned i = 0; i < s->dev->engine_count; i++)
		when = RTE_MIN(when, engine_deadline(s->dev->engines[i]));
	return when;
}

void
bed_run(struct bed *bed, uint64_t ns)
{
	uint64_t end = bed->now + ns;

	for (;;) {
		uint64_t next;

		bed_settle(bed);
		next = RTE_MIN(side_deadline(&bed->a), side_deadline(&bed->b));
		/* Advance by at least one tick: a deadline may be that of a timer wheel
		 * slot. */
		next = RTE_MAX(next, bed->now + WHEEL_TICK_NS);
		if (next >= end)
			break;
		bed->now = next;
	}
	bed->now = end;
	bed_settle(bed);
}

/* ---- QPs ---- */

static uint32_t
wr_of(const struct bed_qp_conf *conf)
{
	return conf->wr != 0 ? conf->wr : 256;
}

void
bed_qp_create(struct side *s, struct bed_qp *q, const struct bed_qp_conf *conf)
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
		cq_init(&q->send_cq, &s->bed->mem, 2 * wr_of(conf), &s->events, q), 0);
	assert_int_equal(
		cq_init(&q->recv_cq, &s->bed->mem, 2 * wr_of(conf), &s->events, q), 0);
	assert_int_equal(
		dev_qp_create(s->dev, &qc, conf->engine, &s->events, q, &q->qp), 0);
}

void
bed_qp_destroy(struct bed_qp *q)
{
	dev_qp_stop(q->side->dev, q->qp);
	event_purge(&q->qp->events);
	dev_qp_free(q->side->dev, q->qp);
	cq_fini(&q->send_cq);
	cq_fini(&q->recv_cq);
}

struct qp_attr
bed_attr(const struct bed_qp *q, const struct bed_qp *to, const struct bed_qp_conf *conf)
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
connect_one(struct bed_qp *q, const struct bed_qp *to, const struct bed_qp_conf *conf)
{
	struct qp_attr attr = bed_attr(q, to, conf);

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
bed_connect(struct bed_qp *a, struct bed_qp *b, const struct bed_qp_conf *conf)
{
	connect_one(a, b, conf);
	connect_one(b, a, conf);
}

void
bed_pairs_create(struct bed *bed, struct bed_qp *a, struct bed_qp *b, unsigned n,
	const struct bed_qp_conf *conf)
{
	for (unsigned i = 0; i < n; i++) {
		bed_qp_create(&bed->a, &a[i], conf);
		bed_qp_create(&bed->b, &b[i], conf);
		bed_connect(&a[i], &b[i], conf);
	}
}

void
bed_pairs_destroy(struct bed_qp *a, struct bed_qp *b, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		bed_qp_destroy(&a[i]);
		bed_qp_destroy(&b[i]);
	}
}

int
bed_modify(struct bed_qp *q, enum ibv_qp_state state)
{
	struct qp_attr attr = {.state = state};

	return dev_qp_modify(q->side->dev, q->qp, &attr, IBV_QP_STATE);
}

int
bed_send(struct bed_qp *q, uint64_t wr_id, uint32_t offset, uint32_t len, unsigned flags)
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
bed_recv(struct bed_qp *q, uint64_t wr_id, uint32_t offset, uint32_t len)
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
bed_sent(struct bed_qp *q, struct cqe *cqe)
{
	return cq_take(&q->send_cq, &q->qp->sq, cqe);
}

bool
bed_received(struct bed_qp *q, struct cqe *cqe)
{
	return cq_take(&q->recv_cq, &q->qp->sq, cqe);
}

void
bed_expect_sent(struct bed_qp *q, uint64_t first, unsigned n, enum ibv_wc_status status)
{
	for (unsigned i = 0; i < n; i++) {
		struct cqe cqe;

		assert_true(bed_sent(q, &cqe));
		assert_int_equal(cqe.wr_id, first + i);
		assert_int_equal(cqe.status, status);
	}
}

void
bed_expect_received(struct bed_qp *q, uint64_t first, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		struct cqe cqe;

		assert_true(bed_received(q, &cqe));
		assert_int_equal(cqe.wr_id, first + i);
		assert_int_equal(cqe.status, IBV_WC_SUCCESS);
	}
}
