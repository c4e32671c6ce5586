/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <string.h>

#include "check.h"
#include "cover.h"
#include "gen.h"
#include "quiesce.h"
#include "msg.h"
#include "adversary.h"

#define REGIONS 8

const char *const gen_texts[GEN_COUNT] = {
#define GEN_TEXT(name, weight, text) [GEN_##name] = text,
	GEN_OPS(GEN_TEXT)
#undef GEN_TEXT
};

static struct region {
	struct host *host;
	struct ibv_mr *mr;
	struct buf buf;
} regions[REGIONS];

static struct conn *
any_conn(void)
{
	return &world.conn[draw(world.conns)];
}

static struct end *
any_end(void)
{
	struct conn *c = any_conn();

	return &c->end[draw(c->ends)];
}

static struct host *
any_host(void)
{
	return &world.host[draw(world.hosts)];
}

/* ---- The operations ---- */
static bool conn_recover(struct conn *c);

static bool
op_send(void)
{
	struct end *e = any_end();

	if (e->state < IBV_QPS_RTS && !chance(20))
		return conn_step(e->conn) || true;
	if (e->state == IBV_QPS_ERR && !chance(100))
		return conn_recover(e->conn);
	if (e->peer != NULL && e->peer->state < IBV_QPS_RTR)
		e->may_retry = true;
	return end_post(e, 1 + (unsigned)draw(chance(300) ? POST_LIST : 1), false);
}

static bool
op_bad_request(void)
{
	struct end *e = any_end();

	if (e->state != IBV_QPS_RTS || world.quiescing)
		return false;
	return end_post(e, 1, true);
}

static bool
op_receive(void)
{
	struct end *e = any_end();

	if (e->state == IBV_QPS_RESET && e->recv == &e->rq)
		return false;
	return recv_post(e->recv, 1 + (unsigned)draw(chance(400) ? 4 : 1));
}

static bool
op_poll(void)
{
	struct host *h = any_host();

	cq_poll(&h->cq[draw(h->conf.cqs)], chance(500) ? 1 : 1 + (unsigned)draw(40));
	return true;
}

static bool
op_arm(void)
{
	struct host *h = any_host();

	cq_arm_op(&h->cq[draw(h->conf.cqs)]);
	return true;
}

static struct recv_model *
any_srq(void)
{
	struct host *h = any_host();
	unsigned n = h->conf.srqs + h->conf.xrc;

	return n != 0 ? host_srq(h, (unsigned)draw(n)) : NULL;
}

static bool
op_srq_limit(void)
{
	struct recv_model *m = any_srq();

	if (m != NULL)
		srq_arm_op(m);
	return m != NULL;
}

static bool
op_srq_resize(void)
{
	struct recv_model *m = any_srq();

	if (m != NULL)
		srq_resize_op(m);
	return m != NULL;
}

static bool
op_region(void)
{
	struct region *r = &regions[draw(REGIONS)];

	if (r->mr != NULL) {
		CHECK(ibv_dereg_mr(r->mr) == 0, "ibv_dereg_mr");
		r->mr = NULL;
		arena_put(&r->host->arena, &r->buf);
		return true;
	}
	r->host = any_host();
	if (!arena_get(&r->host->arena, (uint32_t)rand_magnitude(&sim.rand, 14), false,
		    &r->buf))
		return false;
	r->mr = ibv_reg_mr(r->host->pd[draw(HOST_PDS)], r->buf.data, r->buf.len,
		IBV_ACCESS_LOCAL_WRITE | (int)draw(16));
	CHECK(r->mr != NULL, "ibv_reg_mr: %s", strerror(errno));
	return true;
}

static bool
op_cq_resize(void)
{
	struct host *h = any_host();

	cq_resize_op(&h->cq[draw(h->conf.cqs)]);
	return true;
}

static void
sgl_revoke(struct sgl *s, bool *lost)
{
	CHECK(ibv_dereg_mr(s->mr) == 0, "ibv_dereg_mr");
	s->mr = NULL;
	*lost = true;
}

/* Deregisters a region that a request in progress uses. */
static bool
op_revoke(void)
{
	struct end *e = any_end();

	for (uint32_t s = e->done; s != e->posted && !world.quiescing; s++) {
		struct msg *m = end_msg(e, s);

		if (m->remote.mr == NULL && m->local.mr == NULL)
			continue;
		if (m->remote.mr != NULL && (m->local.mr == NULL || chance(500)))
			sgl_revoke(&m->remote, &m->lost_remote);
		else
			sgl_revoke(&m->local, &m->lost_local);
		e->may_flush = true;
		if (e->type == IBV_QPT_RC)
			conn_fault(e->conn);
		return true;
	}
	return false;
}

static bool
op_bad_receive(void)
{
	struct end *e = any_end();

	if (world.quiescing || (e->recv == &e->rq && e->state == IBV_QPS_RESET))
		return false;
	return recv_make_bad(e->recv);
}

static bool
op_adversary(void)
{
	return !world.quiescing && adversary_op();
}

/* Modifies a QP without a state change, in INIT, RTS or SQD. */
static bool
op_modify(void)
{
	struct end *e = any_end();
	struct ibv_qp_attr attr = {.cur_qp_state = e->state};

	end_sync(e);
	if (e->state == IBV_QPS_INIT || e->state == IBV_QPS_SQD)
		end_modify(e, e->state, &attr, 0);
	else if (e->state == IBV_QPS_RTS)
		end_modify(e, e->state, &attr, chance(500) ? IBV_QP_CUR_STATE : 0);
	else
		return false;
	return true;
}

static bool
op_query(void)
{
	struct end *e = any_end();
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	end_sync(e);
	CHECK(ibv_query_qp(e->qp, &attr, IBV_QP_STATE, &init) == 0, "ibv_query_qp");
	CHECK(attr.qp_state == e->state && init.cap.max_send_wr == e->max_wr,
		"end %u: ibv_query_qp returns state %u", e->number, attr.qp_state);
	if (e->peer != NULL && e->state >= IBV_QPS_RTR && e->state <= IBV_QPS_SQD)
		CHECK(attr.dest_qp_num == e->peer->qp->qp_num &&
				attr.path_mtu == e->conn->mtu,
			"end %u: ibv_query_qp returns QP 0x%x, MTU %u", e->number,
			attr.dest_qp_num, attr.path_mtu);
	return true;
}

static bool
drain_begin(struct end *e)
{
	struct ibv_qp_attr attr = {.en_sqd_async_notify = chance(500)};

	if (world.quiescing)
		return false;
	e->drain_wanted = attr.en_sqd_async_notify;
	e->drained = false;
	end_modify(e, IBV_QPS_SQD, &attr, IBV_QP_EN_SQD_ASYNC_NOTIFY);
	return true;
}

static bool
op_drain(void)
{
	struct end *e = any_end();

	end_sync(e);
	if (e->state == IBV_QPS_RTS)
		return drain_begin(e);
	if (e->state == IBV_QPS_SQD)
		return quiesce_sqd(e);
	return e->state == IBV_QPS_SQE && quiesce_sqe(e);
}

static bool
op_error(void)
{
	struct end *e = any_end();

	end_sync(e);
	if (e->state == IBV_QPS_RESET || e->state == IBV_QPS_ERR || world.quiescing)
		return false;
	end_modify(e, IBV_QPS_ERR, NULL, 0);
	end_in_error(e);
	return true;
}

/* Checks that a QP in ERR has flushed everything. */
static void
flushed_check(struct end *e)
{
	/* The flush takes a pass of the engine. */
	if (e->state != IBV_QPS_ERR || e->scq->broken || e->rcq->broken ||
		host_deadline(e->host) <= sim.now)
		return;
	cq_poll(e->scq, 100000);
	cq_poll(e->rcq, 100000);
	CHECK(only_unsignaled_left(e), "end %u: request %u was not flushed", e->number,
		e->done);
	CHECK(e->recv != &e->rq || e->rq.live == 0 || is_target(e),
		"end %u: %u receives were not flushed", e->number, e->rq.live);
}

static bool
op_reset(void)
{
	struct conn *c = any_conn();

	if (world.quiescing || (c->end[0].state == IBV_QPS_RESET &&
				       c->end[c->ends - 1].state == IBV_QPS_RESET))
		return false;
	for (unsigned i = 0; i < c->ends; i++) {
		end_sync(&c->end[i]);
		flushed_check(&c->end[i]);
	}
	conn_reset(c);
	return true;
}

static const struct {
	bool (*run)(void);
	unsigned weight;
} gen_rows[GEN_COUNT] = {
#define GEN_ROW(name, weight, text) [GEN_##name] = {op_##name, weight},
	GEN_OPS(GEN_ROW)
#undef GEN_ROW
};

static unsigned
op_weight(unsigned op)
{
	switch (op) {
	case GEN_bad_request:
	case GEN_revoke:
		return world.bad_requests;
	case GEN_adversary:
		return adversary_active() ? 150 : 0;
	case GEN_bad_receive:
		return world.bad_requests / 2;
	case GEN_drain:
	case GEN_error:
	case GEN_reset:
		return world.disruption;
	default:
		return gen_rows[op].weight;
	}
}

/* Brings a connection up, or resets one with a failed end. */
static bool
conn_recover(struct conn *c)
{
	for (unsigned i = 0; i < c->ends; i++) {
		struct end *e = &c->end[i];

		end_sync(e);
		if (e->state == IBV_QPS_SQE || e->state == IBV_QPS_SQD)
			return chance(100) && op_drain();
		if (e->state == IBV_QPS_ERR && chance(60)) {
			flushed_check(e);
			conn_reset(c);
			return true;
		}
	}
	return !c->up && conn_step(c);
}

bool
gen_op(void)
{
	unsigned total = 0, pick;

	if (chance(150))
		return conn_recover(any_conn());
	for (unsigned i = 0; i < GEN_COUNT; i++)
		total += op_weight(i);
	pick = (unsigned)draw(total);
	for (unsigned i = 0; i < GEN_COUNT; i++) {
		if (pick < op_weight(i)) {
			bool did = gen_rows[i].run();

			cover.op[i] += did;
			return did;
		}
		pick -= op_weight(i);
	}
	return false;
}

void
gen_end(void)
{
	for (unsigned i = 0; i < REGIONS; i++) {
		struct region *r = &regions[i];

		if (r->mr == NULL)
			continue;
		CHECK(ibv_dereg_mr(r->mr) == 0, "ibv_dereg_mr");
		arena_put(&r->host->arena, &r->buf);
		r->mr = NULL;
	}
}
