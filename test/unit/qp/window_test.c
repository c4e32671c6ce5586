/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory windows over the wire (IBA 10.6.7, 10.8.3.3; section 14): binds, local and
 * remote invalidates, their order among other requests, and what becomes of windows. */
#include <string.h>

#include <rte_byteorder.h>

#include "qp_pair.h"

static struct pair p;
static struct window *window; /* of b, type 2, unless the test made another */
static uint32_t region;       /* of b */

#define OFFSET 0x8000 /* of what the window shows in b's memory */
#define LEN 3000
#define RIGHTS (ACCESS_REMOTE | IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND)
#define SIGNALED IBV_SEND_SIGNALED

static void
init(void)
{
	struct pair_conf conf = pair_defaults_rdma();

	pair_init(&p, &conf);
	region = host_key(&p.b, 0, conf.mem_bytes, RIGHTS);
	window = host_window(&p.b, true);
}

static void
fini(void)
{
	window_destroy(&p.b.keys, window);
	assert_int_equal(key_free(&p.b.keys, region), 0);
	pair_fini(&p);
}

/* b binds, and that is done at once. */
static uint32_t
bound(void)
{
	uint32_t rkey = ibv_inc_rkey(window->rkey);

	host_bind(&p.b, 900, SIGNALED, rkey, region, OFFSET, LEN, ACCESS_REMOTE);
	assert_int_equal(host_pull(&p.b, PULL_ALL), 0);
	expect_sent(&p.b, 900, IBV_WC_SUCCESS);
	return rkey;
}

static struct cqe
taken(struct host *h, struct cq *cq)
{
	struct cqe cqe;

	assert_true(host_poll(h, cq, &cqe));
	assert_int_equal(cqe.status, IBV_WC_SUCCESS);
	return cqe;
}

static void
post(uint64_t wr_id, enum ibv_wr_opcode opcode, uint32_t rkey, uint32_t offset,
	uint32_t remote, uint32_t len)
{
	struct sge sge;
	struct send_req req = host_rdma(&p.a, &sge, wr_id, opcode, offset, remote, len);

	req.rkey = rkey;
	assert_int_equal(host_post_send(&p.a, &req), 0);
}

static void
post_inv(uint64_t wr_id, unsigned flags, uint32_t rkey, uint32_t len)
{
	struct sge sge = host_sge(&p.a, 0, len);
	struct send_req req = {.wr_id = wr_id,
		.opcode = IBV_WR_SEND_WITH_INV,
		.flags = flags,
		.imm = rte_cpu_to_be_32(rkey),
		.sge = &sge,
		.num_sge = 1};

	assert_int_equal(host_post_send(&p.a, &req), 0);
}

/* a's request through rkey ends like this; what it ends badly with ends both QPs. */
static void
through(uint32_t rkey, enum ibv_wr_opcode opcode, uint32_t remote, uint32_t len,
	enum ibv_wc_status status)
{
	post(5, opcode, rkey, 0, remote, len);
	pair_settle(&p);
	expect_sent(&p.a, 5, status);
	if (status == IBV_WC_REM_ACCESS_ERR)
		expect_event(&p.b, IBV_EVENT_QP_ACCESS_ERR);
}

/* ---- Bound ---- */

static void
test_access(void **state)
{
	uint32_t rkey;

	(void)state;
	init();
	rkey = bound();
	bytes_fill(p.a.mem, LEN, 1);
	through(rkey, WR_RDMA_WRITE, OFFSET, LEN, IBV_WC_SUCCESS);
	assert_true(bytes_match(p.b.mem + OFFSET, LEN, 1));
	memset(p.a.mem, 0, LEN);
	through(rkey, IBV_WR_RDMA_READ, OFFSET, LEN, IBV_WC_SUCCESS);
	assert_true(bytes_match(p.a.mem, LEN, 1));
	through(rkey, IBV_WR_ATOMIC_FETCH_AND_ADD, OFFSET, 8, IBV_WC_SUCCESS);
	fini();
}

/* A byte too far, and no further. */
static void
test_bounds(void **state)
{
	static const struct {
		enum ibv_wr_opcode opcode;
		uint32_t remote, len;
	} rows[] = {
		{WR_RDMA_WRITE, OFFSET - 1, 1},
		{WR_RDMA_WRITE, OFFSET, LEN + 1},
		{WR_RDMA_WRITE, OFFSET + LEN, 1},
		{IBV_WR_RDMA_READ, OFFSET - 1, LEN},
		{IBV_WR_RDMA_READ, OFFSET + 1, LEN},
		{IBV_WR_ATOMIC_FETCH_AND_ADD, OFFSET - 8, 8},
		{IBV_WR_ATOMIC_CMP_AND_SWP, OFFSET + LEN, 8},
		{IBV_WR_ATOMIC_WRITE, OFFSET + LEN, 8},
	};

	(void)state;
	for (unsigned i = 0; i < RTE_DIM(rows); i++) {
		uint8_t before[8192];

		init();
		bytes_fill(p.b.mem + OFFSET - 8, sizeof(before), 3);
		through(bound(), rows[i].opcode, rows[i].remote, rows[i].len,
			IBV_WC_REM_ACCESS_ERR);
		assert_true(bytes_match(p.b.mem + OFFSET - 8, sizeof(before), 3));
		fini();
	}
}

/* Rights of the window, not of the region; and no way past its QP's state. */
static void
test_rights(void **state)
{
	static const struct {
		unsigned access;
		enum ibv_wr_opcode opcode;
		bool good;
	} rows[] = {
		{IBV_ACCESS_REMOTE_READ, IBV_WR_RDMA_READ, true},
		{IBV_ACCESS_REMOTE_READ, WR_RDMA_WRITE, false},
		{IBV_ACCESS_REMOTE_READ, IBV_WR_ATOMIC_FETCH_AND_ADD, false},
		{IBV_ACCESS_REMOTE_WRITE, WR_RDMA_WRITE, true},
		{IBV_ACCESS_REMOTE_WRITE, IBV_WR_RDMA_READ, false},
		{IBV_ACCESS_REMOTE_WRITE, IBV_WR_ATOMIC_WRITE, true},
		{IBV_ACCESS_REMOTE_ATOMIC, IBV_WR_ATOMIC_FETCH_AND_ADD, true},
		{IBV_ACCESS_REMOTE_ATOMIC, WR_RDMA_WRITE, false},
		{0, IBV_WR_RDMA_READ, false},
	};

	(void)state;
	for (unsigned i = 0; i < RTE_DIM(rows); i++) {
		uint32_t rkey;

		init();
		rkey = ibv_inc_rkey(window->rkey);
		host_bind(&p.b, 1, 0, rkey, region, OFFSET, LEN, rows[i].access);
		host_pull(&p.b, PULL_ALL);
		through(rkey, rows[i].opcode, OFFSET, 8,
			rows[i].good ? IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR);
		fini();
	}
}

/* A READ's response is checked again, packet by packet. */
static void
test_read_interrupted(void **state)
{
	uint32_t rkey;

	(void)state;
	init();
	rkey = bound();
	post(5, IBV_WR_RDMA_READ, rkey, 0, OFFSET, LEN);
	host_pull(&p.a, PULL_ALL);
	wire_deliver_all(&p.a);
	assert_int_equal(host_pull(&p.b, 1), 1);
	host_local_inv(&p.b, 6, SIGNALED, rkey);
	host_pull(&p.b, 2); /* one for each half of the QP */
	pair_settle(&p);
	expect_event(&p.b, IBV_EVENT_QP_ACCESS_ERR);
	expect_sent(&p.a, 5, IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(taken(&p.b, &p.b.send_cq).wr_id, 6);
	fini();
}

/* ---- Invalidated ---- */

static void
test_local_inv(void **state)
{
	uint32_t rkey;

	(void)state;
	init();
	rkey = bound();
	host_local_inv(&p.b, 7, SIGNALED, rkey);
	assert_int_equal(host_pull(&p.b, PULL_ALL), 0);
	assert_int_equal(taken(&p.b, &p.b.send_cq).opcode, IBV_WC_LOCAL_INV);
	through(rkey, WR_RDMA_WRITE, OFFSET, 8, IBV_WC_REM_ACCESS_ERR);
	fini();
}

/* SEND_ONLY and SEND_LAST with invalidate: the data comes in, the key goes, the receive
 * says which; refused afterwards (capture 47). */
static void
test_remote_inv(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		uint32_t len = i == 0 ? 9 : 2500, rkey;
		struct cqe cqe;
		struct pkt_view v;

		init();
		rkey = bound();
		host_recv(&p.b, 3, 0, 4096);
		bytes_fill(p.a.mem, len, 4);
		post_inv(8, SIGNALED, rkey, len);
		host_pull(&p.a, PULL_ALL);
		expect_frame(&p.a, p.a.wire_count - 1,
			i == 0 ? OPCODE_RC_SEND_ONLY_INV : OPCODE_RC_SEND_LAST_INV,
			PSN_A + (i == 0 ? 0 : 2), 1);
		v = wire_view(&p.a, p.a.wire_count - 1);
		assert_int_equal(rte_be_to_cpu_32(view_imm_be(&v)), rkey);
		pair_settle(&p);
		assert_int_equal(taken(&p.a, &p.a.send_cq).opcode, IBV_WC_SEND);
		cqe = taken(&p.b, &p.b.recv_cq);
		assert_int_equal(cqe.opcode, IBV_WC_RECV);
		assert_int_equal(cqe.wc_flags, IBV_WC_WITH_INV);
		assert_int_equal(cqe.imm, rkey);
		assert_int_equal(cqe.byte_len, len);
		assert_true(bytes_match(p.b.mem, len, 4));
		through(rkey, WR_RDMA_WRITE, OFFSET, 8, IBV_WC_REM_ACCESS_ERR);
		fini();
	}
}

/* A duplicate invalidates nothing: the window has been bound anew meanwhile. */
static void
test_remote_inv_once(void **state)
{
	uint32_t rkey;

	(void)state;
	init();
	rkey = bound();
	host_recv(&p.b, 3, 0, 64);
	post_inv(8, SIGNALED, rkey, 8);
	host_pull(&p.a, PULL_ALL);
	wire_dup(&p.a, 0);
	wire_deliver(&p.a, 0);
	taken(&p.b, &p.b.recv_cq);
	host_bind(&p.b, 1, 0, rkey, region, OFFSET, LEN, ACCESS_REMOTE);
	host_pull(&p.b, PULL_ALL);
	pair_settle(&p);
	expect_sent(&p.a, 8, IBV_WC_SUCCESS);
	through(rkey, WR_RDMA_WRITE, OFFSET, 8, IBV_WC_SUCCESS);
	fini();
}

/* Row 19: what is no window of this QP: neither data nor key, and the connection ends. */
static void
test_remote_inv_refused(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 6; i++) {
		struct window *type1;
		uint32_t keys[6];

		init();
		type1 = host_window(&p.b, false);
		keys[0] = p.b.rkey;
		keys[1] = 0;
		keys[2] = UINT32_MAX;
		keys[3] = window->rkey; /* not bound */
		keys[4] = ibv_inc_rkey(type1->rkey);
		keys[5] = bound() + 1;
		host_bind(&p.b, 1, 0, keys[4], region, OFFSET, LEN, ACCESS_REMOTE);
		host_pull(&p.b, PULL_ALL);
		memset(p.b.mem, 0x77, 64);
		host_recv(&p.b, 3, 0, 64);
		bytes_fill(p.a.mem, 8, 4);
		post_inv(8, 0, keys[i], 8);
		host_pull(&p.a, PULL_ALL);
		wire_deliver_all(&p.a);
		host_pull(&p.b, PULL_ALL);
		expect_ack(&p.b, 0, AETH_NAK_ACCESS, PSN_A, 0);
		pair_settle(&p);
		expect_recv_error(&p.b, 3, IBV_WC_REM_INV_REQ_ERR, VENDOR_WINDOW);
		assert_int_equal(p.b.mem[0], 0x77);
		assert_non_null(key_find(&p.b.keys, p.b.rkey));
		assert_non_null(key_find(&p.b.keys, keys[4]));
		expect_sent(&p.a, 8, IBV_WC_REM_ACCESS_ERR);
		assert_int_equal(p.b.qp.state, IBV_QPS_ERR);
		window_destroy(&p.b.keys, type1);
		fini();
	}
}

/* ---- Order ---- */

/* Requests of all kinds in a row: completions in order, each operation once, whatever is
 * lost. The local ones speak for those before them. */
static void
test_order(void **state)
{
	(void)state;
	for (unsigned lose = 0; lose < 3; lose++) {
		struct window *own;
		uint32_t parent, rkey;

		init();
		own = host_window(&p.a, true);
		parent = host_key(&p.a, 0, 4096, RIGHTS);
		rkey = ibv_inc_rkey(own->rkey);
		for (unsigned i = 0; i < 3; i++)
			host_recv(&p.b, i, 0, 4096);
		host_send(&p.a, 1, 0, 2500, 0);
		host_bind(&p.a, 2, SIGNALED, rkey, parent, 0, 8, ACCESS_REMOTE);
		host_local_inv(&p.a, 3, 0, rkey);
		host_bind(&p.a, 4, SIGNALED, rkey, parent, 8, 8, ACCESS_REMOTE);
		host_read(&p.a, 5, 0, OFFSET, 2500);
		host_local_inv(&p.a, 6, SIGNALED, rkey);
		host_send(&p.a, 7, 0, 10, 0);
		host_local_inv(&p.a, 8, SIGNALED | IBV_SEND_FENCE, rkey);
		host_pull(&p.a, PULL_ALL);
		/* Done, and not complete; the fenced one waits for the READ. */
		assert_int_equal(own->rkey, rkey);
		assert_null(key_find(&p.a.keys, rkey));
		expect_quiet(&p.a);
		if (lose == 1)
			wire_drop_all(&p.a);
		if (lose == 2)
			wire_drop(&p.a, 2); /* SEND_LAST */
		pair_settle(&p);
		pair_advance(&p, 500 * NS_PER_MS);
		pair_settle(&p);
		for (unsigned i = 0; i < 2; i++)
			expect_received(&p.b, i, i == 0 ? 2500 : 10);
		expect_sent(&p.a, 2, IBV_WC_SUCCESS);
		expect_sent(&p.a, 4, IBV_WC_SUCCESS);
		expect_sent(&p.a, 5, IBV_WC_SUCCESS);
		expect_sent(&p.a, 6, IBV_WC_SUCCESS);
		/* The window was invalid already when this came to its turn. */
		expect_sent_vendor(&p.a, 8, IBV_WC_MW_BIND_ERR, VENDOR_WINDOW);
		assert_int_equal(p.a.qp.state, IBV_QPS_ERR);
		window_destroy(&p.a.keys, own);
		assert_int_equal(key_free(&p.a.keys, parent), 0);
		fini();
	}
}

/* Unsignaled requests, then a local one: an acknowledgement was asked for, also when the
 * packet before it goes out once more. */
static void
test_asks(void **state)
{
	uint32_t rkey;

	(void)state;
	init();
	rkey = ibv_inc_rkey(window->rkey);
	host_recv(&p.a, 1, 0, 64);
	host_send(&p.b, 1, 0, 8, 0);
	host_bind(&p.b, 2, SIGNALED, rkey, region, OFFSET, LEN, ACCESS_REMOTE);
	assert_int_equal(host_pull(&p.b, 16), 1);
	expect_frame(&p.b, 0, OPCODE_RC_SEND_ONLY, PSN_B, 1);
	wire_drop_all(&p.b);
	expect_quiet(&p.b);
	pair_advance(&p, 100 * NS_PER_MS); /* the ACK timeout */
	assert_int_equal(host_pull(&p.b, 16), 1);
	expect_frame(&p.b, 0, OPCODE_RC_SEND_ONLY, PSN_B, 1);
	pair_settle(&p);
	expect_received(&p.a, 1, 8);
	assert_int_equal(taken(&p.b, &p.b.send_cq).opcode, IBV_WC_BIND_MW);
	assert_non_null(key_find(&p.b.keys, rkey)); /* and was not bound twice */
	fini();
}

/* Nothing behind them: the response that completes a READ completes them too. */
static void
test_behind_read(void **state)
{
	uint32_t rkey;

	(void)state;
	init();
	rkey = bound();
	host_read(&p.b, 1, 0, OFFSET, 5000);
	host_local_inv(&p.b, 2, SIGNALED, rkey);
	host_bind(&p.b, 3, 0, rkey, region, OFFSET, LEN, ACCESS_REMOTE);
	host_local_inv(&p.b, 4, SIGNALED, rkey);
	host_pull(&p.b, PULL_ALL);
	expect_quiet(&p.b);
	pair_settle(&p);
	expect_sent(&p.b, 1, IBV_WC_SUCCESS);
	expect_sent(&p.b, 2, IBV_WC_SUCCESS);
	expect_sent(&p.b, 4, IBV_WC_SUCCESS);
	assert_int_equal(p.b.qp.req.una_idx, p.b.qp.req.next_idx);
	fini();
}

/* ---- Errors and ends ---- */

static void
test_bind_error(void **state)
{
	(void)state;
	init();
	host_recv(&p.a, 1, 0, 64);
	host_send(&p.b, 1, 0, 8, SIGNALED);
	host_bind(&p.b, 2, 0, window->rkey, region + 1, OFFSET, LEN, ACCESS_REMOTE);
	host_send(&p.b, 3, 0, 8, 0);
	host_bind(&p.b, 4, 0, window->rkey, region, OFFSET, LEN, ACCESS_REMOTE);
	host_local_inv(&p.b, 5, 0, window->rkey);
	pair_settle(&p);
	expect_received(&p.a, 1, 8);
	expect_sent(&p.b, 1, IBV_WC_SUCCESS);
	expect_sent_vendor(&p.b, 2, IBV_WC_MW_BIND_ERR, VENDOR_WINDOW);
	for (unsigned i = 3; i <= 5; i++)
		expect_sent(&p.b, i, IBV_WC_WR_FLUSH_ERR);
	assert_null(key_find(&p.b.keys, window->rkey));
	fini();
}

/* IBA 10.6.7.2.6: a type 2 window dies with its QP's connection, a type 1 does not. */
static void
test_reset(void **state)
{
	struct window *type1;
	uint32_t rkey, other;

	(void)state;
	init();
	type1 = host_window(&p.b, false);
	rkey = bound();
	other = ibv_inc_rkey(type1->rkey);
	host_bind(&p.b, 1, 0, other, region, OFFSET, LEN, ACCESS_REMOTE);
	host_pull(&p.b, PULL_ALL);
	assert_int_equal(host_modify(&p.b, IBV_QPS_ERR), 0);
	assert_non_null(key_find(&p.b.keys, rkey));
	assert_int_equal(host_modify(&p.b, IBV_QPS_RESET), 0);
	assert_null(key_find(&p.b.keys, rkey));
	assert_non_null(key_find(&p.b.keys, other));
	assert_int_equal(key_free(&p.b.keys, region), -EBUSY);
	window_destroy(&p.b.keys, type1);
	fini();
}

/* The QP goes with a window bound. */
static void
test_destroyed(void **state)
{
	uint32_t rkey;

	(void)state;
	init();
	rkey = bound();
	qp_stop(&p.b.qp);
	assert_null(key_find(&p.b.keys, rkey));
	fini();
}

/* UC has windows too, and needs no answer for them. */
static void
test_uc(void **state)
{
	struct pair_conf conf = pair_defaults();
	uint32_t rkey;

	(void)state;
	conf.type = IBV_QPT_UC;
	conf.access = IBV_ACCESS_REMOTE_WRITE;
	pair_init(&p, &conf);
	region = host_key(&p.b, 0, conf.mem_bytes, RIGHTS);
	window = host_window(&p.b, true);
	rkey = bound();
	bytes_fill(p.a.mem, LEN, 1);
	post(5, WR_RDMA_WRITE, rkey, 0, OFFSET, LEN);
	post(6, WR_RDMA_WRITE, rkey, 0, OFFSET + 1, LEN);
	pair_settle(&p);
	expect_sent(&p.a, 5, IBV_WC_SUCCESS);
	expect_sent(&p.a, 6, IBV_WC_SUCCESS);
	assert_true(bytes_match(p.b.mem + OFFSET, LEN, 1));
	/* Its send queue alone stops. */
	host_bind(&p.b, 2, 0, rkey, region, OFFSET, LEN, ACCESS_REMOTE);
	host_pull(&p.b, PULL_ALL);
	expect_sent_vendor(&p.b, 2, IBV_WC_MW_BIND_ERR, VENDOR_WINDOW);
	assert_int_equal(p.b.qp.state, IBV_QPS_SQE);
	fini();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_access),
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_rights),
		cmocka_unit_test(test_read_interrupted),
		cmocka_unit_test(test_local_inv),
		cmocka_unit_test(test_remote_inv),
		cmocka_unit_test(test_remote_inv_once),
		cmocka_unit_test(test_remote_inv_refused),
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_asks),
		cmocka_unit_test(test_behind_read),
		cmocka_unit_test(test_bind_error),
		cmocka_unit_test(test_reset),
		cmocka_unit_test(test_destroyed),
		cmocka_unit_test(test_uc),
	};

	return cmocka_run_group_tests_name("qp window", tests, NULL, NULL);
}
