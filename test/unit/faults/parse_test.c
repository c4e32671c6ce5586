/* SPDX-License-Identifier: BSD-3-Clause */
/* Scripts of faults: what the grammar has, and each error with its line, its column and what is valid. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/verbs.h>

#include "base/splitmix64.h"
#include "faults/faults.h"

#include "case.h"

#define GARBAGE_SCRIPTS 20000

static char why[FAULT_WHY_MAX];

static struct fault_script
parsed(const char *text)
{
	struct fault_script s;

	why[0] = '\0';
	assert_int_equal(fault_script_parse(&s, text, strlen(text), why), 0);
	assert_string_equal(why, "");
	return s;
}

TEST(an_empty_script_has_no_rules)
{
	static const char *const texts[] = {
		"", "\n", "# only a comment", "  \t\r\n\n # \"\n"};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct fault_script s = parsed(texts[i]);

		assert_int_equal(s.count, 0);
		fault_script_free(&s);
	}
}

TEST(a_rule_a_line)
{
	struct fault_script s = parsed("# a script\n"
				       "each 500th post_send: ENOMEM\n"
				       "\n"
				       "call 3 of reg_mr:EINVAL# the third\r\n"
				       "  10% of poll_cq : EIO\n"
				       "in \"a # b\": each 1st create_qp: ENOMEM\n"
				       "0.0001% of post_recv: ENOMEM\n"
				       "100% of rdma_connect: ENOMEM");
	static const struct fault_rule want[] = {
		{.call = FAULT_post_send,
			.when = FAULT_EACH_NTH,
			.err = ENOMEM,
			.line = 2,
			.number = 500},
		{.call = FAULT_reg_mr,
			.when = FAULT_NTH,
			.err = EINVAL,
			.line = 4,
			.number = 3},
		{.call = FAULT_poll_cq,
			.when = FAULT_SHARE,
			.err = EIO,
			.line = 5,
			.number = 100000},
		{.call = FAULT_create_qp,
			.when = FAULT_EACH_NTH,
			.err = ENOMEM,
			.line = 6,
			.number = 1},
		{.call = FAULT_post_recv,
			.when = FAULT_SHARE,
			.err = ENOMEM,
			.line = 7,
			.number = 1},
		{.call = FAULT_rdma_connect,
			.when = FAULT_SHARE,
			.err = ENOMEM,
			.line = 8,
			.number = 1000000},
	};

	assert_int_equal(s.count, 6);
	for (unsigned i = 0; i < s.count; i++) {
		assert_int_equal(s.rules[i].call, want[i].call);
		assert_int_equal(s.rules[i].when, want[i].when);
		assert_int_equal(s.rules[i].err, want[i].err);
		assert_int_equal(s.rules[i].line, want[i].line);
		assert_int_equal(s.rules[i].number, want[i].number);
		if (i == 3)
			assert_string_equal(s.rules[i].program, "a # b");
		else
			assert_null(s.rules[i].program);
	}
	fault_script_free(&s);
}

TEST(a_rule_of_requests)
{
	struct fault_script s =
		parsed("request 1000 of qp 2: fail retry-exceeded\n"
		       "each 3rd request: fail local-length vendor 4294967295\n"
		       "in \"p\": 1% of requests of qp 1: event qp-fatal # x\n"
		       "receive 1 of srq 7 : fail local-protection\n"
		       "2% of receives: event device-fatal\n"
		       "each 2nd receive of qp 3:event qp-fatal");
	static const struct fault_rule want[] = {
		{.call = FAULT_REQUESTS,
			.when = FAULT_NTH,
			.action = FAULT_FAIL,
			.err = IBV_WC_RETRY_EXC_ERR,
			.number = 1000,
			.queue = {FAULT_QP, 2}},
		{.call = FAULT_REQUESTS,
			.when = FAULT_EACH_NTH,
			.action = FAULT_FAIL,
			.err = IBV_WC_LOC_LEN_ERR,
			.number = 3,
			.vendor = UINT32_MAX},
		{.call = FAULT_REQUESTS,
			.when = FAULT_SHARE,
			.action = FAULT_EVENT,
			.err = IBV_EVENT_QP_FATAL,
			.number = 10000,
			.queue = {FAULT_QP, 1}},
		{.call = FAULT_RECEIVES,
			.when = FAULT_NTH,
			.action = FAULT_FAIL,
			.err = IBV_WC_LOC_PROT_ERR,
			.number = 1,
			.queue = {FAULT_SRQ, 7}},
		{.call = FAULT_RECEIVES,
			.when = FAULT_SHARE,
			.action = FAULT_EVENT,
			.err = IBV_EVENT_DEVICE_FATAL,
			.number = 20000},
		{.call = FAULT_RECEIVES,
			.when = FAULT_EACH_NTH,
			.action = FAULT_EVENT,
			.err = IBV_EVENT_QP_FATAL,
			.number = 2,
			.queue = {FAULT_QP, 3}},
	};

	assert_int_equal(s.count, 6);
	for (unsigned i = 0; i < s.count; i++) {
		const struct fault_rule *r = &s.rules[i];

		assert_int_equal(r->call, want[i].call);
		assert_int_equal(r->when, want[i].when);
		assert_int_equal(r->action, want[i].action);
		assert_int_equal(r->err, want[i].err);
		assert_int_equal(r->vendor, want[i].vendor);
		assert_int_equal(r->number, want[i].number);
		assert_int_equal(r->queue.type, want[i].queue.type);
		assert_int_equal(r->queue.number, want[i].queue.number);
		assert_int_equal(r->program != NULL, i == 2);
	}
	fault_script_free(&s);
}

TEST(a_rule_of_packets)
{
	struct fault_script s = parsed("drop packet 2 of request 3\n"
				       "delay copy 4 of packet 5 of request 6 of qp 7\n"
				       "duplicate each 8th packet of qp 9 # x\n"
				       "in \"p\": drop 0.5% of packets");
	static const struct fault_rule want[] = {
		{.err = FAULT_DROP,
			.when = FAULT_NTH,
			.number = 3,
			.packet = 2,
			.copy = 1},
		{.err = FAULT_DELAY,
			.when = FAULT_NTH,
			.number = 6,
			.packet = 5,
			.copy = 4,
			.queue = {FAULT_QP, 7}},
		{.err = FAULT_DUPLICATE,
			.when = FAULT_EACH_NTH,
			.number = 8,
			.queue = {FAULT_QP, 9}},
		{.err = FAULT_DROP, .when = FAULT_SHARE, .number = 5000},
	};

	assert_int_equal(s.count, 4);
	for (unsigned i = 0; i < s.count; i++) {
		const struct fault_rule *r = &s.rules[i];

		assert_int_equal(r->call, FAULT_PACKETS);
		assert_int_equal(r->action, FAULT_PACKET);
		assert_int_equal(r->err, want[i].err);
		assert_int_equal(r->when, want[i].when);
		assert_int_equal(r->number, want[i].number);
		assert_int_equal(r->packet, want[i].packet);
		assert_int_equal(r->copy, want[i].copy);
		assert_int_equal(r->queue.type, want[i].queue.type);
		assert_int_equal(r->queue.number, want[i].queue.number);
	}
	fault_script_free(&s);
}

/* Each name of each table is a rule, and no error of another call is. */
TEST(each_call_and_error_is_a_rule)
{
	unsigned rules = 0;

	for (unsigned call = 0; call < FAULT_CALLS; call++) {
		for (int err = 1; err < 134; err++) {
			const char *name = fault_error_name(err);
			char text[128];
			struct fault_script s;
			bool valid =
				name[0] != '?' &&
				fault_permission((enum fault_call)call, err)[0] != '?';

			if (name[0] == '?')
				continue;
			snprintf(text, sizeof(text), "call 1 of %s: %s",
				fault_call_name((enum fault_call)call), name);
			assert_int_equal(fault_script_parse(&s, text, strlen(text), why),
				valid ? 0 : EINVAL);
			if (valid)
				assert_int_equal(s.rules[0].err, err);
			rules += valid;
			fault_script_free(&s);
		}
	}
	assert_true(rules >= FAULT_CALLS);
}

#define WHAT                                                                             \
	"call N of, request N, receive N, each Nth, P% of, delay, drop, duplicate, from TIME"
#define WHICH "in \"PROGRAM\":, " WHAT
#define NUMBER "a number from 1 to 1000000000000000000"
#define EACH NUMBER ", and behind it th, st, nd or rd, such as 500th"
#define SHARE "0.0001% to 100%, such as 0.5%"
#define END "the end of the line, or # COMMENT"
#define PACKETS "packet N of, copy N of, each Nth, P% of"
#define VENDOR "a number from 1 to 4294967295"
#define PROGRAM "a program's name in quotes, of 1 to 255 bytes"

TEST(an_error_names_line_column_and_what_is_valid)
{
	static const struct {
		const char *text, *why;
	} rows[] = {
		{"when request 1", "1, column 1: 'when' is not known; valid: " WHICH},
		{"lose 1% of packets", "1, column 1: 'lose' is not known; valid: " WHICH},
		{"drop", "1, column 5: the line ends too early; valid: " PACKETS},
		{"drop call 1 of", "1, column 6: 'call' is not known; valid: " PACKETS},
		{"drop packet 0 of", "1, column 13: '0' is not known; valid: " NUMBER},
		{"drop packet 1 of qp",
			"1, column 18: 'qp' is not known; valid: request"},
		{"drop copy 1 of request 1",
			"1, column 16: 'request' is not known; valid: packet"},
		{"drop each 2nd request",
			"1, column 15: 'request' is not known; valid: packet"},
		{"drop 1% of packet",
			"1, column 12: 'packet' is not known; valid: packets"},
		{"drop 1% of packets of srq 1",
			"1, column 23: 'srq' is not known; valid: qp"},
		{"drop 1% of packets x",
			"1, column 20: 'x' is not known; valid: of qp N, " END},
		{"drop 1% of packets of qp 1 x",
			"1, column 28: 'x' is not known; valid: " END},
		{"\n  upto 2s: link down",
			"2, column 3: 'upto' is not known; valid: " WHICH},
		{"\": x", "1, column 1: '\"' is not known; valid: " WHICH},
		{"call", "1, column 5: the line ends too early; valid: " NUMBER},
		{"call 0 of reg_mr", "1, column 6: '0' is not known; valid: " NUMBER},
		{"call 1x of reg_mr", "1, column 6: '1x' is not known; valid: " NUMBER},
		{"call -1 of reg_mr", "1, column 6: '-1' is not known; valid: " NUMBER},
		{"call 1000000000000000001 of reg_mr: ENOMEM",
			"1, column 6: '1000000000000000001' is not known; valid: " NUMBER},
		{"call 18446744073709551617 of reg_mr: ENOMEM",
			"1, column 6: '18446744073709551617' is not known; valid: " NUMBER},
		{"call 1 reg_mr", "1, column 8: 'reg_mr' is not known; valid: of"},
		{"call 1 # of", "1, column 8: the line ends too early; valid: of"},
		{"each post_send", "1, column 6: 'post_send' is not known; valid: " EACH},
		{"each 5 post_send", "1, column 6: '5' is not known; valid: " EACH},
		{"each 0th post_send", "1, column 6: '0th' is not known; valid: " EACH},
		{"each 5x post_send", "1, column 6: '5x' is not known; valid: " EACH},
		{"each", "1, column 5: the line ends too early; valid: " EACH},
		{"0% of poll_cq", "1, column 1: '0%' is not known; valid: " SHARE},
		{"% of poll_cq", "1, column 1: '%' is not known; valid: " SHARE},
		{".% of poll_cq", "1, column 1: '.%' is not known; valid: " SHARE},
		{"101% of poll_cq", "1, column 1: '101%' is not known; valid: " SHARE},
		{"100.0001% of poll_cq",
			"1, column 1: '100.0001%' is not known; valid: " SHARE},
		{"1.00001% of poll_cq",
			"1, column 1: '1.00001%' is not known; valid: " SHARE},
		{"1.0.0% of poll_cq",
			"1, column 1: '1.0.0%' is not known; valid: " SHARE},
		{"1%% of poll_cq", "1, column 1: '1%%' is not known; valid: " SHARE},
		{"99999999999999999999999% of poll_cq",
			"1, column 1: '99999999999999999999999%' is not known; valid: " SHARE},
		{"1% poll_cq", "1, column 4: 'poll_cq' is not known; valid: of"},
		{"in ib_send_bw: call 1",
			"1, column 4: 'ib_send_bw' is not known; valid: " PROGRAM},
		{"in \"\": call 1", "1, column 4: '\"\"' is not known; valid: " PROGRAM},
		{"in \"a: call 1",
			"1, column 4: '\"a: call 1' is not known; valid: " PROGRAM},
		{"in \"a\" call 1", "1, column 8: 'call' is not known; valid: :"},
		{"in \"a\": in \"b\":", "1, column 9: 'in' is not known; valid: " WHAT},
		{"in \"a\":", "1, column 8: the line ends too early; valid: " WHAT},
		{"call 1 of reg_mr ENOMEM",
			"1, column 18: 'ENOMEM' is not known; valid: :"},
		{"call 1 of reg_mr: EIO",
			"1, column 19: 'EIO' is not known; valid: EINVAL, ENOMEM"},
		{"call 1 of poll_cq:",
			"1, column 19: the line ends too early; valid: EIO"},
		{"call 1 of reg_mr: ENOMEM x",
			"1, column 26: 'x' is not known; valid: the end of the line, or # COMMENT"},
		{"call 1 of reg_mr: \001\377",
			"1, column 19: '?\?' is not known; valid: EINVAL, ENOMEM"},
		{"request", "1, column 8: the line ends too early; valid: " NUMBER},
		{"request 0: x", "1, column 9: '0' is not known; valid: " NUMBER},
		{"request 1 x", "1, column 11: 'x' is not known; valid: of qp N, :"},
		{"receive 1 x",
			"1, column 11: 'x' is not known; valid: of qp N, of srq N, :"},
		{"request 1 of srq 1:", "1, column 14: 'srq' is not known; valid: qp"},
		{"receive 1 of cq 1:", "1, column 14: 'cq' is not known; valid: qp, srq"},
		{"request 1 of qp x:", "1, column 17: 'x' is not known; valid: " NUMBER},
		{"request 1 of qp 1 x", "1, column 19: 'x' is not known; valid: :"},
		{"request 1: EIO",
			"1, column 12: 'EIO' is not known; valid: fail STATUS, event EVENT, link STATE"},
		{"receive 1: fail x",
			"1, column 17: 'x' is not known; valid: local-length, local-protection"},
		{"receive 1: event cq-error",
			"1, column 18: 'cq-error' is not known; valid: device-fatal, qp-fatal, "
			"srq-error"},
		{"request 1: event qp-fatal vendor 1",
			"1, column 27: 'vendor' is not known; valid: " END},
		{"request 1: fail retry-exceeded x",
			"1, column 32: 'x' is not known; valid: vendor N, " END},
		{"request 1: fail retry-exceeded vendor",
			"1, column 38: the line ends too early; valid: " VENDOR},
		{"request 1: fail retry-exceeded vendor 1x",
			"1, column 39: '1x' is not known; valid: " VENDOR},
		{"request 1: fail retry-exceeded vendor 4294967296",
			"1, column 39: '4294967296' is not known; valid: " VENDOR},
		{"request 1: fail retry-exceeded vendor 1 x",
			"1, column 41: 'x' is not known; valid: " END},
		{"aaaaaaaaaabbbbbbbbbbccccccccccddddddddddE",
			"1, column 1: 'aaaaaaaaaabbbbbbbbbbccccccccccdddddddddd...' is not known; "
			"valid: " WHICH},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct fault_script s;
		int err = fault_script_parse(&s, rows[i].text, strlen(rows[i].text), why);

		assert_int_equal(err, EINVAL);
		assert_int_equal(strncmp(why, "line ", 5), 0);
		assert_string_equal(why + 5, rows[i].why);
		assert_int_equal(s.count, 0);
		assert_null(s.rules);
	}
}

TEST(a_name_that_is_no_call_is_refused_with_all_that_are)
{
	static const char text[] = "call 1 of ibv_post_send: ENOMEM";
	struct fault_script s;

	assert_int_equal(fault_script_parse(&s, text, strlen(text), why), EINVAL);
	assert_non_null(strstr(
		why, "column 11: 'ibv_post_send' is not known; valid: alloc_mw, "));
	for (unsigned call = 0; call < FAULT_CALLS; call++)
		assert_non_null(strstr(why, fault_call_name((enum fault_call)call)));
}

TEST(a_name_of_a_program_has_255_bytes_at_most)
{
	char text[FAULT_NAME_MAX + 64];
	struct fault_script s;

	for (int len = FAULT_NAME_MAX; len <= FAULT_NAME_MAX + 1; len++) {
		snprintf(text, sizeof(text), "in \"%0*d\": call 1 of reg_mr: ENOMEM", len,
			0);
		assert_int_equal(fault_script_parse(&s, text, strlen(text), why),
			len == FAULT_NAME_MAX ? 0 : EINVAL);
		fault_script_free(&s);
	}
	/* A NUL would end the name. */
	memcpy(text, "in \"a\0b\": call 1 of reg_mr: ENOMEM", 34);
	assert_int_equal(fault_script_parse(&s, text, 34, why), EINVAL);
}

TEST(more_than_10000_rules_are_refused)
{
	static const char rule[] = "call 1 of reg_mr: ENOMEM\n";
	size_t len = strlen(rule);
	char *text = malloc((FAULT_RULES_MAX + 1) * len);
	struct fault_script s;

	assert_non_null(text);
	for (size_t i = 0; i <= FAULT_RULES_MAX; i++)
		memcpy(text + i * len, rule, len);
	assert_int_equal(fault_script_parse(&s, text, FAULT_RULES_MAX * len, why), 0);
	assert_int_equal(s.count, FAULT_RULES_MAX);
	fault_script_free(&s);
	assert_int_equal(
		fault_script_parse(&s, text, (FAULT_RULES_MAX + 1) * len, why), E2BIG);
	assert_string_equal(why,
		"line 10001, column 1: a rule too many; valid: at most 10000 rules, "
		"also in a journal that is replayed");
	assert_int_equal(s.count, 0);
	free(text);
}

/* Scripts of words of the grammar and of any bytes, in memory that ends with them: a sanitizer sees a read behind
 * the end. A rule that is accepted has only values that the tables have. */
TEST(garbage_is_refused_or_has_only_valid_rules)
{
	static const char *const words[] = {"in ", "\"a\"", "\"", ":", " ", "#", "\n",
		"call ", "each ", "of ", "1", "500th ", "10% ", ".", "%", "post_send",
		"reg_mr", "ENOMEM", "EINVAL", "\t", "99999999999999999999", "request ",
		"receive ", "requests ", "qp ", "srq ", "fail ", "event ", "vendor ",
		"retry-exceeded ", "local-length", "qp-fatal", "drop ", "copy ",
		"packet ", "packets "};
	uint64_t seed = 1;
	unsigned accepted = 0;

	for (unsigned i = 0; i < GARBAGE_SCRIPTS; i++) {
		char made[512];
		size_t len = 0;
		unsigned parts = (unsigned)(splitmix64(&seed) % 24);
		struct fault_script s;
		char *text;

		for (unsigned j = 0; j < parts; j++) {
			uint64_t drawn = splitmix64(&seed);
			const char *word =
				words[drawn % (sizeof(words) / sizeof(words[0]))];

			if (drawn >> 60 == 0)
				made[len++] = (char)(drawn >> 32);
			else
				len += (size_t)sprintf(made + len, "%s", word);
		}
		/* Half of them are a rule and garbage behind it. */
		if (i % 2 == 0)
			len += (size_t)sprintf(made + len, "%s",
				i % 4 == 0 ? "\neach 2nd reg_mr: ENOMEM\n"
					   : "\nrequest 2: fail remote-access\n");
		text = malloc(len + (len == 0));
		assert_non_null(text);
		memcpy(text, made, len);
		if (fault_script_parse(&s, text, len, why) == 0) {
			accepted += s.count != 0;
			for (unsigned j = 0; j < s.count; j++) {
				const struct fault_rule *r = &s.rules[j];

				assert_true(r->call < FAULT_COUNTED);
				assert_true(r->number != 0);
				assert_int_equal(
					r->action == FAULT_REFUSE, r->call < FAULT_CALLS);
				assert_true(
					(r->call < FAULT_CALLS ? fault_permission(
									 (enum fault_call)
										 r->call,
									 r->err)
							       : fault_value_permission(
									 r))[0] != '?');
			}
		} else {
			assert_int_equal(strncmp(why, "line ", 5), 0);
			assert_non_null(strstr(why, "; valid: "));
			assert_null(s.rules);
		}
		fault_script_free(&s);
		free(text);
	}
	assert_true(accepted != 0);
}
