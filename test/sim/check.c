/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks each completion: that it may occur, and that its fields are right. */
#include <errno.h>

#include "check.h"
#include "cover.h"
#include "msg.h"
#include "adversary.h"

static bool
end_cq_broken(const struct end *e)
{
	return e->scq->broken || e->rcq->broken;
}

/* A CQ overflow moves the QPs of the CQ to ERR. Their peers then see a remote operation
 * error. */
static void
overflow_check(struct end *e)
{
	struct cq_model *cqs[2] = {e->scq, e->rcq};

	for (unsigned i = 0; i < 2; i++) {
		if (to_cq(cqs[i]->cq)->cq.error)
			cqs[i]->broken = true;
	}
	if (end_cq_broken(e)) {
		conn_fault(e->conn);
		if (e->peer != NULL)
			e->peer->may_rem_op = true;
	}
}

/* Follows a state change that the QP made by itself. */
void
end_sync(struct end *e)
{
	enum ibv_qp_state state = qp_state(to_qp(e->qp)->qp);
	struct conn *c = e->conn;

	if (unlikely(world.small_cq)) {
		for (unsigned i = 0; i < c->ends; i++)
			overflow_check(&c->end[i]);
	}
	if (state == e->state)
		return;
	TRACE("end %" PRIu64 ": entered state %" PRIu64 ", was %" PRIu64, e->number,
		(uint64_t)state, (uint64_t)e->state);
	CHECK(state == IBV_QPS_ERR || state == IBV_QPS_SQE,
		"end %u: entered state %u by itself", e->number, state);
	CHECK(state == IBV_QPS_ERR || e->type != IBV_QPT_RC, "end %u: an RC QP is in SQE",
		e->number);
	CHECK(e->may_flush || c->fault || end_cq_broken(e) || e->recv->has_bad ||
			(e->peer != NULL && e->peer->recv->has_bad) ||
			(e->type == IBV_QPT_RC &&
				(!world_perfect() || e->may_retry || c->rnr_retry != 7)),
		"end %u: the QP failed without a cause", e->number);
	cover_state(e->type, e->state, state);
	e->state = state;
	if (state == IBV_QPS_ERR)
		end_in_error(e);
}

/* ---- Sends ---- */

static unsigned
wc_opcode(uint8_t op)
{
	switch (op) {
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		return IBV_WC_RDMA_WRITE;
	case IBV_WR_RDMA_READ:
		return IBV_WC_RDMA_READ;
	case IBV_WR_ATOMIC_WRITE:
		return IBV_WC_ATOMIC_WRITE;
	case IBV_WR_LOCAL_INV:
		return IBV_WC_LOCAL_INV;
	case IBV_WR_BIND_MW:
		return IBV_WC_BIND_MW;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		return IBV_WC_COMP_SWAP;
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		return IBV_WC_FETCH_ADD;
	default:
		return IBV_WC_SEND;
	}
}

static void
send_good(struct end *e, struct msg *m, const struct ibv_wc *wc)
{
	CHECK(!e->failed, "end %u: request %u succeeds after a failed one", e->number,
		m->seq);
	CHECK(m->signaled, "end %u: a completion for request %u, which is unsignaled",
		e->number, m->seq);
	CHECK(m->must_fail == 0, "end %u: request %u succeeds and must fail", e->number,
		m->seq);
	CHECK(wc->opcode == wc_opcode(m->op), "end %u: request %u: opcode %u", e->number,
		m->seq, wc->opcode);
	CHECK(wc->byte_len == m->len, "end %u: request %u: byte_len %u, not %u",
		e->number, m->seq, wc->byte_len, m->len);
	msg_done(e, m, true);
}

/* Returns whether a request may be the first to fail, with this status. */
static bool
may_fail(const struct end *e, const struct msg *m, enum ibv_wc_status status)
{
	if (m->must_fail == status || end_cq_broken(e))
		return true;
	if (status == IBV_WC_RETRY_EXC_ERR)
		return e->type == IBV_QPT_RC && (e->may_retry || !world_perfect());
	if (status == IBV_WC_RNR_RETRY_EXC_ERR)
		return e->conn->rnr_retry != 7;
	if (status == IBV_WC_REM_OP_ERR)
		return e->may_rem_op || (e->peer != NULL && e->peer->recv->has_bad);
	if (status == IBV_WC_REM_ACCESS_ERR)
		return m->lost_remote;
	if (status == IBV_WC_LOC_PROT_ERR)
		return m->lost_local;
	return false;
}

static void
send_bad(struct end *e, struct msg *m, const struct ibv_wc *wc)
{
	if (wc->status == IBV_WC_WR_FLUSH_ERR) {
		CHECK(e->state == IBV_QPS_ERR || e->state == IBV_QPS_SQE || e->failed,
			"end %u: request %u is flushed in state %u", e->number, m->seq,
			e->state);
		e->failed = true;
	} else {
		CHECK(!e->failed, "end %u: a second failure: request %u with %s",
			e->number, m->seq, ibv_wc_status_str(wc->status));
		CHECK(may_fail(e, m, wc->status), "end %u: request %u fails with %s (%u)",
			e->number, m->seq, ibv_wc_status_str(wc->status), wc->vendor_err);
		e->failed = true;
		cover.stale_keys += m->stale && wc->status == m->must_fail;
		cover.retries_ran_out += wc->status == IBV_WC_RETRY_EXC_ERR;
	}
	msg_done(e, m, false);
}

static void
send_seen(struct cq_model *cq, const struct ibv_wc *wc)
{
	struct end *e = end_of_number(ID_OWNER(wc->wr_id));
	uint32_t seq = ID_INDEX(wc->wr_id);
	struct msg *m = end_msg(e, seq);

	end_sync(e);
	CHECK(e->scq == cq && e->qp->qp_num == wc->qp_num,
		"end %u: a completion in the wrong CQ", e->number);
	CHECK(seq - e->done < e->posted - e->done,
		"end %u: completion of request %u, expected %u or later", e->number, seq,
		e->done);
	for (; e->done != seq; e->done++) {
		struct msg *before = end_msg(e, e->done);

		CHECK(!before->signaled && !e->failed,
			"end %u: request %u completes before request %u", e->number, seq,
			e->done);
		CHECK(before->must_fail == 0,
			"end %u: request %u must fail and was skipped", e->number,
			before->seq);
		msg_done(e, before, true);
	}
	if (wc->status == IBV_WC_SUCCESS)
		send_good(e, m, wc);
	else
		send_bad(e, m, wc);
	e->done = e->freed = seq + 1;
	cq_note(cq, wc->status != IBV_WC_SUCCESS);
	end_retire(e);
}

/* ---- Receives ---- */

static void
receive_good(struct end *e, struct recv *r, const struct ibv_wc *wc)
{
	struct msg *m = msg_received(e, r, wc);
	uint32_t written = m->op == IBV_WR_RDMA_WRITE_WITH_IMM ? 0 : wc->byte_len;

	CHECK(written <= r->cap, "end %u: %u bytes in a receive of %u", e->number,
		written, r->cap);
	CHECK(!r->bad || written == 0,
		"end %u: a receive without access rights took a message", e->number);
	if (e->type == IBV_QPT_RC)
		cq_note(e->rcq, m->solicited);
	else if (m->solicited || e->rcq->armed_solicited)
		e->rcq->possible = true; /* or a completion that looks like it */
	cq_note(e->rcq, false);
	/* UC: a discarded message may have written a part of itself. */
	recv_done(e->recv, r, e->type == IBV_QPT_UC ? r->cap : written);
}

static void
receive_bad(struct end *e, struct recv *r, const struct ibv_wc *wc)
{
	switch (wc->status) {
	case IBV_WC_WR_FLUSH_ERR:
		CHECK(e->state == IBV_QPS_ERR, "end %u: a receive is flushed in state %u",
			e->number, e->state);
		break;
	case IBV_WC_LOC_PROT_ERR:
		CHECK(r->bad || r->lost, "end %u: receive %u fails with %s", e->number,
			r->index, ibv_wc_status_str(wc->status));
		break;
	case IBV_WC_REM_INV_REQ_ERR:
	case IBV_WC_LOC_LEN_ERR:
		/* UC discards the message. The receive of an SRQ completes in error; the
		 * QP goes on. */
		if (e->type == IBV_QPT_UC && e->recv->srq != NULL)
			break;
		/* fall through */
	default:
		CHECK(e->conn->fault || end_cq_broken(e),
			"end %u: receive %u fails with %s", e->number, r->index,
			ibv_wc_status_str(wc->status));
		break;
	}
	cq_note(e->rcq, true);
	recv_done(e->recv, r, r->cap);
}

static struct end *
end_of_qpn(const struct host *h, uint32_t qpn)
{
	for (unsigned i = 0; i < ENDS_MAX; i++) {
		struct conn *c = &world.conn[i / 2];

		if (c->used && i % 2 < c->ends && c->end[i % 2].host == h &&
			c->end[i % 2].qp->qp_num == qpn)
			return &c->end[i % 2];
	}
	sim_fail("host %u: a completion of QP 0x%x, which does not exist", h->index, qpn);
}

static void
receive_seen(struct cq_model *cq, const struct ibv_wc *wc)
{
	struct end *e = end_of_qpn(cq->host, wc->qp_num);
	bool srq = ID_KIND(wc->wr_id) == ID_SRQ;
	struct recv_model *m =
		srq ? &cq->host->srq[ID_OWNER(wc->wr_id) % (HOST_SRQS + 1)] : &e->rq;
	struct recv *r;

	end_sync(e);
	CHECK(e->rcq == cq && e->recv == m,
		"end %u: a receive of another queue completes", e->number);
	r = recv_find(m, wc->wr_id);
	/* A QP takes receives in FIFO order. An RQ is used by this QP alone. */
	CHECK((int32_t)(r->index - e->recv_next) >= 0 && (srq || r->index == m->oldest),
		"end %u: receive %u completes out of order", e->number, r->index);
	e->recv_next = r->index + 1;
	cover.xrc_shared += srq && is_target(e);
	if (wc->status == IBV_WC_SUCCESS)
		receive_good(e, r, wc);
	else
		receive_bad(e, r, wc);
	if (e->peer != NULL)
		end_retire(e->peer);
}

void
wc_check(struct cq_model *cq, const struct ibv_wc *wc)
{
	TRACE("host %" PRIu64 " cq %" PRIu64 ": %" PRIx64 " status %" PRIu64
	      " opcode %" PRIu64 " bytes %" PRIu64,
		cq->host->index, cq->index, wc->wr_id, (uint64_t)wc->status,
		(uint64_t)wc->opcode, wc->byte_len);
	cq->polled++;
	cover.status[wc->status % COVER_WC]++;
	if (adversary_wc(cq, wc))
		return;
	if (ID_KIND(wc->wr_id) == ID_SEND)
		send_seen(cq, wc);
	else
		receive_seen(cq, wc);
}

void
end_must_have(struct end *e)
{
	/* A QP in RESET has lost the completions that were not polled. */
	CHECK(e->peer == NULL || e->state == IBV_QPS_RESET ||
			(int32_t)(e->peer->recv_msgs_arrived - e->peer->must_have) >= 0 ||
			e->rcq->broken,
		"end %u: message %u is acknowledged and has not arrived", e->peer->number,
		e->peer->recv_msgs[e->peer->recv_msgs_arrived % END_MSGS]);
}
