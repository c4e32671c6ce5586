/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "cover.h"
#include "ext.h"

/* ---- Completion queues ---- */

void
cq_open(struct cq_model *m, struct host *h, unsigned index, bool channel)
{
	uint32_t size = m->size;

	m->host = h;
	m->index = index;
	if (channel) {
		m->channel = ibv_create_comp_channel(h->ctx);
		CHECK(m->channel != NULL, "ibv_create_comp_channel: %s", strerror(errno));
	}
	m->ex = chance(300);
	m->cq = m->ex ? ext_cq_create(m)
		      : ibv_create_cq(h->ctx, (int)size, m, m->channel, 0);
	CHECK(m->cq != NULL, "ibv_create_cq: %s", strerror(errno));
}

void
cq_close(struct cq_model *m)
{
	CHECK(ibv_destroy_cq(m->cq) == 0, "host %u: ibv_destroy_cq", m->host->index);
	if (m->channel != NULL)
		CHECK(ibv_destroy_comp_channel(m->channel) == 0,
			"ibv_destroy_comp_channel");
}

void
cq_poll(struct cq_model *m, unsigned n)
{
	struct ibv_wc wc[16];

	while (n != 0) {
		int want = 1 + (int)draw(RTE_MIN(n, RTE_DIM(wc) + 0u));
		int got = m->ex ? ext_poll(m, want, wc) : ibv_poll_cq(m->cq, want, wc);

		CHECK(got >= 0 && got <= want, "ibv_poll_cq returns %d", got);
		m->polling = true;
		for (int i = 0; i < got; i++)
			wc_check(m, &wc[i]);
		m->polling = false;
		n -= (unsigned)got;
		if (got == want)
			continue;
		for (unsigned i = 0; i < ENDS_MAX; i++) {
			struct conn *c = &world.conn[i / 2];

			if (c->used && i % 2 < c->ends && c->end[i % 2].rcq == m)
				end_must_have(&c->end[i % 2]);
		}
		return;
	}
}

void
cq_note(struct cq_model *m, bool solicited_or_error)
{
	if (m->armed && (!m->armed_solicited || solicited_or_error))
		m->due = true;
}

void
cq_arm_op(struct cq_model *m)
{
	bool solicited = chance(400);

	if (m->channel == NULL || m->broken)
		return;
	cq_check_events(m);
	cq_poll(m, 100000);
	if (m->armed) /* an armed "any" includes "solicited", not the reverse */
		solicited = solicited && m->armed_solicited;
	else
		m->due = m->possible = false;
	CHECK(ibv_req_notify_cq(m->cq, solicited) == 0, "ibv_req_notify_cq");
	m->armed = true;
	m->armed_solicited = solicited;
}

static bool
channel_has_event(const struct cq_model *m)
{
	return !STAILQ_EMPTY(&to_channel(m->channel)->events.raised);
}

void
cq_check_events(struct cq_model *m)
{
	struct ibv_cq *cq;
	void *context;

	if (m->channel == NULL)
		return;
	if (!channel_has_event(m)) {
		CHECK(!m->due || m->broken,
			"host %u cq %u: a completion event is missing", m->host->index,
			m->index);
		return;
	}
	CHECK(m->armed, "host %u cq %u: an event without ibv_req_notify_cq()",
		m->host->index, m->index);
	cq_poll(m, 100000);
	CHECK(m->due || m->possible, "host %u cq %u: an event without a completion",
		m->host->index, m->index);
	CHECK(ibv_get_cq_event(m->channel, &cq, &context) == 0 && cq == m->cq &&
			context == m,
		"ibv_get_cq_event");
	CHECK(!channel_has_event(m), "host %u cq %u: two events for one arming",
		m->host->index, m->index);
	ibv_ack_cq_events(cq, 1);
	m->armed = m->due = m->possible = false;
	m->events++;
}

/* Reads the library's ring: the application does not see these completions. */
void
cq_purged(struct cq_model *m, struct end *e)
{
	const struct cq *cq = &to_cq(m->cq)->cq;

	for (uint32_t i = cq->tail; i != cq->head; i++) {
		const struct cqe *cqe = &cq->ring[i & cq->mask];

		if (cqe->qpn != e->qp->qp_num || (cqe->flags & CQE_CLEANED) != 0)
			continue;
		m->possible = true;
		if (ID_KIND(cqe->wr_id) == ID_SRQ)
			recv_done(e->recv, recv_find(e->recv, cqe->wr_id), UINT32_MAX);
	}
}

static uint32_t
cq_live_cqes(const struct cq *cq)
{
	uint32_t n = 0;

	for (uint32_t i = cq->tail; i != cq->head; i++)
		n += (cq->ring[i & cq->mask].flags & CQE_CLEANED) == 0;
	return n;
}

/* Resizes to a size that is sufficient, or to one that must be refused. */
void
cq_resize_op(struct cq_model *m)
{
	uint32_t have = cq_live_cqes(&to_cq(m->cq)->cq);
	uint32_t want = m->size + (uint32_t)draw(100);
	int err;

	if (m->broken)
		return;
	if (have > 1 && chance(200))
		want = 1 + (uint32_t)draw(have - 1);
	err = ibv_resize_cq(m->cq, (int)want);
	CHECK(err == (want < have ? EINVAL : 0),
		"host %u cq %u: resize to %u with %u CQEs: %d", m->host->index, m->index,
		want, have, err);
	CHECK(err != 0 || (uint32_t)m->cq->cqe >= want, "a resize to %u gives %d", want,
		m->cq->cqe);
}

/* ---- Receive queues ---- */

void
recv_open(struct recv_model *m, uint32_t ring)
{
	m->ring = ring;
	m->recv = calloc(ring, sizeof(*m->recv));
	CHECK(m->recv != NULL, "no memory");
}

void
recv_close(struct recv_model *m)
{
	recv_drop_all(m);
	free(m->recv);
	m->recv = NULL;
}

void
recv_open_srq(struct recv_model *m, struct host *h, unsigned number)
{
	static const uint32_t caps[] = {300, 1100, 2600, 4200, 12000, 20600};
	struct ibv_srq_init_attr attr = {
		.srq_context = m,
		.attr = {.max_wr = 1 + (uint32_t)draw(100),
			.max_sge = 1 + (uint32_t)draw(5)},
	};

	m->host = h;
	m->number = number;
	m->pd = (unsigned)draw(HOST_PDS);
	m->srq = ibv_create_srq(h->pd[m->pd], &attr);
	CHECK(m->srq != NULL, "ibv_create_srq: %s", strerror(errno));
	recv_open(m, RECV_RING_SRQ);
	m->max_wr = attr.attr.max_wr;
	m->max_sge = attr.attr.max_sge;
	m->bound = 160;
	m->cap = 40 + DRAW_OF(caps);
}

void
recv_close_srq(struct recv_model *m)
{
	srq_check(m);
	CHECK(ibv_destroy_srq(m->srq) == 0, "ibv_destroy_srq");
	recv_close(m);
}

/* Receives in the ring: posted and not taken by a QP. */
static uint32_t
recv_outstanding(const struct recv_model *m)
{
	if (m->srq != NULL)
		return recv_ring_outstanding(&to_srq(m->srq)->srq.ring);
	return recv_ring_outstanding(to_qp(m->qp)->qp->rq);
}

static struct recv *
recv_slot(struct recv_model *m, uint32_t index)
{
	return &m->recv[index % m->ring];
}

/* QPs that use this queue may fail from now on. */
static void
recv_users_fault(struct recv_model *m)
{
	m->has_bad = true;
	for (unsigned i = 0; i < ENDS_MAX; i++) {
		struct conn *c = &world.conn[i / 2];

		if (!c->used || i % 2 >= c->ends || c->end[i % 2].recv != m)
			continue;
		conn_fault(c);
		if (c->end[i % 2].peer != NULL)
			c->end[i % 2].peer->may_rem_op = true;
	}
}

bool
recv_make_bad(struct recv_model *m)
{
	if (m->live != 0 && chance(500)) {
		struct recv *r =
			recv_slot(m, m->oldest + (uint32_t)draw(m->posted - m->oldest));

		if (!r->live || r->sgl.mr == NULL)
			return false;
		CHECK(ibv_dereg_mr(r->sgl.mr) == 0, "ibv_dereg_mr");
		r->sgl.mr = NULL;
		r->lost = true;
		recv_users_fault(m);
		return true;
	}
	m->post_bad = true;
	if (recv_post(m, 1))
		recv_users_fault(m);
	m->post_bad = false;
	return true;
}

bool
recv_post(struct recv_model *m, unsigned count)
{
	enum { LIST = 4 };
	struct ibv_recv_wr wr[LIST], *bad = NULL;
	struct ibv_sge sge[LIST][SGL_PIECES];
	uint32_t room = 0;
	unsigned n = 0, got = 0;
	int err;

	if (m->qp != NULL && m->qp->qp_type == IBV_QPT_XRC_SEND)
		return false;
	room = m->max_wr - recv_outstanding(m);
	for (; n < RTE_MIN(count, LIST + 0u); n++) {
		struct recv *r = recv_slot(m, m->posted + n);

		if (m->live + n >= m->bound || m->posted + n - m->oldest >= m->ring)
			break;
		r->index = m->posted + n;
		r->cap = m->cap;
		r->bad = m->post_bad;
		r->lost = false;
		if (!sgl_get(m->host, m->pd, r->cap, m->max_sge, false,
			    IBV_ACCESS_LOCAL_WRITE, &r->sgl))
			break;
		sgl_sges(&r->sgl, sge[n]);
		for (unsigned i = 0; i < r->sgl.n && r->bad; i++)
			sge[n][i].lkey ^= 0x33;
		wr[n] = (struct ibv_recv_wr){
			.wr_id = ID_MAKE(
				m->qp == NULL ? ID_SRQ : ID_RECV, m->number, r->index),
			.sg_list = sge[n],
			.num_sge = (int)r->sgl.n,
		};
		if (n != 0)
			wr[n - 1].next = &wr[n];
	}
	if (n == 0)
		return false;
	err = m->srq != NULL ? ibv_post_srq_recv(m->srq, wr, &bad)
			     : ibv_post_recv(m->qp, wr, &bad);
	while (got < n && (err == 0 || bad != &wr[got]))
		got++;
	CHECK(err == (n > room ? ENOMEM : 0) && got == RTE_MIN(n, room),
		"host %u: posting %u receives with room for %u: %d, %u accepted",
		m->host->index, n, room, err, got);
	for (unsigned i = 0; i < n; i++) {
		struct recv *r = recv_slot(m, m->posted + (i < got ? 0 : i - got));

		if (i < got) {
			r->live = true;
			m->posted++;
			m->live++;
		} else {
			sgl_put(m->host, &r->sgl, 0);
		}
	}
	cover.ops += got;
	return got != 0;
}

struct recv *
recv_find(struct recv_model *m, uint64_t wr_id)
{
	struct recv *r = recv_slot(m, ID_INDEX(wr_id));

	CHECK(r->live && r->index == ID_INDEX(wr_id) && ID_OWNER(wr_id) == m->number,
		"host %u: receive %llx completes and is not posted", m->host->index,
		(unsigned long long)wr_id);
	return r;
}

void
recv_done(struct recv_model *m, struct recv *r, uint32_t written)
{
	sgl_put(m->host, &r->sgl, RTE_MIN(written, r->cap));
	r->live = false;
	m->live--;
	while (m->oldest != m->posted && !recv_slot(m, m->oldest)->live)
		m->oldest++;
}

void
recv_drop_all(struct recv_model *m)
{
	for (uint32_t i = m->oldest; i != m->posted; i++) {
		struct recv *r = recv_slot(m, i);

		if (r->live)
			recv_done(m, r, UINT32_MAX);
	}
	m->has_bad = false;
}

/* ---- SRQs ---- */

void
srq_check(struct recv_model *m)
{
	const struct srq *srq = &to_srq(m->srq)->srq;
	uint32_t out = recv_outstanding(m);

	host_events(m->host);
	/* Nothing was posted since the QPs took receives in the last pass: the current
	 * count is the lowest. */
	if (m->limit != 0 && out < m->limit) {
		m->limit = 0;
		m->limit_due++;
	}
	CHECK(m->limit_events == m->limit_due,
		"host %u srq %u: %u limit events, expected %u (%u outstanding, limit %u)",
		m->host->index, m->number, m->limit_events, m->limit_due, out, m->limit);
	CHECK(srq_limit(srq) == m->limit,
		"host %u srq %u: limit %u is armed, expected %u", m->host->index,
		m->number, srq_limit(srq), m->limit);
}

void
srq_arm_op(struct recv_model *m)
{
	struct ibv_srq_attr attr = {.srq_limit = (uint32_t)draw(m->max_wr + 2)};
	int err = ibv_modify_srq(m->srq, &attr, IBV_SRQ_LIMIT);

	CHECK(err == (attr.srq_limit > m->max_wr ? EINVAL : 0),
		"host %u srq %u: limit %u: %d", m->host->index, m->number, attr.srq_limit,
		err);
	if (err == 0)
		m->limit = attr.srq_limit;
	srq_check(m);
}

void
srq_resize_op(struct recv_model *m)
{
	uint32_t out = recv_outstanding(m), asked = (uint32_t)draw(130);
	struct ibv_srq_attr attr = {.max_wr = asked, .max_sge = asked}; /* ignored */
	bool good = asked >= 1 && asked >= out && m->limit <= asked;
	int err = ibv_modify_srq(m->srq, &attr, IBV_SRQ_MAX_WR);

	CHECK(err == (good ? 0 : EINVAL),
		"host %u srq %u: resize to %u with %u outstanding, limit %u: %d",
		m->host->index, m->number, asked, out, m->limit, err);
	if (err == 0) {
		CHECK(attr.max_wr >= asked, "a resize to %u gives %u", asked,
			attr.max_wr);
		m->max_wr = attr.max_wr;
		CHECK(attr.max_sge == m->max_sge, "a resize changes max_sge to %u",
			attr.max_sge);
	}
}
