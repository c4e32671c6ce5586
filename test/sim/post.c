/* SPDX-License-Identifier: BSD-3-Clause */
/* Building and posting requests. */
#include <errno.h>
#include <string.h>

#include "cover.h"
#include "ext.h"
#include "request.h"

#define BIG_BYTES (1u << 20)

static const enum ibv_wr_opcode ops_rc[] = {IBV_WR_SEND, IBV_WR_SEND_WITH_IMM,
	IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM,
	IBV_WR_RDMA_READ, IBV_WR_RDMA_READ, IBV_WR_ATOMIC_CMP_AND_SWP,
	IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_SEND_WITH_INV, IBV_WR_LOCAL_INV,
	IBV_WR_BIND_MW, IBV_WR_ATOMIC_WRITE};
static const enum ibv_wr_opcode ops_uc[] = {
	IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM};
static const enum ibv_wr_opcode ops_ud[] = {IBV_WR_SEND, IBV_WR_SEND_WITH_IMM};

static uint8_t
op_choose(const struct end *e)
{
	/* Extended QPs are created without ATOMIC_WRITE, the last of the list. XRC does
	 * not have it. */
	if (e->type == IBV_QPT_RC)
		return (uint8_t)ops_rc[draw(RTE_DIM(ops_rc) - (e->ex || e->conn->xrc))];
	return (uint8_t)(e->type == IBV_QPT_UC ? DRAW_OF(ops_uc) : DRAW_OF(ops_ud));
}

static uint32_t
len_choose(const struct end *e, uint32_t limit)
{
	uint32_t mtu = conn_mtu(e->conn);
	uint32_t len;

	switch (draw(8)) {
	case 0:
		len = (uint32_t)draw(3);
		break;
	case 1:
		len = (uint32_t)draw(100);
		break;
	case 2:
	case 3:
	case 4:
		len = mtu * (uint32_t)(1 + draw(3)) + (uint32_t)draw(3) - 1;
		break;
	case 5:
		len = mtu * (uint32_t)(1 + draw(10)) + (uint32_t)draw(3) - 1;
		break;
	case 6:
		len = (uint32_t)rand_magnitude(&sim.rand, 12);
		break;
	default:
		len = (uint32_t)draw(4 * mtu);
		break;
	}
	return len <= limit ? len : limit - (uint32_t)draw(RTE_MIN(limit + 1, 3u));
}

static bool
is_send(uint8_t op)
{
	return op == IBV_WR_SEND || op == IBV_WR_SEND_WITH_IMM ||
	       op == IBV_WR_SEND_WITH_INV;
}

static bool
op_uses_recv(uint8_t op)
{
	return is_send(op) || op == IBV_WR_RDMA_WRITE_WITH_IMM;
}

/* The receiver of a datagram: any UD end with the same IP version. */
static struct end *
ud_target(const struct end *e)
{
	unsigned first = (unsigned)draw(world.conns);

	for (unsigned i = 0; i < world.conns; i++) {
		struct conn *c = &world.conn[(first + i) % world.conns];

		if (c->used && c->type == IBV_QPT_UD && c->ipv6 == e->conn->ipv6)
			return &c->end[0];
	}
	return NULL;
}

static struct ibv_ah *
ah_make(const struct end *e, const struct end *to)
{
	bool ipv6 = e->conn->ipv6;
	struct ibv_ah_attr attr = {.is_global = 1,
		.port_num = 1,
		.grh = {.hop_limit = 64,
			.sgid_index = ipv6,
			.dgid = ipv6 ? to->host->gid6 : to->host->gid4}};
	struct ibv_ah *ah = ibv_create_ah(e->host->pd[e->pd], &attr);

	CHECK(ah != NULL, "ibv_create_ah: %s", strerror(errno));
	return ah;
}

/* Makes a datagram that is dropped silently. */
static void
ud_mislead(const struct end *e, struct msg *m, struct ibv_send_wr *wr)
{
	switch (draw(3)) {
	case 0:
		wr->wr.ud.remote_qkey ^= 0x100;
		break;
	case 1: /* the Q_Key of the sender's own QP is used */
		wr->wr.ud.remote_qkey = 0x80000000;
		m->uses_recv = m->to == e;
		return;
	default:
		wr->wr.ud.remote_qpn ^= 0xFF0000;
		break;
	}
	m->uses_recv = false;
}

static void
atomic_make(struct msg *m, struct ibv_send_wr *wr)
{
	struct end *to = m->to;
	struct host *h = to->host;
	bool add = m->op == IBV_WR_ATOMIC_FETCH_AND_ADD;
	uint8_t *at;

	m->word = (uint8_t)draw(END_WORDS);
	m->counter = add && chance(300) && h->counter_adds[m->word] < 4096;
	wr->wr.atomic.rkey = h->mr[to->pd]->rkey;
	if (m->counter) {
		at = h->counters.data + m->word * 8;
		wr->wr.atomic.compare_add = 1;
	} else {
		at = to->words.data + m->word * 8;
		m->before = to->word_value[m->word];
		wr->wr.atomic.compare_add =
			add || chance(300) ? rand_next(&sim.rand) : m->before;
		wr->wr.atomic.swap = rand_next(&sim.rand);
		m->after = m->before;
		if (add)
			m->after += wr->wr.atomic.compare_add;
		else if (wr->wr.atomic.compare_add == m->before)
			m->after = wr->wr.atomic.swap;
	}
	wr->wr.atomic.remote_addr = (uintptr_t)at;
}

/* Only accepted requests count. */
static void
atomic_posted(struct msg *m)
{
	if (m->counter)
		m->to->host->counter_adds[m->word]++;
	else
		m->to->word_value[m->word] = m->after;
}

static bool
remote_make(struct end *e, struct msg *m, struct ibv_send_wr *wr)
{
	bool read = m->op == IBV_WR_RDMA_READ;
	int access = read ? IBV_ACCESS_REMOTE_READ
			  : IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_LOCAL_WRITE;
	struct ibv_sge sge[SGL_PIECES] = {{0}};

	if (!sgl_get(e->peer->host, e->peer->pd, m->len, 1, false,
		    access | (is_word(m) ? SGL_ALIGNED : 0), &m->remote))
		return false;
	m->remote.n = 1;
	m->remote.piece[0].len = m->len;
	if (read)
		sgl_fill(&m->remote, m->key, 0, m->len);
	sgl_sges(&m->remote, sge);
	wr->wr.rdma.remote_addr = sge[0].addr;
	wr->wr.rdma.rkey = sge[0].lkey;
	return true;
}

static bool
local_make(struct end *e, struct msg *m, struct request *r)
{
	bool in = m->op == IBV_WR_RDMA_READ || is_atomic(m);

	if (!in && m->len <= e->max_inline && chance(400)) {
		m->inlined = true;
		content_fill(m->key, 0, r->inlined, m->len);
		r->sge[0] = (struct ibv_sge){
			.addr = (uintptr_t)r->inlined, .length = m->len, .lkey = 0xBAD};
		r->wr.num_sge = m->len != 0 || chance(500);
		if (r->wr.num_sge == 1 && e->max_sge > 1 && m->len > 1 && chance(500)) {
			uint32_t cut = (uint32_t)draw(m->len);

			r->sge[0].length = cut;
			r->sge[1] = r->sge[0];
			r->sge[1].addr += cut;
			r->sge[1].length = m->len - cut;
			r->wr.num_sge = 2;
		}
		return true;
	}
	if (!sgl_get(e->host, e->pd, m->len, e->max_sge, true,
		    in ? IBV_ACCESS_LOCAL_WRITE : 0, &m->local))
		return false;
	if (!in)
		sgl_fill(&m->local, m->key, 0, m->len);
	sgl_sges(&m->local, r->sge);
	r->wr.num_sge = (int)m->local.n;
	return true;
}

static uint32_t
limit_of(const struct end *e, const struct msg *m)
{
	if (is_word(m))
		return 8;
	if (e->type == IBV_QPT_UD)
		return RTE_MIN(4096u, m->to->recv->cap - 40);
	if (is_local(m))
		return 0;
	if (is_send(m->op))
		return e->peer->recv->cap;
	return UINT32_MAX;
}

static void
msg_buffers_put(struct end *e, struct msg *m)
{
	if (m->local.buf.data != NULL)
		sgl_put(e->host, &m->local, m->len);
	if (m->remote.buf.data != NULL)
		sgl_put(m->to->host, &m->remote, m->len);
}

static bool
request_make(struct end *e, struct msg *m, struct request *r, bool failing)
{
	uint32_t since = m->seq - e->last_signaled;

	m->op = op_choose(e);
	m->to = e->type == IBV_QPT_UD ? ud_target(e) : e->peer;
	m->key = ++world.next_key;
	m->at = sim.now;
	rights_check(e, m, failing);
	if (m->must_fail == 0)
		win_choose(e, m, failing);
	m->len = is_word(m) ? 8 : len_choose(e, limit_of(e, m));
	if (failing && m->must_fail == 0 && e->type == IBV_QPT_RC && chance(500) &&
		limit_of(e, m) == e->peer->recv->cap) {
		m->len = e->peer->recv->cap + 1 + (uint32_t)draw(2 * conn_mtu(e->conn));
		m->must_fail = IBV_WC_REM_INV_REQ_ERR;
	}
	if (e->conn->big && limit_of(e, m) == UINT32_MAX && chance(10))
		m->len = BIG_BYTES - 1 + (uint32_t)draw(3);
	m->uses_recv = op_uses_recv(m->op);
	m->imm = m->op == IBV_WR_SEND_WITH_IMM || m->op == IBV_WR_RDMA_WRITE_WITH_IMM;
	m->imm_data = (uint32_t)rand_next(&sim.rand);
	m->solicited = chance(300);
	/* At least one per send queue must be signaled, or the queue stays full. */
	m->signaled =
		world.quiescing || e->sig_all || chance(400) || since + 1 >= e->max_wr;
	r->wr = (struct ibv_send_wr){
		.wr_id = ID_MAKE(ID_SEND, e->number, m->seq),
		.sg_list = r->sge,
		.opcode = (enum ibv_wr_opcode)m->op,
		.send_flags = (m->signaled ? IBV_SEND_SIGNALED : 0) |
			      (m->solicited ? IBV_SEND_SOLICITED : 0) |
			      (chance(150) ? IBV_SEND_FENCE : 0),
		.imm_data = m->imm_data,
	};
	if (e->conn->xrc)
		r->wr.qp_type.xrc.remote_srqn = e->peer->recv->srqn;
	win_fill(e, m, &r->wr);
	if (!is_local(m) && !local_make(e, m, r))
		return false;
	r->wr.send_flags |= m->inlined ? IBV_SEND_INLINE : 0;
	if (is_atomic(m))
		atomic_make(m, &r->wr);
	else if (e->type != IBV_QPT_UD && rights_needed(m) != 0 &&
		 !remote_make(e, m, &r->wr)) {
		msg_buffers_put(e, m);
		return false;
	}
	if (rights_needed(m) != 0)
		win_use(e, m, &r->wr, failing);
	if (e->type == IBV_QPT_UD) {
		r->ah = ah_make(e, m->to);
		r->wr.wr.ud.ah = r->ah;
		r->wr.wr.ud.remote_qpn = m->to->qp->qp_num;
		r->wr.wr.ud.remote_qkey = m->to->qkey;
		if (chance(30))
			ud_mislead(e, m, &r->wr);
	}
	if (m->must_fail != 0)
		bad_request_note(e, m);
	else if (failing)
		bad_request_make(e, m, r);
	if (m->must_fail != 0 && is_atomic(m)) {
		m->after = m->before;
		m->counter = false;
	}
	return true;
}

void
msg_posted(struct end *e, struct msg *m)
{
	if (is_atomic(m) && m->must_fail == 0)
		atomic_posted(m);
	win_posted(m);
	if (m->signaled)
		e->last_signaled = m->seq + 1;
	if (m->uses_recv)
		e->recv_msgs[e->recv_msgs_posted++ % END_MSGS] = m->seq;
	e->posted++;
	TRACE("end %" PRIu64 ": posts %" PRIu64 ": op %" PRIu64 ", %" PRIu64
	      " bytes, flags %" PRIx64,
		e->number, m->seq, m->op, m->len,
		(uint64_t)(m->signaled | m->solicited << 1 | m->inlined << 2));
}

/* The error that the post must return, and the number of requests it must accept. */
static int
post_expected(const struct end *e, const struct request *r, unsigned n, unsigned *taken)
{
	uint32_t room = e->max_wr - (e->posted - e->freed);

	*taken = 0;
	if (e->state == IBV_QPS_RESET || e->state == IBV_QPS_INIT ||
		e->state == IBV_QPS_RTR)
		return EINVAL;
	for (unsigned i = 0; i < n; i++) {
		*taken = e->ex ? 0 : i;
		if (r[i].invalid)
			return EINVAL;
		if (i >= room)
			return ENOMEM;
	}
	*taken = n;
	return 0;
}

bool
end_post(struct end *e, unsigned count, bool failing)
{
	static struct request r[POST_LIST];
	struct ibv_send_wr *bad = NULL;
	unsigned n = 0, taken, got;
	int err, want;

	/* a target sends nothing, so it has no last request to wait for */
	if (is_target(e))
		return world.quiescing;
	if (e->type == IBV_QPT_UD && ud_target(e) == NULL)
		return false;
	if (!world.quiescing && !failing && chance(30) && win_bind(e))
		return true;
	while (n < count && e->posted + n - e->retired < END_MSGS) {
		struct msg *m = end_msg(e, e->posted + n);

		memset(m, 0, sizeof(*m));
		memset(&r[n], 0, sizeof(r[n]));
		m->seq = e->posted + n;
		if (!request_make(e, m, &r[n], failing && n == 0))
			break;
		if (n != 0)
			r[n - 1].wr.next = &r[n].wr;
		n++;
		/* The next atomic depends on the result of this one; the same holds for
		 * windows. */
		if (is_atomic(m) || (m->win != NULL && rights_needed(m) == 0))
			break;
	}
	if (n == 0)
		return false;
	if (!failing && !e->ex && chance(20))
		refused_request_make(e, end_msg(e, e->posted + n - 1), &r[n - 1]);
	want = post_expected(e, r, n, &taken);
	if (e->ex) {
		err = ext_post(e->qp, &r[0].wr);
		bad = &r[0].wr;
	} else {
		err = ibv_post_send(e->qp, &r[0].wr, &bad);
	}
	CHECK(err == want,
		"end %u: ibv_post_send returns %d, expected %d (%u posted, %u freed)",
		e->number, err, want, e->posted, e->freed);
	got = err == 0 ? n : 0;
	while (err != 0 && got < n && bad != &r[got].wr)
		got++;
	CHECK(got == taken, "end %u: ibv_post_send accepted %u requests, expected %u",
		e->number, got, taken);
	for (unsigned i = 0, first = e->posted; i < n; i++) {
		struct msg *m = end_msg(e, first + i);

		if (r[i].ah != NULL)
			CHECK(ibv_destroy_ah(r[i].ah) == 0, "ibv_destroy_ah");
		if (i < taken)
			msg_posted(e, m);
		else
			msg_buffers_put(e, m);
	}
	cover.ops += taken;
	return taken != 0;
}
