/* SPDX-License-Identifier: BSD-3-Clause */
/* Unreliable connection (docs/protocol.md 10): dropped packets and their consequences.
 * The receives are tested in uc_receive_test.c. */
#include <string.h>

#include "uc_fixture.h"

/* A message of three packets and one of one packet. Each packet is lost once: its message
 * is discarded, the next message takes its receive, the other message arrives. */
TEST(lost_packet_discards_message)
{
	for (unsigned lost = 0; lost < 5; lost++) {
		bool first = lost >= 3, second = lost != 3;

		uc_open_default();
		host_recv(&p.b, 70, 0, 8192);
		host_recv(&p.b, 71, 8192, 8192);
		bytes_fill(p.a.mem, 2500, 5);
		bytes_fill(p.a.mem + 8192, 10, 6);
		host_send(&p.a, 1, 0, 2500, IBV_SEND_SIGNALED);
		host_send(&p.a, 2, 8192, 10, IBV_SEND_SIGNALED);
		uc_send_all_but(lost);
		/* A send is complete when it is sent (IBA 9.8.2): the sender does not
		 * learn of the loss. */
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
		/* A lost FIRST costs its MIDDLE and LAST, a lost MIDDLE its LAST. */
		assert_int_equal(uc_dropped(DROP_psn_gap), lost == 0 ? 2 : lost == 1);
		assert_int_equal(uc_dropped(DROP_discarded), lost == 1 || lost == 2);
		expect_idle(&p.b);
		uc_close();
	}
}

/* A WRITE loses a packet: the bytes before it stay written, those behind are not
 * written. */
TEST(lost_packet_of_write)
{
	for (unsigned lost = 0; lost < 4; lost++) {
		uc_open_default();
		memset(p.b.mem, 0xEE, 8192);
		bytes_fill(p.a.mem, 2500, 5);
		host_write(&p.a, 1, 0, 100, 2500);
		host_write(&p.a, 2, 0, 4096, 1);
		uc_send_all_but(lost);
		expect_sent(&p.a, 1, IBV_WC_SUCCESS);
		expect_sent(&p.a, 2, IBV_WC_SUCCESS);
		for (unsigned i = 0; i < 3; i++) {
			uint32_t at = i * UC_MTU;
			uint32_t len = i < 2 ? UC_MTU : 2500 - 2 * UC_MTU;
			bool written = lost > i;

			if (written)
				assert_memory_equal(
					p.b.mem + 100 + at, p.a.mem + at, len);
			for (uint32_t k = 0; k < len && !written; k++)
				assert_int_equal(p.b.mem[100 + at + k], 0xEE);
		}
		assert_int_equal(p.b.mem[4096] == 0xEE, lost == 3);
		expect_idle(&p.b);
		uc_close();
	}
}

/* ---- Opcode sequence ---- */

enum { BETWEEN, IN_SEND, IN_WRITE, MESSAGES };

static void
message_begin(unsigned in)
{
	struct pkt_spec c = {
		.opcode = in == IN_SEND ? OPCODE_UC_SEND_FIRST : OPCODE_UC_WRITE_FIRST,
		.psn = PSN_A,
		.payload_len = UC_MTU,
		.dma_len = 3 * UC_MTU,
		.va = (uintptr_t)p.b.mem,
		.rkey = p.b.rkey};

	if (in == BETWEEN)
		return;
	inject(&p.b, &c);
	assert_int_equal(p.b.qp.resp.msg, in == IN_SEND ? OP_SEND : OP_WRITE);
}

static const struct {
	uint8_t opcode;
	bool follows[MESSAGES]; /* inside the message in progress */
	bool opens;             /* begins a message, whichever was in progress */
	uint8_t msg;            /* in progress afterwards, if the packet is taken */
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

/* Three states between and inside messages, twelve opcodes, each in order and behind a
 * gap. */
static void
order_case(unsigned in, unsigned row, bool gap)
{
	uint8_t opcode = orders[row].opcode;
	const struct op_row *op = &op_rows[opcode];
	bool taken = orders[row].opens || (!gap && orders[row].follows[in]);
	bool full = !op_is_last(op) || (op_is_last(op) && !op_is_first(op));
	/* A LAST of a WRITE has the rest of its DMA length. */
	uint32_t len = full ? UC_MTU : 100;
	struct pkt_spec c = {.opcode = opcode,
		.psn = PSN_A + (in != BETWEEN) + gap,
		.payload_len = len,
		.dma_len = op_is_last(op) ? len : 3 * UC_MTU,
		.va = (uintptr_t)p.b.mem,
		.rkey = p.b.rkey};
	uint64_t discards;

	uc_open_default();
	c.va = (uintptr_t)p.b.mem;
	c.rkey = p.b.rkey;
	host_recv(&p.b, 70, 16384, 8192);
	message_begin(in);
	/* The LAST of this WRITE must have the rest of its bytes: one packet in
	 * between. */
	if (in == IN_WRITE && !gap && op->kind == OP_WRITE && op_is_last(op) &&
		!op_is_first(op)) {
		inject(&p.b, &(struct pkt_spec){.opcode = OPCODE_UC_WRITE_MIDDLE,
				     .psn = PSN_A + 1,
				     .payload_len = UC_MTU});
		c.psn++;
	}
	inject(&p.b, &c);
	discards = uc_dropped(DROP_discarded);
	if (in == BETWEEN)
		assert_int_equal(discards, 0);
	else
		assert_int_equal(discards, !(orders[row].follows[in] && !gap));
	assert_int_equal(p.b.qp.resp.msg, taken ? orders[row].msg : OP_UNKNOWN);
	if (taken && orders[row].received)
		expect_received(&p.b, 70, ANY);
	/* A packet out of sequence is dropped. One that broke a message in order was
	 * counted with the message. */
	assert_int_equal(uc_dropped(DROP_psn_gap), !taken && (in == BETWEEN || gap));
	assert_int_equal(p.b.qp.resp.epsn, c.psn + 1);
	assert_int_equal(qp_state(&p.b.qp), IBV_QPS_RTS);
	expect_idle(&p.b);
	uc_close();
}

TEST(opcode_sequence)
{
	for (unsigned in = 0; in < MESSAGES; in++) {
		for (unsigned row = 0; row < RTE_DIM(orders); row++) {
			order_case(in, row, false);
			order_case(in, row, true);
		}
	}
}

/* A FIRST or ONLY begins a message with any PSN: older, half the PSN space away, across
 * the wrap. The packets behind it must be consecutive. */
TEST(first_starts_at_any_psn)
{
	static const uint32_t psns[] = {
		PSN_A, PSN_A, PSN_A - 1, PSN_A + 0x7FFFFF, 0xFFFFFF, 0, 5, 0x800005};

	uc_open_default();
	for (unsigned i = 0; i < RTE_DIM(psns); i++) {
		host_recv(&p.b, i, 0, 8192);
		inject_request(&p.b, OPCODE_UC_SEND_FIRST, psns[i], UC_MTU);
		inject_request(&p.b, OPCODE_UC_SEND_LAST, psn_add(psns[i], 1), 8);
		expect_received(&p.b, i, UC_MTU + 8);
	}
	expect_idle(&p.b);
	uc_close();
}

/* ---- Errors ---- */

/* Invalid lengths (docs/protocol.md 5.1), each between messages or in a message. */
TEST(invalid_lengths_discard_message)
{
	static const struct {
		unsigned in;
		uint8_t opcode;
		uint32_t len, dma_len;
	} rows[] = {
		{BETWEEN, OPCODE_UC_SEND_FIRST, UC_MTU - 4, 0},
		{BETWEEN, OPCODE_UC_SEND_FIRST, UC_MTU + 4, 0},
		{BETWEEN, OPCODE_UC_SEND_ONLY, UC_MTU + 4, 0},
		{IN_SEND, OPCODE_UC_SEND_MIDDLE, UC_MTU - 4, 0},
		{IN_SEND, OPCODE_UC_SEND_LAST, 0, 0},
		{IN_SEND, OPCODE_UC_SEND_LAST, UC_MTU + 4, 0},
		{BETWEEN, OPCODE_UC_WRITE_FIRST, UC_MTU, UC_MTU},
		{BETWEEN, OPCODE_UC_WRITE_FIRST, UC_MTU - 4, 2 * UC_MTU},
		{BETWEEN, OPCODE_UC_WRITE_FIRST, UC_MTU, 0x80000001},
		{BETWEEN, OPCODE_UC_WRITE_ONLY, 8, 9},
		{BETWEEN, OPCODE_UC_WRITE_ONLY, 8, 7},
		{IN_WRITE, OPCODE_UC_WRITE_LAST, 8, 0},
		{IN_WRITE, OPCODE_UC_WRITE_LAST, 0, 0},
	};

	for (unsigned i = 0; i < RTE_DIM(rows); i++) {
		struct pkt_spec c = {.opcode = rows[i].opcode,
			.psn = PSN_A + (rows[i].in != BETWEEN),
			.payload_len = rows[i].len,
			.dma_len = rows[i].dma_len};

		uc_open_default();
		c.va = (uintptr_t)p.b.mem;
		c.rkey = p.b.rkey;
		host_recv(&p.b, 70, 16384, 8192);
		message_begin(rows[i].in);
		inject(&p.b, &c);
		assert_int_equal(uc_dropped(DROP_discarded), 1);
		assert_int_equal(p.b.qp.resp.msg, OP_UNKNOWN);
		expect_idle(&p.b);
		inject_request(&p.b, OPCODE_UC_SEND_ONLY, c.psn + 1, 8);
		expect_received(&p.b, 70, 8);
		uc_close();
	}
}

/* A wrong key, a wrong range or a QP without the right: the WRITE is discarded, nothing
 * is written, no event is raised. */
TEST(invalid_key_discards_write)
{
	for (unsigned i = 0; i < 4; i++) {
		struct pkt_spec c = {.opcode = OPCODE_UC_WRITE_ONLY,
			.psn = PSN_A,
			.payload_len = 8,
			.dma_len = 8};

		uc_open_default();
		c.va = (uintptr_t)p.b.mem + (i == 1 ? p.conf.mem_bytes - 4 : 0);
		c.rkey = i == 0 ? p.b.rkey ^ 1 : i == 2 ? p.b.lkey : p.b.rkey;
		if (i == 3)
			p.b.qp.access = 0;
		memset(p.b.mem, 0xEE, 8);
		inject(&p.b, &c);
		assert_int_equal(uc_dropped(DROP_discarded), 1);
		for (unsigned k = 0; k < 8; k++)
			assert_int_equal(p.b.mem[k], 0xEE);
		assert_int_equal(qp_state(&p.b.qp), IBV_QPS_RTS);
		expect_idle(&p.b);
		uc_close();
	}
}

/* An error of the send queue moves the QP to SQE: requests behind are flushed, receiving
 * goes on. RTS starts sending again. */
TEST(send_error_moves_qp_to_sqe)
{
	struct sge sge;
	struct send_req req = {
		.wr_id = 1, .flags = IBV_SEND_SIGNALED, .sge = &sge, .num_sge = 1};

	uc_open_default();
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
	uc_send_all_but(UC_NONE_LOST);
	expect_sent(&p.a, 4, IBV_WC_SUCCESS);
	expect_received(&p.b, 70, 8);
	uc_close();
}

/* The opcodes are those of RC messages. AckReq is never set, SE is set if requested. */
TEST(opcodes_and_flags_sent)
{
	uc_open_default();
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
	uc_close();
}

/* Requests before the one that cannot be sent succeed, in the same burst. */
TEST(send_error_after_good_requests)
{
	struct sge sge;
	struct send_req req = {.wr_id = 3, .sge = &sge, .num_sge = 1};

	uc_open_default();
	host_send(&p.a, 1, 0, 8, IBV_SEND_SIGNALED);
	host_send(&p.a, 2, 0, 8, 0);
	sge = host_sge(&p.a, 0, 8);
	sge.lkey ^= 1;
	assert_int_equal(host_post_send(&p.a, &req), 0);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 2);
	expect_sent(&p.a, 1, IBV_WC_SUCCESS);
	expect_sent_vendor(&p.a, 3, IBV_WC_LOC_PROT_ERR, VENDOR_SEND_SGE);
	assert_int_equal(qp_state(&p.a.qp), IBV_QPS_SQE);
	wire_drop_all(&p.a);
	uc_close();
}

/* The send CQ overflows in the middle of a list: nothing behind it is sent (IBA
 * 11.6.3.1). */
TEST(send_cq_overflow)
{
	struct qp_link_conf conf = qp_link_defaults();

	conf.type = IBV_QPT_UC;
	conf.cqe = 2;
	uc_open(conf);
	for (uint64_t id = 1; id <= 6; id++)
		host_send(&p.a, id, 0, 8, id <= 3 ? IBV_SEND_SIGNALED : 0);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 3);
	assert_int_equal(p.a.qp.state, IBV_QPS_ERR);
	assert_int_equal(p.a.qp.req.una_idx, 6);
	assert_int_equal(p.a.qp.req.next_idx, 6);
	expect_event(&p.a, IBV_EVENT_CQ_ERR);
	expect_event(&p.a, IBV_EVENT_QP_FATAL);
	expect_sent(&p.a, 1, IBV_WC_SUCCESS);
	expect_sent(&p.a, 2, IBV_WC_SUCCESS);
	wire_drop_all(&p.a);
	uc_close();
}
