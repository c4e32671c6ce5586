/* SPDX-License-Identifier: BSD-3-Clause */
/* Which requests are measured for the histograms of latencies, and how long they take, in virtual time. */
#include "qp/req_time.h"
#include "qp_link.h"

#define TOOK 3000 /* the bucket of up to 4,096 ns */

static struct qp_link p;

static uint64_t
count_of(enum latency_type type, enum latency_op op)
{
	const struct latency_hist *hist = &p.a.times.own.of[type][op];
	uint64_t count = 0;

	for (unsigned i = 0; i < LATENCY_BUCKETS; i++)
		count += hist->count[i];
	return count;
}

static uint64_t
count_all(void)
{
	uint64_t count = 0;

	for (unsigned type = 0; type < LATENCY_TYPES; type++)
		for (unsigned op = 0; op < LATENCY_OPS; op++)
			count += count_of((enum latency_type)type, (enum latency_op)op);
	return count;
}

/* The only request that was measured is of this type and operation, and took so long. */
static void
expect_measured(enum latency_type type, enum latency_op op, uint64_t ns)
{
	assert_int_equal(count_all(), 1);
	assert_int_equal(p.a.times.own.of[type][op].count[latency_bucket(ns)], 1);
	assert_int_equal(p.a.times.own.of[type][op].sum_ns, ns);
	assert_true(req_times_idle(&p.a.times));
	assert_false(p.a.qp.timed);
}

/* Starts what is posted, and ends it later. */
static void
take(uint64_t ns)
{
	host_pull(&p.a, PULL_ALL);
	p.now += ns;
	qp_link_drain(&p);
}

/* From the pass that sends it, and not from its post. */
TEST(from_the_first_packet_to_the_completion)
{
	qp_link_init_default(&p);
	host_recv(&p.b, 1, 0, 100);
	host_send(&p.a, 1, 0, 100, IBV_SEND_SIGNALED);
	p.now += 77777;
	take(TOOK);
	expect_measured(LATENCY_TYPE_RC, LATENCY_OP_send, TOOK);
	assert_int_equal(p.a.times.own.of[LATENCY_TYPE_RC][LATENCY_OP_send].count[3], 1);
	expect_sent(&p.a, 1, IBV_WC_SUCCESS);
	expect_received(&p.b, 1, 100);
	qp_link_fini(&p);
}

TEST(unsignaled_requests_too)
{
	qp_link_init_default(&p);
	host_recv(&p.b, 1, 0, 100);
	host_send(&p.a, 1, 0, 100, 0);
	take(TOOK);
	expect_measured(LATENCY_TYPE_RC, LATENCY_OP_send, TOOK);
	expect_received(&p.b, 1, 100);
	qp_link_fini(&p);
}

/* The first one that starts, and none before that has completed, also if it is the turn of another. */
TEST(one_request_at_a_time)
{
	qp_link_init_default(&p);
	for (unsigned round = 0; round < 2; round++) {
		for (unsigned i = 0; i < 3; i++) {
			host_recv(&p.b, i, 0, 100);
			host_send(&p.a, i, 0, 100, IBV_SEND_SIGNALED);
		}
		p.a.qp.untimed = 1;
		host_pull(&p.a, 1);
		assert_true(p.a.qp.timed);
		p.a.qp.untimed = 1;
		take(TOOK);
		for (unsigned i = 0; i < 3; i++) {
			expect_sent(&p.a, i, IBV_WC_SUCCESS);
			expect_received(&p.b, i, 100);
		}
		assert_int_equal(count_all(), round + 1);
	}
	assert_int_equal(
		p.a.times.own.of[LATENCY_TYPE_RC][LATENCY_OP_send].sum_ns, 2 * TOOK);
	assert_true(req_times_idle(&p.a.times));
	qp_link_fini(&p);
}

/* The first one and each seventeenth: of a program that posts two operations in turn both. */
TEST(every_seventeenth_request)
{
	struct qp_link_conf conf = qp_link_defaults_rdma();

	qp_link_init(&p, &conf);
	for (unsigned i = 0; i < 4 * REQ_TIME_EVERY; i++) {
		assert_int_equal(count_all(), (i + REQ_TIME_EVERY - 1) / REQ_TIME_EVERY);
		if (i % 2 == 0)
			host_write(&p.a, 1, 0, 0x8000, 64);
		else
			host_read(&p.a, 1, 0, 0x8000, 64);
		take(TOOK);
		expect_sent(&p.a, 1, IBV_WC_SUCCESS);
	}
	assert_int_equal(count_of(LATENCY_TYPE_RC, LATENCY_OP_write), 2);
	assert_int_equal(count_of(LATENCY_TYPE_RC, LATENCY_OP_read), 2);
	qp_link_fini(&p);
}

/* Posts a request. Returns its row. */
static enum latency_op
op_post(unsigned i)
{
	switch (i) {
	case 0:
		host_recv(&p.b, 1, 0, 2000);
		host_send(&p.a, 1, 0, 2000, IBV_SEND_SIGNALED);
		return LATENCY_OP_send;
	case 1:
		host_write(&p.a, 1, 0, 0x8000, 2000);
		return LATENCY_OP_write;
	case 2:
		host_read(&p.a, 1, 0, 0x8000, 5000);
		return LATENCY_OP_read;
	case 3:
		host_atomic(&p.a, 1, IBV_WR_ATOMIC_CMP_AND_SWP, 0, 0x8000, 1, 2);
		return LATENCY_OP_atomic;
	default:
		host_atomic(&p.a, 1, IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 0x8000, 1, 0);
		return LATENCY_OP_atomic;
	}
}

TEST(each_operation_has_its_row)
{
	for (unsigned i = 0; i < 5; i++) {
		struct qp_link_conf conf = qp_link_defaults_rdma();
		enum latency_op op;

		qp_link_init(&p, &conf);
		op = op_post(i);
		take(TOOK);
		expect_measured(LATENCY_TYPE_RC, op, TOOK);
		expect_sent(&p.a, 1, IBV_WC_SUCCESS);
		if (i == 0)
			expect_received(&p.b, 1, 2000);
		qp_link_fini(&p);
	}
}

/* Of a UC QP until its last packet is sent, of an XRC initiator until the acknowledgement. */
TEST(each_type_has_its_row)
{
	struct qp_link_conf conf = qp_link_defaults();
	struct sge sge;

	conf.type = IBV_QPT_UC;
	qp_link_init(&p, &conf);
	host_recv(&p.b, 1, 0, 2000);
	host_send(&p.a, 1, 0, 2000, IBV_SEND_SIGNALED);
	assert_int_equal(host_pull(&p.a, 1), 1);
	p.now += TOOK;
	assert_int_equal(host_pull(&p.a, 1), 1);
	expect_measured(LATENCY_TYPE_UC, LATENCY_OP_send, TOOK);
	qp_link_drain(&p);
	expect_sent(&p.a, 1, IBV_WC_SUCCESS);
	expect_received(&p.b, 1, 2000);
	qp_link_fini(&p);
	conf.type = IBV_QPT_XRC_SEND;
	qp_link_init(&p, &conf);
	host_recv(&p.b, 1, 0, 2000);
	sge = host_sge(&p.a, 0, 2000);
	assert_int_equal(host_post_send(&p.a, &(struct send_req){.wr_id = 1,
						      .flags = IBV_SEND_SIGNALED,
						      .sge = &sge,
						      .num_sge = 1,
						      .srqn = p.b.srq.srqn}),
		0);
	take(TOOK);
	expect_measured(LATENCY_TYPE_XRC, LATENCY_OP_send, TOOK);
	expect_sent(&p.a, 1, IBV_WC_SUCCESS);
	expect_received(&p.b, 1, 2000);
	qp_link_fini(&p);
}

/* With the time until it is sent again. */
TEST(a_lost_request_takes_longer)
{
	struct qp_link_conf conf = qp_link_defaults();
	uint64_t start;

	conf.timeout = 10; /* 4.2 ms */
	qp_link_init(&p, &conf);
	host_recv(&p.b, 1, 0, 100);
	host_send(&p.a, 1, 0, 100, IBV_SEND_SIGNALED);
	start = p.now;
	host_pull(&p.a, PULL_ALL);
	wire_drop_all(&p.a);
	while (!qp_wants_tx(&p.a.qp))
		qp_link_advance(&p, NS_PER_MS);
	qp_link_drain(&p);
	assert_true(p.now - start >= NS_PER_MS);
	expect_measured(LATENCY_TYPE_RC, LATENCY_OP_send, p.now - start);
	expect_sent(&p.a, 1, IBV_WC_SUCCESS);
	expect_received(&p.b, 1, 100);
	qp_link_fini(&p);
}

/* A failed or flushed request does not count, and the next one of the QP is measured. */
static void
end_by(enum ibv_qp_state state)
{
	qp_link_init_default(&p);
	for (unsigned i = 0; i < 3; i++)
		host_send(&p.a, i, 0, 2000, IBV_SEND_SIGNALED);
	host_pull(&p.a, PULL_ALL);
	wire_drop_all(&p.a);
	assert_true(p.a.qp.timed);
	p.now += TOOK;
	if (state == IBV_QPS_RTS) /* a NAK makes the request fail */
		inject_ack(&p.a, AETH_NAK_REM_OP, PSN_A);
	else
		assert_int_equal(host_modify(&p.a, state), 0);
	assert_int_equal(count_all(), 0);
	assert_false(p.a.qp.timed);
	assert_true(req_times_idle(&p.a.times));
	qp_link_fini_discard(&p);
}

TEST(requests_that_end_otherwise_leave_nothing)
{
	end_by(IBV_QPS_ERR);
	end_by(IBV_QPS_RESET);
	end_by(IBV_QPS_RTS);
}

TEST(after_a_reset_requests_are_measured_again)
{
	qp_link_init_default(&p);
	host_send(&p.a, 1, 0, 100, IBV_SEND_SIGNALED);
	host_pull(&p.a, PULL_ALL);
	wire_drop_all(&p.a);
	assert_int_equal(host_modify(&p.a, IBV_QPS_RESET), 0);
	assert_int_equal(host_modify(&p.b, IBV_QPS_RESET), 0);
	qp_link_connect(&p);
	host_recv(&p.b, 2, 0, 100);
	host_send(&p.a, 2, 0, 100, IBV_SEND_SIGNALED);
	take(TOOK);
	expect_measured(LATENCY_TYPE_RC, LATENCY_OP_send, TOOK);
	expect_sent(&p.a, 2, IBV_WC_SUCCESS);
	expect_received(&p.b, 2, 100);
	qp_link_fini(&p);
}

/* Another QP of the engine has the place. */
TEST(a_qp_without_a_place_is_not_measured)
{
	uint64_t *place = &p.a.times.places[QPN_A % REQ_TIMES].seen_ns;

	qp_link_init_default(&p);
	*place = 5;
	for (unsigned i = 0; i < 2; i++) {
		host_recv(&p.b, 1, 0, 100);
		host_send(&p.a, 1, 0, 100, IBV_SEND_SIGNALED);
		p.a.qp.untimed = 1;
		take(TOOK);
		expect_sent(&p.a, 1, IBV_WC_SUCCESS);
		expect_received(&p.b, 1, 100);
		assert_int_equal(count_all(), i);
		assert_int_equal(*place, i == 0 ? 5 : 0);
		*place = 0;
	}
	qp_link_fini(&p);
}

/* Two passes that begin in another order than they read the clock. */
TEST(a_clock_that_goes_back_counts_as_no_time)
{
	qp_link_init_default(&p);
	host_recv(&p.b, 1, 0, 100);
	host_send(&p.a, 1, 0, 100, IBV_SEND_SIGNALED);
	host_pull(&p.a, PULL_ALL);
	p.a.times.places[QPN_A % REQ_TIMES].start_ns = p.now + 10;
	qp_link_drain(&p);
	expect_measured(LATENCY_TYPE_RC, LATENCY_OP_send, 0);
	expect_sent(&p.a, 1, IBV_WC_SUCCESS);
	expect_received(&p.b, 1, 100);
	qp_link_fini(&p);
}

/* A local operation has no packet. The request behind it is measured. */
TEST(local_operations_are_not_measured)
{
	struct qp_link_conf conf = qp_link_defaults_rdma();
	uint32_t region, rkey;
	struct mw *mw;

	qp_link_init(&p, &conf);
	region = host_key(&p.a, 0, conf.mem_bytes,
		ACCESS_REMOTE | IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	mw = host_mw(&p.a, true);
	rkey = ibv_inc_rkey(mw->rkey);
	host_bind(&p.a, 1, IBV_SEND_SIGNALED, rkey, region, 0, 64, ACCESS_REMOTE);
	take(TOOK);
	expect_sent(&p.a, 1, IBV_WC_SUCCESS);
	assert_int_equal(count_all(), 0);
	assert_true(req_times_idle(&p.a.times));
	host_local_inv(&p.a, 2, IBV_SEND_SIGNALED, rkey);
	host_write(&p.a, 3, 0, 0x8000, 64);
	take(TOOK);
	expect_measured(LATENCY_TYPE_RC, LATENCY_OP_write, TOOK);
	expect_sent(&p.a, 2, IBV_WC_SUCCESS);
	expect_sent(&p.a, 3, IBV_WC_SUCCESS);
	mw_destroy(&p.a.keys, mw);
	assert_int_equal(key_free(&p.a.keys, region), 0);
	qp_link_fini(&p);
}
