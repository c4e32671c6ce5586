/* SPDX-License-Identifier: BSD-3-Clause */
#include "qp_world.h"

#include "wire/opcode.h"

#define SECRET(i) ((uint8_t)((i)*151 + ((i) >> 8) * 89 + 0x5A))

static void
secret_fill(struct host *h)
{
	for (uint32_t i = 0; i < MEM_BYTES; i++)
		h->mem[i] = SECRET(i);
	/* A pattern that tells granted bytes from others. */
	for (uint32_t i = GRANT_AT; i < END_GUARD_AT; i++)
		h->mem[i] = (uint8_t)(i ^ i >> 8);
}

static void
zone_check(const struct host *h, uint32_t from, uint32_t to)
{
	static uint8_t secret[MEM_BYTES];

	if (secret[0] == 0) {
		for (uint32_t i = 0; i < MEM_BYTES; i++)
			secret[i] = SECRET(i);
	}
	FUZZ_CHECK(memcmp(h->mem + from, secret + from, to - from) == 0);
}

/* The peer counts the packets in flight, but not those of a stalled QP. */
static void
peer_check(const struct host *h)
{
	const struct requester *req = &h->qp.req;
	uint32_t unacked = (req->next_psn - req->una_psn) & PSN_MASK;

	FUZZ_CHECK(req->reading <= unacked);
	if (req->missing)
		unacked -= missing_arrived(&h->qp);
	FUZZ_CHECK(req->unacked == (req->stalled ? 0 : unacked - req->reading));
	FUZZ_CHECK(h->peer.send.inflight == req->unacked);
	FUZZ_CHECK(h->peer.read.inflight == (req->stalled ? 0 : req->reading));
}

void
world_check(const struct world *w)
{
	for (unsigned i = 0; i < 2; i++) {
		const struct host *h = i == 0 ? &w->link.a : &w->link.b;

		peer_check(h);
		zone_check(h, SOURCE_AT, LANDING_AT);
		zone_check(h, GUARD_AT, GRANT_AT);
		zone_check(h, END_GUARD_AT, MEM_BYTES);
	}
}

void
world_grant(struct world *w, struct host *h)
{
	unsigned access = IBV_ACCESS_LOCAL_WRITE | ACCESS_REMOTE;

	/* A target has no PD; the SRQ's PD counts. */
	uint32_t pd = h->qp.type == IBV_QPT_XRC_RECV ? h->srq.pd : h->qp.pd;

	if (world_granted(w, h))
		return;
	FUZZ_CHECK(key_alloc(&h->keys, pd, (uintptr_t)h->mem + GRANT_AT,
			   h->mem + GRANT_AT, ZONE, access, &h->rkey) == 0);
	w->granted[h == &w->link.b] = true;
}

void
world_revoke(struct world *w, struct host *h)
{
	if (!world_granted(w, h))
		return;
	FUZZ_CHECK(key_free(&h->keys, h->rkey) == 0);
	w->granted[h == &w->link.b] = false;
}

static struct qp_link_conf
conf_of(const struct step *s)
{
	static const enum ibv_qp_type types[] = {
		IBV_QPT_RC, IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD};
	struct qp_link_conf conf = qp_link_defaults();

	conf.type = (s->op & 0x43) == 0x40 ? IBV_QPT_XRC_SEND : types[s->op & 3];
	conf.ipv6 = s->op & 4;
	conf.srq = s->op & 8;
	conf.srq_pd = s->op & 0x10;
	conf.sig_all = s->op & 0x20;
	conf.mtu = (enum ibv_mtu)(1 + s->a % 5);
	conf.psn[0] = s->a & 0x40 ? 0xFFFFF8 : PSN_A;
	conf.psn[1] = s->a & 0x80 ? 0xFFFFFE : PSN_B;
	conf.timeout = s->b & 0x1F;
	conf.retry_cnt = s->b >> 5;
	conf.min_rnr_timer = s->c & 0x1F;
	conf.rnr_retry = s->c >> 5;
	conf.max_rd = (uint8_t)(s->x % (QP_MAX_RD_ATOMIC + 1));
	conf.max_dest_rd = (uint8_t)((s->x >> 8) % (QP_MAX_RD_ATOMIC + 1));
	conf.cqe = s->y & 1 ? 8 : 256;
	conf.send_wr = conf.recv_wr = s->y & 2 ? 4 : 32;
	conf.peer_window = s->y & 4 ? 1u + (s->y >> 8) : 1u << 20;
	conf.access = s->y & 8 ? (s->y >> 4 & ACCESS_REMOTE) : ACCESS_REMOTE;
	conf.mem_bytes = MEM_BYTES;
	conf.cc = s->op & 0x80;
	return conf;
}

void
world_init(struct world *w, const struct step *s)
{
	struct qp_link_conf conf = conf_of(s);
	bool holds = s->x & 0x80;

	*w = (struct world){.wr_id = 1};
	qp_link_init(&w->link, &conf);
	if (holds)
		FUZZ_CHECK(
			hold_arena_init(&w->hold) == 0 && txmaps_init(&w->txmaps) == 0);
	for (unsigned i = 0; i < 2; i++) {
		struct host *h = i == 0 ? &w->link.a : &w->link.b;

		h->shared.hold = holds ? &w->hold : NULL;
		h->shared.txmaps = holds ? &w->txmaps : NULL;
		h->peer.extensions = holds ? EXT_SACK : 0;
		if (conf.access != 0)
			FUZZ_CHECK(key_free(&h->keys, h->rkey) == 0);
		secret_fill(h);
		world_grant(w, h);
	}
}

void
world_poll(struct host *h)
{
	struct event_record event;
	struct cqe cqe;

	while (host_poll(h, &h->send_cq, &cqe))
		FUZZ_CHECK(cqe.opcode < IBV_WC_RECV && cqe.wr_id != 0);
	while (host_poll(h, &h->recv_cq, &cqe)) {
		FUZZ_CHECK(cqe.opcode >= IBV_WC_RECV && cqe.wr_id != 0);
		if (cqe.status == IBV_WC_SUCCESS && cqe.opcode == IBV_WC_RECV)
			FUZZ_CHECK(cqe.byte_len <= ZONE);
	}
	while (event_next(&h->events, &event) == 0)
		;
}

static void
host_end(struct host *h)
{
	wire_drop_all(h);
	FUZZ_CHECK(host_modify(h, IBV_QPS_RESET) == 0);
	FUZZ_CHECK(qp_deadline(&h->qp) == TIME_NEVER);
	FUZZ_CHECK(!qp_wants_tx(&h->qp));
	world_poll(h);
}

void
world_fini(struct world *w)
{
	world_check(w);
	host_end(&w->link.a);
	host_end(&w->link.b);
	world_revoke(w, &w->link.a);
	world_revoke(w, &w->link.b);
	qp_link_fini(&w->link);
	hold_arena_fini(&w->hold);
	txmaps_fini(&w->txmaps);
}

static void
response_check(struct host *from, unsigned index)
{
	struct pkt_view view = wire_view(from, index);

	FUZZ_CHECK(view.payload_len <= mtu_bytes(from->link->conf.mtu));
	if (view.op->kind == OP_READ_RESP && view.payload_len != 0)
		FUZZ_CHECK(memmem(from->mem + GRANT_AT, ZONE, view.payload,
				   view.payload_len) != NULL);
}

void
world_pull(struct host *h, unsigned n)
{
	unsigned before = h->wire_count;

	if (n > WIRE_MAX - 2 - before)
		n = WIRE_MAX - 2 - before;
	host_pull(h, n);
	for (unsigned i = before; i < h->wire_count; i++)
		response_check(h, i);
}
