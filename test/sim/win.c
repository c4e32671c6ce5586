/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <string.h>

#include "cover.h"
#include "request.h"

static void
mw_alloc(struct end *e, struct win *w)
{
	enum ibv_mw_type type = w == &e->win[END_TYPE1] ? IBV_MW_TYPE_1 : IBV_MW_TYPE_2;

	*w = (struct win){.mw = ibv_alloc_mw(e->host->pd[e->pd], type)};
	CHECK(w->mw != NULL, "ibv_alloc_mw: %s", strerror(errno));
	w->rkey = w->mw->rkey;
}

void
win_open(struct end *e)
{
	bool any = e->type == IBV_QPT_RC && !is_target(e) && chance(600);

	for (unsigned i = 0; i < END_WINS && any; i++)
		mw_alloc(e, &e->win[i]);
}

void
win_close(struct end *e)
{
	for (unsigned i = 0; i < END_WINS; i++) {
		struct win *w = &e->win[i];

		CHECK(w->users == 0 || i == END_TYPE1,
			"end %u: a window is in use at the end", e->number);
		if (w->state == WIN_BOUND)
			CHECK(ibv_dereg_mr(e->host->mr[e->pd]) == EBUSY,
				"end %u: a region with a bound window was deregistered",
				e->number);
		if (w->mw != NULL)
			CHECK(ibv_dealloc_mw(w->mw) == 0, "ibv_dealloc_mw");
		w->mw = NULL;
	}
}

static void
win_free(struct win *w)
{
	if (w->state == WIN_FREE)
		return;
	w->state = WIN_FREE;
	w->old_rkey = w->rkey;
}

void
win_reset(struct end *e)
{
	for (unsigned i = 0; i < END_TYPE1; i++)
		win_free(&e->win[i]);
}

/* ---- Binding and invalidating ---- */

/* A window of type 2 in this state. */
static struct win *
win_find(struct end *e, enum win_state state)
{
	unsigned first = (unsigned)draw(END_TYPE1);

	for (unsigned i = 0; i < END_TYPE1; i++) {
		struct win *w = &e->win[(first + i) % END_TYPE1];

		if (w->mw != NULL && w->state == state)
			return w;
	}
	return NULL;
}

/* A key that must be refused to e's requests: invalidated, or that of another QP's
 * window. */
static uint32_t
refused_key(const struct end *e)
{
	unsigned first = (unsigned)draw(ENDS_MAX);

	for (unsigned i = 0; i < ENDS_MAX; i++) {
		unsigned n = (first + i) % ENDS_MAX;
		const struct conn *c = &world.conn[n / 2];
		const struct end *x = &c->end[n % 2];
		const struct win *w = &x->win[draw(END_WINS)];

		if (n / 2 >= world.conns || !c->used || n % 2 >= c->ends ||
			x->host != e->peer->host || w->mw == NULL)
			continue;
		if (w != &x->win[END_TYPE1] &&
			(x != e->peer || w->state == WIN_REMOTE_INV))
			return w->rkey;
		if (w->old_rkey != 0)
			return w->old_rkey;
	}
	return e->peer->host->mr[e->peer->pd]->rkey ^ 0x80;
}

static void
invalidate_choose(struct end *e, struct msg *m, bool failing)
{
	struct win *w = win_find(e->peer, WIN_BOUND);

	if (failing && chance(700)) {
		m->must_fail = IBV_WC_REM_ACCESS_ERR;
		/* A region's key and a window of type 1 cannot be invalidated. */
		if (chance(300) && e->peer->win[END_TYPE1].mw != NULL)
			m->rkey = e->peer->win[END_TYPE1].rkey;
		else
			m->rkey = chance(300) ? e->peer->host->mr[e->peer->pd]->rkey
					      : refused_key(e);
	} else if (w != NULL) {
		m->win = w;
		m->rkey = w->rkey;
	} else {
		m->op = IBV_WR_SEND;
	}
}

static void
win_range_choose(const struct end *e, struct win *w)
{
	static const int rights[] = {IBV_ACCESS_REMOTE_WRITE, IBV_ACCESS_REMOTE_READ,
		IBV_ACCESS_REMOTE_ATOMIC};
	bool part = chance(300);
	uint32_t from = part ? (uint32_t)draw(1 << 17) & ~7u : 0;

	w->at = (uintptr_t)e->host->arena.base + from;
	w->len = part ? 1 + (uint32_t)draw(1 << 18) : ARENA_BYTES;
	w->access = rights[0] | rights[1] | rights[2];
	if (chance(200))
		w->access &= ~DRAW_OF(rights);
	w->zero = chance(300);
	w->rkey = ibv_inc_rkey(w->rkey);
}

static void
bind_choose(struct end *e, struct msg *m, bool failing)
{
	struct win *w = win_find(e, WIN_FREE);

	if (w == NULL) {
		m->op = IBV_WR_SEND;
		return;
	}
	if (w->users == 0 && chance(50)) {
		CHECK(ibv_dealloc_mw(w->mw) == 0, "ibv_dealloc_mw");
		mw_alloc(e, w);
	}
	win_range_choose(e, w);
	m->win = w;
	m->rkey = w->rkey;
	if (failing && chance(700)) {
		m->must_fail = IBV_WC_MW_BIND_ERR;
		m->op = IBV_WR_BIND_MW;
		w->len = chance(300) ? 0 : w->len;
		w->at = w->len == 0 ? w->at : 0 - draw(ARENA_BYTES);
	}
}

/* Invalidates a bound window; now and then the window is deallocated while bound. */
static void
local_inv_choose(struct end *e, struct msg *m, bool failing)
{
	struct win *w = win_find(e, WIN_BOUND);

	if (failing && chance(700)) {
		w = win_find(e, WIN_FREE);
		m->must_fail = IBV_WC_MW_BIND_ERR;
		m->rkey = w != NULL ? w->rkey : e->host->mr[e->pd]->rkey;
		return;
	}
	if (w != NULL && w->users == 0 && chance(100)) {
		CHECK(ibv_dealloc_mw(w->mw) == 0, "ibv_dealloc_mw");
		mw_alloc(e, w);
	}
	if (w == NULL || w->users != 0 || w->state == WIN_FREE) {
		m->op = IBV_WR_BIND_MW;
		bind_choose(e, m, failing);
		return;
	}
	m->win = w;
	m->rkey = w->rkey;
}

void
win_choose(struct end *e, struct msg *m, bool failing)
{
	if (m->op == IBV_WR_SEND_WITH_INV)
		invalidate_choose(e, m, failing);
	else if (m->op == IBV_WR_LOCAL_INV)
		local_inv_choose(e, m, failing);
	else if (m->op == IBV_WR_BIND_MW)
		bind_choose(e, m, failing);
}

/* A retransmitted READ is checked again, so no READ through the window may be in
 * progress. */
static bool
read_in_progress(struct end *e, const struct win *w, uint32_t end)
{
	for (uint32_t s = e->retired; s != end; s++) {
		const struct msg *m = end_msg(e, s);

		if (m->win == w && m->op == IBV_WR_RDMA_READ)
			return true;
	}
	return false;
}

void
win_fill(struct end *e, const struct msg *m, struct ibv_send_wr *wr)
{
	const struct win *w = m->win;

	if (m->op == IBV_WR_SEND_WITH_INV || m->op == IBV_WR_LOCAL_INV)
		wr->invalidate_rkey = m->rkey;
	if (m->op == IBV_WR_SEND_WITH_INV && w != NULL && read_in_progress(e, w, m->seq))
		wr->send_flags |= IBV_SEND_FENCE;
	if (!is_local(m))
		return;
	wr->send_flags &= IBV_SEND_FENCE | IBV_SEND_SIGNALED;
	if (m->op != IBV_WR_BIND_MW)
		return;
	wr->bind_mw.mw = w->mw;
	wr->bind_mw.rkey = w->rkey;
	wr->bind_mw.bind_info = (struct ibv_mw_bind_info){.mr = e->host->mr[e->pd],
		.addr = w->at,
		.length = w->len,
		.mw_access_flags =
			(unsigned)w->access | (w->zero ? IBV_ACCESS_ZERO_BASED : 0)};
}

static bool
bind_post(struct end *e, struct msg *m, const struct win *w)
{
	struct ibv_mw_bind bind = {.wr_id = ID_MAKE(ID_SEND, e->number, m->seq),
		.send_flags = m->signaled ? IBV_SEND_SIGNALED : 0,
		.bind_info = {.mr = e->host->mr[e->pd],
			.addr = w->at,
			.length = w->len,
			.mw_access_flags = (unsigned)w->access |
					   (w->zero ? IBV_ACCESS_ZERO_BASED : 0)}};
	int err, want = e->posted - e->freed < e->max_wr ? 0 : ENOMEM;

	if (w->len == 0 && chance(500))
		bind.bind_info = (struct ibv_mw_bind_info){0};
	err = ibv_bind_mw(e->qp, w->mw, &bind);
	want = e->state < IBV_QPS_RTS ? EINVAL : want;
	CHECK(err == want, "end %u: ibv_bind_mw returns %d, expected %d", e->number, err,
		want);
	CHECK(err != 0 || w->mw->rkey == w->rkey, "end %u: ibv_bind_mw returns key 0x%x",
		e->number, w->mw->rkey);
	return err == 0;
}

bool
win_bind(struct end *e)
{
	struct win *w = &e->win[END_TYPE1], next = *w;
	struct msg *m = end_msg(e, e->posted);

	if (w->mw == NULL || w->users != 0 || w->state == WIN_BINDING ||
		e->posted - e->retired >= END_MSGS)
		return false;
	next.replaced_rkey = w->state == WIN_BOUND ? w->rkey : 0;
	win_range_choose(e, &next);
	if (w->state == WIN_BOUND && chance(300))
		next.len = 0;
	memset(m, 0, sizeof(*m));
	m->seq = e->posted;
	m->op = IBV_WR_BIND_MW;
	m->to = e->peer;
	m->at = sim.now;
	m->signaled = true;
	if (!bind_post(e, m, &next))
		return false;
	*w = next;
	m->win = w;
	m->rkey = w->rkey;
	msg_posted(e, m);
	return true;
}

/* Requests through windows */

static bool
win_covers(const struct win *w, uint64_t at, uint32_t len, int need)
{
	return at >= w->at && at + len <= w->at + w->len && (w->access & need) == need;
}

static void
wr_use_window(const struct msg *m, struct ibv_send_wr *wr, uint64_t at, uint32_t rkey)
{
	if (is_atomic(m)) {
		wr->wr.atomic.remote_addr = at;
		wr->wr.atomic.rkey = rkey;
	} else {
		wr->wr.rdma.remote_addr = at;
		wr->wr.rdma.rkey = rkey;
	}
}

/* Chooses a window over this end's memory: one of its own, or one of type 1 of another
 * end with the same PD. */
static struct win *
win_to_use_choose(struct end *to)
{
	struct conn *c = &world.conn[draw(world.conns)];
	struct end *x = &c->end[draw(c->ends)];

	if (!c->used || x->host != to->host || x->pd != to->pd || chance(500))
		x = to;
	if (x->win[END_TYPE1].state == WIN_BOUND && (x != to || chance(400)))
		return &x->win[END_TYPE1];
	return win_find(to, WIN_BOUND);
}

/* An address such that the message is not completely inside the window. */
static uint64_t
va_outside(const struct msg *m, const struct win *w)
{
	uint64_t end = w->at + w->len;

	if (is_word(m))
		return (end + 7) & ~UINT64_C(7);
	return chance(700) ? end - draw(m->len) : w->at - 1 - draw(100);
}

void
win_use(struct end *e, struct msg *m, struct ibv_send_wr *wr, bool failing)
{
	uint64_t at = is_atomic(m) ? wr->wr.atomic.remote_addr : wr->wr.rdma.remote_addr;
	struct win *w;

	if (e->type != IBV_QPT_RC || m->remote.mr != NULL || m->must_fail != 0 ||
		m->len == 0 || chance(500))
		return;
	w = win_to_use_choose(e->peer);
	if (!failing) {
		if (w == NULL || !win_covers(w, at, m->len, rights_needed(m)))
			return;
		m->win = w;
		wr_use_window(m, wr, w->zero ? at - w->at : at, w->rkey);
		return;
	}
	m->must_fail = IBV_WC_REM_ACCESS_ERR;
	if (w != NULL && chance(700)) {
		if (win_covers(w, at, m->len, rights_needed(m)))
			at = va_outside(m, w);
		wr_use_window(m, wr, w->zero ? at - w->at : at, w->rkey);
	} else {
		m->stale = true;
		wr_use_window(m, wr, at, refused_key(e));
	}
}

/* Completion */

static bool
is_win_user(const struct msg *m)
{
	return m->win != NULL && !is_local(m) && m->op != IBV_WR_SEND_WITH_INV;
}

void
win_posted(struct msg *m)
{
	if (m->win == NULL)
		return;
	if (m->op == IBV_WR_BIND_MW)
		m->win->state = WIN_BINDING;
	else if (m->op == IBV_WR_LOCAL_INV)
		m->win->state = WIN_LOCAL_INV;
	else if (m->op == IBV_WR_SEND_WITH_INV)
		m->win->state = WIN_REMOTE_INV;
	else
		m->win->users++;
}

void
win_done(struct msg *m, bool ok)
{
	struct win *w = m->win;
	bool type1 = w != NULL && w->mw->type == IBV_MW_TYPE_1;

	if (w == NULL || (!ok && !type1))
		return;
	if (m->op != IBV_WR_BIND_MW) {
		win_free(w);
		return;
	}
	w->state = !ok ? WIN_UNSURE : w->len != 0 ? WIN_BOUND : WIN_FREE;
	w->old_rkey = ok && w->replaced_rkey != 0 ? w->replaced_rkey : w->old_rkey;
	cover.type1[w->len == 0] += ok && type1;
}

void
win_remote_inv_done(struct msg *m)
{
	CHECK(m->win->state == WIN_REMOTE_INV && m->win->rkey == m->rkey,
		"a window was invalidated without a SEND_WITH_INV");
	win_free(m->win);
}

void
win_release(struct msg *m)
{
	if (is_win_user(m))
		m->win->users--;
	m->win = NULL;
}
