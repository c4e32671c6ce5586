/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include "case.h"
#include "frame.h"
#include "print.h"

/* Prints an IPv4 frame built from the vector with this opcode, these extended headers and
 * this payload length. */
static const char *
print_op(uint8_t opcode, const void *ext, size_t ext_len, unsigned payload_len)
{
	static char line[256];
	uint8_t frame[256] = {0}, *copy;
	unsigned pad = -payload_len & 3;
	unsigned udp_len = 8 + 12 + (unsigned)ext_len + payload_len + pad + 4;
	struct pkt_view view;
	int len;

	memcpy(frame, frame_vector4, BTH4_OFF + 12);
	frame[BTH4_OFF] = opcode;
	frame[BTH4_OFF + 1] = (uint8_t)(pad << 4);
	frame[BTH4_OFF + 8] = 0;
	memcpy(frame + BTH4_OFF + 12, ext, ext_len);
	be16_put(frame + IP_OFF + 2, 20 + udp_len);
	be16_put(frame + UDP4_OFF + 4, udp_len);
	frame_seal(frame, IP_OFF);
	assert_int_equal(
		parse_exact(frame, UDP4_OFF + udp_len, 0, 0, &view, &copy), DROP_none);
	len = pkt_print(line, sizeof(line), &view);
	assert_int_equal(len, strlen(line));
	free(copy);
	return line;
}

#define HOSTS "198.18.0.11 > 198.18.0.12 "
#define RETH "\x00\x00\x00\x00\x20\x08\x00\x10\x08\x00\x01\x06\x00\x00\x04\x01"
#define AETH(syndrome) syndrome "\x00\x00\x07"
#define ATOMIC                                                                           \
	"\x00\x00\x00\x00\x20\x08\x00\x10\x00\x00\x14\x96\x00\x00\x00\x00\x00\x00\x00"   \
	"\x05"                                                                           \
	"\x11\x11\x11\x11\x22\x22\x22\x22"
#define XRC "\x00\x00\x01\x23"
#define DETH "\x11\x11\x11\x11\x00\x00\x00\x5f"

/* The bytes of a string literal and their number. */
#define EXT(text) text, sizeof(text) - 1

TEST(headers_are_printed)
{
	assert_string_equal(print_op(0x00, EXT(""), 13),
		HOSTS "RC SEND_FIRST qp 0x13 psn 0x1000 len 13 pad 3");
	assert_string_equal(print_op(0x03, EXT("\xde\xad\xbe\xef"), 4),
		HOSTS "RC SEND_LAST_IMM qp 0x13 psn 0x1000 imm 0xdeadbeef len 4");
	assert_string_equal(print_op(0x17, EXT("\x08\x00\x01\x06"), 1), HOSTS
		"RC SEND_ONLY_INV qp 0x13 psn 0x1000 invalidate 0x8000106 len 1 pad 3");
	assert_string_equal(print_op(0x0b, EXT(RETH "\0\0\0\1"), 0),
		HOSTS "RC WRITE_ONLY_IMM qp 0x13 psn 0x1000 va 0x20080010 rkey 0x8000106 "
		      "dmalen 1025 imm 0x00000001 len 0");
	assert_string_equal(print_op(0x13, EXT(ATOMIC), 0),
		HOSTS "RC COMPARE_SWAP qp 0x13 psn 0x1000 va 0x20080010 rkey 0x1496 "
		      "compare 0x1111111122222222 swap 0x5 len 0");
	assert_string_equal(print_op(0x14, EXT(ATOMIC), 0),
		HOSTS "RC FETCH_ADD qp 0x13 psn 0x1000 va 0x20080010 rkey 0x1496 add 0x5 "
		      "len 0");
	assert_string_equal(
		print_op(0x12, EXT(AETH("\x1f") "\x11\x11\x11\x11\x22\x22\x22\x22"), 0),
		HOSTS "RC ATOMIC_ACKNOWLEDGE qp 0x13 psn 0x1000 ack msn 7 "
		      "original 0x1111111122222222 len 0");
	assert_string_equal(print_op(0xa6, EXT(XRC RETH), 8),
		HOSTS "XRC WRITE_FIRST qp 0x13 psn 0x1000 srq 0x123 va 0x20080010 "
		      "rkey 0x8000106 dmalen 1025 len 8");
	assert_string_equal(print_op(0xb4, EXT(XRC ATOMIC), 0), HOSTS
		"XRC FETCH_ADD qp 0x13 psn 0x1000 srq 0x123 va 0x20080010 rkey 0x1496 "
		"add 0x5 len 0");
	assert_string_equal(print_op(0x64, EXT(DETH), 4),
		HOSTS "UD SEND_ONLY qp 0x13 psn 0x1000 qkey 0x11111111 srcqp 0x5f len 4");
	assert_string_equal(print_op(0x1c, EXT("\x00\x00\x00\x12" RETH), 0), HOSTS
		"RC FLUSH qp 0x13 psn 0x1000 placement 0x2 selectivity 1 va 0x20080010 "
		"rkey 0x8000106 dmalen 1025 len 0");
	assert_string_equal(
		print_op(0x81, EXT(""), 16), HOSTS "CNP qp 0x13 psn 0x1000 len 16");
}

TEST(syndromes_are_printed)
{
	static const struct {
		const char *ext;
		const char *text;
	} rows[] = {
		{AETH("\x1f"), "ack"},
		{AETH("\x05"), "ack credit-code 5"},
		{AETH("\x20"), "rnr-nak 655360 us"},
		{AETH("\x2c"), "rnr-nak 640 us"},
		{AETH("\x60"), "nak sequence"},
		{AETH("\x61"), "nak invalid-request"},
		{AETH("\x62"), "nak remote-access"},
		{AETH("\x63"), "nak remote-operational"},
		{AETH("\x64"), "nak invalid-rd-request"},
		{AETH("\x65"), "syndrome 0x65"},
		{AETH("\x40"), "syndrome 0x40"},
		{AETH("\xe0"), "syndrome 0xe0"},
	};
	char want[128];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		snprintf(want, sizeof(want),
			HOSTS "RC ACKNOWLEDGE qp 0x13 psn 0x1000 %s msn 7 len 0",
			rows[i].text);
		assert_string_equal(print_op(0x11, rows[i].ext, 4, 0), want);
	}
}

TEST(bth_flags_and_ipv6)
{
	uint8_t frame[VECTOR6_LEN], *copy;
	struct pkt_view view;
	char line[256];

	assert_int_equal(
		parse_exact(frame_vector6, VECTOR6_LEN, 0, 0, &view, &copy), DROP_none);
	pkt_print(line, sizeof(line), &view);
	assert_string_equal(line, "fe80::5054:ff:fe12:3401 > fe80::5054:ff:fe12:3402 "
				  "RC SEND_ONLY qp 0x29 psn 0x1000 ackreq len 5 pad 3");
	free(copy);

	memcpy(frame, frame_vector6, VECTOR6_LEN);
	frame[BTH6_OFF + 1] |= 0x80;
	be16_put(frame + BTH6_OFF + 2, 0x7FFF);
	frame[BTH6_OFF + 4] = 0xC0;
	frame_seal(frame, IP_OFF);
	assert_int_equal(parse_exact(frame, VECTOR6_LEN, 0, 0, &view, &copy), DROP_none);
	pkt_print(line, sizeof(line), &view);
	assert_non_null(
		strstr(line, "psn 0x1000 pkey 0x7fff solicited ackreq fecn becn len 5"));
	free(copy);
}

TEST(short_buffers_truncate_the_line)
{
	static const char want[] = HOSTS "RC SEND_ONLY qp 0x13 psn 0x1000 ackreq len 0";
	struct pkt_view view;
	uint8_t *copy;

	assert_int_equal(
		parse_exact(frame_vector4, VECTOR4_LEN, 0, 0, &view, &copy), DROP_none);
	assert_int_equal(pkt_print(NULL, 0, &view), sizeof(want) - 1);
	for (size_t size = 1; size <= sizeof(want) + 1; size++) {
		char *line = malloc(size);
		size_t fits = size <= sizeof(want) - 1 ? size - 1 : sizeof(want) - 1;

		assert_non_null(line);
		memset(line, 'x', size);
		assert_int_equal(pkt_print(line, size, &view), sizeof(want) - 1);
		assert_memory_equal(line, want, fits);
		assert_int_equal(line[fits], '\0');
		free(line);
	}
	free(copy);
}
