/* SPDX-License-Identifier: BSD-3-Clause */
/* The peer window, QP timers in the wheel, doorbells rung by several threads. */
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "../rand.h"
#include "engine/engine_state.h"
#include "engine_link.h"

#define QPS 24
#define SWEEP_SEEDS 60
#define MESSAGES 40

static struct engine_link fixture;
static struct link_qp a[QPS], b[QPS];
static uint64_t seed_running;

static const struct link_qp_conf plain = {.engine = 0, .wr = 512};

static void
init(const struct engine_link_conf *conf, const struct link_qp_conf *qc, unsigned qps)
{
	engine_link_init(&fixture, conf);
	link_qps_create(&fixture, a, b, qps, qc);
}

static struct peer *
only_peer(struct link_side *s)
{
	const struct peers *peers = &s->dev->engines[0]->peers;
	uint32_t i = 0;

	assert_int_equal(peers->count, 1);
	while (LIST_EMPTY(&peers->buckets[i]))
		i++;
	return LIST_FIRST(&peers->buckets[i]);
}

/* The engine's lists and counts agree, and the peer window is not exceeded. */
static void
engine_check(struct link_side *s, const struct link_qp *qps, unsigned n)
{
	struct engine *e = s->dev->engines[0];
	struct peer *peer = only_peer(s);
	uint32_t inflight = 0, waiting = 0;

	for (unsigned i = 0; i < n; i++) {
		inflight += qps[i].qp->req.unacked;
		waiting += qps[i].qp->sched.on_blocked;
		/* A QP with something to send is on a list or has its doorbell
		 * pending. */
		assert_true(!qp_wants_tx(qps[i].qp) || qps[i].qp->sched.on_ready ||
			    qps[i].qp->sched.on_blocked ||
			    doorbells_pending(&e->doorbells));
	}
	assert_int_equal(peer->send.inflight, inflight);
	assert_int_equal(engine_link_blocked(e), waiting);
	assert_true(peer->send.inflight <= peer->send.window);
	assert_int_equal(peer->qps, n);
}

/* ---- The peer's window ---- */

static void
window_seed(uint64_t seed)
{
	struct engine_link_conf conf = {0};
	struct link_qp_conf qc = {.engine = 0, .wr = 512, .timeout = 8, .rnr_timer = 5};
	uint64_t rand = seed;
	unsigned n = 2 + (unsigned)rand_below(&rand, QPS - 1);
	unsigned done = 0;

	seed_running = seed;
	conf.peer_window = 1 + (uint32_t)rand_below(&rand, 60);
	init(&conf, &qc, n);
	fixture.rand = seed;
	fixture.a.drop = fixture.b.drop =
		rand_below(&rand, 2) ? 0 : (unsigned)rand_below(&rand, 60);
	for (unsigned k = 0; k < MESSAGES; k++) {
		for (unsigned i = 0; i < n; i++) {
			uint32_t len = (uint32_t)rand_below(&rand, 5000);

			assert_int_equal(link_qp_recv(&b[i], k, 0, 5000), 0);
			assert_int_equal(link_qp_recv(&a[i], k, 0, 5000), 0);
			assert_int_equal(
				link_qp_send(&a[i], k, 0, len, IBV_SEND_SIGNALED), 0);
			assert_int_equal(link_qp_send(&b[i], k, 0, len, 0), 0);
		}
	}
	for (unsigned round = 0; done != n * MESSAGES; round++) {
		struct cqe cqe;

		assert_true(round < 200000);
		engine_link_pass(&fixture);
		engine_check(&fixture.a, a, n);
		engine_check(&fixture.b, b, n);
		for (unsigned i = 0; i < n; i++) {
			while (link_qp_poll_send(&a[i], &cqe)) {
				assert_int_equal(cqe.status, IBV_WC_SUCCESS);
				done++;
			}
		}
		fixture.now += rand_below(&rand, 20000);
	}
	fixture.a.drop = fixture.b.drop = 0;
	engine_link_advance(&fixture, NS_PER_SEC);
	for (unsigned i = 0; i < n; i++) {
		link_qp_expect_received(&a[i], 0, MESSAGES);
		link_qp_expect_received(&b[i], 0, MESSAGES);
	}
	assert_int_equal(only_peer(&fixture.a)->send.inflight, 0);
	link_qps_fini(&fixture, a, b, n);
}

static int
teardown(void **state)
{
	if (seed_running != 0)
		print_error("failed with ROCADE_SEED=%lu\n", (unsigned long)seed_running);
	return 0;
}

/* Many QPs to one peer never exceed its window in flight, and all messages arrive, with
 * loss and in both directions. */
TEST_WITH(inflight_never_exceeds_peer_window, NULL, teardown)
{
	const char *one = getenv("ROCADE_SEED");

	if (one != NULL) {
		window_seed(strtoull(one, NULL, 0));
	} else {
		for (uint64_t seed = 1; seed <= SWEEP_SEEDS; seed++)
			window_seed(seed);
	}
	seed_running = 0;
}

/* Resolves the neighbours of both sides. */
static void
warm_up(void)
{
	assert_int_equal(link_qp_recv(&b[0], 1, 0, 8), 0);
	assert_int_equal(link_qp_send(&a[0], 1, 0, 8, IBV_SEND_SIGNALED), 0);
	engine_link_drain(&fixture);
	link_qp_expect_sent(&a[0], 1, 1, IBV_WC_SUCCESS);
	link_qp_expect_received(&b[0], 1, 1);
	fixture.b.roce_frames = 0;
}

/* A blocked QP keeps its position in the peer's queue while it sends an ACK. */
TEST(blocked_qp_keeps_place_while_acking)
{
	struct engine_link_conf conf = {.peer_window = 4};
	struct engine *e;
	struct qp *second;

	init(&conf, &plain, 3);
	warm_up();
	for (unsigned i = 0; i < 3; i++) {
		for (unsigned k = 0; k < 8; k++) {
			assert_int_equal(link_qp_recv(&b[i], k, 0, 64), 0);
			assert_int_equal(
				link_qp_send(&a[i], k, 0, 64, IBV_SEND_SIGNALED), 0);
		}
		assert_int_equal(link_qp_recv(&a[i], 9, 0, 64), 0);
	}
	/* The ACKs of b are lost: the peer window stays full. */
	while (fixture.b.roce_frames == 0)
		engine_link_pass(&fixture);
	fixture.a.deaf = true;
	engine_link_drain(&fixture);
	e = fixture.a.dev->engines[0];
	assert_int_equal(engine_link_blocked(e), 3);
	second = TAILQ_NEXT(
		TAILQ_FIRST(&only_peer(&fixture.a)->send.blocked), blocked_link);
	for (unsigned i = 0; i < 3; i++) {
		unsigned before = fixture.b.roce_frames;

		if (a[i].qp != second)
			continue;
		fixture.a.deaf = false;
		assert_int_equal(link_qp_send(&b[i], 9, 0, 64, IBV_SEND_SIGNALED), 0);
		engine_run(fixture.b.dev->engines[0], fixture.now);
		engine_link_deliver(&fixture);
		engine_run(e, fixture.now);
		engine_run(e, fixture.now);
		engine_link_deliver(&fixture);
		assert_int_equal(fixture.b.roce_frames, before + 1); /* the ACK */
		link_qp_expect_received(&a[i], 9, 1);
	}
	assert_true(second->sched.on_blocked && !second->sched.on_ready);
	assert_ptr_equal(
		second, TAILQ_NEXT(TAILQ_FIRST(&only_peer(&fixture.a)->send.blocked),
				blocked_link));
	engine_link_advance(&fixture, 10 * NS_PER_SEC);
	for (unsigned i = 0; i < 3; i++) {
		struct cqe cqe;

		link_qp_expect_sent(&a[i], 0, 8, IBV_WC_SUCCESS);
		link_qp_expect_received(&b[i], 0, 8);
		while (link_qp_poll_send(&b[i], &cqe))
			assert_int_equal(cqe.status, IBV_WC_SUCCESS);
	}
	link_qps_fini(&fixture, a, b, 3);
}

/* The window has room for one QP at a time: those that find it full keep their places
 * before the one that has sent, so that each has its turn. */
TEST(blocked_qps_take_turns)
{
	enum { N = 4, EACH = 12 };
	struct engine_link_conf conf = {.peer_window = 2};

	init(&conf, &plain, N);
	warm_up();
	for (unsigned i = 0; i < N; i++) {
		for (unsigned k = 0; k < EACH; k++) {
			assert_int_equal(link_qp_recv(&b[i], k, 0, 64), 0);
			assert_int_equal(
				link_qp_send(&a[i], k, 0, 64, IBV_SEND_SIGNALED), 0);
		}
	}
	for (unsigned pass = 0; pass < 2 * N; pass++) {
		uint32_t most = 0, least = EACH;

		engine_link_pass(&fixture);
		for (unsigned i = 0; i < N; i++) {
			const struct sq *sq = &a[i].qp->sq;
			uint32_t left = sq_posted(sq) - a[i].qp->req.next_idx;

			most = RTE_MAX(most, left);
			least = RTE_MIN(least, left);
		}
		assert_in_range(most - least, 0, 2 * conf.peer_window);
	}
	engine_link_drain(&fixture);
	for (unsigned i = 0; i < N; i++) {
		link_qp_expect_sent(&a[i], 0, EACH, IBV_WC_SUCCESS);
		link_qp_expect_received(&b[i], 0, EACH);
	}
	link_qps_fini(&fixture, a, b, N);
}

/* A QP leaves the peer's queue when its path changes, in ERR and RESET, and when it is
 * destroyed. */
TEST(changed_qp_leaves_blocked_queue)
{
	struct engine_link_conf conf = {.peer_window = 4};
	struct engine *e;

	init(&conf, &plain, 5);
	e = fixture.a.dev->engines[0];
	for (unsigned i = 0; i < 5; i++) {
		for (unsigned k = 0; k < 32; k++)
			assert_int_equal(link_qp_send(&a[i], k, 0, 64, 0), 0);
	}
	while (fixture.b.roce_frames == 0)
		engine_link_pass(&fixture);
	fixture.a.deaf = true;
	engine_link_drain(&fixture);
	assert_int_equal(engine_link_blocked(e), 5);
	for (unsigned i = 0; i < 4; i++) {
		struct qp_attr attr = link_qp_attr(&a[i], &b[i], &plain);

		assert_true(a[i].qp->sched.on_blocked);
		switch (i) {
		case 0:
			assert_int_equal(link_qp_modify(&a[i], IBV_QPS_SQD), 0);
			attr.path.dgid[15] = 77;
			assert_int_equal(
				dev_qp_modify(fixture.a.dev, a[i].qp, &attr, IBV_QP_AV),
				0);
			assert_int_equal(a[i].qp->peer->qps, 1);
			assert_int_equal(e->peers.count, 2);
			break;
		case 1:
			assert_int_equal(link_qp_modify(&a[i], IBV_QPS_RESET), 0);
			break;
		case 2:
			dev_qp_stop(fixture.a.dev, a[i].qp, fixture.now);
			break;
		default: /* the last one: it runs passes, at the time of the machine */
			assert_int_equal(link_qp_modify(&a[i], IBV_QPS_ERR), 0);
			link_qp_expect_sent(&a[i], 0, 32, IBV_WC_WR_FLUSH_ERR);
			break;
		}
		engine_link_pass(&fixture);
		assert_false(a[i].qp->sched.on_blocked);
	}
	dev_qp_fini(fixture.a.dev, a[2].qp);
	cq_fini(&a[2].send_cq);
	cq_fini(&a[2].recv_cq);
	link_qp_create(&fixture.a, &a[2], &plain);
	link_qps_fini(&fixture, a, b, 5);
}

/* ---- Timers ---- */

/* An RNR NAK's timer never fires early, and at most one wheel tick and one pass late. */
TEST(rnr_timer_is_never_early)
{
	for (uint8_t code = 0; code < 32; code++) {
		struct link_qp_conf qc = {.engine = 0, .rnr_timer = code};
		uint64_t due;

		init(NULL, &qc, 1);
		assert_int_equal(link_qp_send(&a[0], 1, 0, 64, IBV_SEND_SIGNALED), 0);
		while (a[0].qp->req.rnr_deadline == TIME_NEVER)
			engine_link_pass(&fixture);
		due = fixture.now + rnr_timer_ns[code];
		assert_int_equal(link_qp_recv(&b[0], 1, 0, 64), 0);
		engine_link_advance(&fixture, rnr_timer_ns[code] - 1);
		assert_int_equal(
			engine_stats(fixture.a.dev->engines[0])->retransmitted, 0);
		assert_int_equal(fixture.now, due - 1);
		fixture.now = due + WHEEL_TICK_NS;
		engine_link_drain(&fixture);
		assert_int_equal(
			engine_stats(fixture.a.dev->engines[0])->retransmitted, 1);
		link_qp_expect_sent(&a[0], 1, 1, IBV_WC_SUCCESS);
		link_qp_expect_received(&b[0], 1, 1);
		link_qps_fini(&fixture, a, b, 1);
	}
}

/* Each ACK moves the deadline back; the wheel timer follows when it fires. No timeout is
 * missed or early, and no timer stays in the wheel. */
TEST(ack_timer_follows_deadline)
{
	struct link_qp_conf qc = {.engine = 0, .timeout = 10, .retry_cnt = 1};
	uint64_t tr = UINT64_C(4096) << 10;
	struct engine *e;

	init(NULL, &qc, 1);
	e = fixture.a.dev->engines[0];
	for (unsigned k = 0; k < 50; k++) {
		assert_int_equal(link_qp_recv(&b[0], k, 0, 64), 0);
		assert_int_equal(link_qp_send(&a[0], k, 0, 64, IBV_SEND_SIGNALED), 0);
		engine_link_advance(&fixture, tr / 3);
		link_qp_expect_sent(&a[0], k, 1, IBV_WC_SUCCESS);
		link_qp_expect_received(&b[0], k, 1);
	}
	assert_int_equal(e->stats.ack_timeouts, 0);
	fixture.b.deaf = true;
	assert_int_equal(link_qp_send(&a[0], 50, 0, 64, 0), 0);
	engine_link_advance(&fixture, tr - 1);
	assert_int_equal(e->stats.ack_timeouts, 0);
	engine_link_advance(&fixture, tr);
	assert_int_equal(e->stats.ack_timeouts, 1);
	engine_link_advance(&fixture, tr + WHEEL_TICK_NS);
	link_qp_expect_sent(&a[0], 50, 1, IBV_WC_RETRY_EXC_ERR);
	engine_link_advance(&fixture, 10 * tr);
	assert_int_equal(e->wheel.count, 0);
	link_qps_fini(&fixture, a, b, 1);
}

/* A thread has read the clock, waited for the engine lock, and another thread has run a pass
 * of a later time meanwhile: the time of the engine does not go back. */
TEST(time_does_not_go_back)
{
	struct engine *e;

	init(NULL, &plain, 1);
	warm_up();
	e = fixture.a.dev->engines[0];
	assert_int_equal(link_qp_recv(&b[0], 2, 0, 64), 0);
	assert_int_equal(link_qp_send(&a[0], 2, 0, 64, IBV_SEND_SIGNALED), 0);
	engine_run(e, fixture.now + 1000);
	engine_link_deliver(&fixture);
	engine_run(fixture.b.dev->engines[0], fixture.now);
	engine_link_deliver(&fixture);
	engine_run(e, fixture.now);
	link_qp_expect_sent(&a[0], 2, 1, IBV_WC_SUCCESS);
	link_qp_expect_received(&b[0], 2, 1);
	assert_in_range(a[0].qp->req.srtt_ns, 1, 1000);
	assert_int_equal(e->shared.now, fixture.now + 1000);
	link_qps_fini(&fixture, a, b, 1);
}

/* ---- Doorbells ---- */

#define POSTERS 4
#define POSTS 10000

static unsigned posters_done;

static void *
poster_run(void *arg)
{
	unsigned id = (unsigned)(uintptr_t)arg;
	unsigned posted[QPS] = {0};
	uint64_t rand = id + 1;

	/* Each QP is posted to by two threads. */
	for (unsigned k = 0; k < POSTS; k++) {
		unsigned i = (id / 2) * 2 + (unsigned)rand_below(&rand, 2);

		while (link_qp_send(&a[i], k, 0, 0, 0) != 0)
			sched_yield();
		posted[i]++;
		if (rand_below(&rand, 50) == 0)
			sched_yield();
	}
	__atomic_fetch_add(&posters_done, 1, __ATOMIC_RELEASE);
	return NULL;
}

static uint32_t
requests_completed(unsigned qps)
{
	uint32_t sum = 0;

	/* Unsignaled requests have no CQE to poll: free their slots here. */
	for (unsigned i = 0; i < qps; i++) {
		sum += a[i].qp->req.una_idx;
		sq_free(&a[i].qp->sq, a[i].qp->req.una_idx);
	}
	return sum;
}

/* Four threads post while the engine drains doorbells. A lost doorbell would leave a
 * request in its queue for ever. */
static void
doorbells_drain_beside_posters(bool cc)
{
	pthread_t threads[POSTERS];
	struct engine_link_conf conf = {.cc = cc};
	struct link_qp_conf qc = {.engine = 0, .wr = 16};
	uint32_t taken[QPS] = {0};

	init(&conf, &qc, POSTERS);
	posters_done = 0;
	for (uintptr_t i = 0; i < POSTERS; i++)
		assert_int_equal(
			pthread_create(&threads[i], NULL, poster_run, (void *)i), 0);
	for (unsigned idle = 0; requests_completed(POSTERS) != POSTERS * POSTS;) {
		bool over = __atomic_load_n(&posters_done, __ATOMIC_ACQUIRE) == POSTERS;
		unsigned moved = engine_link_pass(&fixture);

		for (unsigned i = 0; i < POSTERS; i++) {
			struct cqe cqe;

			while (link_qp_poll_recv(&b[i], &cqe))
				taken[i]++;
			while (recv_ring_outstanding(b[i].qp->rq) < 16)
				assert_int_equal(link_qp_recv(&b[i], 0, 0, 0), 0);
		}
		fixture.now += 1000;
		/* The queues are short. The posters need the core. */
		if (!over && moved == 0)
			sched_yield();
		idle = over && moved == 0 ? idle + 1 : 0;
		assert_true(idle < 100000);
	}
	for (unsigned i = 0; i < POSTERS; i++)
		pthread_join(threads[i], NULL);
	assert_false(doorbells_pending(&fixture.a.dev->engines[0]->doorbells));
	link_qps_fini(&fixture, a, b, POSTERS);
}

TEST(concurrent_doorbells_are_not_lost)
{
	doorbells_drain_beside_posters(false);
	doorbells_drain_beside_posters(true);
}
