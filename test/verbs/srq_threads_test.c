/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An SRQ with two engines and two posting threads: FIFO order, resizes under traffic, and
 * one limit event for each arming. The wr_id of a receive holds the thread that posted it
 * and a number that rises with every post of that thread. Each QP must see rising numbers
 * of a thread, and all QPs together must see a prefix without gaps.
 */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../unit/rand.h"
#include "await.h"
#include "case.h"
#include "verbs_pair.h"

#define QPS 4
#define POSTERS 2
#define LIST 4
#define DEPTH 64
#define CQE 65536
#define BUFFER 64
/* for each posting thread: 1 MiB together, far more than are in use */
#define BUFFERS 8192
#ifdef __SANITIZE_THREAD__
#define SLOWER 20
#else
#define SLOWER 1
#endif
#define SENDS (100000 / SLOWER)

struct world {
	struct verbs_pair pair;
	uint64_t seed;
	pthread_t poster[POSTERS], sender;
	bool stop_send, stop_post;
	/* Only one thread posts at a time: both share one sequence of numbers. */
	bool one_order;
	pthread_mutex_t order;
	/* numbers used; with one_order only the first element counts */
	uint32_t next[POSTERS];
	/* posting threads wait while more receives than this are outstanding */
	uint32_t keep;
	uint64_t sent;
	/* Used by the checking thread. */
	uint64_t received;
	int64_t last[QPS][POSTERS];
	uint8_t *seen[POSTERS];
	uint32_t seen_room;
};

struct poster_arg {
	struct world *w;
	unsigned index;
};

static bool
flag(const bool *f)
{
	return __atomic_load_n(f, __ATOMIC_ACQUIRE);
}

static uint32_t
outstanding(struct ibv_srq *srq)
{
	struct rocade_srq_info info;

	rocade_srq_info(srq, &info);
	return info.outstanding;
}

/* Posts a list of n receives; the numbers of those that were refused are used again. */
static void
post_list(struct world *w, unsigned who, unsigned n)
{
	struct verbs_side *b = &w->pair.b;
	unsigned space = w->one_order ? 0 : who;
	struct ibv_recv_wr wr[LIST], *bad;
	struct ibv_sge sge[LIST];
	int rc;

	for (unsigned i = 0; i < n; i++) {
		uint32_t number = w->next[space] + i;
		/* Each receive has its own buffer: two engines fill two receives at
		 * once. */
		uint32_t slot = number % BUFFERS * POSTERS + space;

		sge[i] = (struct ibv_sge){.addr = (uintptr_t)b->mem + slot * BUFFER,
			.length = BUFFER,
			.lkey = b->mr->lkey};
		wr[i] = (struct ibv_recv_wr){.wr_id = (uint64_t)space << 32 | number,
			.next = i + 1 < n ? &wr[i + 1] : NULL,
			.sg_list = &sge[i],
			.num_sge = 1};
	}
	rc = ibv_post_srq_recv(b->srq, wr, &bad);
	w->next[space] += rc == 0 ? n : (uint32_t)(bad - wr);
}

static void *
poster_run(void *arg)
{
	struct poster_arg *p = arg;
	struct world *w = p->w;
	uint64_t rand = w->seed + p->index;

	while (!flag(&w->stop_post)) {
		unsigned n = 1 + (unsigned)rand_below(&rand, LIST);

		if (w->keep != 0 && outstanding(w->pair.b.srq) > w->keep) {
			sched_yield();
			continue;
		}
		if (w->one_order)
			pthread_mutex_lock(&w->order);
		post_list(w, p->index, n);
		if (w->one_order)
			pthread_mutex_unlock(&w->order);
		if (rand_below(&rand, 8) == 0)
			sched_yield();
	}
	free(p);
	return NULL;
}

/* Sends on all QPs round robin; every eighth request is signaled. */
static void *
sender_run(void *arg)
{
	struct world *w = arg;
	struct ibv_wc wc[16];
	unsigned turn = 0, count[QPS] = {0};

	while (!flag(&w->stop_send)) {
		/* Keep the CQ from overflowing, however long the checking thread is not
		 * scheduled. */
		if (w->sent - __atomic_load_n(&w->received, __ATOMIC_RELAXED) > CQE / 2) {
			sched_yield();
			continue;
		}

		unsigned qp = turn++ % QPS;
		unsigned flags = count[qp] % 8 == 7 ? IBV_SEND_SIGNALED : 0;
		int rc = pair_send(&w->pair.a, qp, 0, 0, 16, flags);
		int n = ibv_poll_cq(w->pair.a.send_cq, 16, wc);

		for (int i = 0; i < n; i++) {
			if (wc[i].status != IBV_WC_SUCCESS) {
				fprintf(stderr, "send: %s\n",
					ibv_wc_status_str(wc[i].status));
				abort();
			}
		}
		if (rc == 0) {
			count[qp]++;
			w->sent++;
		} else if (turn % QPS == 0) {
			sched_yield();
		}
	}
	return NULL;
}

static unsigned
qp_index(const struct world *w, uint32_t qpn)
{
	unsigned i = 0;

	while (w->pair.b.qp[i]->qp_num != qpn)
		i++;
	return i;
}

/* Polls completions and checks the number of each. */
static unsigned
completions_check(struct world *w)
{
	struct ibv_wc wc[32];
	int n = ibv_poll_cq(w->pair.b.recv_cq, 32, wc);

	assert_true(n >= 0);
	for (int i = 0; i < n; i++) {
		unsigned qp = qp_index(w, wc[i].qp_num);
		unsigned who = (unsigned)(wc[i].wr_id >> 32);
		uint32_t number = (uint32_t)wc[i].wr_id;

		assert_int_equal(wc[i].status, IBV_WC_SUCCESS);
		assert_true(who < POSTERS);
		if ((int64_t)number <= w->last[qp][who])
			fail_msg("seed %lu: QP %u got %u of poster %u after %ld", w->seed,
				qp, number, who, w->last[qp][who]);
		w->last[qp][who] = number;
		while (number >= w->seen_room) {
			for (unsigned p = 0; p < POSTERS; p++) {
				w->seen[p] = realloc(w->seen[p], 2 * w->seen_room);
				assert_non_null(w->seen[p]);
				memset(w->seen[p] + w->seen_room, 0, w->seen_room);
			}
			w->seen_room *= 2;
		}
		/* no other completion had this number */
		assert_int_equal(w->seen[who][number]++, 0);
	}
	__atomic_fetch_add(&w->received, (uint64_t)n, __ATOMIC_RELAXED);
	return (unsigned)n;
}

static void
completions_check_or_yield(struct world *w)
{
	if (completions_check(w) == 0)
		sched_yield();
}

/* Empties the CQ: the sender is faster than occasional polls of 32, and no CQ may
 * overflow. */
static void
completions_check_all(struct world *w)
{
	while (completions_check(w) == 32)
		;
}

static void
world_open(struct world *w, uint64_t seed, bool one_order, uint32_t keep)
{
	memset(w, 0, sizeof(*w));
	w->seed = seed;
	w->one_order = one_order;
	w->keep = keep;
	w->seen_room = 1 << 16;
	for (unsigned p = 0; p < POSTERS; p++) {
		w->seen[p] = calloc(1, w->seen_room);
		for (unsigned q = 0; q < QPS; q++)
			w->last[q][p] = -1;
	}
	pthread_mutex_init(&w->order, NULL);
	pair_open(&w->pair, &(struct verbs_pair_conf){.engines = 2,
				    .qps = QPS,
				    .srq_wr = DEPTH,
				    .cqe = CQE,
				    .timeout = 18, /* 1 s: five threads share the CPUs */
				    .cap = {.max_send_wr = 64}});
	pair_threads_start(&w->pair);
	for (unsigned i = 0; i < POSTERS; i++) {
		struct poster_arg *arg = malloc(sizeof(*arg));

		*arg = (struct poster_arg){.w = w, .index = i};
		assert_int_equal(pthread_create(&w->poster[i], NULL, poster_run, arg), 0);
	}
	assert_int_equal(pthread_create(&w->sender, NULL, sender_run, w), 0);
}

/* Every message sent is received; the receives consumed are a prefix of those posted. */
static void
world_close(struct world *w)
{
	uint64_t prefix = 0;

	__atomic_store_n(&w->stop_send, true, __ATOMIC_RELEASE);
	pthread_join(w->sender, NULL);
	if (!awaited_by(completions_check_or_yield(w), w->received >= w->sent))
		fail_msg("seed %lu: %lu of %lu received", w->seed, w->received, w->sent);
	__atomic_store_n(&w->stop_post, true, __ATOMIC_RELEASE);
	for (unsigned i = 0; i < POSTERS; i++)
		pthread_join(w->poster[i], NULL);
	pair_no_completion(&w->pair, w->pair.b.recv_cq);
	for (unsigned p = 0; p < POSTERS; p++) {
		uint32_t n = 0;

		while (n < w->seen_room && w->seen[p][n] != 0)
			n++;
		prefix += n;
		assert_true(n <= w->next[p]);
	}
	assert_int_equal(prefix, w->received); /* no gap */
	for (unsigned q = 0; q < QPS; q++)
		/* every QP consumed receives */
		assert_true(w->last[q][0] >= 0 || w->last[q][1] >= 0);
	pair_close(&w->pair);
	for (unsigned p = 0; p < POSTERS; p++)
		free(w->seen[p]);
	pthread_mutex_destroy(&w->order);
}

static uint64_t
seed_now(void)
{
	const char *text = getenv("ROCADE_SEED");
	uint64_t seed = text != NULL ? strtoull(text, NULL, 0) : pair_clock_ns();

	print_message("# seed %lu\n", seed);
	return seed;
}

static void
fifo(bool one_order)
{
	struct world w;

	world_open(&w, seed_now(), one_order, 0);
	while (w.received < 200000 / SLOWER)
		completions_check_or_yield(&w);
	world_close(&w);
}

TEST(fifo_order_per_thread)
{
	fifo(false);
}

TEST(fifo_order_of_serialised_posts)
{
	fifo(true);
}

#define SIZES 1000 /* the SRQ has room for 1 to this many receives */

/* Resizes under traffic; a size that is too small is refused and changes nothing. */
TEST(resize_under_traffic)
{
	unsigned done = 0, refused = 0;
	struct ibv_srq_attr attr;
	struct world w;
	struct await a = {.pauses = 0};
	uint64_t rand;

	world_open(&w, seed_now(), false, SIZES / 2);
	rand = w.seed ^ 0x1234;
	/* The threads that post may have had no core meanwhile. */
	while (done + refused < 10000 / SLOWER ||
		((done == 0 || refused == 0) && await_goes_on(&a))) {
		/* Most attempts for one receive are refused. */
		uint32_t most = (done + refused) % 2 != 0 ? 1 : SIZES;
		uint32_t want = 1 + (uint32_t)rand_below(&rand, most);
		int rc;

		attr = (struct ibv_srq_attr){
			.max_wr = want, .max_sge = (uint32_t)rand_below(&rand, 3)};
		rc = ibv_modify_srq(w.pair.b.srq, &attr, IBV_SRQ_MAX_WR);
		if (rc == 0) {
			assert_true(attr.max_wr >= want);
			done++;
		} else {
			assert_int_equal(rc, EINVAL); /* more receives are outstanding */
			refused++;
		}
		completions_check_all(&w);
	}
	assert_true(done > 0 && refused > 0);
	world_close(&w);
}

static bool
event_waits(struct ibv_context *context)
{
	struct pollfd p = {.fd = context->async_fd, .events = POLLIN};

	return poll(&p, 1, 0) == 1;
}

/* Exactly one event for each arming, 100,000 times. */
TEST(one_limit_event_per_arming)
{
	struct ibv_async_event event;
	struct ibv_srq_attr attr;
	struct world w;
	uint64_t rand;

	world_open(&w, seed_now(), false, DEPTH / 2);
	rand = w.seed ^ 0x4321;
	for (unsigned round = 0; round < 100000 / SLOWER; round++) {
		attr = (struct ibv_srq_attr){
			.srq_limit = 1 + (uint32_t)rand_below(&rand, DEPTH)};
		assert_int_equal(ibv_modify_srq(w.pair.b.srq, &attr, IBV_SRQ_LIMIT), 0);
		if (!awaited_by(completions_check_or_yield(&w),
			    event_waits(w.pair.b.context)))
			fail_msg("seed %lu: no event in round %u", w.seed, round);
		assert_int_equal(ibv_get_async_event(w.pair.b.context, &event), 0);
		assert_int_equal(event.event_type, IBV_EVENT_SRQ_LIMIT_REACHED);
		assert_ptr_equal(event.element.srq, w.pair.b.srq);
		ibv_ack_async_event(&event);
		completions_check_all(&w);
		/* One event, and the limit is disarmed. */
		assert_false(event_waits(w.pair.b.context));
		if (round % 64 == 0) {
			assert_int_equal(ibv_query_srq(w.pair.b.srq, &attr), 0);
			assert_int_equal(attr.srq_limit, 0);
			assert_false(event_waits(w.pair.b.context));
		}
	}
	world_close(&w);
}

/* No thread runs the engines. posts.c shows that an arming makes no system
 * call. */
TEST(arming_does_not_wait_for_an_engine)
{
	struct ibv_srq_attr attr = {.srq_limit = 1};
	struct verbs_pair p;

	pair_open(&p, &(struct verbs_pair_conf){.srq_wr = 16, .engines = 2, .qps = 2});
	assert_int_equal(pair_post_srq(&p.b, 0, 0, 64), 0);
	for (unsigned i = 0; i < 1000; i++)
		assert_int_equal(ibv_modify_srq(p.b.srq, &attr, IBV_SRQ_LIMIT), 0);
	assert_false(event_waits(p.b.context));
	pair_close(&p);
}

/* Several threads post to one send queue. */
static void *
send_many(void *arg)
{
	struct verbs_pair *p = arg;

	for (unsigned i = 0; i < SENDS / 2;) {
		int rc = pair_send(&p->a, 0, 0, 0, 8, IBV_SEND_SIGNALED);

		if (rc == 0)
			i++;
		else
			sched_yield();
	}
	return NULL;
}

TEST(threads_share_a_send_queue)
{
	struct verbs_pair p;
	pthread_t thread[2];
	unsigned sent = 0, received = 0, posted = 0;
	struct ibv_wc wc[32];

	pair_open(&p, &(struct verbs_pair_conf){.srq_wr = 256});
	pair_threads_start(&p);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, send_many, &p), 0);
	while (sent < SENDS || received < SENDS) {
		int a = ibv_poll_cq(p.a.send_cq, 32, wc), b;

		for (int i = 0; i < a; i++)
			assert_int_equal(wc[i].status, IBV_WC_SUCCESS);
		b = ibv_poll_cq(p.b.recv_cq, 32, wc);
		for (int i = 0; i < b; i++)
			assert_int_equal(wc[i].status, IBV_WC_SUCCESS);
		sent += (unsigned)a;
		received += (unsigned)b;
		while (posted < SENDS && pair_post_srq(&p.b, posted, 0, 64) == 0)
			posted++;
		if (a + b == 0)
			sched_yield();
	}
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(pthread_join(thread[i], NULL), 0);
	assert_int_equal(sent, SENDS);
	assert_int_equal(received, SENDS);
	pair_close(&p);
}
