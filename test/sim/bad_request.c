/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests that fail. */
#include "request.h"

void
bad_request_note(struct end *e, struct msg *m)
{
	TRACE("end %" PRIu64 ": request %" PRIu64 " must fail with %" PRIu64, e->number,
		m->seq, m->must_fail);
	e->may_flush = true;
	if (e->type == IBV_QPT_RC)
		conn_fault(e->conn);
}

int
rights_needed(const struct msg *m)
{
	switch (m->op) {
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
	case IBV_WR_ATOMIC_WRITE:
		return IBV_ACCESS_REMOTE_WRITE;
	case IBV_WR_RDMA_READ:
		return IBV_ACCESS_REMOTE_READ;
	default:
		return is_atomic(m) ? IBV_ACCESS_REMOTE_ATOMIC : 0;
	}
}

void
rights_check(struct end *e, struct msg *m, bool failing)
{
	const struct conn *c = e->conn;
	int need = rights_needed(m);

	if (m->op == IBV_WR_RDMA_READ || is_word(m)) {
		if (c->max_rd[e == &c->end[1]] == 0)
			m->must_fail = IBV_WC_LOC_QP_OP_ERR;
	}
	if (m->must_fail == 0 && (c->access & need) != need)
		m->must_fail = IBV_WC_REM_INV_REQ_ERR;
	if (m->must_fail == 0 || (failing && e->type == IBV_QPT_RC))
		return;
	m->must_fail = 0;
	m->op = IBV_WR_SEND;
}

/* An SRQ outside of the target's XRC domain: that of another target, or none. */
static uint32_t
srqn_refused(const struct end *to)
{
	unsigned first = (unsigned)draw(world.conns);

	for (unsigned i = 0; i < world.conns; i++) {
		const struct conn *c = &world.conn[(first + i) % world.conns];

		if (c->used && c->xrc && c->end[1].host == to->host &&
			c->end[1].recv->xrcd != to->recv->xrcd)
			return c->end[1].recv->srqn;
	}
	return to->recv->srqn ^ 0x800000;
}

void
bad_request_make(struct end *e, struct msg *m, struct request *r)
{
	bool reliable = e->type == IBV_QPT_RC;

	if (e->conn->xrc && !is_local(m) && chance(300)) {
		r->wr.qp_type.xrc.remote_srqn = srqn_refused(e->peer);
		m->must_fail = IBV_WC_REM_INV_REQ_ERR;
	} else if (r->wr.num_sge > 0 && !m->inlined && m->len != 0 && chance(300)) {
		for (int i = 0; i < r->wr.num_sge; i++)
			r->sge[i].lkey ^= chance(500) ? 1 : 0x5A000;
		m->must_fail = IBV_WC_LOC_PROT_ERR;
	} else if (m->remote.buf.data != NULL && m->len != 0 && reliable) {
		if (m->remote.mr != NULL || m->win != NULL || is_word(m) || chance(500))
			r->wr.wr.rdma.rkey ^= chance(500) ? 0x80 : 0x7000000;
		else
			r->wr.wr.rdma.remote_addr =
				chance(500) ? UINT64_MAX - draw(m->len) : draw(4096);
		m->must_fail = IBV_WC_REM_ACCESS_ERR;
	} else if (is_atomic(m)) {
		r->wr.wr.atomic.rkey ^= 0x40;
		m->must_fail = IBV_WC_REM_ACCESS_ERR;
	}
	if (m->must_fail == 0)
		return;
	bad_request_note(e, m);
}

void
refused_request_make(struct end *e, struct msg *m, struct request *r)
{
	switch (draw(4)) {
	case 0:
		r->wr.num_sge = (int)e->max_sge + 1;
		break;
	case 1:
		r->wr.num_sge = -1;
		break;
	case 2:
		r->wr.opcode = (enum ibv_wr_opcode)99;
		break;
	default:
		if (is_atomic(m))
			r->wr.wr.atomic.remote_addr++;
		else
			r->wr.opcode = IBV_WR_TSO;
		break;
	}
	r->invalid = true;
}
