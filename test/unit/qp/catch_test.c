/* SPDX-License-Identifier: BSD-3-Clause */
/* Catches: a message is taken in as by the way of all requests, and where anything is not
 * as expected nothing happens but by that way. */
#include "qp/ball.h"
#include "qp_link.h"

#define LEN 64
#define TO 0x1000

static struct qp_link p, twin;
static struct qp_catch ball;

static void
init_one(struct qp_link *fixture, const struct qp_link_conf *conf)
{
	qp_link_init(fixture, conf);
	for (uint32_t i = 0; i < 4096; i++)
		fixture->a.mem[i] = (uint8_t)(i * 11 + 3);
}

/* One message of len bytes is on the wire, its receive posted. */
static void
sent(struct qp_link *fixture, const struct qp_link_conf *conf, uint32_t len)
{
	init_one(fixture, conf);
	host_recv(&fixture->b, 1, TO, 4096);
	host_send(&fixture->a, 5, 16, len, IBV_SEND_SIGNALED);
	assert_int_equal(host_pull(&fixture->a, PULL_ALL), 1);
}

static bool
take(void)
{
	struct pkt_view view = wire_view(&p.a, 0);

	return qp_catch_take(&p.b.qp, &ball, view.psn, view.payload);
}

/* What may not differ between the two ways. */
static void
expect_alike(const struct host *x, const struct host *y)
{
	assert_int_equal(x->qp.aeth_pending, y->qp.aeth_pending);
	assert_int_equal(x->qp.resp.epsn, y->qp.resp.epsn);
	assert_int_equal(x->qp.resp.msn, y->qp.resp.msn);
	assert_int_equal(x->qp.resp.ack_psn, y->qp.resp.ack_psn);
	assert_int_equal(x->qp.resp.wait, y->qp.resp.wait);
	assert_int_equal(x->qp.resp.msg, y->qp.resp.msg);
	assert_int_equal(x->qp.resp.wqe_held, y->qp.resp.wqe_held);
	assert_int_equal(x->qp.stats.rx_packets, y->qp.stats.rx_packets);
	assert_int_equal(x->qp.stats.rx_msgs, y->qp.stats.rx_msgs);
	assert_memory_equal(&x->stats, &y->stats, sizeof(x->stats));
	assert_memory_equal(x->mem + TO, y->mem + TO, 4096);
}

/* The same completion, then the same acknowledgement. */
static void
expect_alike_out(void)
{
	struct cqe one, other;

	assert_true(host_poll(&p.b, &p.b.recv_cq, &one));
	assert_true(host_poll(&twin.b, &twin.b.recv_cq, &other));
	assert_memory_equal(&one, &other, sizeof(one));
	assert_int_equal(host_pull(&p.b, PULL_ALL), 1);
	assert_int_equal(host_pull(&twin.b, PULL_ALL), 1);
	assert_int_equal(p.b.wire[0].len, twin.b.wire[0].len);
	assert_memory_equal(p.b.wire[0].data, twin.b.wire[0].data, p.b.wire[0].len);
}

static void
alike(const struct qp_link_conf *conf, uint32_t len)
{
	sent(&p, conf, len);
	sent(&twin, conf, len);
	assert_true(qp_catch(&p.b.qp, &ball, len));
	assert_true(take());
	wire_drop(&p.a, 0);
	wire_deliver(&twin.a, 0);
	expect_alike(&p.b, &twin.b);
	expect_alike_out();
	qp_link_drain(&p);
	qp_link_drain(&twin);
	expect_sent(&p.a, 5, IBV_WC_SUCCESS);
	expect_sent(&twin.a, 5, IBV_WC_SUCCESS);
	qp_link_fini(&p);
	qp_link_fini(&twin);
}

static void
test_alike(void **state)
{
	static const uint32_t lens[] = {1, 2, 3, 4, 63, 64, 65, 256, 1023, 1024};
	struct qp_link_conf conf = qp_link_defaults();

	(void)state;
	for (unsigned i = 0; i < 4 * RTE_DIM(lens); i++) {
		conf.srq = i & 1;
		conf.srq_pd = conf.srq && i & 4;
		conf.ipv6 = i & 2;
		conf.psn[0] = i & 4 ? PSN_MASK - 1 : PSN_A;
		alike(&conf, lens[i / 4]);
	}
}

/* The receives of a ring that goes round several times, each caught. */
static void
test_row(void **state)
{
	struct qp_link_conf conf = qp_link_defaults();

	(void)state;
	conf.recv_wr = 4;
	init_one(&p, &conf);
	for (unsigned i = 0; i < 20; i++) {
		host_recv(&p.b, i, TO, LEN);
		host_send(&p.a, i, i, LEN, IBV_SEND_SIGNALED);
		assert_int_equal(host_pull(&p.a, PULL_ALL), 1);
		assert_true(qp_catch(&p.b.qp, &ball, LEN));
		assert_true(take());
		/* Once: the receive is gone. */
		assert_false(take());
		assert_false(qp_catch(&p.b.qp, &ball, LEN));
		wire_drop(&p.a, 0);
		expect_received(&p.b, i, LEN);
		assert_memory_equal(p.b.mem + TO, p.a.mem + i, LEN);
		qp_link_drain(&p);
		expect_sent(&p.a, i, IBV_WC_SUCCESS);
	}
	qp_link_fini(&p);
}

/* ---- What cannot be caught with ---- */

static bool
catches(struct sge *sges, unsigned n)
{
	struct qp_link_conf conf = qp_link_defaults();
	bool can;

	init_one(&p, &conf);
	if (sges[0].lkey == 0)
		sges[0].lkey = p.b.lkey;
	sges[0].addr += (uintptr_t)p.b.mem;
	assert_int_equal(host_post_recv(&p.b, 1, sges, n), 0);
	can = qp_catch(&p.b.qp, &ball, LEN);
	qp_link_fini_discard(&p);
	return can;
}

static void
test_receives(void **state)
{
	(void)state;
	assert_true(catches(&(struct sge){.len = LEN}, 1));
	assert_false(catches(&(struct sge){.len = LEN - 1}, 1));
	assert_false(catches(&(struct sge){.len = LEN, .lkey = 1}, 1));
	assert_false(catches(&(struct sge){.len = LEN, .addr = UINT64_MAX / 2}, 1));
	assert_false(catches((struct sge[2]){{.len = LEN}}, 2));
	assert_false(catches((struct sge[1]){{0}}, 0));
}

/* Memory that may be read alone. */
static void
test_read_only(void **state)
{
	struct qp_link_conf conf = qp_link_defaults();
	struct sge sge;

	(void)state;
	init_one(&p, &conf);
	sge = host_sge(&p.b, TO, LEN);
	sge.lkey = host_key(&p.b, TO, LEN, 0);
	assert_int_equal(host_post_recv(&p.b, 1, &sge, 1), 0);
	assert_false(qp_catch(&p.b.qp, &ball, LEN));
	key_free(&p.b.keys, sge.lkey);
	qp_link_fini_discard(&p);
}

/* SRQs whose takes are more than that: a limit, other engines. */
static void
test_srq(void **state)
{
	struct qp_link_conf conf = qp_link_defaults();
	struct srq_attr limit = {.limit = 1};

	(void)state;
	conf.srq = true;
	sent(&p, &conf, LEN);
	assert_true(qp_catch(&p.b.qp, &ball, LEN));
	p.b.srq.shared = true;
	assert_false(qp_catch(&p.b.qp, &ball, LEN));
	p.b.srq.shared = false;
	assert_int_equal(srq_modify(&p.b.srq, &limit, IBV_SRQ_LIMIT), 0);
	assert_false(qp_catch(&p.b.qp, &ball, LEN));
	wire_deliver(&p.a, 0);
	expect_event(&p.b, IBV_EVENT_SRQ_LIMIT_REACHED);
	expect_received(&p.b, 1, LEN);
	qp_link_fini_discard(&p);
}

/* ---- Which messages are expected ---- */

static bool
expects(const struct pkt_spec *c)
{
	struct frame frame = pkt_spec_build(&p.b, c);
	struct pkt pkt = {.data = frame.data, .len = (uint16_t)frame.len};
	struct pkt_view view;
	bool is;

	assert_int_equal(pkt_parse_headers(&pkt, p.b.vlan, &view), DROP_none);
	is = qp_expects(&p.b.qp, &view);
	free(frame.data);
	return is;
}

static void
test_expects(void **state)
{
	const struct pkt_spec plain = {.opcode = OPCODE_RC_SEND_ONLY,
		.ack_req = true,
		.psn = 77,
		.payload_len = LEN};
	struct pkt_spec c = plain;

	(void)state;
	qp_link_init_default(&p);
	assert_true(expects(&plain));
	c.tclass = 1;
	assert_true(expects(&c));
	c.tclass = 3; /* congestion was experienced: counted */
	assert_false(expects(&c));
	c = plain;
	c.ack_req = false;
	assert_false(expects(&c));
	c = plain;
	c.solicited = true;
	assert_false(expects(&c));
	c = plain;
	c.payload_len = 0;
	assert_false(expects(&c));
	c.payload_len = 1024;
	assert_true(expects(&c));
	c.payload_len = 1025;
	assert_false(expects(&c));
	c = plain;
	c.opcode = OPCODE_RC_SEND_ONLY_IMM;
	assert_false(expects(&c));
	c = plain;
	c.dest_qpn = QPN_B + 1;
	assert_false(expects(&c));
	c = plain;
	c.src_ip_change = 1;
	assert_false(expects(&c));
	c = plain;
	c.pkey = 0x1234;
	assert_false(expects(&c));
	assert_int_equal(host_modify(&p.b, IBV_QPS_SQD), 0);
	assert_false(expects(&plain));
	qp_link_fini_discard(&p);
}

/* ---- The catch is worth nothing any more ---- */

static void
ready(bool srq)
{
	struct qp_link_conf conf = qp_link_defaults();

	conf.srq = srq;
	sent(&p, &conf, LEN);
	assert_true(qp_catch(&p.b.qp, &ball, LEN));
}

/* Nothing has happened. */
static void
refused(void)
{
	struct qp before = p.b.qp;
	uint32_t cons = ball.ring->cons;
	uint8_t mem[LEN];

	memcpy(mem, p.b.mem + TO, LEN);
	assert_false(take());
	assert_memory_equal(&before, &p.b.qp, sizeof(before));
	assert_int_equal(ball.ring->cons, cons);
	assert_memory_equal(mem, p.b.mem + TO, LEN);
}

/* By the way of all requests it goes well. */
static void
delivered(void)
{
	wire_deliver(&p.a, 0);
	expect_received(&p.b, 1, LEN);
	qp_link_drain(&p);
	expect_sent(&p.a, 5, IBV_WC_SUCCESS);
	qp_link_fini(&p);
}

static void
other_way(void)
{
	refused();
	delivered();
}

static void
test_state(void **state)
{
	(void)state;
	ready(false);
	assert_int_equal(host_modify(&p.b, IBV_QPS_ERR), 0);
	refused();
	qp_link_fini_discard(&p);
}

static void
test_psn(void **state)
{
	struct pkt_view view;

	(void)state;
	ready(false);
	view = wire_view(&p.a, 0);
	assert_false(qp_catch_take(&p.b.qp, &ball, view.psn - 1, view.payload));
	assert_false(qp_catch_take(&p.b.qp, &ball, view.psn + 1, view.payload));
	/* It has come another way, and comes again. */
	wire_dup(&p.a, 0);
	wire_deliver(&p.a, 1);
	expect_received(&p.b, 1, LEN);
	host_recv(&p.b, 2, TO, LEN);
	assert_true(qp_catch(&p.b.qp, &ball, LEN));
	assert_false(take());
	qp_link_fini_discard(&p);
}

/* Where old READs are forgotten. */
static void
test_expire(void **state)
{
	struct qp_link_conf conf = qp_link_defaults();

	(void)state;
	conf.psn[0] = (UINT32_C(1) << 21) - 1;
	sent(&p, &conf, LEN);
	assert_true(qp_catch(&p.b.qp, &ball, LEN));
	other_way();
}

/* A NAK is owed: it waits for what is due. */
static void
test_nak(void **state)
{
	(void)state;
	ready(false);
	inject_request(&p.b, OPCODE_RC_SEND_ONLY, PSN_A + 1, LEN);
	refused();
	assert_int_equal(host_pull(&p.b, PULL_ALL), 1);
	refused();
	wire_drop(&p.b, 0);
	other_way();
}

/* In the middle of a message. */
static void
test_middle(void **state)
{
	(void)state;
	ready(false);
	inject_request(&p.b, OPCODE_RC_SEND_FIRST, PSN_A, 1024);
	host_recv(&p.b, 2, 0x2000, LEN);
	assert_true(qp_catch(&p.b.qp, &ball, LEN));
	assert_false(
		qp_catch_take(&p.b.qp, &ball, PSN_A + 1, wire_view(&p.a, 0).payload));
	qp_link_fini_discard(&p);
}

/* The receive was another's. */
static void
test_taken(void **state)
{
	struct recv_wqe *wqe = calloc(1, sizeof(*wqe));

	(void)state;
	assert_non_null(wqe);
	ready(true);
	assert_int_equal(srq_take(&p.b.srq, wqe), 0);
	host_recv(&p.b, 1, TO, LEN);
	other_way();
	free(wqe);
}

/* Its memory is gone. */
static void
test_memory(void **state)
{
	(void)state;
	ready(false);
	assert_true(key_invalidate_at(&p.b.keys, p.b.mem + TO));
	refused();
	wire_deliver(&p.a, 0);
	expect_recv_error(&p.b, 1, IBV_WC_LOC_PROT_ERR, VENDOR_RECV_SGE);
	qp_link_fini_discard(&p);
}

static void
test_srq_error(void **state)
{
	(void)state;
	ready(true);
	p.b.srq.error = true;
	refused();
	p.b.srq.error = false;
	delivered();
}

/* Several engines write to the CQ; it is in error; it is full. */
static void
test_cq(void **state)
{
	(void)state;
	ready(false);
	p.b.recv_cq.shared = true;
	refused();
	p.b.recv_cq.shared = false;
	p.b.recv_cq.error = true;
	refused();
	p.b.recv_cq.error = false;
	p.b.recv_cq.head += p.b.recv_cq.size;
	refused();
	p.b.recv_cq.head -= p.b.recv_cq.size;
	delivered();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_alike),
		cmocka_unit_test(test_row),
		cmocka_unit_test(test_receives),
		cmocka_unit_test(test_read_only),
		cmocka_unit_test(test_srq),
		cmocka_unit_test(test_expects),
		cmocka_unit_test(test_state),
		cmocka_unit_test(test_psn),
		cmocka_unit_test(test_expire),
		cmocka_unit_test(test_nak),
		cmocka_unit_test(test_middle),
		cmocka_unit_test(test_taken),
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_srq_error),
		cmocka_unit_test(test_cq),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
