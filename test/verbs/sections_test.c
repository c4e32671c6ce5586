/* SPDX-License-Identifier: BSD-3-Clause */
/* Within a section (ibv_start_poll() to ibv_end_poll(), ibv_wr_start() to
 * ibv_wr_complete()) a thread makes control calls and polls another CQ. Meanwhile another
 * thread resizes the CQ, or resets or destroys a QP of it, and waits for the end of the
 * section: both come to an end. */
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>

#include "await.h"
#include "case.h"
#include "verbs_pair.h"

#define ROUNDS 30
#define CALLS 4 /* in a section, while the other thread is in its call */

static struct verbs_pair pair;
static struct await_guard guard;
/* The QP that the other thread changes. Its CQs are exchanged: the sections are of the CQ
 * of its receives. */
static struct ibv_qp *changed;
static bool in_call, stop; /* atomic */
static uint32_t ended;     /* atomic: calls */

static void
call_begin(void)
{
	__atomic_store_n(&in_call, true, __ATOMIC_SEQ_CST);
}

static void
call_end(bool good)
{
	if (!good)
		abort();
	__atomic_fetch_add(&ended, 1, __ATOMIC_SEQ_CST);
	__atomic_store_n(&in_call, false, __ATOMIC_SEQ_CST);
}

/* ---- What the other thread does ---- */

static void
cq_resize(void)
{
	static unsigned n;

	call_begin();
	call_end(ibv_resize_cq(pair.a.send_cq, n++ % 2 != 0 ? 100 : 1000) == 0);
}

static void
state_set(enum ibv_qp_state state, int mask)
{
	struct ibv_qp_attr attr = {.qp_state = state, .port_num = 1};

	if (ibv_modify_qp(changed, &attr, IBV_QP_STATE | mask) != 0)
		abort();
}

static void
qp_reset_again(void)
{
	state_set(IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	call_begin();
	state_set(IBV_QPS_RESET, 0);
	call_end(true);
}

static void
qp_create_destroy(void)
{
	struct ibv_qp_init_attr attr = {.send_cq = pair.a.recv_cq,
		.recv_cq = pair.a.send_cq,
		.cap = {1, 1, 1, 1, 0},
		.qp_type = IBV_QPT_RC};
	struct ibv_qp *qp = ibv_create_qp(pair.a.pd, &attr);

	if (qp == NULL)
		abort();
	call_begin();
	call_end(ibv_destroy_qp(qp) == 0);
}

static void
qp_info_read(void)
{
	struct rocade_qp_info info;

	call_begin();
	call_end(rocade_qp_info(changed, &info) == 0);
}

static void *
other_thread(void *arg)
{
	void (*const *change)(void) = arg;

	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED))
		(*change)();
	return NULL;
}

/* ---- Sections ---- */

/* Calls that take the lock of the device, those of its engines, and that of the other
 * CQ. */
static void
calls_make(void)
{
	struct ibv_qp_attr attr = {.qp_access_flags = IBV_ACCESS_REMOTE_WRITE};
	struct rocade_cq_info info;
	struct ibv_wc wc;
	struct ibv_mr *mr =
		ibv_reg_mr(pair.a.pd, pair.a.mem, 4096, IBV_ACCESS_LOCAL_WRITE);

	assert_non_null(mr);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_modify_qp(pair.a.qp[0], &attr, IBV_QP_ACCESS_FLAGS), 0);
	assert_int_equal(rocade_cq_info(pair.a.send_cq, &info), 0);
	assert_int_equal(ibv_poll_cq(pair.a.recv_cq, 1, &wc), 0);
}

/* In a section. The other thread may end a call that was past its locks before. The next
 * call does not end before the section does. */
static void
calls_make_while_other_waits(void)
{
	uint32_t before = __atomic_load_n(&ended, __ATOMIC_SEQ_CST);

	for (unsigned left = CALLS; left != 0;) {
		calls_make();
		left -= __atomic_load_n(&in_call, __ATOMIC_SEQ_CST);
		sched_yield();
	}
	assert_in_range(__atomic_load_n(&ended, __ATOMIC_SEQ_CST) - before, 0, 1);
}

static void
section_of_cq(void)
{
	struct ibv_cq_ex *ex = (struct ibv_cq_ex *)pair.a.send_cq;
	struct ibv_poll_cq_attr none = {0};
	struct ibv_send_wr *bad,
		wr = {.opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED};

	assert_int_equal(ibv_post_send(pair.a.qp[0], &wr, &bad), 0);
	while (ibv_start_poll(ex, &none) != 0)
		sched_yield();
	assert_int_equal(ex->status, IBV_WC_SUCCESS);
	calls_make_while_other_waits();
	ibv_end_poll(ex);
}

static void
section_of_sq(void)
{
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(changed);

	ibv_wr_start(ex);
	calls_make_while_other_waits();
	ibv_wr_abort(ex);
}

/* Each section has a call of its own that it keeps waiting: else, while the other thread has
 * no core, one call would do for all sections. */
static void
sections_run(void (*section)(void), void (*change)(void))
{
	pthread_t thread;
	uint32_t before;

	stop = in_call = false;
	assert_int_equal(pthread_create(&thread, NULL, other_thread, &change), 0);
	for (unsigned i = 0; i < ROUNDS; i++) {
		before = __atomic_load_n(&ended, __ATOMIC_SEQ_CST);
		section();
		while (__atomic_load_n(&ended, __ATOMIC_SEQ_CST) == before)
			sched_yield();
	}
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	assert_int_equal(pthread_join(thread, NULL), 0);
}

static int
setup(void **state)
{
	struct verbs_side exchanged;

	await_guard_begin(&guard);
	pair_open(&pair, &(struct verbs_pair_conf){.engines = 2,
				 .cqe = 64,
				 .access = IBV_ACCESS_REMOTE_WRITE,
				 .ops = IBV_QP_EX_WITH_RDMA_WRITE,
				 .wc_flags = IBV_WC_STANDARD_FLAGS});
	exchanged = pair.a;
	exchanged.send_cq = pair.a.recv_cq;
	exchanged.recv_cq = pair.a.send_cq;
	changed = pair_qp_create(&pair.conf, &exchanged, 1);
	pair_threads_start(&pair);
	return 0;
}

static int
teardown(void **state)
{
	assert_int_equal(ibv_destroy_qp(changed), 0);
	pair_close(&pair);
	await_guard_end(&guard);
	return 0;
}

TEST_WITH(resize_waits_for_a_batch, setup, teardown)
{
	sections_run(section_of_cq, cq_resize);
}

TEST_WITH(reset_waits_for_a_batch, setup, teardown)
{
	sections_run(section_of_cq, qp_reset_again);
}

TEST_WITH(destroy_waits_for_a_batch, setup, teardown)
{
	sections_run(section_of_cq, qp_create_destroy);
}

TEST_WITH(reset_waits_for_posts, setup, teardown)
{
	sections_run(section_of_sq, qp_reset_again);
}

TEST_WITH(info_waits_for_posts, setup, teardown)
{
	sections_run(section_of_sq, qp_info_read);
}
