/* SPDX-License-Identifier: BSD-3-Clause */
/* Unreliable connections: which packets are dropped, and what that costs. No answer ever
 * leaves; close() of every case proves it. */
#include <string.h>

#include "qp_pair.h"

#define MTU 1024

static struct pair p;

static void
open_uc(struct pair_conf conf)
{
	conf.type = IBV_QPT_UC;
	conf.access = IBV_ACCESS_REMOTE_WRITE;
	pair_init(&p, &conf);
}

static void
open_default(void)
{
	open_uc(pair_defaults());
}

static void
close_uc(void)
{
	assert_int_equal(p.b.wire_count, 0);
	assert_int_equal(host_pull(&p.b, PULL_ALL), 0);
	pair_fini(&p);
}

static uint64_t
dropped(enum drop_reason why)
{
	uint64_t n = p.b.stats.drop[why];

	p.b.stats.drop[why] = 0;
	return n;
}

/* Everything that a has to send, but frame number lost (from 0). */
static void
send_but(unsigned lost)
{
	host_pull(&p.a, PULL_ALL);
	if (lost < p.a.wire_count)
		wire_drop(&p.a, lost);
	wire_deliver_all(&p.a);
}
#define NONE_LOST UINT32_MAX

/* A message of three packets and one of one: whichever packet is lost, its message is
 * given up whole, its receive takes the next, and the other arrives. */
static void
test_lost(void **state)
{
	(void)state;
	for (unsigned lost = 0; lost < 5; lost++) {
		bool first = lost >= 3, second = lost != 3;

		open_default();
		host_recv(&p.b, 70, 0, 8192);
		host_recv(&p.b, 71, 8192, 8192);
		bytes_fill(p.a.mem, 2500, 5);
		bytes_fill(p.a.mem + 8192, 10, 6);
		host_send(&p.a, 1, 0, 2500, IBV_SEND_SIGNALED);
		host_send(&p.a, 2, 8192, 10, IBV_SEND_SIGNALED);
		send_but(lost);
		/* Sent is sent (IBA 9.8.2): the sender never learns. */
		expect_sent(&p.a, 1, IBV_WC_SUCCESS);
		expect_sent(&p.a, 2, IBV_WC_SUCCESS);
		if (first) {
			expect_received(&p.b, 70, 2500);
			assert_true(bytes_match(p.b.mem, 2500, 5));
		}
		if (second) {
			uint8_t *at = p.b.mem + (first ? 8192 : 0);

			expect_received(&p.b, first ? 71 : 70, 10);
			assert_true(bytes_match(at, 10, 6));
		}
		/* The lost FIRST costs its MIDDLE and LAST, the lost MIDDLE its LAST. */
		assert_int_equal(dropped(DROP_psn_gap), lost == 0 ? 2 : lost == 1);
		assert_int_equal(dropped(DROP_discarded), lost == 1 || lost == 2);
		expect_quiet(&p.b);
		close_uc();
	}
}

/* A WRITE that loses a packet: what was placed stays, nothing behind the loss is. */
static void
test_write_lost(void **state)
{
	(void)state;
	for (unsigned lost = 0; lost < 4; lost++) {
		open_default();
		memset(p.b.mem, 0xEE, 8192);
		bytes_fill(p.a.mem, 2500, 5);
		host_write(&p.a, 1, 0, 100, 2500);
		host_write(&p.a, 2, 0, 4096, 1);
		send_but(lost);
		expect_sent(&p.a, 1, IBV_WC_SUCCESS);
		expect_sent(&p.a, 2, IBV_WC_SUCCESS);
		for (unsigned i = 0; i < 3; i++) {
			uint32_t at = i * MTU, len = i < 2 ? MTU : 2500 - 2 * MTU;
			bool placed = lost > i;

			if (placed)
				assert_memory_equal(
					p.b.mem + 100 + at, p.a.mem + at, len);
			for (uint32_t k = 0; k < len && !placed; k++)
				assert_int_equal(p.b.mem[100 + at + k], 0xEE);
		}
		assert_int_equal(p.b.mem[4096] == 0xEE, lost == 3);
		expect_quiet(&p.b);
		close_uc();
	}
}

/* WRITE with immediate and no receive: the packet is dropped and with it the message; its
 * number comes no second time. */
static void
test_imm_no_receive(void **state)
{
	struct crafted c = {.opcode = OPCODE_UC_WRITE_FIRST,
		.psn = PSN_A,
		.payload_len = MTU,
		.dma_len = MTU + 8};

	(void)state;
	open_default();
	c.va = (uintptr_t)p.b.mem;
	c.rkey = p.b.rkey;
	inject(&p.b, &c);
	c = (struct crafted){
		.opcode = OPCODE_UC_WRITE_LAST_IMM, .psn = PSN_A + 1, .payload_len = 8};
	inject(&p.b, &c);
	assert_int_equal(dropped(DROP_no_receive), 1);
	/* The same LAST behind it belongs to no message. */
	host_recv(&p.b, 70, 8192, 100);
	c.psn++;
	inject(&p.b, &c);
	expect_quiet(&p.b);
	assert_int_equal(dropped(DROP_psn_gap), 1);
	c = (struct crafted){.opcode = OPCODE_UC_WRITE_ONLY_IMM,
		.psn = PSN_A + 3,
		.payload_len = 8,
		.dma_len = 8,
		.va = (uintptr_t)p.b.mem,
		.rkey = p.b.rkey};
	inject(&p.b, &c);
	expect_received(&p.b, 70, 8);
	inject(&p.b, &c);
	assert_int_equal(dropped(DROP_no_receive), 1);
	assert_int_equal(qp_state(&p.b.qp), IBV_QPS_RTS);
	close_uc();
}

/* SEND without a receive: the whole message is dropped, the next one finds its receive.
 */
static void
test_no_receive(void **state)
{
	(void)state;
	open_default();
	host_send(&p.a, 1, 0, 2500, 0);
	send_but(NONE_LOST);
	assert_int_equal(dropped(DROP_no_receive), 1);
	assert_int_equal(dropped(DROP_psn_gap), 2);
	host_recv(&p.b, 70, 0, 8192);
	host_send(&p.a, 2, 0, 2500, IBV_SEND_SIGNALED);
	send_but(NONE_LOST);
	expect_sent(&p.a, 2, IBV_WC_SUCCESS);
	expect_received(&p.b, 70, 2500);
	close_uc();
}

/* ---- The order of opcodes ---- */

enum { BETWEEN, IN_SEND, IN_WRITE, MESSAGES };

static void
message_begin(unsigned in)
{
	struct crafted c = {
		.opcode = in == IN_SEND ? OPCODE_UC_SEND_FIRST : OPCODE_UC_WRITE_FIRST,
		.psn = PSN_A,
		.payload_len = MTU,
		.dma_len = 3 * MTU,
		.va = (uintptr_t)p.b.mem,
		.rkey = p.b.rkey};

	if (in == BETWEEN)
		return;
	inject(&p.b, &c);
	assert_int_equal(p.b.qp.resp.msg, in == IN_SEND ? OP_SEND : OP_WRITE);
}

static const struct {
	uint8_t opcode;
	bool follows[MESSAGES]; /* of the message in progress; else FIRST or ONLY or lost
				 */
	bool opens;             /* a message, whatever was in progress */
	uint8_t msg;            /* in progress behind it, where it is taken */
	bool received;          /* a receive completes */
} orders[] = {
	{OPCODE_UC_SEND_FIRST, {0}, true, OP_SEND, false},
	{OPCODE_UC_SEND_MIDDLE, {[IN_SEND] = true}, false, OP_SEND, false},
	{OPCODE_UC_SEND_LAST, {[IN_SEND] = true}, false, OP_UNKNOWN, true},
	{OPCODE_UC_SEND_LAST_IMM, {[IN_SEND] = true}, false, OP_UNKNOWN, true},
	{OPCODE_UC_SEND_ONLY, {0}, true, OP_UNKNOWN, true},
	{OPCODE_UC_SEND_ONLY_IMM, {0}, true, OP_UNKNOWN, true},
	{OPCODE_UC_WRITE_FIRST, {0}, true, OP_WRITE, false},
	{OPCODE_UC_WRITE_MIDDLE, {[IN_WRITE] = true}, false, OP_WRITE, false},
	{OPCODE_UC_WRITE_LAST, {[IN_WRITE] = true}, false, OP_UNKNOWN, false},
	{OPCODE_UC_WRITE_LAST_IMM, {[IN_WRITE] = true}, false, OP_UNKNOWN, true},
	{OPCODE_UC_WRITE_ONLY, {0}, true, OP_UNKNOWN, false},
	{OPCODE_UC_WRITE_ONLY_IMM, {0}, true, OP_UNKNOWN, true},
};

/* Three messages in progress times twelve opcodes, in order and with a gap before them.
 */
static void
order_case(unsigned in, unsigned row, bool gap)
{
	uint8_t opcode = orders[row].opcode;
	const struct op_row *op = &op_rows[opcode];
	bool taken = orders[row].opens || (!gap && orders[row].follows[in]);
	bool full = !op_is_last(op) || (op_is_last(op) && !op_is_first(op));
	/* LAST of the WRITE: what its DMA length leaves. */
	uint32_t len = full ? MTU : 100;
	struct crafted c = {.opcode = opcode,
		.psn = PSN_A + (in != BETWEEN) + gap,
		.payload_len = len,
		.dma_len = op_is_last(op) ? len : 3 * MTU,
		.va = (uintptr_t)p.b.mem,
		.rkey = p.b.rkey};
	uint64_t discards;

	open_default();
	c.va = (uintptr_t)p.b.mem;
	c.rkey = p.b.rkey;
	host_recv(&p.b, 70, 16384, 8192);
	message_begin(in);
	/* Its LAST must bring the rest: one packet in between. */
	if (in == IN_WRITE && !gap && op->kind == OP_WRITE && op_is_last(op) &&
		!op_is_first(op)) {
		inject(&p.b, &(struct crafted){.opcode = OPCODE_UC_WRITE_MIDDLE,
				     .psn = PSN_A + 1,
				     .payload_len = MTU});
		c.psn++;
	}
	inject(&p.b, &c);
	discards = dropped(DROP_discarded);
	if (in == BETWEEN)
		assert_int_equal(discards, 0);
	else
		assert_int_equal(discards, !(orders[row].follows[in] && !gap));
	assert_int_equal(p.b.qp.resp.msg, taken ? orders[row].msg : OP_UNKNOWN);
	if (taken && orders[row].received)
		expect_received(&p.b, 70, ANY);
	/* Dropped for its order; one that broke a message in order went with that. */
	assert_int_equal(dropped(DROP_psn_gap), !taken && (in == BETWEEN || gap));
	assert_int_equal(p.b.qp.resp.epsn, c.psn + 1);
	assert_int_equal(qp_state(&p.b.qp), IBV_QPS_RTS);
	expect_quiet(&p.b);
	close_uc();
}

static void
test_opcodes(void **state)
{
	(void)state;
	for (unsigned in = 0; in < MESSAGES; in++) {
		for (unsigned row = 0; row < RTE_DIM(orders); row++) {
			order_case(in, row, false);
			order_case(in, row, true);
		}
	}
}

/* A FIRST or ONLY opens a message whatever its PSN: older, half the space away, across
 * the wrap; what follows must follow. */
static void
test_psn(void **state)
{
	static const uint32_t psns[] = {
		PSN_A, PSN_A, PSN_A - 1, PSN_A + 0x7FFFFF, 0xFFFFFF, 0, 5, 0x800005};

	(void)state;
	open_default();
	for (unsigned i = 0; i < RTE_DIM(psns); i++) {
		host_recv(&p.b, i, 0, 8192);
		inject_request(&p.b, OPCODE_UC_SEND_FIRST, psns[i], MTU);
		inject_request(&p.b, OPCODE_UC_SEND_LAST, psn_add(psns[i], 1), 8);
		expect_received(&p.b, i, MTU + 8);
	}
	expect_quiet(&p.b);
	close_uc();
}

/* ---- Errors ---- */

/* Lengths of section 5, each with the message in which it is wrong. */
static void
test_lengths(void **state)
{
	static const struct {
		unsigned in;
		uint8_t opcode;
		uint32_t len, dma_len;
	} rows[] = {
		{BETWEEN, OPCODE_UC_SEND_FIRST, MTU - 4, 0},
		{BETWEEN, OPCODE_UC_SEND_FIRST, MTU + 4, 0},
		{BETWEEN, OPCODE_UC_SEND_ONLY, MTU + 4, 0},
		{IN_SEND, OPCODE_UC_SEND_MIDDLE, MTU - 4, 0},
		{IN_SEND, OPCODE_UC_SEND_LAST, 0, 0},
		{IN_SEND, OPCODE_UC_SEND_LAST, MTU + 4, 0},
		{BETWEEN, OPCODE_UC_WRITE_FIRST, MTU, MTU},
		{BETWEEN, OPCODE_UC_WRITE_FIRST, MTU - 4, 2 * MTU},
		{BETWEEN, OPCODE_UC_WRITE_FIRST, MTU, 0x80000001},
		{BETWEEN, OPCODE_UC_WRITE_ONLY, 8, 9},
		{BETWEEN, OPCODE_UC_WRITE_ONLY, 8, 7},
		{IN_WRITE, OPCODE_UC_WRITE_LAST, 8, 0},
		{IN_WRITE, OPCODE_UC_WRITE_LAST, 0, 0},
	};

	(void)state;
	for (unsigned i = 0; i < RTE_DIM(rows); i++) {
		struct crafted c = {.opcode = rows[i].opcode,
			.psn = PSN_A + (rows[i].in != BETWEEN),
			.payload_len = rows[i].len,
			.dma_len = rows[i].dma_len};

		open_default();
		c.va = (uintptr_t)p.b.mem;
		c.rkey = p.b.rkey;
		host_recv(&p.b, 70, 16384, 8192);
		message_begin(rows[i].in);
		inject(&p.b, &c);
		assert_int_equal(dropped(DROP_discarded), 1);
		assert_int_equal(p.b.qp.resp.msg, OP_UNKNOWN);
		expect_quiet(&p.b);
		inject_request(&p.b, OPCODE_UC_SEND_ONLY, c.psn + 1, 8);
		expect_received(&p.b, 70, 8);
		close_uc();
	}
}

/* A key, a range, a QP that does not grant the WRITE: dropped, nothing written, no event.
 */
static void
test_keys(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		struct crafted c = {.opcode = OPCODE_UC_WRITE_ONLY,
			.psn = PSN_A,
			.payload_len = 8,
			.dma_len = 8};

		open_default();
		c.va = (uintptr_t)p.b.mem + (i == 1 ? p.conf.mem_bytes - 4 : 0);
		c.rkey = i == 0 ? p.b.rkey ^ 1 : i == 2 ? p.b.lkey : p.b.rkey;
		if (i == 3)
			p.b.qp.access = 0;
		memset(p.b.mem, 0xEE, 8);
		inject(&p.b, &c);
		assert_int_equal(dropped(DROP_discarded), 1);
		for (unsigned k = 0; k < 8; k++)
			assert_int_equal(p.b.mem[k], 0xEE);
		assert_int_equal(qp_state(&p.b.qp), IBV_QPS_RTS);
		expect_quiet(&p.b);
		close_uc();
	}
}

/* Longer than the receive: the message is dropped, the receive waits for the next; one of
 * an SRQ completes in error. */
static void
test_too_long(void **state)
{
	(void)state;
	for (unsigned srq = 0; srq < 2; srq++) {
		struct pair_conf conf = pair_defaults();

		conf.srq = srq != 0;
		open_uc(conf);
		host_recv(&p.b, 70, 0, 1500);
		if (srq)
			host_recv(&p.b, 71, 0, 1500);
		host_send(&p.a, 1, 0, 1501, 0);
		host_send(&p.a, 2, 0, 1500, IBV_SEND_SIGNALED);
		send_but(NONE_LOST);
		expect_sent(&p.a, 2, IBV_WC_SUCCESS);
		assert_int_equal(dropped(DROP_discarded), 1);
		if (srq)
			expect_recv_error(
				&p.b, 70, IBV_WC_LOC_LEN_ERR, VENDOR_RECV_SHORT);
		expect_received(&p.b, 70 + srq, 1500);
		assert_int_equal(qp_state(&p.b.qp), IBV_QPS_RTS);
		close_uc();
	}
}

/* A message that was given up does not keep a receive from the SRQ's other QPs: it
 * completes in error, and nothing else happens to the QP (class E). Whichever packet was
 * lost; what is behind it arrives. */
static void
test_srq_lost(void **state)
{
	(void)state;
	for (unsigned lost = 0; lost < 4; lost++) {
		struct pair_conf conf = pair_defaults();
		bool taken = lost == 1 || lost == 2;

		conf.srq = true;
		open_uc(conf);
		host_recv(&p.b, 70, 0, 8192);
		host_recv(&p.b, 71, 8192, 8192);
		host_send(&p.a, 1, 0, 2500, 0);
		host_send(&p.a, 2, 0, 10, lost == 3 ? 0 : IBV_SEND_SIGNALED);
		send_but(lost);
		if (lost != 3)
			expect_sent(&p.a, 2, IBV_WC_SUCCESS);
		if (taken)
			expect_recv_error(
				&p.b, 70, IBV_WC_REM_INV_REQ_ERR, VENDOR_OPCODE_ORDER);
		if (lost == 3)
			expect_received(&p.b, 70, 2500);
		else
			expect_received(&p.b, 70 + taken, 10);
		assert_int_equal(qp_state(&p.b.qp), IBV_QPS_RTS);
		expect_quiet(&p.b);
		close_uc();
	}
}

/* The CQ has no room for that completion: QP_FATAL, and nothing more is taken. */
static void
test_srq_lost_cq_full(void **state)
{
	struct pair_conf conf = pair_defaults();
	uint32_t psn = PSN_A;
	struct cqe cqe;

	(void)state;
	conf.srq = true;
	conf.cqe = 1;
	open_uc(conf);
	for (unsigned i = 0; i < 4; i++)
		host_recv(&p.b, 70 + i, 0, 8192);
	/* As many as it holds. */
	for (; psn < PSN_A + p.b.recv_cq.size; psn++)
		inject_request(&p.b, OPCODE_UC_SEND_ONLY, psn, 8);
	inject_request(&p.b, OPCODE_UC_SEND_FIRST, psn, MTU);
	inject_request(&p.b, OPCODE_UC_SEND_ONLY, psn + 5, 8);
	expect_event(&p.b, IBV_EVENT_CQ_ERR);
	expect_event(&p.b, IBV_EVENT_QP_FATAL);
	expect_event(&p.b, IBV_EVENT_QP_LAST_WQE_REACHED);
	assert_int_equal(qp_state(&p.b.qp), IBV_QPS_ERR);
	while (host_poll(&p.b, &p.b.recv_cq, &cqe))
		assert_int_equal(cqe.status, IBV_WC_SUCCESS);
	close_uc();
}

/* A receive whose memory cannot be written stops the QP (section 8, row 18). */
static void
test_bad_receive(void **state)
{
	struct sge sge;

	(void)state;
	open_default();
	sge = host_sge(&p.b, 0, 100);
	sge.lkey = p.b.recv_key ^ 1;
	assert_int_equal(host_post_recv(&p.b, 70, &sge, 1), 0);
	host_recv(&p.b, 71, 0, 100);
	inject_request(&p.b, OPCODE_UC_SEND_ONLY, PSN_A, 8);
	expect_recv_error(&p.b, 70, IBV_WC_LOC_PROT_ERR, VENDOR_RECV_SGE);
	expect_recv_error(&p.b, 71, IBV_WC_WR_FLUSH_ERR, VENDOR_FLUSHED);
	assert_int_equal(qp_state(&p.b.qp), IBV_QPS_ERR);
	inject_request(&p.b, OPCODE_UC_SEND_ONLY, PSN_A + 1, 8);
	assert_int_equal(dropped(DROP_qp_state), 1);
	close_uc();
}

/* The receive of a message that was given up is not lost when the QP stops. */
static void
test_held_receive_flushed(void **state)
{
	(void)state;
	open_default();
	host_recv(&p.b, 70, 0, 8192);
	inject_request(&p.b, OPCODE_UC_SEND_FIRST, PSN_A, MTU);
	inject_request(&p.b, OPCODE_UC_SEND_LAST, PSN_A + 2, 8);
	expect_quiet(&p.b);
	assert_int_equal(host_modify(&p.b, IBV_QPS_ERR), 0);
	expect_recv_error(&p.b, 70, IBV_WC_WR_FLUSH_ERR, VENDOR_FLUSHED);
	close_uc();
}

/* An error of the send queue moves the QP to SQE: what is behind is flushed, receiving
 * goes on, and RTS takes up again. */
static void
test_sqe(void **state)
{
	struct sge sge;
	struct send_req req = {
		.wr_id = 1, .flags = IBV_SEND_SIGNALED, .sge = &sge, .num_sge = 1};

	(void)state;
	open_default();
	sge = host_sge(&p.a, 0, 8);
	sge.lkey ^= 1;
	assert_int_equal(host_post_send(&p.a, &req), 0);
	host_send(&p.a, 2, 0, 8, 0);
	host_recv(&p.a, 60, 0, 100);
	host_pull(&p.a, PULL_ALL);
	expect_sent_vendor(&p.a, 1, IBV_WC_LOC_PROT_ERR, VENDOR_SEND_SGE);
	expect_sent(&p.a, 2, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(qp_state(&p.a.qp), IBV_QPS_SQE);
	host_send(&p.a, 3, 0, 8, 0);
	host_pull(&p.a, PULL_ALL);
	expect_sent(&p.a, 3, IBV_WC_WR_FLUSH_ERR);
	inject_request(&p.a, OPCODE_UC_SEND_ONLY, PSN_B, 8);
	expect_received(&p.a, 60, 8);
	assert_int_equal(p.a.wire_count, 0);
	assert_int_equal(host_modify(&p.a, IBV_QPS_RTS), 0);
	host_recv(&p.b, 70, 0, 100);
	host_send(&p.a, 4, 0, 8, IBV_SEND_SIGNALED);
	send_but(NONE_LOST);
	expect_sent(&p.a, 4, IBV_WC_SUCCESS);
	expect_received(&p.b, 70, 8);
	close_uc();
}

/* What is sent: the opcodes of RC's messages, never an AckReq, SE where it is asked for.
 */
static void
test_sent(void **state)
{
	(void)state;
	open_default();
	host_send(&p.a, 1, 0, 2500, IBV_SEND_SOLICITED);
	host_write(&p.a, 2, 0, 0, 2048);
	host_pull(&p.a, PULL_ALL);
	expect_frame(&p.a, 0, OPCODE_UC_SEND_FIRST, PSN_A, 0);
	expect_frame(&p.a, 1, OPCODE_UC_SEND_MIDDLE, PSN_A + 1, 0);
	expect_frame(&p.a, 2, OPCODE_UC_SEND_LAST, PSN_A + 2, 0);
	expect_frame(&p.a, 3, OPCODE_UC_WRITE_FIRST, PSN_A + 3, 0);
	expect_frame(&p.a, 4, OPCODE_UC_WRITE_LAST, PSN_A + 4, 0);
	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(wire_view(&p.a, i).solicited, i == 2);
	wire_drop_all(&p.a);
	expect_sent(&p.a, 2, IBV_WC_SUCCESS);
	close_uc();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lost),
		cmocka_unit_test(test_write_lost),
		cmocka_unit_test(test_imm_no_receive),
		cmocka_unit_test(test_no_receive),
		cmocka_unit_test(test_opcodes),
		cmocka_unit_test(test_psn),
		cmocka_unit_test(test_lengths),
		cmocka_unit_test(test_keys),
		cmocka_unit_test(test_too_long),
		cmocka_unit_test(test_srq_lost),
		cmocka_unit_test(test_srq_lost_cq_full),
		cmocka_unit_test(test_bad_receive),
		cmocka_unit_test(test_held_receive_flushed),
		cmocka_unit_test(test_sqe),
		cmocka_unit_test(test_sent),
	};

	return cmocka_run_group_tests_name("qp uc", tests, NULL, NULL);
}
