/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Random traffic over a random wire: all operations of RC and XRC, sizes, SGEs, signaling,
 * fences, depths, SRQ or RQ, receives that come late, and packets lost, doubled, swapped,
 * held and corrupted, in both directions. Every byte here and there against a model of
 * the memory, the order, and that each completion comes exactly once, are checked as they
 * come. ROCADE_SEED=N   that seed alone, and what it does ROCADE_SEEDS=N  as many seeds,
 * from 1
 */
#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "../rand.h"
#include "qp_pair.h"

#ifdef __SANITIZE_ADDRESS__
#define SEEDS 400
#else
#define SEEDS 2000
#endif
#define SEEDS_LONG 100000
#define MSG_BYTES 12000 /* of the longest message */
#define SLOT_BYTES (MSG_BYTES + 64)
#define SLOTS 64       /* of requests, of receives, of remote targets: host memory */
#define WORDS 8        /* of atomics, behind them */
#define UNTOUCHED 0xD7 /* what stands in a receive before */
#define ROUNDS_MAX 200000

struct chances { /* in a thousand */
	unsigned drop, dup, move, corrupt, hold;
};

#define WR_FLUSH ((enum ibv_wr_opcode)14)
#define ACCESS_FLUSH (1u << 8)
#define FETH_GLOBAL 1

struct flow { /* one direction */
	struct host *from, *to;
	uint32_t from_region, to_region;
	struct window *own;   /* of from: bound and invalidated by local operations */
	bool own_bound;       /* when all posted has been executed */
	uint32_t own_rkey;
	struct window *whole; /* of to: all its memory, instead of its rkey */
	unsigned total;       /* messages to send */
	unsigned posted;      /* requests */
	unsigned received;    /* receives posted */
	unsigned sent_done;   /* next request that may complete */
	unsigned recv_done;   /* next message to arrive */
	unsigned signaled_of; /* one in so many; 0: only the last */
	unsigned takers;      /* requests that take a receive */
	uint32_t requests;    /* that the responder counts: a READ can be several */
	uint64_t word[WORDS]; /* what stands there when all posted has been executed */
	struct {
		uint32_t len;
		uint8_t signaled;
		uint8_t imm;
		uint8_t op;
		uint64_t value; /* atomic: what it returns */
		struct window *window; /* of to: what a SEND invalidates */
	} msg[128];
	uint8_t taker[128]; /* receive -> message */
};

/* SENDs as likely as the others together. */
static const enum ibv_wr_opcode ops[] = {IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, IBV_WR_SEND,
	IBV_WR_SEND_WITH_IMM, WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_RDMA_READ,
	IBV_WR_RDMA_READ, IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_FETCH_AND_ADD,
	IBV_WR_SEND_WITH_INV, IBV_WR_ATOMIC_WRITE, WR_FLUSH, IBV_WR_BIND_MW,
	IBV_WR_LOCAL_INV};

static const unsigned region_access =
	ACCESS_REMOTE | IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND;

struct sweep {
	uint64_t rand;
	struct pair pair;
	struct flow flow[2];
	struct chances chances;
	unsigned late; /* in a thousand rounds: receives are posted */
};

static struct sweep s;
static uint64_t seed_running; /* != 0: where a test died */

static bool
chance(unsigned of_thousand)
{
	return rand_below(&s.rand, 1000) < of_thousand;
}

static uint32_t
len_choose(void)
{
	uint32_t mtu = mtu_bytes(s.pair.conf.mtu);

	switch (rand_below(&s.rand, 4)) {
	case 0:
		return (uint32_t)rand_magnitude(&s.rand, 13) % (MSG_BYTES + 1);
	case 1:
		return (uint32_t)RTE_MIN(
			mtu * rand_below(&s.rand, 4) + rand_below(&s.rand, 3),
			(uint64_t)MSG_BYTES);
	case 2:
		return (uint32_t)rand_below(&s.rand, 300);
	default:
		return (uint32_t)rand_below(&s.rand, MSG_BYTES + 1);
	}
}

/* Cuts [offset, offset + len) into up to 4 SGEs; returns how many. */
static unsigned
list_cut(struct sge *list, const struct host *h, uint32_t offset, uint32_t len,
	uint32_t key)
{
	unsigned n = 0;

	while (n < 3 && len > 1 && chance(400)) {
		uint32_t part = (uint32_t)rand_below(&s.rand, len);

		list[n] = host_sge(h, offset, part);
		list[n++].lkey = key;
		offset += part;
		len -= part;
	}
	if (len != 0 || n != 0) {
		list[n] = host_sge(h, offset, len);
		list[n++].lkey = key;
	}
	return n;
}

static uint32_t
key_of(const struct flow *f, unsigned message)
{
	return message * 2 + (f == &s.flow[1]);
}

static uint8_t *
slot_at(const struct host *h, unsigned kind, unsigned i)
{
	return h->mem + (size_t)(kind * SLOTS + i % SLOTS) * SLOT_BYTES;
}

static uint64_t *
word_at(const struct host *h, unsigned i)
{
	return (uint64_t *)(void *)(h->mem + 3 * SLOTS * SLOT_BYTES) + i % WORDS;
}

/* As the responder will execute it: in the order of posting, once. */
static void
model_atomic(struct flow *f, unsigned i, struct send_req *req)
{
	uint64_t *word = &f->word[i % WORDS];

	f->msg[i].len = 8;
	f->msg[i].value = *word;
	req->remote_va = (uintptr_t)word_at(f->to, i);
	if (req->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		req->compare_add = rand_next(&s.rand);
		*word += req->compare_add;
		return;
	}
	req->compare_add = chance(600) ? *word : rand_next(&s.rand);
	req->swap = rand_next(&s.rand);
	if (req->compare_add == *word)
		*word = req->swap;
}

/* Which of the two comes next follows from the one before. True: it is one of them. */
static bool
model_local(struct flow *f, struct send_req *req)
{
	if (req->opcode != IBV_WR_BIND_MW && req->opcode != IBV_WR_LOCAL_INV)
		return false;
	req->opcode = f->own_bound ? IBV_WR_LOCAL_INV : IBV_WR_BIND_MW;
	if (!f->own_bound)
		f->own_rkey = ibv_inc_rkey(f->own_rkey);
	f->own_bound = !f->own_bound;
	req->rkey = f->own_rkey;
	req->remote_va = (uintptr_t)f->from->mem;
	req->compare_add = 100;
	req->swap = (uint64_t)ACCESS_REMOTE << 32 | f->from_region;
	return true;
}

/* A window of to that is bound now, for message i to invalidate. */
static void
model_invalidate(struct flow *f, unsigned i, struct send_req *req)
{
	struct window *w = host_window(f->to, true);
	struct window_bind bind = {w->rkey, f->to_region, (uintptr_t)f->to->mem, 100,
		ACCESS_REMOTE};

	assert_int_equal(window_bind(&f->to->keys, f->to->qp.pd, f->to->qp.qpn,
				 &f->to->qp.sq.windows, &bind),
		0);
	f->msg[i].window = w;
	req->imm = htobe32(w->rkey);
}

/* Memory here and there before message i. */
static void
prepare(struct flow *f, unsigned i, struct send_req *req)
{
	uint8_t *local = slot_at(f->from, 0, i), *remote = slot_at(f->to, 2, i);
	uint32_t mtu = mtu_bytes(s.pair.conf.mtu), packets;
	unsigned depth = s.pair.conf.max_rd;

	if (model_local(f, req)) {
		f->msg[i].len = 0;
		return;
	}
	if (req->opcode == IBV_WR_SEND_WITH_INV)
		model_invalidate(f, i, req);
	if (req->opcode == IBV_WR_ATOMIC_WRITE)
		f->msg[i].len = 8;
	req->rkey = f->to->rkey;
	if (chance(200) && req->opcode != WR_FLUSH && !pair_is_xrc(&s.pair))
		req->rkey = f->whole->rkey;
	req->remote_va = (uintptr_t)remote;
	memset(local, UNTOUCHED, SLOT_BYTES);
	f->requests++;
	if (req->opcode == WR_FLUSH) {
		req->len = f->msg[i].len;
		req->imm = htobe32(FETH_GLOBAL);
		return;
	}
	if (req->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ||
		req->opcode == IBV_WR_ATOMIC_CMP_AND_SWP) {
		model_atomic(f, i, req);
		return;
	}
	memset(remote, UNTOUCHED, SLOT_BYTES);
	bytes_fill(req->opcode == IBV_WR_RDMA_READ ? remote : local, f->msg[i].len,
		key_of(f, i));
	packets = (f->msg[i].len + mtu - 1) / mtu;
	if (req->opcode == IBV_WR_RDMA_READ && packets != 0)
		f->requests += (packets - 1) / (depth < 2 ? 128 : depth < 4 ? 64 : 32);
}

static unsigned
flags_choose(const struct flow *f, unsigned i)
{
	bool data = f->msg[i].op != IBV_WR_RDMA_READ &&
		    f->msg[i].op != IBV_WR_ATOMIC_CMP_AND_SWP &&
		    f->msg[i].op != IBV_WR_ATOMIC_FETCH_AND_ADD &&
		    f->msg[i].op != IBV_WR_BIND_MW && f->msg[i].op != IBV_WR_LOCAL_INV &&
		    f->msg[i].op != WR_FLUSH;

	return (f->msg[i].signaled ? (unsigned)IBV_SEND_SIGNALED : 0) |
	       (chance(100) ? (unsigned)IBV_SEND_FENCE : 0) |
	       (data && f->msg[i].len <= 512 && chance(300) ? (unsigned)IBV_SEND_INLINE
							    : 0);
}

static unsigned op_seen[256]; /* by IBV_WR_*, in all seeds together */

/* Annex A19 is for RC; an XRC target binds no window that could be invalidated. */
static bool
rc_only(enum ibv_wr_opcode opcode)
{
	return opcode == IBV_WR_SEND_WITH_INV || opcode == IBV_WR_ATOMIC_WRITE ||
	       opcode == WR_FLUSH;
}

static void
post_send(struct flow *f)
{
	unsigned i = f->posted;
	const struct sq *sq = &f->from->qp.sq;
	struct sge list[4];
	struct send_req req = {.wr_id = i, .sge = list};

	if (sq->prod - sq->freed == sq->max_wr) /* the slot is still in use */
		return;
	req.opcode = ops[rand_below(&s.rand, RTE_DIM(ops))];
	if (pair_is_xrc(&s.pair) && rc_only(req.opcode))
		req.opcode = IBV_WR_SEND;
	f->msg[i].op = (uint8_t)req.opcode;
	f->msg[i].len = len_choose();
	req.imm = i ^ 0x5A5A5A5A;
	f->msg[i].signaled =
		i + 1 == f->total || s.pair.conf.sig_all ||
		(f->signaled_of != 0 && rand_below(&s.rand, f->signaled_of) == 0) ||
		i % 32 == 31; /* or the SQ fills up for good */
	f->msg[i].imm = req.opcode == IBV_WR_SEND_WITH_IMM ||
			req.opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
	if (f->msg[i].imm || req.opcode == IBV_WR_SEND ||
		req.opcode == IBV_WR_SEND_WITH_INV)
		f->taker[f->takers++] = (uint8_t)i;
	prepare(f, i, &req);
	f->msg[i].op = (uint8_t)req.opcode;
	if (req.opcode != WR_FLUSH)
		req.num_sge = list_cut(list, f->from,
			(uint32_t)(slot_at(f->from, 0, i) - f->from->mem), f->msg[i].len,
			f->from->lkey);
	req.flags = flags_choose(f, i);
	assert_int_equal(host_post_send(f->from, &req), 0);
	op_seen[f->msg[i].op]++;
	f->posted++;
}

/* What stands behind the message's end afterwards shows what was written too far. */
static void
post_recv(struct flow *f)
{
	unsigned i = f->received;
	uint32_t offset = (SLOTS + i % SLOTS) * SLOT_BYTES;
	struct sge list[4];
	unsigned n;

	if (i - f->recv_done == SLOTS) /* the slot is still in use */
		return;
	n = list_cut(list, f->to, offset, MSG_BYTES, f->to->recv_key);
	memset(f->to->mem + offset, UNTOUCHED, SLOT_BYTES);
	if (host_post_recv(f->to, i, list, n) == 0)
		f->received++;
}

/* ---- Checks ---- */

static uint8_t untouched[SLOT_BYTES];

static void
slot_check(const struct flow *f, const uint8_t *at, unsigned i)
{
	assert_true(bytes_match(at, f->msg[i].len, key_of(f, i)));
	assert_memory_equal(at + f->msg[i].len, untouched, SLOT_BYTES - f->msg[i].len);
}

/* Message i is complete: what it did here or there is done. */
static void
done_check(const struct flow *f, unsigned i)
{
	const uint8_t *local = slot_at(f->from, 0, i);

	switch (f->msg[i].op) {
	case (uint8_t)WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
	case IBV_WR_ATOMIC_WRITE:
		slot_check(f, slot_at(f->to, 2, i), i);
		break;
	case IBV_WR_RDMA_READ:
		slot_check(f, local, i);
		slot_check(f, slot_at(f->to, 2, i), i); /* as it was */
		break;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		assert_memory_equal(local, &f->msg[i].value, 8);
		assert_memory_equal(local + 8, untouched, SLOT_BYTES - 8);
		break;
	default:
		break;
	}
}

static void
sent_check(struct flow *f)
{
	struct cqe cqe;

	while (host_poll(f->from, &f->from->send_cq, &cqe)) {
		assert_int_equal(cqe.status, IBV_WC_SUCCESS);
		/* In order, each signaled one once; it speaks for those before. */
		while (!f->msg[f->sent_done].signaled)
			done_check(f, f->sent_done++);
		assert_int_equal(cqe.wr_id, f->sent_done);
		assert_int_equal(cqe.byte_len, f->msg[f->sent_done].len);
		done_check(f, f->sent_done++);
	}
}

/* Gone with the message that named it. */
static void
invalidated_check(struct flow *f, unsigned i, const struct cqe *cqe)
{
	assert_int_equal(cqe->imm, f->msg[i].window->rkey);
	assert_null(key_find(&f->to->keys, cqe->imm));
	window_destroy(&f->to->keys, f->msg[i].window);
	f->msg[i].window = NULL;
}

static void
received_check(struct flow *f)
{
	struct cqe cqe;

	while (host_poll(f->to, &f->to->recv_cq, &cqe)) {
		unsigned n = f->recv_done++, i = f->taker[n];
		bool write = f->msg[i].op == IBV_WR_RDMA_WRITE_WITH_IMM;

		assert_true(n < f->takers);
		assert_int_equal(cqe.status, IBV_WC_SUCCESS);
		assert_int_equal(
			cqe.opcode, write ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV);
		assert_int_equal(cqe.wr_id, n);
		assert_int_equal(cqe.byte_len, f->msg[i].len);
		assert_int_equal(cqe.wc_flags, f->msg[i].imm      ? IBV_WC_WITH_IMM
					       : f->msg[i].window ? IBV_WC_WITH_INV
								  : 0);
		if (f->msg[i].window != NULL)
			invalidated_check(f, i, &cqe);
		if (f->msg[i].imm)
			assert_int_equal(cqe.imm, i ^ 0x5A5A5A5A);
		if (write) {
			slot_check(f, slot_at(f->to, 2, i), i);
			assert_memory_equal(slot_at(f->to, 1, n), untouched, SLOT_BYTES);
		} else {
			slot_check(f, slot_at(f->to, 1, n), i);
		}
	}
}

static bool
flow_done(const struct flow *f)
{
	return f->recv_done == f->takers && f->sent_done == f->total;
}

/* ---- The wire ---- */

static void
wire_trouble(struct host *from, unsigned index)
{
	for (unsigned i = index; i < from->wire_count; i++) {
		if (chance(s.chances.drop))
			wire_drop(from, i--);
		else if (chance(s.chances.dup))
			wire_dup(from, i++);
		else if (chance(s.chances.move))
			wire_move(from, i, i + 1 + (unsigned)rand_below(&s.rand, 8));
		else if (chance(s.chances.corrupt))
			wire_corrupt(from, i, (uint32_t)rand_next(&s.rand) >> 1);
	}
}

static void
wire_run(struct host *from)
{
	unsigned old = from->wire_count;

	if (old < WIRE_MAX / 4) /* it may be slower than it is fed */
		host_pull(from, (unsigned)rand_below(&s.rand, 40));
	wire_trouble(from, old);
	while (from->wire_count != 0 && !chance(s.chances.hold))
		wire_deliver(from, 0);
}

static bool
stands(const struct host *h)
{
	return h->wire_count == 0 &&
	       (!qp_wants_tx(&h->qp) || (qp_peer_full(&h->qp) && h->qp.resp.owed == 0));
}

static void
time_run(void)
{
	uint64_t next = RTE_MIN(qp_deadline(&s.pair.a.qp), qp_deadline(&s.pair.b.qp));

	if (stands(&s.pair.a) && stands(&s.pair.b) && next != TIME_NEVER &&
		next > s.pair.now)
		pair_advance(&s.pair, next - s.pair.now);
	else
		pair_advance(&s.pair, rand_below(&s.rand, 3000));
}

static void
flow_post(struct flow *f)
{
	if (f->posted < f->total && chance(700))
		post_send(f);
	if (f->received < f->total && chance(s.late))
		post_recv(f);
}

/* ---- A run ---- */

static void
flow_init(struct flow *f, struct host *from)
{
	*f = (struct flow){.from = from, .to = from->other};
	f->total = 1 + (unsigned)rand_below(&s.rand, 90);
	for (unsigned i = 0; i < WORDS; i++)
		f->word[i] = *word_at(f->to, i) = rand_next(&s.rand);
	f->signaled_of = (unsigned)rand_below(&s.rand, 5);
	f->from_region = host_key(f->from, 0, s.pair.conf.mem_bytes, region_access);
	f->to_region = host_key(f->to, 0, s.pair.conf.mem_bytes, region_access);
	f->own = host_window(f->from, true);
	f->own_rkey = f->own->rkey;
	f->whole = host_window(f->to, false);
	assert_int_equal(window_bind(&f->to->keys, f->to->qp.pd, f->to->qp.qpn, NULL,
				 &(struct window_bind){ibv_inc_rkey(f->whole->rkey),
					 f->to_region, (uintptr_t)f->to->mem,
					 s.pair.conf.mem_bytes, ACCESS_REMOTE}),
		0);
}

static void
flow_fini(struct flow *f)
{
	for (unsigned i = 0; i < f->posted; i++) {
		if (f->msg[i].window != NULL)
			window_destroy(&f->to->keys, f->msg[i].window);
	}
	window_destroy(&f->from->keys, f->own);
	window_destroy(&f->to->keys, f->whole);
	assert_int_equal(key_free(&f->from->keys, f->from_region), 0);
	assert_int_equal(key_free(&f->to->keys, f->to_region), 0);
}

static void
sweep_init(uint64_t seed)
{
	static const unsigned levels[] = {0, 0, 0, 5, 30, 120};
	struct pair_conf conf = pair_defaults();

#define LEVEL() levels[rand_below(&s.rand, RTE_DIM(levels))]
	s.rand = seed * UINT64_C(0x9E3779B97F4A7C15);
	conf.mtu = (enum ibv_mtu)(1 + rand_below(&s.rand, 5));
	conf.ipv6 = chance(500);
	conf.srq = chance(500);
	conf.srq_pd = chance(500);
	conf.sig_all = chance(200);
	conf.psn[0] = chance(300) ? 0xFFFFF0 : (uint32_t)rand_below(&s.rand, 1 << 24);
	conf.psn[1] = (uint32_t)rand_below(&s.rand, 1 << 24);
	conf.timeout = (uint8_t)(6 + rand_below(&s.rand, 8));
	conf.min_rnr_timer = (uint8_t)rand_below(&s.rand, 32);
	/* It may be bad luck for long, but 7 RNR retries are for ever. */
	conf.retry_cnt = 7;
	conf.rnr_retry = 7;
	conf.peer_window = chance(300) ? 1 + (uint32_t)rand_below(&s.rand, 40) : 4096;
	conf.mem_bytes = 3 * SLOTS * SLOT_BYTES + WORDS * 8;
	conf.access = ACCESS_REMOTE | ACCESS_FLUSH;
	conf.max_rd = (uint8_t)(1 + rand_magnitude(&s.rand, 4));
	conf.max_dest_rd = (uint8_t)RTE_MIN(
		conf.max_rd + rand_below(&s.rand, 3), (uint64_t)QP_MAX_RD_ATOMIC);
	s.chances = (struct chances){LEVEL(), LEVEL(), LEVEL(), LEVEL(), LEVEL()};
	s.late = chance(500) ? 900 : 20;
	if (seed % 5 == 0)
		conf.type = IBV_QPT_XRC_SEND;
	pair_init(&s.pair, &conf);
	flow_init(&s.flow[0], &s.pair.a);
	flow_init(&s.flow[1], &s.pair.b);
	if (pair_is_xrc(&s.pair))
		s.flow[1].total = 0; /* a target sends nothing */
#undef LEVEL
}

/* What is still on its way says nothing new any more. */
static void
sweep_end(void)
{
	pair_settle(&s.pair);
	for (unsigned i = 0; i < 2; i++) {
		struct host *h = s.flow[i].from;

		assert_int_equal(h->qp.state, IBV_QPS_RTS);
		assert_int_equal(h->qp.req.una_idx, s.flow[i].total);
		assert_int_equal(h->peer.inflight, 0);
		assert_int_equal(qp_deadline(&h->qp), TIME_NEVER);
		assert_int_equal(h->qp.resp.msn, s.flow[!i].requests);
		assert_memory_equal(
			word_at(s.flow[i].to, 0), s.flow[i].word, sizeof(s.flow[i].word));
		assert_int_equal(h->stats.drop[DROP_address], 0);
		assert_int_equal(h->stats.drop[DROP_qp_state], 0);
		assert_int_equal(key_find(&h->keys, s.flow[i].own_rkey) != NULL,
			s.flow[i].own_bound);
	}
	flow_fini(&s.flow[0]);
	flow_fini(&s.flow[1]);
	pair_fini(&s.pair);
}

/* A retry counter of 7 can run out by bad luck; the flow then ends as it should. */
static bool
ran_out(const struct flow *f)
{
	return f->from->qp.state == IBV_QPS_ERR;
}

static void
sweep_abandon(void)
{
	struct cqe cqe;

	for (unsigned i = 0; i < 2; i++) {
		struct host *h = s.flow[i].from;

		assert_int_equal(host_modify(h, IBV_QPS_RESET), 0);
		while (host_poll(h, &h->send_cq, &cqe) || host_poll(h, &h->recv_cq, &cqe))
			;
		wire_drop_all(h);
		for (int e = 0; e < QP_EVENT_COUNT; e++)
			event_purge(&h->qp.events[e]);
	}
	flow_fini(&s.flow[0]);
	flow_fini(&s.flow[1]);
	pair_fini(&s.pair);
}

/* False: retries ran out. */
static bool
seed_run(uint64_t seed)
{
	seed_running = seed;
	sweep_init(seed);
	for (unsigned round = 0; !flow_done(&s.flow[0]) || !flow_done(&s.flow[1]);
		round++) {
		assert_true(round < ROUNDS_MAX);
		for (unsigned i = 0; i < 2; i++) {
			flow_post(&s.flow[i]);
			wire_run(s.flow[i].from);
		}
		if (ran_out(&s.flow[0]) || ran_out(&s.flow[1])) {
			sweep_abandon();
			return false;
		}
		for (unsigned i = 0; i < 2; i++) {
			sent_check(&s.flow[i]);
			received_check(&s.flow[i]);
		}
		time_run();
	}
	sweep_end();
	return true;
}

static void
test_sweep(void **state)
{
	const char *one = getenv("ROCADE_SEED"), *many = getenv("ROCADE_SEEDS");
	uint64_t seeds = getenv("ROCADE_TEST_LONG") != NULL ? SEEDS_LONG : SEEDS;
	uint64_t from = 1, abandoned = 0;

	(void)state;
	memset(untouched, UNTOUCHED, sizeof(untouched));
	if (one != NULL)
		seeds = from = strtoull(one, NULL, 0);
	else if (many != NULL)
		seeds = strtoull(many, NULL, 0);
	for (uint64_t seed = from; seed <= seeds; seed++)
		abandoned += !seed_run(seed);
	seed_running = 0;
	assert_true(abandoned <= 1 + (seeds - from) / 50);
	for (unsigned i = 0; i < RTE_DIM(ops) && one == NULL; i++)
		assert_true(op_seen[(uint8_t)ops[i]] != 0);
}

static int
teardown(void **state)
{
	(void)state;
	if (seed_running != 0)
		print_error("failed with ROCADE_SEED=%lu\n", (unsigned long)seed_running);
	return 0;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_sweep, teardown),
	};

	return cmocka_run_group_tests_name("qp sweep", tests, NULL, NULL);
}
