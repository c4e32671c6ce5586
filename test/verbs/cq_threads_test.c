/* SPDX-License-Identifier: BSD-3-Clause */
/* A CQ that two engines write, that several threads poll and that one thread resizes.
 * Every completion is seen once, and each QP's in order where the order can be
 * observed. */
#include <errno.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../unit/rand.h"
#include "case.h"
#include "verbs_pair.h"

#define QPS 4
#define DEPTH 32
#define POLLERS 2
#define TOTAL 100000

static struct verbs_pair pair;
/* next wr_id of each QP; extended polling updates it under the CQ's lock */
static uint64_t next[QPS];
static uint64_t polled; /* atomic */
static bool extended, ordered;

/* WRITEs of no bytes: they need no memory and, unlike SENDs, no receive. */
static void *
sender(void *arg)
{
	uint64_t sent = 0;

	(void)arg;
	while (sent < TOTAL) {
		struct ibv_send_wr wr = {.wr_id = sent,
			.opcode = IBV_WR_RDMA_WRITE,
			.send_flags = IBV_SEND_SIGNALED};
		struct ibv_send_wr *bad;

		wr.wr_id = sent / QPS;
		if (ibv_post_send(pair.a.qp[sent % QPS], &wr, &bad) == 0)
			sent++;
		else
			sched_yield();
	}
	return NULL;
}

static void
completion_check(uint32_t qpn, uint64_t wr_id, enum ibv_wc_status status)
{
	if (status != IBV_WC_SUCCESS)
		abort();
	for (unsigned i = 0; i < QPS && ordered; i++) {
		if (pair.a.qp[i]->qp_num == qpn && wr_id != next[i]++)
			abort();
	}
	__atomic_fetch_add(&polled, 1, __ATOMIC_RELAXED);
}

static void
poll_batch(struct ibv_cq_ex *ex)
{
	struct ibv_poll_cq_attr none = {0};

	if (ibv_start_poll(ex, &none) != 0) {
		sched_yield();
		return;
	}
	do
		completion_check(ibv_wc_read_qp_num(ex), ex->wr_id, ex->status);
	while (ibv_next_poll(ex) == 0);
	ibv_end_poll(ex);
}

static void
poll_list(void)
{
	struct ibv_wc wc[16];
	int n = ibv_poll_cq(pair.a.send_cq, 16, wc);

	for (int i = 0; i < n; i++)
		completion_check(wc[i].qp_num, wc[i].wr_id, wc[i].status);
	if (n == 0)
		sched_yield();
}

static void *
poller(void *arg)
{
	(void)arg;
	while (__atomic_load_n(&polled, __ATOMIC_RELAXED) < TOTAL) {
		if (extended)
			poll_batch((struct ibv_cq_ex *)pair.a.send_cq);
		else
			poll_list();
	}
	return NULL;
}

static void
resize_under_traffic(uint64_t wc_flags, unsigned pollers)
{
	pthread_t threads[POLLERS + 1];
	const char *text = getenv("ROCADE_SEED");
	uint64_t seed = text != NULL ? strtoull(text, NULL, 0) : pair_clock_ns();
	unsigned resized = 0;

	print_message("# seed %lu\n", seed);
	extended = wc_flags != 0;
	/* Two threads that poll lists may check their lists in the opposite order. */
	ordered = extended || pollers == 1;
	memset(next, 0, sizeof(next));
	polled = 0;
	pair_open(&pair, &(struct verbs_pair_conf){.engines = 2,
				 .qps = QPS,
				 .cqe = QPS * DEPTH,
				 .timeout = 18,
				 .access = IBV_ACCESS_REMOTE_WRITE,
				 .wc_flags = wc_flags,
				 .cap = {.max_send_wr = DEPTH}});
	pair_threads_start(&pair);
	for (unsigned i = 0; i <= pollers; i++)
		assert_int_equal(
			pthread_create(&threads[i], NULL, i == 0 ? sender : poller, NULL),
			0);
	while (__atomic_load_n(&polled, __ATOMIC_RELAXED) < TOTAL) {
		/* The size covers all that can be outstanding, so the resize must
		 * succeed. */
		int cqe = QPS * DEPTH + (int)rand_below(&seed, 2000);

		assert_int_equal(ibv_resize_cq(pair.a.send_cq, cqe), 0);
		assert_true(pair.a.send_cq->cqe >= cqe);
		resized++;
		sched_yield();
	}
	for (unsigned i = 0; i <= pollers; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	assert_true(resized > 10);
	assert_int_equal(polled, TOTAL);
	pair_threads_stop(&pair);
	pair_no_completion(&pair, pair.a.send_cq);
	pair_close(&pair);
}

TEST(resize_loses_no_completion)
{
	resize_under_traffic(0, 1);
	resize_under_traffic(0, POLLERS);
}

TEST(resize_loses_no_completion_extended)
{
	resize_under_traffic(IBV_WC_STANDARD_FLAGS, POLLERS);
	resize_under_traffic(
		IBV_WC_STANDARD_FLAGS | (uint64_t)IBV_WC_EX_WITH_COMPLETION_TIMESTAMP,
		POLLERS);
}

/* A resize to less than the number of unpolled completions is refused. */
TEST(resize_below_unpolled_is_refused)
{
	struct ibv_wc wc[8];

	pair_open(&pair,
		&(struct verbs_pair_conf){.cqe = 8, .access = IBV_ACCESS_REMOTE_WRITE});
	for (uint64_t i = 0; i < 6; i++) {
		struct ibv_send_wr wr = {.wr_id = i,
			.opcode = IBV_WR_RDMA_WRITE,
			.send_flags = IBV_SEND_SIGNALED};
		struct ibv_send_wr *bad;

		assert_int_equal(ibv_post_send(pair.a.qp[0], &wr, &bad), 0);
	}
	pair_drain(&pair);
	assert_int_equal(ibv_resize_cq(pair.a.send_cq, 5), EINVAL);
	assert_int_equal(pair.a.send_cq->cqe, 8);
	assert_int_equal(ibv_resize_cq(pair.a.send_cq, 100), 0);
	assert_int_equal(pair.a.send_cq->cqe, 128);
	assert_int_equal(ibv_resize_cq(pair.a.send_cq, 6), 0);
	assert_int_equal(ibv_poll_cq(pair.a.send_cq, 8, wc), 6);
	for (unsigned i = 0; i < 6; i++)
		assert_int_equal(wc[i].wr_id, i);
	assert_int_equal(ibv_resize_cq(pair.a.send_cq, 1), 0);
	pair_close(&pair);
}

static void
write_post(uint64_t wr_id)
{
	struct ibv_send_wr wr = {.wr_id = wr_id,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED};
	struct ibv_send_wr *bad;

	assert_int_equal(ibv_post_send(pair.a.qp[0], &wr, &bad), 0);
}

/* A CQ with as many entries as its send queue is full. For each completion of an open
 * batch a request is posted, and completes before the batch ends: the CQ has room. */
TEST(posts_inside_a_batch_do_not_overrun)
{
	struct ibv_poll_cq_attr none = {0};
	struct ibv_cq_ex *ex;

	pair_open(&pair, &(struct verbs_pair_conf){.cqe = 8,
				 .access = IBV_ACCESS_REMOTE_WRITE,
				 .wc_flags = IBV_WC_STANDARD_FLAGS,
				 .cap = {.max_send_wr = 8}});
	ex = (struct ibv_cq_ex *)pair.a.send_cq;
	for (uint64_t i = 0; i < 8; i++)
		write_post(i);
	pair_drain(&pair);
	assert_int_equal(ibv_start_poll(ex, &none), 0);
	for (uint64_t i = 0; i < 20; i++) {
		assert_int_equal(ex->status, IBV_WC_SUCCESS);
		assert_int_equal(ex->wr_id, i);
		write_post(i + 8);
		pair_drain(&pair);
		assert_int_equal(ibv_wc_read_qp_num(ex), pair.a.qp[0]->qp_num);
		assert_int_equal(ex->wr_id, i);
		assert_int_equal(ibv_next_poll(ex), 0);
	}
	ibv_end_poll(ex);
	for (struct ibv_wc wc; ibv_poll_cq(pair.a.send_cq, 1, &wc) == 1;)
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
	pair_close(&pair);
}
