/* SPDX-License-Identifier: BSD-3-Clause */
/* Scripts of faults: what the grammar has, and each error with its line, its column and what is valid. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

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
		{FAULT_post_send, FAULT_EACH_NTH, ENOMEM, 2, 500, NULL},
		{FAULT_reg_mr, FAULT_NTH, EINVAL, 4, 3, NULL},
		{FAULT_poll_cq, FAULT_SHARE, EIO, 5, 100000, NULL},
		{FAULT_create_qp, FAULT_EACH_NTH, ENOMEM, 6, 1, NULL},
		{FAULT_post_recv, FAULT_SHARE, ENOMEM, 7, 1, NULL},
		{FAULT_rdma_connect, FAULT_SHARE, ENOMEM, 8, 1000000, NULL},
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

#define WHICH "in \"PROGRAM\":, call N of, each Nth, P% of"
#define NUMBER "a number from 1 to 1000000000000000000"
#define EACH NUMBER ", and behind it th, st, nd or rd, such as 500th"
#define SHARE "0.0001% to 100%, such as 0.5%"
#define PROGRAM "a program's name in quotes, of 1 to 255 bytes"

TEST(an_error_names_line_column_and_what_is_valid)
{
	static const struct {
		const char *text, *why;
	} rows[] = {
		{"when request 1", "1, column 1: 'when' is not known; valid: " WHICH},
		{"drop 1% of packets", "1, column 1: 'drop' is not known; valid: " WHICH},
		{"\n  from 2s: link down",
			"2, column 3: 'from' is not known; valid: " WHICH},
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
		{"in \"a\": in \"b\":",
			"1, column 9: 'in' is not known; valid: call N of, each Nth, P% of"},
		{"in \"a\":",
			"1, column 8: the line ends too early; valid: call N of, each Nth, P% of"},
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
		"reg_mr", "ENOMEM", "EINVAL", "\t", "99999999999999999999"};
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
			len += (size_t)sprintf(made + len, "\neach 2nd reg_mr: ENOMEM\n");
		text = malloc(len + (len == 0));
		assert_non_null(text);
		memcpy(text, made, len);
		if (fault_script_parse(&s, text, len, why) == 0) {
			accepted += s.count != 0;
			for (unsigned j = 0; j < s.count; j++) {
				assert_true(s.rules[j].call < FAULT_CALLS);
				assert_true(s.rules[j].number != 0);
				assert_true(
					fault_permission((enum fault_call)s.rules[j].call,
						s.rules[j].err)[0] != '?');
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

/* Returns what a function prints to a stream. */
static char *
explained(const char *text)
{
	struct fault_script s = parsed(text);
	char *out = NULL;
	size_t size;
	FILE *to = open_memstream(&out, &size);

	assert_non_null(to);
	fault_script_explain(&s, to);
	fclose(to);
	fault_script_free(&s);
	return out;
}

TEST(a_script_is_explained_in_sentences)
{
	char *out = explained("call 1 of poll_cq: EIO\n"
			      "in \"x\": each 2nd post_send: ENOMEM\n"
			      "0.5% of reg_mr: EINVAL");

	assert_string_equal(out,
		"line 1: in each process, call 1 of ibv_poll_cq() is refused with EIO; "
		"ibv_poll_cq(3), RETURN VALUE allows the failure.\n"
		"line 2: in each process of a program named \"x\", each 2nd work request of "
		"ibv_post_send() is refused with ENOMEM; ibv_post_send(3), RETURN VALUE "
		"allows the failure.\n"
		"line 3: in each process, 0.5 % of the calls, which the seed draws, of ibv_reg_mr() "
		"and ibv_reg_mr_iova() are refused with EINVAL; ibv_reg_mr(3), RETURN VALUE "
		"allows the failure.\n"
		"3 rules in all.\n");
	free(out);
	out = explained(
		"each 11th poll_cq: EIO\neach 21st poll_cq: EIO\neach 103rd poll_cq: EIO");
	assert_non_null(strstr(out, " each 11th call "));
	assert_non_null(strstr(out, " each 21st call "));
	assert_non_null(strstr(out, " each 103rd call "));
	free(out);
}

TEST(a_file_that_cannot_be_read_is_named)
{
	struct fault_script s;

	assert_int_equal(fault_script_read(&s, "/nonexistent/script", why), ENOENT);
	assert_string_equal(
		why, "cannot read /nonexistent/script: No such file or directory");
	assert_int_equal(fault_script_read(&s, "/", why), EISDIR);
	assert_int_equal(fault_script_read(&s, "/dev/zero", why), EFBIG);
	assert_int_equal(s.count, 0);
}
