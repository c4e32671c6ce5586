/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>

#include "case.h"
#include "print.h"
#include "wire/hdr.h"
#include "wire/opcode.h"

/* Written by hand from the tables of IBA: the extended headers in wire order, and the
 * offset of the main one. */
struct expected {
	uint8_t opcode;
	const char *name;
	enum op_kind kind;
	uint8_t pos;
	const char *hdrs;
	uint8_t ext_len;
	uint8_t main_off;
};

static const struct expected rc[] = {
	{0x00, "SEND_FIRST", OP_SEND, POS_F, "", 0, 0},
	{0x01, "SEND_MIDDLE", OP_SEND, POS_M, "", 0, 0},
	{0x02, "SEND_LAST", OP_SEND, POS_L, "", 0, 0},
	{0x03, "SEND_LAST_IMM", OP_SEND, POS_L, "imm", 4, 0},
	{0x04, "SEND_ONLY", OP_SEND, POS_O, "", 0, 0},
	{0x05, "SEND_ONLY_IMM", OP_SEND, POS_O, "imm", 4, 0},
	{0x06, "WRITE_FIRST", OP_WRITE, POS_F, "reth", 16, 0},
	{0x07, "WRITE_MIDDLE", OP_WRITE, POS_M, "", 0, 0},
	{0x08, "WRITE_LAST", OP_WRITE, POS_L, "", 0, 0},
	{0x09, "WRITE_LAST_IMM", OP_WRITE, POS_L, "imm", 4, 0},
	{0x0a, "WRITE_ONLY", OP_WRITE, POS_O, "reth", 16, 0},
	{0x0b, "WRITE_ONLY_IMM", OP_WRITE, POS_O, "reth imm", 20, 0},
	{0x0c, "READ_REQUEST", OP_READ, POS_O, "reth", 16, 0},
	{0x0d, "READ_RESPONSE_FIRST", OP_READ_RESP, POS_F, "aeth", 4, 0},
	{0x0e, "READ_RESPONSE_MIDDLE", OP_READ_RESP, POS_M, "", 0, 0},
	{0x0f, "READ_RESPONSE_LAST", OP_READ_RESP, POS_L, "aeth", 4, 0},
	{0x10, "READ_RESPONSE_ONLY", OP_READ_RESP, POS_O, "aeth", 4, 0},
	{0x11, "ACKNOWLEDGE", OP_ACK, POS_O, "aeth", 4, 0},
	{0x12, "ATOMIC_ACKNOWLEDGE", OP_ATOMIC_ACK, POS_O, "aeth atomicack", 12, 0},
	{0x13, "COMPARE_SWAP", OP_COMPARE_SWAP, POS_O, "atomic", 28, 0},
	{0x14, "FETCH_ADD", OP_FETCH_ADD, POS_O, "atomic", 28, 0},
	{0x16, "SEND_LAST_INV", OP_SEND, POS_L, "ieth", 4, 0},
	{0x17, "SEND_ONLY_INV", OP_SEND, POS_O, "ieth", 4, 0},
};

static const struct expected others[] = {
	{0x1c, "RC FLUSH", OP_FLUSH, POS_O, "feth reth", 20, 4},
	{0x1d, "RC ATOMIC_WRITE", OP_ATOMIC_WRITE, POS_O, "reth", 16, 0},
	{0x64, "UD SEND_ONLY", OP_SEND, POS_O, "deth", 8, 0},
	{0x65, "UD SEND_ONLY_IMM", OP_SEND, POS_O, "deth imm", 12, 0},
	{0x81, "CNP", OP_CNP, POS_O, "", 0, 0},
	{0xe0, "SACK", OP_SACK, POS_O, "seth", 20, 0},
};

/* In wire order. */
static const struct {
	unsigned flag;
	const char *name;
} hdr_names[] = {
	{HDR_XRCETH, "xrceth"},
	{HDR_DETH, "deth"},
	{HDR_FETH, "feth"},
	{HDR_RETH, "reth"},
	{HDR_ATOMIC, "atomic"},
	{HDR_AETH, "aeth"},
	{HDR_ATOMIC_ACK, "atomicack"},
	{HDR_IMM, "imm"},
	{HDR_IETH, "ieth"},
	{HDR_SETH, "seth"},
};

static void
hdrs_text(char *text, size_t size, unsigned hdrs)
{
	text[0] = '\0';
	for (size_t i = 0; i < sizeof(hdr_names) / sizeof(hdr_names[0]); i++) {
		if (!(hdrs & hdr_names[i].flag))
			continue;
		if (text[0] != '\0')
			strncat(text, " ", size - strlen(text) - 1);
		strncat(text, hdr_names[i].name, size - strlen(text) - 1);
		hdrs &= ~hdr_names[i].flag;
	}
	assert_int_equal(hdrs, 0);
}

static void
row_check(uint8_t opcode, const struct expected *want, unsigned service, bool xrceth)
{
	const struct op_row *row = &op_rows[opcode];
	char have_hdrs[64], want_hdrs[64];
	unsigned extra = xrceth ? 4 : 0;

	snprintf(want_hdrs, sizeof(want_hdrs), "%s%s%s", xrceth ? "xrceth" : "",
		xrceth && want->hdrs[0] != '\0' ? " " : "", want->hdrs);
	hdrs_text(have_hdrs, sizeof(have_hdrs), row->hdrs);
	if (row->kind != want->kind || row->pos != want->pos || row->service != service ||
		row->ext_len != want->ext_len + extra ||
		row->main_off != want->main_off + extra ||
		strcmp(have_hdrs, want_hdrs) != 0)
		fail_msg("opcode 0x%02x: kind %u pos %u service %u ext_len %u main_off "
			 "%u (%s)",
			opcode, row->kind, row->pos, row->service, row->ext_len,
			row->main_off, have_hdrs);
}

static void
name_check(uint8_t opcode, const char *prefix, const char *name)
{
	char want[64];

	snprintf(want, sizeof(want), "%s%s", prefix, name);
	assert_string_equal(opcode_name(opcode), want);
}

TEST(rows_match_handwritten_tables)
{
	bool known[256] = {false};

	for (size_t i = 0; i < sizeof(rc) / sizeof(rc[0]); i++) {
		uint8_t op = rc[i].opcode;
		bool response = op >= 0x0d && op <= 0x12;

		row_check(op, &rc[i], 0, false);
		name_check(op, "RC ", rc[i].name);
		known[op] = true;
		row_check(0xa0 + op, &rc[i], 5, !response);
		name_check(0xa0 + op, "XRC ", rc[i].name);
		known[0xa0 + op] = true;
		if (op > 0x0b)
			continue;
		row_check(0x20 + op, &rc[i], 1, false);
		name_check(0x20 + op, "UC ", rc[i].name);
		known[0x20 + op] = true;
	}
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		row_check(others[i].opcode, &others[i], others[i].opcode >> 5, false);
		name_check(others[i].opcode, "", others[i].name);
		known[others[i].opcode] = true;
	}
	for (unsigned op = 0; op < 256; op++)
		assert_int_equal(op_rows[op].kind != OP_UNKNOWN, known[op]);
}

TEST(unknown_names)
{
	assert_string_equal(opcode_name(0x15), "opcode 0x15");
	assert_string_equal(opcode_name(0xff), "opcode 0xff");
}

TEST(positions_and_responses)
{
	assert_true(op_is_first(&op_rows[OPCODE_RC_SEND_FIRST]));
	assert_false(op_is_last(&op_rows[OPCODE_RC_SEND_FIRST]));
	assert_false(op_is_first(&op_rows[OPCODE_RC_SEND_MIDDLE]));
	assert_false(op_is_last(&op_rows[OPCODE_RC_SEND_MIDDLE]));
	assert_false(op_is_first(&op_rows[OPCODE_RC_SEND_LAST_IMM]));
	assert_true(op_is_last(&op_rows[OPCODE_RC_SEND_LAST_IMM]));
	assert_true(op_is_first(&op_rows[OPCODE_RC_SEND_ONLY]));
	assert_true(op_is_last(&op_rows[OPCODE_RC_SEND_ONLY]));
	for (unsigned op = 0; op < 256; op++) {
		bool low_is_response = (op & 0x1f) >= 0x0d && (op & 0x1f) <= 0x12;
		bool has_responses = op >> 5 == 0 || op >> 5 == 5;

		assert_int_equal(op_is_response(&op_rows[op]),
			(low_is_response && has_responses) || op == OPCODE_SACK);
	}
}

/* HEADERS_MAX is what the packet with the longest headers needs beside the payload, and a
 * packet of each opcode with payload fits. */
TEST(longest_headers)
{
	size_t longest = 0;

	for (unsigned op = 0; op < 256; op++) {
		const struct op_row *row = &op_rows[op];

		if (row->kind == OP_SEND || row->kind == OP_WRITE ||
			row->kind == OP_READ_RESP)
			longest = RTE_MAX(longest,
				40 + 8 + sizeof(struct bth) + row->ext_len + ICRC_LEN);
	}
	assert_int_equal(longest, HEADERS_MAX);
	assert_int_equal(mtu_code_fitting(4096 + HEADERS_MAX - 1), 4);
	assert_int_equal(mtu_code_fitting(4096 + HEADERS_MAX), 5);
	assert_int_equal(mtu_code_fitting(9000), 5);
	assert_int_equal(mtu_code_fitting(0), 1);
}
