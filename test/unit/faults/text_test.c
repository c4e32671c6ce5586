/* SPDX-License-Identifier: BSD-3-Clause */
/* Scripts in sentences, what was applied as a rule, and files that cannot be read. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "faults/faults.h"

#include "case.h"

static char why[FAULT_WHY_MAX];

static struct fault_script
parsed(const char *text)
{
	struct fault_script s;

	assert_int_equal(fault_script_parse(&s, text, strlen(text), why), 0);
	return s;
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
	out = explained("each 2nd request: fail local-protection vendor 7\n"
			"0.5% of receives of srq 2: event srq-error");
	assert_string_equal(out,
		"line 1: in each process, each 2nd send request of each QP completes with the "
		"status local-protection and vendor_err 7, if it can have it; IBA 11.6.2, "
		"Local Protection Error allows it.\n"
		"line 2: in each process, 0.5 % of the receive requests, which the seed draws, "
		"of SRQ 2 are preceded by the event srq-error, if they can have it; IBA "
		"11.6.3, SRQ Catastrophic Error allows it.\n"
		"2 rules in all.\n");
	free(out);
	out = explained("delay copy 2 of packet 3 of request 4 of qp 5\n"
			"duplicate each 2nd packet of qp 1\ndrop 1% of packets");
	assert_string_equal(out,
		"line 1: in each process, packet 3 of send request 4 of QP 5 is overtaken by "
		"the next ones when it is sent for the 2nd time; RFC 791, 1.1: datagrams are "
		"independent.\n"
		"line 2: in each process, each 2nd request packet of QP 1 is sent twice; RFC "
		"768, Introduction: duplicate protection is not guaranteed.\n"
		"line 3: in each process, 1 % of the request packets, which the seed draws, of "
		"each QP are dropped; RFC 768, Introduction: delivery is not guaranteed.\n"
		"3 rules in all.\n");
	free(out);
}

TEST(a_rule_of_connections)
{
	struct fault_script s = parsed("call 1 of rdma_resolve_addr: event addr-error\n"
				       "each 2nd rdma_connect : reject consumer # x\n"
				       "1% of rdma_accept:lose rep\n"
				       "call 4 of rdma_connect: ENOMEM\n"
				       "request 5 of qp 6: event disconnected");
	static const struct fault_rule want[] = {
		{.call = FAULT_rdma_resolve_addr,
			.when = FAULT_NTH,
			.action = FAULT_EVENT,
			.err = FAULT_CM_ADDR_ERROR,
			.number = 1},
		{.call = FAULT_rdma_connect,
			.when = FAULT_EACH_NTH,
			.action = FAULT_REJECT,
			.err = 28,
			.number = 2},
		{.call = FAULT_rdma_accept,
			.when = FAULT_SHARE,
			.action = FAULT_LOSE,
			.err = FAULT_CM_REP,
			.number = 10000},
		{.call = FAULT_rdma_connect,
			.when = FAULT_NTH,
			.action = FAULT_REFUSE,
			.err = ENOMEM,
			.number = 4},
		{.call = FAULT_REQUESTS,
			.when = FAULT_NTH,
			.action = FAULT_EVENT,
			.err = FAULT_CM_DISCONNECTED,
			.number = 5},
	};

	assert_int_equal(s.count, sizeof(want) / sizeof(want[0]));
	for (unsigned i = 0; i < s.count; i++) {
		assert_int_equal(s.rules[i].call, want[i].call);
		assert_int_equal(s.rules[i].when, want[i].when);
		assert_int_equal(s.rules[i].action, want[i].action);
		assert_int_equal(s.rules[i].err, want[i].err);
		assert_int_equal(s.rules[i].number, want[i].number);
	}
	fault_script_free(&s);
}

TEST(a_rule_of_connections_is_explained_in_sentences)
{
	char *out = explained("call 1 of rdma_connect: reject consumer\n"
			      "each 2nd rdma_accept: lose rep\n"
			      "5% of rdma_resolve_route: event route-error\n"
			      "request 9 of qp 1: event disconnected");

	assert_string_equal(out,
		"line 1: in each process, call 1 of rdma_connect() is executed, and the ID gets a "
		"REJ with the reason 28, consumer, if it can have it; IBA 12.6.7.2, reason 28 "
		"allows it.\n"
		"line 2: in each process, each 2nd call of rdma_accept() is executed, and the ID has "
		"its first rep lost, if it can have it; RFC 768, Introduction: delivery is not "
		"guaranteed allows it.\n"
		"line 3: in each process, 5 % of the calls, which the seed draws, of "
		"rdma_resolve_route() are executed, and the ID gets the event route-error, if it can "
		"have it; rdma_get_cm_event(3), EVENT TYPES allows it.\n"
		"line 4: in each process, send request 9 of QP 1 is preceded by the event "
		"disconnected, if it can have it; IBA 12.9.8.3.1, stale connection allows it.\n"
		"4 rules in all.\n");
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

/* The line of a hit applies it again. */
TEST(a_hit_is_written_as_a_rule)
{
	static const char *const rules[] = {"call 3 of reg_mr: ENOMEM",
		"request 4 of qp 2: fail remote-access",
		"request 5 of qp 1: fail remote-operation vendor 129",
		"request 6 of qp 1: event cq-error",
		"receive 1000000000000000000 of srq 9: fail local-length",
		"receive 2 of qp 4: event qp-fatal",
		"request 7 of qp 1: event disconnected",
		"call 1 of rdma_resolve_addr: event addr-error",
		"call 2 of rdma_connect: reject stale-connection",
		"call 3 of rdma_accept: lose rep", "drop packet 5 of request 6 of qp 7",
		"duplicate copy 2 of packet 1 of request 1000000000000000000 of qp 8"};

	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
		struct fault_script s = parsed(rules[i]);
		struct fault_hit hit = {.rule = s.rules,
			.number = s.rules[0].number,
			.queue = s.rules[0].queue,
			.packet = s.rules[0].packet,
			.copy = s.rules[0].copy};
		char out[FAULT_HIT_TEXT];

		fault_hit_write(&hit, out, sizeof(out));
		assert_string_equal(out, rules[i]);
		fault_script_free(&s);
	}
}
