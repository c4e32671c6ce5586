/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "cover.h"
#include "msg.h"

#define GRH 40

/* Completion */

static void
local_check(const struct end *e, const struct msg *m)
{
	if (m->inlined)
		return;
	if (m->op == IBV_WR_RDMA_READ)
		CHECK(sgl_is(&m->local, 0, m->key, 0, m->len),
			"end %u: READ %u is complete and its %u bytes are wrong",
			e->number, m->seq, m->len);
	else
		CHECK(sgl_is(&m->local, 0, m->key, 0, m->len),
			"end %u: the source of request %u has changed", e->number,
			m->seq);
}

static void
counter_check(const struct end *e, const struct msg *m, uint64_t value)
{
	struct host *h = e->peer->host;
	uint8_t *seen = &h->counter_seen[m->word][value % 4096];

	CHECK(value < h->counter_adds[m->word],
		"end %u: addition %u returned %llu after %u additions", e->number, m->seq,
		(unsigned long long)value, h->counter_adds[m->word]);
	CHECK(*seen == 0, "end %u: additions %u and another one returned %llu", e->number,
		m->seq, (unsigned long long)value);
	*seen = 1;
	h->counter_done[m->word]++;
}

static void
atomic_check(const struct end *e, const struct msg *m)
{
	uint64_t value;

	sgl_copy_out(&m->local, 0, &value, 8);
	if (m->counter)
		counter_check(e, m, value);
	else
		CHECK(value == m->before, "end %u: atomic %u returned 0x%llx, not 0x%llx",
			e->number, m->seq, (unsigned long long)value,
			(unsigned long long)m->before);
}

static bool
is_write(const struct msg *m)
{
	return m->op == IBV_WR_RDMA_WRITE || m->op == IBV_WR_RDMA_WRITE_WITH_IMM ||
	       m->op == IBV_WR_ATOMIC_WRITE;
}

/* Checks the effects of a successful request of RC. */
static void
executed_check(struct end *e, struct msg *m)
{
	if (is_atomic(m)) {
		atomic_check(e, m);
		return;
	}
	local_check(e, m);
	if (is_write(m) || m->op == IBV_WR_RDMA_READ)
		CHECK(sgl_is(&m->remote, 0, m->key, 0, m->len),
			"end %u: request %u (op %u, %u bytes) is complete and its target "
			"is wrong",
			e->number, m->seq, m->op, m->len);
	/* It consumed a receive, whose completion is in the CQ already. */
	if (m->uses_recv && !m->received) {
		uint32_t n = e->recv_msgs_arrived;

		while (e->recv_msgs[n % END_MSGS] != m->seq)
			n++;
		e->must_have = n + 1;
	}
}

/* A packet with a known destination is copied while its ICRC is computed
 * (lib/qp/direct_place.c), so a corrupted one may change memory. */
static unsigned
may_be_corrupted(const struct end *e)
{
	return world.link.corrupts && !e->conn->xrc && conn_mtu(e->conn) >= icrc_copy_min
		       ? SGL_CORRUPTED
		       : 0;
}

/* Checks what a failed request did to its own memory. READ responses behind a missing one are
 * placed, too. A READ with the key of another region may have begun inside of that: with a small
 * congestion window each packet is requested, and checked by the responder, by itself. */
static void
failed_check(const struct end *e, struct msg *m)
{
	if (m->op == IBV_WR_RDMA_READ && m->must_fail == IBV_WC_REM_ACCESS_ERR)
		return;
	if (m->op == IBV_WR_RDMA_READ)
		CHECK(sgl_part(&m->local, m->key, m->len, conn_mtu(e->conn),
			      SGL_HOLES | may_be_corrupted(e)) >= 0,
			"end %u: READ %u failed and left something other than packets",
			e->number, m->seq);
	else if (!is_atomic(m) && m->must_fail == 0)
		local_check(e, m);
}

static void
cover_done(const struct msg *m, bool ok)
{
	/* Not m->to's QP: the receiver of a datagram may be destroyed. */
	unsigned type = m->to->conn->xrc ? IBV_QPT_XRC_RECV : m->to->type;

	cover.request[type % COVER_TYPES][m->op % COVER_OPCODES] += ok;
	cover.window[m->op % COVER_OPCODES] += ok && m->win != NULL;
}

void
msg_done(struct end *e, struct msg *m, bool ok)
{
	m->done = true;
	m->ok = ok;
	m->at = sim.now;
	cover_done(m, ok);
	if (is_local(m)) {
		win_done(m, ok);
		return;
	}
	if (!ok)
		failed_check(e, m);
	else if (e->type == IBV_QPT_RC)
		executed_check(e, m);
	else
		local_check(e, m);
	if (m->local.buf.data != NULL)
		sgl_put(e->host, &m->local, m->local.total);
}

/* Reception */

static bool
imm_matches(const struct msg *m, const struct ibv_wc *wc)
{
	bool imm = (wc->wc_flags & IBV_WC_WITH_IMM) != 0;
	bool inv = (wc->wc_flags & IBV_WC_WITH_INV) != 0;

	if (imm != m->imm || inv != (m->op == IBV_WR_SEND_WITH_INV))
		return false;
	return inv ? wc->invalidated_rkey == m->rkey
		   : !imm || wc->imm_data == m->imm_data;
}

/* Returns whether the receive holds this message. */
static bool
msg_matches(const struct end *e, const struct msg *m, const struct recv *r,
	const struct ibv_wc *wc)
{
	uint32_t grh = e->type == IBV_QPT_UD ? GRH : 0;
	bool write = m->op == IBV_WR_RDMA_WRITE_WITH_IMM;

	if (!m->uses_recv || m->to != e || wc->byte_len != m->len + grh ||
		!imm_matches(m, wc))
		return false;
	if (write != (wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM))
		return false;
	return write ? sgl_is(&m->remote, 0, m->key, 0, m->len)
		     : sgl_is(&r->sgl, grh, m->key, 0, m->len);
}

/* RC: the next message is the only one allowed. */
static struct msg *
received_next(struct end *e, const struct recv *r, const struct ibv_wc *wc)
{
	struct end *from = e->peer;
	struct msg *m;

	CHECK(from->recv_msgs_arrived != from->recv_msgs_posted,
		"end %u: a receive completed and nothing was sent", e->number);
	m = end_msg(from, from->recv_msgs[from->recv_msgs_arrived++ % END_MSGS]);
	CHECK(msg_matches(e, m, r, wc),
		"end %u: receive %u (%u bytes, opcode %u, flags 0x%x) is not message %u "
		"of end %u (%u bytes, op %u)",
		e->number, r->index, wc->byte_len, wc->opcode, wc->wc_flags, m->seq,
		from->number, m->len, m->op);
	CHECK(m->must_fail == 0, "end %u: message %u arrived and must fail", from->number,
		m->seq);
	return m;
}

/* UC, UD: any message that was sent and has not arrived; with duplication on the link,
 * one that has. */
static struct msg *
received_any(
	struct end *e, struct end *from, const struct recv *r, const struct ibv_wc *wc)
{
	struct msg *again = NULL;

	for (uint32_t s = from->retired; s != from->posted; s++) {
		struct msg *m = end_msg(from, s);

		if (m->must_fail != 0 || !msg_matches(e, m, r, wc))
			continue;
		if (!m->received)
			return m;
		again = m;
	}
	CHECK(again != NULL, "end %u: receive %u (%u bytes) is no message that was sent",
		e->number, r->index, wc->byte_len);
	CHECK(world.link.dups != 0, "end %u: message %u of end %u arrived twice",
		e->number, again->seq, from->number);
	return again;
}

static struct end *
sender_of(const struct end *e, const struct ibv_wc *wc)
{
	if (e->type != IBV_QPT_UD)
		return e->peer;
	for (unsigned i = 0; i < world.conns; i++) {
		struct conn *c = &world.conn[i];

		if (c->used && c->end[0].qp->qp_num == wc->src_qp)
			return &c->end[0];
	}
	sim_fail("end %u: a datagram from QP 0x%x, which does not exist", e->number,
		wc->src_qp);
}

struct msg *
msg_received(struct end *e, const struct recv *r, const struct ibv_wc *wc)
{
	struct msg *m;

	CHECK(((wc->wc_flags & IBV_WC_GRH) != 0) == (e->type == IBV_QPT_UD),
		"end %u: wc_flags 0x%x", e->number, wc->wc_flags);
	m = e->type == IBV_QPT_RC ? received_next(e, r, wc)
				  : received_any(e, sender_of(e, wc), r, wc);
	m->received = true;
	if (m->op == IBV_WR_SEND_WITH_INV)
		win_remote_inv_done(m);
	return m;
}

/* End of a message */

static void
remote_check_put(struct end *e, struct msg *m)
{
	if (m->remote.buf.data == NULL)
		return;
	if (m->op == IBV_WR_RDMA_READ || (m->done && m->ok && e->type == IBV_QPT_RC) ||
		m->received)
		CHECK(sgl_is(&m->remote, 0, m->key, 0, m->len),
			"end %u: the target of request %u changed after its completion",
			e->number, m->seq);
	else
		CHECK(sgl_part(&m->remote, m->key, m->len, conn_mtu(e->conn),
			      e->type == IBV_QPT_UC ? SGL_HOLES : may_be_corrupted(e)) >=
				0,
			"end %u: the target of request %u is partly written", e->number,
			m->seq);
	sgl_put(m->to->host, &m->remote, m->len);
}

static bool
cq_is_empty(const struct cq_model *m)
{
	const struct cq *cq = &to_cq(m->cq)->cq;

	return cq->head == cq->tail && !m->polling;
}

/* Returns whether no packet of it can be in flight any more. */
static bool
msg_is_over(const struct end *e, const struct msg *m)
{
	uint64_t oldest;

	if (!m->done)
		return false;
	if (e->type == IBV_QPT_RC)
		return m->ok && (!m->uses_recv || m->received);
	if (!cq_is_empty(m->to->rcq))
		return false;
	for (unsigned i = 0; i < world.hosts; i++) {
		if (host_has_frames(&world.host[i]))
			return false;
	}
	oldest = link_oldest(&world.link);
	return m->at < oldest && m->at < sim.now && e->host->kept < oldest;
}

void
end_retire(struct end *e)
{
	while (e->retired != e->posted) {
		struct msg *m = end_msg(e, e->retired);

		if (!msg_is_over(e, m))
			return;
		remote_check_put(e, m);
		win_release(m);
		e->retired++;
	}
}

void
end_retire_all(struct end *e)
{
	for (; e->retired != e->posted; e->retired++) {
		struct msg *m = end_msg(e, e->retired);

		if (!m->done)
			msg_done(e, m, false);
		remote_check_put(e, m);
		win_release(m);
	}
	win_reset(e);
	e->posted = e->done = e->retired = e->freed = e->last_signaled = 0;
	e->recv_msgs_posted = e->recv_msgs_arrived = e->must_have = e->recv_next = 0;
	e->failed = e->may_flush = e->may_retry = e->may_rem_op = false;
	e->drain_wanted = e->drained = false;
}
