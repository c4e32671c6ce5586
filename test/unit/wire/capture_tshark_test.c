/* SPDX-License-Identifier: BSD-3-Clause */
/* Every captured frame of another implementation, compared with what tshark reads. */
#include <arpa/inet.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "captures.h"
#include "case.h"
#include "frame.h"
#include "print.h"

/* Columns of headers.tsv after capture and frame. */
enum {
	UDP_LEN,
	OPCODE_,
	QPN,
	PSN,
	ACKREQ,
	SE,
	PAD,
	PKEY,
	SYNDROME,
	MSN,
	VA,
	RKEY,
	DMALEN,
	IMM,
	IETH,
	QKEY,
	SRCQP,
	SWAP,
	COMPARE,
	ORIGINAL,
	COLUMNS
};

struct expected {
	uint64_t value[COLUMNS];
	bool has[COLUMNS];
};

static void
value_check(const struct captured *f, const struct expected *e, unsigned column,
	uint64_t have)
{
	if (!e->has[column] || e->value[column] != have)
		fail_msg("%s frame %u column %u: %s0x%" PRIx64 ", have 0x%" PRIx64,
			f->capture, f->number, column, e->has[column] ? "" : "absent, ",
			e->value[column], have);
}

static void
atomic_check(const struct captured *f, const struct expected *e, const struct pkt_view *v)
{
	const struct atomic_eth *eth =
		(const struct atomic_eth *)(v->ext + v->op->main_off);

	value_check(f, e, VA, be_get(&eth->va, 8));
	value_check(f, e, RKEY, be_get(&eth->rkey, 4));
	value_check(f, e, SWAP, be_get(&eth->swap_add, 8));
	value_check(f, e, COMPARE, be_get(&eth->compare, 8));
}

static void
ext_check(const struct captured *f, const struct expected *e, const struct pkt_view *v)
{
	unsigned hdrs = v->op->hdrs;
	const uint8_t *last = v->ext + v->op->ext_len - 4;

	if (hdrs & HDR_RETH) {
		value_check(f, e, VA, be_get(&view_reth(v)->va, 8));
		value_check(f, e, RKEY, be_get(&view_reth(v)->rkey, 4));
		value_check(f, e, DMALEN, be_get(&view_reth(v)->len, 4));
	}
	if (hdrs & HDR_ATOMIC)
		atomic_check(f, e, v);
	if (hdrs & HDR_AETH) {
		value_check(f, e, SYNDROME, view_aeth(v)->syndrome);
		value_check(f, e, MSN, be24_get(view_aeth(v)->msn));
	}
	if (hdrs & HDR_ATOMIC_ACK)
		value_check(f, e, ORIGINAL, be_get(view_aeth(v) + 1, 8));
	if (hdrs & HDR_DETH) {
		value_check(f, e, QKEY, be_get(&view_deth(v)->qkey, 4));
		value_check(f, e, SRCQP, be24_get(view_deth(v)->src_qpn));
	}
	if (hdrs & HDR_IMM) {
		uint32_t imm = view_imm_be(v);

		assert_ptr_equal(last + 4, v->payload);
		value_check(f, e, IMM, be_get(&imm, 4));
	}
	if (hdrs & HDR_IETH)
		value_check(f, e, IETH, be_get(last, 4));
}

/* tshark shows no header that the opcode does not have. */
static void
ext_absent(const struct captured *f, const struct expected *e, unsigned hdrs)
{
	static const unsigned flags[COLUMNS] = {
		[SYNDROME] = HDR_AETH,
		[RKEY] = HDR_RETH | HDR_ATOMIC,
		[DMALEN] = HDR_RETH,
		[IMM] = HDR_IMM,
		[IETH] = HDR_IETH,
		[QKEY] = HDR_DETH,
		[SWAP] = HDR_ATOMIC,
		[ORIGINAL] = HDR_ATOMIC_ACK,
	};

	for (unsigned c = 0; c < COLUMNS; c++)
		if (flags[c] != 0 && e->has[c] && !(hdrs & flags[c]))
			fail_msg("%s frame %u: no column %u in its opcode", f->capture,
				f->number, c);
}

static void
headers_check(const struct captured *f, const struct expected *e)
{
	struct pkt_view v;
	uint8_t *copy;
	unsigned reason = parse_exact(f->data, f->len, 0, f->vlan, &v, &copy);

	if (reason == DROP_none) {
		uint64_t fixed = 8 + 12 + v.op->ext_len + v.pad + 4;

		value_check(f, e, OPCODE_, v.opcode);
		value_check(f, e, QPN, v.dest_qpn);
		value_check(f, e, PSN, v.psn);
		value_check(f, e, ACKREQ, v.ack_req);
		value_check(f, e, SE, v.solicited);
		value_check(f, e, PAD, v.pad);
		value_check(f, e, PKEY, v.pkey);
		value_check(f, e, UDP_LEN, fixed + v.payload_len);
		/* tshark knows neither XRC's headers nor those of annex A19. */
		if (v.op->service != SERVICE_XRC && v.op->kind != OP_FLUSH &&
			v.op->kind != OP_ATOMIC_WRITE) {
			ext_check(f, e, &v);
			ext_absent(f, e, v.op->hdrs);
		}
	}
	free(copy);
}

/* ---- Printing ---- */

struct text {
	char line[512];
	size_t len;
};

static void __attribute__((format(printf, 2, 3)))
text_add(struct text *t, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	t->len +=
		(size_t)vsnprintf(t->line + t->len, sizeof(t->line) - t->len, fmt, args);
	va_end(args);
	assert_true(t->len < sizeof(t->line));
}

/* Names by the low five bits (IBA 9.2.1, table 38). */
static const char *const operations[32] = {"SEND_FIRST", "SEND_MIDDLE", "SEND_LAST",
	"SEND_LAST_IMM", "SEND_ONLY", "SEND_ONLY_IMM", "WRITE_FIRST", "WRITE_MIDDLE",
	"WRITE_LAST", "WRITE_LAST_IMM", "WRITE_ONLY", "WRITE_ONLY_IMM", "READ_REQUEST",
	"READ_RESPONSE_FIRST", "READ_RESPONSE_MIDDLE", "READ_RESPONSE_LAST",
	"READ_RESPONSE_ONLY", "ACKNOWLEDGE", "ATOMIC_ACKNOWLEDGE", "COMPARE_SWAP",
	"FETCH_ADD", [0x16] = "SEND_LAST_INV", [0x17] = "SEND_ONLY_INV"};

static void
syndrome_expect(struct text *t, unsigned syndrome)
{
	static const char *const naks[] = {"sequence", "invalid-request", "remote-access",
		"remote-operational", "invalid-rd-request"};
	/* The RNR timers of docs/protocol.md 4.3, for the codes that the captures have. */
	static const unsigned rnr_us[32] = {
		[1] = 10, [12] = 640, [20] = 10240, [22] = 20480, [24] = 40960};

	if (syndrome == 0x1F)
		text_add(t, " ack");
	else if (syndrome < 0x1F)
		text_add(t, " ack credit-code %u", syndrome);
	else if (syndrome >> 5 == 1)
		text_add(t, " rnr-nak %u us", rnr_us[syndrome & 31]);
	else if (syndrome >= 0x60 && syndrome < 0x65)
		text_add(t, " nak %s", naks[syndrome - 0x60]);
	else
		text_add(t, " syndrome 0x%02x", syndrome);
}

/* The line expected from tshark's reading. */
static struct text
line_expected(const struct captured *f, const struct expected *e, unsigned payload_len)
{
	static const char *const services[8] = {"RC", "UC", NULL, "UD"};
	const uint8_t *ip = f->data + f->ip_off;
	bool v6 = ip[0] >> 4 == 6;
	unsigned opcode = (unsigned)e->value[OPCODE_];
	const uint64_t *v = e->value;
	struct text t = {.len = 0};
	char address[INET6_ADDRSTRLEN];

	for (unsigned side = 0; side < 2; side++) {
		const uint8_t *at = ip + (v6 ? 8 + 16 * side : 12 + 4 * side);

		text_add(&t, side ? " > " : "");
		inet_ntop(v6 ? AF_INET6 : AF_INET, at, address, sizeof(address));
		text_add(&t, "%s", address);
	}
	text_add(&t, " %s %s qp 0x%" PRIx64 " psn 0x%" PRIx64, services[opcode >> 5],
		operations[opcode & 31], v[QPN], v[PSN]);
	if (v[PKEY] != 0xFFFF)
		text_add(&t, " pkey 0x%04" PRIx64, v[PKEY]);
	text_add(&t, "%s%s", v[SE] ? " solicited" : "", v[ACKREQ] ? " ackreq" : "");
	/* FECN and BECN: the byte after the P_Key. */
	opcode = ip[(v6 ? 40 : 20) + 8 + 4];
	text_add(&t, "%s%s", opcode & 0x80 ? " fecn" : "", opcode & 0x40 ? " becn" : "");
	if (e->has[QKEY])
		text_add(&t, " qkey 0x%" PRIx64 " srcqp 0x%" PRIx64, v[QKEY], v[SRCQP]);
	if (e->has[VA])
		text_add(&t, " va 0x%" PRIx64 " rkey 0x%" PRIx64, v[VA], v[RKEY]);
	if (e->has[DMALEN])
		text_add(&t, " dmalen %" PRIu64, v[DMALEN]);
	if (e->has[SWAP] && v[OPCODE_] == 0x14)
		text_add(&t, " add 0x%" PRIx64, v[SWAP]);
	else if (e->has[SWAP])
		text_add(&t, " compare 0x%" PRIx64 " swap 0x%" PRIx64, v[COMPARE],
			v[SWAP]);
	if (e->has[SYNDROME]) {
		syndrome_expect(&t, (unsigned)v[SYNDROME]);
		text_add(&t, " msn %" PRIu64, v[MSN]);
	}
	if (e->has[ORIGINAL])
		text_add(&t, " original 0x%016" PRIx64, v[ORIGINAL]);
	if (e->has[IMM])
		text_add(&t, " imm 0x%08" PRIx64, v[IMM]);
	if (e->has[IETH])
		text_add(&t, " invalidate 0x%" PRIx64, v[IETH]);
	text_add(&t, " len %u", payload_len);
	if (v[PAD] != 0)
		text_add(&t, " pad %" PRIu64, v[PAD]);
	return t;
}

static bool
tshark_knows(const struct pkt_view *v)
{
	return v->op->service != SERVICE_XRC && v->op->service != SERVICE_CNP &&
	       v->op->kind != OP_FLUSH && v->op->kind != OP_ATOMIC_WRITE;
}

/* Lines of frames that tshark does not decode, from the script that built the frames. */
static const struct {
	const char *capture;
	unsigned number;
	const char *line;
} unknown_lines[] = {
	{"c0-silent-drops", 13,
		"198.18.0.1 > 198.18.0.12 RC FLUSH qp 0x7e psn 0x1000 ackreq placement "
		"0x1 selectivity 1 va 0x20080000 rkey 0xc37e dmalen 8 len 0"},
	{"c0-silent-drops", 14,
		"198.18.0.1 > 198.18.0.12 RC ATOMIC_WRITE qp 0x7e psn 0x1000 ackreq va "
		"0x20080000 rkey 0xc37e dmalen 8 len 8"},
	{"c0-silent-drops", 15,
		"198.18.0.1 > 198.18.0.12 XRC SEND_ONLY qp 0x7e psn 0x1000 ackreq srq "
		"0x1 len 8"},
	{"c0-silent-drops", 16,
		"198.18.0.1 > 198.18.0.12 CNP qp 0x7e psn 0x0 becn len 16"},
	{"z0-synthetic", 1, "198.18.0.1 > 198.18.0.12 CNP qp 0x11 psn 0x0 becn len 16"},
	{"z0-synthetic", 2,
		"198.18.0.1 > 198.18.0.12 XRC SEND_ONLY qp 0x11 psn 0x1000 ackreq srq "
		"0x123 len 5 pad 3"},
	{"z0-synthetic", 3,
		"198.18.0.1 > 198.18.0.12 XRC WRITE_ONLY qp 0x11 psn 0x1001 ackreq srq "
		"0x123 va 0x20080000 rkey 0x1234 dmalen 8 len 8"},
	{"z0-synthetic", 4,
		"198.18.0.1 > 198.18.0.12 XRC READ_REQUEST qp 0x11 psn 0x1002 ackreq srq "
		"0x123 va 0x20080000 rkey 0x1234 dmalen 100 len 0"},
	{"z0-synthetic", 5,
		"198.18.0.1 > 198.18.0.12 XRC FETCH_ADD qp 0x11 psn 0x1003 ackreq srq "
		"0x123 va 0x20080000 rkey 0x1234 add 0x1 len 0"},
	{"z0-synthetic", 6,
		"198.18.0.1 > 198.18.0.12 XRC ACKNOWLEDGE qp 0x11 psn 0x1000 ack msn 1 "
		"len 0"},
	{"z0-synthetic", 7,
		"198.18.0.1 > 198.18.0.12 RC FLUSH qp 0x11 psn 0x1004 ackreq placement "
		"0x2 selectivity 1 va 0x20080000 rkey 0x1234 dmalen 64 len 0"},
	{"z0-synthetic", 8,
		"198.18.0.1 > 198.18.0.12 RC ATOMIC_WRITE qp 0x11 psn 0x1005 ackreq va "
		"0x20080000 rkey 0x1234 dmalen 8 len 8"},
};

static void
line_check(const struct captured *f, const struct expected *e)
{
	char line[512];
	struct pkt_view v;
	struct text want;
	uint8_t *copy;

	if (parse_exact(f->data, f->len, 0, f->vlan, &v, &copy) == DROP_none) {
		assert_in_range(pkt_print(line, sizeof(line), &v), 1, sizeof(line) - 1);
		if (tshark_knows(&v)) {
			want = line_expected(f, e, v.payload_len);
			assert_string_equal(line, want.line);
		} else {
			size_t i = 0;

			while (i < RTE_DIM(unknown_lines) &&
				(strcmp(f->capture, unknown_lines[i].capture) != 0 ||
					f->number != unknown_lines[i].number))
				i++;
			if (i == RTE_DIM(unknown_lines))
				fail_msg("%s frame %u: {\"%s\", %u, \"%s\"},", f->capture,
					f->number, f->capture, f->number, line);
			assert_string_equal(line, unknown_lines[i].line);
		}
	}
	free(copy);
}

static void
expected_read(struct expected *e, char *rest)
{
	memset(e, 0, sizeof(*e));
	for (unsigned c = 0; c < COLUMNS; c++) {
		char *word = strtok_r(NULL, " \n", &rest);

		assert_non_null(word);
		e->has[c] = strcmp(word, "-") != 0;
		if (e->has[c])
			e->value[c] = strtoull(word, NULL, c == UDP_LEN ? 10 : 16);
	}
}

TEST(headers_and_lines_match_tshark)
{
	FILE *stream = fopen(CAPTURES "/headers.tsv", "r");
	struct expected e;
	char line[1024];
	size_t i = 0;

	assert_non_null(stream);
	assert_non_null(fgets(line, sizeof(line), stream));
	assert_int_equal(line[0], '#');
	for (; fgets(line, sizeof(line), stream) != NULL; i++) {
		char *rest, *name = strtok_r(line, " ", &rest);
		char *number = strtok_r(NULL, " ", &rest);

		assert_true(i < captured_count);
		assert_string_equal(name, captured[i].capture);
		assert_int_equal(strtoul(number, NULL, 10), captured[i].number);
		expected_read(&e, rest);
		headers_check(&captured[i], &e);
		line_check(&captured[i], &e);
	}
	fclose(stream);
	assert_int_equal(i, CAPTURED_FRAMES);
}

TEST_GROUP(captures_setup, captures_teardown)
