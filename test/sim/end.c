/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <string.h>

#include "cover.h"
#include "end.h"
#include "ext.h"
#include "msg.h"
#include "xrc.h"

struct world world;

struct end *
end_of_number(unsigned number)
{
	struct conn *c = &world.conn[number / 2 % CONNS_MAX];

	CHECK(number < ENDS_MAX && c->used && number % 2 < c->ends,
		"a completion of end %u, which does not exist", number);
	return &c->end[number % 2];
}

struct end *
end_of_qp(const struct ibv_qp *qp)
{
	return qp->qp_context;
}

static void
rq_open(struct end *e)
{
	struct recv_model *m = &e->rq;

	m->host = e->host;
	m->number = e->number;
	m->qp = e->qp;
	m->srq = NULL;
	m->pd = e->pd;
	recv_open(m, RECV_RING);
	if (is_alone(e))
		xrc_open(e);
}

static struct ibv_qp *
qp_make(struct end *e, struct recv_model *srq)
{
	struct ibv_qp_init_attr attr = {
		.qp_context = e,
		.send_cq = e->scq->cq,
		.recv_cq = e->rcq->cq,
		.srq = srq != NULL ? srq->srq : NULL,
		.cap = {.max_send_wr = e->max_wr,
			.max_send_sge = 1 + (uint32_t)draw(4),
			.max_inline_data = chance(500) ? (uint32_t)draw(513) : 0,
			.max_recv_wr = 1 + (uint32_t)draw(32),
			.max_recv_sge = 1 + (uint32_t)draw(4)},
		.qp_type = e->type,
		.sq_sig_all = e->sig_all,
	};
	struct ibv_qp *qp;

	CHECK(rocade_context_set_engine(e->host->ctx, (int)e->engine) == 0, "set_engine");
	e->ex = chance(300);
	if (is_initiator(e))
		attr.qp_type = IBV_QPT_XRC_SEND;
	if (is_target(e))
		qp = xrc_target_create(e, &attr);
	else
		qp = e->ex ? ext_qp_create(e->host->ctx, e->host->pd[e->pd], &attr)
			   : ibv_create_qp(e->host->pd[e->pd], &attr);
	CHECK(qp != NULL, "ibv_create_qp: %s", strerror(errno));
	e->max_wr = attr.cap.max_send_wr;
	e->max_sge = attr.cap.max_send_sge;
	e->max_inline = attr.cap.max_inline_data;
	e->rq.max_wr = attr.cap.max_recv_wr;
	e->rq.max_sge = attr.cap.max_recv_sge;
	return qp;
}

/* Decides everything but the QP. Adds the end's completions to the size of its CQs, which
 * are created later. */
static void
end_plan(struct end *e, struct conn *c, unsigned i, struct host *h)
{
	static const uint32_t depths[] = {1, 2, 4, 16, 32, 64};

	e->number = c->number * 2 + i;
	e->conn = c;
	e->host = h;
	e->type = c->type;
	e->state = IBV_QPS_RESET;
	e->pd = (unsigned)draw(HOST_PDS);
	e->engine = (unsigned)draw(h->conf.engines);
	e->scq = &h->cq[draw(h->conf.cqs)];
	e->rcq = &h->cq[draw(h->conf.cqs)];
	e->max_wr = DRAW_OF(depths);
	e->sig_all = chance(200);
	e->qkey = 0x11110000u + e->number;
	e->rq.bound = 4 + (uint32_t)draw(40);
	/* A UD message may be as long as the device allows. */
	e->rq.cap = 40 + (uint32_t)draw(100) +
		    (c->type == IBV_QPT_UD ? 4096 : 10 * conn_mtu(c));
	e->recv = &e->rq;
	if (is_target(e) && h->conf.xrc && chance(700))
		xrc_share(e);
	else if (h->conf.srqs != 0 && !c->xrc && chance(600))
		e->recv = &h->srq[draw(h->conf.srqs)];
	e->recv->users++;
	e->scq->size += e->max_wr;
	e->rcq->size += e->recv == &e->rq ? e->rq.bound : 0;
}

/* Access rights of the peer; all of them in most cases. */
static int
access_choose(void)
{
	static const int rights[] = {IBV_ACCESS_REMOTE_WRITE, IBV_ACCESS_REMOTE_READ,
		IBV_ACCESS_REMOTE_ATOMIC};
	int access = rights[0] | rights[1] | rights[2];

	return chance(120) ? access & ~DRAW_OF(rights) : access;
}

static void
end_open(struct end *e)
{
	struct host *h = e->host;

	e->qp = qp_make(e, e->recv != &e->rq ? e->recv : NULL);
	rq_open(e);
	arena_get(&h->arena, END_WORDS * 8, true, &e->words);
	for (unsigned w = 0; w < END_WORDS; w++) {
		e->word_value[w] = rand_next(&sim.rand);
		memcpy(e->words.data + 8 * w, &e->word_value[w], 8);
	}
	win_open(e);
	TRACE("end %" PRIu64 ": host %" PRIu64 " qp 0x%" PRIx64 " type %" PRIu64
	      " engine %" PRIu64 " depth %" PRIu64 " srq %" PRIu64,
		e->number, h->index, e->qp->qp_num, (uint64_t)e->type, e->engine,
		e->max_wr, e->recv != &e->rq);
}

void
conn_plan(struct conn *c, unsigned number, enum ibv_qp_type type, struct host *a,
	struct host *b)
{
	static const unsigned rnr[] = {7, 7, 7, 7, 7, 3};

	memset(c, 0, sizeof(*c));
	c->number = number;
	c->type = type;
	c->ends = type == IBV_QPT_UD ? 1 : 2;
	c->xrc = type == IBV_QPT_RC && chance(200);
	c->ipv6 = chance(400);
	/* Small MTUs make more packets of the same bytes. */
	c->mtu = chance(500) ? IBV_MTU_256 + (unsigned)draw(2)
			     : IBV_MTU_256 + (unsigned)draw(5);
	c->timeout = world.perfect ? 15 : 9 + (unsigned)draw(6);
	c->retry_cnt = 7;
	c->rnr_retry = DRAW_OF(rnr);
	c->rnr_timer = 1 + (unsigned)draw(14);
	c->max_rd[0] = 1 + (unsigned)draw(4) * (unsigned)draw(6);
	c->max_rd[1] = 1 + (unsigned)draw(4) * (unsigned)draw(6);
	c->big = chance(40);
	c->access = access_choose();
	if (chance(50))
		c->max_rd[draw(2)] = 0;
	for (unsigned i = 0; i < c->ends; i++) {
		end_plan(&c->end[i], c, i, i == 0 ? a : b);
		if (c->ends == 2)
			c->end[i].peer = &c->end[!i];
	}
}

/* PSNs for the next life, often close to the wrap. Packets of the last life that are
 * still in flight must look old in the new one. */
static void
psns_choose(struct conn *c)
{
	for (unsigned i = 0; i < c->ends; i++) {
		struct end *e = &c->end[i];

		if (c->stale)
			e->psn += (1 << 22) + (uint32_t)draw(1 << 20);
		else
			e->psn = (uint32_t)(chance(500) ? 0xFFFFF0 + draw(16)
							: rand_next(&sim.rand));
		e->psn &= 0xFFFFFF;
	}
}

void
conn_open(struct conn *c)
{
	c->used = true;
	psns_choose(c);
	for (unsigned i = 0; i < c->ends; i++)
		end_open(&c->end[i]);
}

static void
end_close(struct end *e)
{
	CHECK(ibv_destroy_qp(e->qp) == 0, "ibv_destroy_qp");
	win_close(e);
	recv_close(&e->rq);
	if (is_alone(e))
		xrc_close(e);
	e->recv->users--;
	pattern_fill(e->words.data, e->words.len);
	arena_put(&e->host->arena, &e->words);
}

void
conn_close(struct conn *c)
{
	conn_reset(c);
	for (unsigned i = 0; i < c->ends; i++)
		end_close(&c->end[i]);
	c->used = false;
}

/* ---- States ---- */

void
end_modify(struct end *e, enum ibv_qp_state state, struct ibv_qp_attr *attr, int mask)
{
	struct ibv_qp_attr plain = {0};
	int err;

	if (attr == NULL)
		attr = &plain;
	attr->qp_state = state;
	err = ibv_modify_qp(e->qp, attr, mask | IBV_QP_STATE);
	CHECK(err == 0, "end %u: from state %u to %u: %s", e->number, e->state, state,
		strerror(err));
	TRACE("end %" PRIu64 ": state %" PRIu64 " -> %" PRIu64, e->number,
		(uint64_t)e->state, (uint64_t)state);
	cover_state(e->type, e->state, state);
	e->state = state;
}

static void
to_init(struct end *e)
{
	struct ibv_qp_attr attr = {.port_num = 1,
		.qp_access_flags = (unsigned)e->conn->access,
		.qkey = e->qkey};

	end_modify(e, IBV_QPS_INIT, &attr,
		IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			(e->type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS));
}

/* Whether the end agrees on selective acknowledgements in this life; its peer may not. Not
 * drawn, so that the seed's other choices do not depend on it. */
static void
extensions_choose(const struct end *e)
{
	struct qp *qp = to_qp(e->qp)->qp;

	qp->extensions = (sim.seed + e->number + e->conn->life) % 4 != 0 ? EXT_SACK : 0;
}

static void
to_rtr(struct end *e, uint32_t rq_psn)
{
	struct conn *c = e->conn;
	struct host *there;
	struct ibv_qp_attr attr = {
		.path_mtu = c->mtu,
		.rq_psn = rq_psn,
		.max_dest_rd_atomic = (uint8_t)c->max_rd[e == &c->end[0]],
		.min_rnr_timer = (uint8_t)c->rnr_timer,
		.ah_attr = {.is_global = 1,
			.port_num = 1,
			.grh = {.hop_limit = 64, .sgid_index = c->ipv6}},
	};
	int mask = 0;

	if (e->type != IBV_QPT_UD) {
		there = e->peer->host;
		attr.dest_qp_num = e->peer->qp->qp_num;
		attr.ah_attr.grh.dgid = c->ipv6 ? there->gid6 : there->gid4;
		mask = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	}
	if (e->type == IBV_QPT_RC)
		extensions_choose(e);
	if (e->type == IBV_QPT_RC && !is_initiator(e))
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	end_modify(e, IBV_QPS_RTR, &attr, mask);
}

static void
to_rts(struct end *e, uint32_t sq_psn)
{
	struct conn *c = e->conn;
	struct ibv_qp_attr attr = {
		.sq_psn = sq_psn,
		.timeout = (uint8_t)c->timeout,
		.retry_cnt = (uint8_t)c->retry_cnt,
		.rnr_retry = (uint8_t)c->rnr_retry,
		.max_rd_atomic = (uint8_t)c->max_rd[e == &c->end[1]],
	};
	int mask = IBV_QP_SQ_PSN;

	if (is_target(e))
		mask |= IBV_QP_TIMEOUT;
	else if (e->type == IBV_QPT_RC)
		mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			IBV_QP_MAX_QP_RD_ATOMIC;
	end_modify(e, IBV_QPS_RTS, &attr, mask);
}

bool
conn_step(struct conn *c)
{
	struct end *e = &c->end[draw(c->ends)];
	bool up = true;

	if (e->state == IBV_QPS_RTS)
		e = &c->end[c->ends - 1 - (unsigned)(e - c->end)];
	switch (e->state) {
	case IBV_QPS_RESET:
		to_init(e);
		break;
	case IBV_QPS_INIT:
		to_rtr(e, e->peer != NULL ? e->peer->psn : 0);
		break;
	case IBV_QPS_RTR:
		to_rts(e, e->psn);
		break;
	default:
		break;
	}
	for (unsigned i = 0; i < c->ends; i++)
		up = up && c->end[i].state == IBV_QPS_RTS;
	c->up = up;
	return up;
}

void
conn_fault(struct conn *c)
{
	c->fault = true;
	for (unsigned i = 0; i < c->ends; i++)
		c->end[i].may_flush = c->end[i].may_retry = true;
}

void
end_in_error(struct end *e)
{
	e->last_wqe += e->recv != &e->rq || is_target(e);
	conn_fault(e->conn);
}

/* ---- RESET ---- */

/* RESET drops the receive that the QP holds. */
static void
held_recv_drop(struct end *e)
{
	const struct qp *qp = to_qp(e->qp)->qp;

	if (!qp->resp.wqe_held || (e->recv == &e->rq && !is_target(e)))
		return;
	recv_done(e->recv, recv_find(e->recv, qp->wqe->wr_id), UINT32_MAX);
}

static void
end_reset(struct end *e)
{
	if (e->state == IBV_QPS_RESET)
		return;
	/* CQEs of a target stay in the CQ across RESET, so poll them before. */
	if (chance(700) || is_target(e)) {
		cq_poll(e->scq, 100000);
		cq_poll(e->rcq, 100000);
	}
	host_events(e->host);
	held_recv_drop(e);
	cq_purged(e->scq, e);
	if (e->rcq != e->scq)
		cq_purged(e->rcq, e);
	end_modify(e, IBV_QPS_RESET, NULL, 0);
	if (e->recv == &e->rq && !is_target(e))
		recv_drop_all(&e->rq);
}

/* Compares the words with the results that the peer's atomics may have. */
static void
words_resolve(struct end *e)
{
	for (unsigned w = 0; w < END_WORDS; w++) {
		uint64_t value;
		bool fits;

		memcpy(&value, e->words.data + 8 * w, 8);
		fits = value == e->word_value[w];
		for (uint32_t s = e->peer->retired; s != e->peer->posted && !fits; s++) {
			const struct msg *m = end_msg(e->peer, s);

			/* Executed up to the request before this one. */
			if (is_atomic(m) && !m->counter && m->word == w &&
				!(m->done && m->ok))
				fits = value == m->before;
		}
		CHECK(fits, "end %u: word %u has a value that no atomic wrote", e->number,
			w);
		e->word_value[w] = value;
	}
}

static void
cqs_poll(void)
{
	for (unsigned h = 0; h < world.hosts; h++) {
		for (unsigned i = 0; i < world.host[h].conf.cqs; i++)
			cq_poll(&world.host[h].cq[i], UINT32_MAX);
	}
}

void
conn_reset(struct conn *c)
{
	unsigned first = (unsigned)draw(c->ends);

	for (unsigned i = 0; i < c->ends; i++)
		end_reset(&c->end[i ^ (c->ends == 2 ? first : 0)]);
	for (unsigned i = 0; i < world.hosts; i++)
		host_flush(&world.host[i]);
	/* The flush above ran the engines. Check the SRQ limits before the next post. */
	for (unsigned i = 0; i < world.hosts; i++) {
		for (unsigned n = 0; n < world.host[i].conf.srqs; n++)
			srq_check(&world.host[i].srq[n]);
	}
	/* UC and UD accept packets of an earlier life. */
	c->stale = c->type == IBV_QPT_RC && !c->stale && chance(400);
	for (unsigned i = 0; i < c->ends && !c->stale; i++)
		link_purge(&world.link, c->end[i].qp->qp_num);
	if (c->type == IBV_QPT_UD)
		cqs_poll(); /* what it has sent is forgotten after this */
	for (unsigned i = 0; i < c->ends; i++) {
		if (c->type == IBV_QPT_RC)
			words_resolve(&c->end[i]);
	}
	for (unsigned i = 0; i < c->ends; i++)
		end_retire_all(&c->end[i]);
	c->up = c->fault = false;
	c->access = access_choose();
	psns_choose(c);
	c->life++;
	c->since = sim.now;
}
