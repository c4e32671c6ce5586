/* SPDX-License-Identifier: BSD-3-Clause */
/* Selective repeat of READ responses (docs/protocol.md 7.10): what comes behind a missing
 * one is placed, and only the missing ones are requested again. */
#include <endian.h>
#include <string.h>

#include "read_fixture.h"

static void
only_the_missing_one_is_requested(void **state)
{
	for (unsigned lost = 0; lost < 4; lost++) {
		sr_open(1);
		read_post(0, 0, 5);
		requests_pull(1);
		responses_deliver(5, 1u << lost);
		assert_int_equal(p.a.stats.read_placed, 4 - lost);
		expect_request(lost, 1);
		assert_int_equal(p.a.qp.req.retry_left, 6);
		responses_deliver(1, 0);
		expect_sent(&p.a, 0, IBV_WC_SUCCESS);
		expect_data(5);
		expect_silence();
		assert_int_equal(p.a.stats.reads_repeated, 1);
		assert_int_equal(p.a.qp.req.retry_left, 7);
		sr_close();
	}
}

/* All gaps that are known are requested at once. A gap may have several packets. A gap that
 * shows later is requested then. */
static void
each_gap_is_requested_once(void **state)
{
	sr_open(1);
	read_post(0, 0, 16);
	requests_pull(1);
	assert_int_equal(host_pull(&p.b, PULL_ALL), 16);
	for (unsigned i = 0; i < 12; i++) {
		if ((1u << 2 | 7u << 5) >> i & 1)
			wire_drop(&p.b, 0);
		else
			wire_deliver(&p.b, 0);
	}
	assert_int_equal(host_pull(&p.a, PULL_ALL), 2);
	expect_request_at(0, 2, 1);
	expect_request_at(1, 5, 3);
	wire_drop(&p.b, 1); /* 13 */
	wire_deliver_all(&p.b);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 1);
	expect_request_at(2, 13, 1);
	assert_int_equal(p.a.qp.req.retry_left, 6);
	wire_deliver(&p.a, 0);
	responses_deliver(1, 0);
	expect_silence();
	assert_int_equal(p.a.qp.req.retry_left, 7);
	wire_deliver_all(&p.a);
	responses_deliver(9, 0);
	expect_sent(&p.a, 0, IBV_WC_SUCCESS);
	expect_data(16);
	sr_close();
}

/* More gaps than a burst has room for. */
static void
gaps_in_several_bursts(void **state)
{
	sr_open(1);
	read_post(0, 0, 20);
	requests_pull(1);
	responses_deliver(20, 0x55555);
	assert_int_equal(host_pull(&p.a, 4), 4);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 6);
	expect_request_at(9, 18, 1);
	wire_deliver_all(&p.a);
	qp_link_drain(&p);
	expect_sent(&p.a, 0, IBV_WC_SUCCESS);
	expect_data(20);
	sr_close();
}

/* The responses of READs behind a missing one are placed, too. All complete in order. */
static void
later_reads_complete_behind_the_first(void **state)
{
	sr_open(4);
	for (unsigned i = 0; i < 4; i++)
		read_post(i, 2 * i, 2);
	requests_pull(4);
	responses_deliver(8, 1u << 1);
	expect_idle(&p.a);
	assert_int_equal(p.a.stats.read_placed, 6);
	expect_request(1, 1);
	responses_deliver(1, 0);
	for (unsigned i = 0; i < 4; i++)
		expect_sent(&p.a, i, IBV_WC_SUCCESS);
	assert_int_equal(p.a.qp.req.reads, 0);
	expect_data(8);
	sr_close();
}

/* A repeated request stays within the one that it repeats: the responder keeps each apart
 * from the others. */
static void
gap_over_two_requests(void **state)
{
	sr_open(4);
	read_post(0, 0, 3);
	read_post(1, 3, 3);
	requests_pull(2);
	responses_deliver(6, 3u << 2);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 2);
	expect_request_at(0, 2, 1);
	expect_request_at(1, 3, 1);
	wire_deliver_all(&p.a);
	responses_deliver(2, 0);
	expect_sent(&p.a, 0, IBV_WC_SUCCESS);
	expect_sent(&p.a, 1, IBV_WC_SUCCESS);
	expect_data(6);
	sr_close();
}

/* The missing one was only late: nothing is requested again. */
static void
reordering_requests_nothing(void **state)
{
	sr_open(1);
	read_post(0, 0, 4);
	requests_pull(1);
	assert_int_equal(host_pull(&p.b, PULL_ALL), 4);
	wire_move(&p.b, 0, 2);
	wire_deliver_all(&p.b);
	expect_sent(&p.a, 0, IBV_WC_SUCCESS);
	expect_silence();
	expect_data(4);
	assert_int_equal(p.a.stats.read_placed, 2);
	assert_int_equal(p.a.stats.reads_repeated, 0);
	sr_close();
}

/* Two are missing, and one of them comes late: only the other is requested. */
static void
late_one_of_two(void **state)
{
	sr_open(1);
	read_post(0, 0, 5);
	requests_pull(1);
	assert_int_equal(host_pull(&p.b, PULL_ALL), 5);
	wire_drop(&p.b, 1);
	wire_move(&p.b, 0, 1); /* 2, 0, 3, 4 */
	wire_deliver_all(&p.b);
	expect_request(1, 1);
	responses_deliver(1, 0);
	expect_sent(&p.a, 0, IBV_WC_SUCCESS);
	expect_data(5);
	sr_close();
}

/* Of three that are requested again the first is lost again: the next one shows that. */
static void
lost_again(void **state)
{
	sr_open(1);
	read_post(0, 0, 8);
	requests_pull(1);
	responses_deliver(8, 7u << 2);
	expect_request(2, 3);
	responses_deliver(3, 1);
	expect_request(2, 1);
	expect_silence();
	responses_deliver(1, 0);
	expect_sent(&p.a, 0, IBV_WC_SUCCESS);
	expect_data(8);
	sr_close();
}

/* Of four gaps that are requested again the first is lost again. The next one shows that,
 * and those behind it do not once more. */
static void
lost_again_before_others(void **state)
{
	sr_open(1);
	read_post(0, 0, 9);
	requests_pull(1);
	responses_deliver(9, 1u << 1 | 1u << 3 | 1u << 5 | 1u << 7);
	requests_pull(4);
	assert_int_equal(host_pull(&p.b, PULL_ALL), 7); /* 1 to 7 */
	wire_drop(&p.b, 0);
	wire_deliver(&p.b, 0);
	wire_deliver(&p.b, 0); /* 3 */
	assert_int_equal(host_pull(&p.a, PULL_ALL), 3);
	expect_request_at(0, 1, 1);
	expect_request_at(1, 5, 1);
	expect_request_at(2, 7, 1);
	wire_deliver_all(&p.b); /* 4 to 7 */
	expect_silence();
	wire_deliver(&p.a, 0);
	wire_drop_all(&p.a);
	responses_deliver(1, 0);
	expect_sent(&p.a, 0, IBV_WC_SUCCESS);
	expect_data(9);
	sr_close();
}

/* The answer to the repeated request is lost, and nothing comes after it: a timer requests
 * all from there on. The placed ones stay placed. */
static void
timer_finds_a_lost_repetition(void **state)
{
	sr_open(1);
	read_post(0, 0, 6);
	requests_pull(1);
	responses_deliver(6, 1u << 3);
	expect_request(3, 1);
	responses_deliver(1, 1);
	qp_link_advance(&p, 70 * NS_PER_MS);
	expect_request(3, 3);
	assert_int_equal(host_pull(&p.b, PULL_ALL), 3);
	wire_deliver(&p.b, 0);
	expect_sent(&p.a, 0, IBV_WC_SUCCESS);
	expect_data(6);
	wire_drop_all(&p.b);
	sr_close();
}

/* The answer to a repeated request comes after a timer has requested all from there on. It
 * ends in the middle of that response. */
static void
late_answer_to_a_repetition(void **state)
{
	sr_open(1);
	read_post(0, 0, 6);
	requests_pull(1);
	responses_deliver(6, 3u << 2);
	expect_request(2, 2);
	assert_int_equal(host_pull(&p.b, PULL_ALL), 2);
	qp_link_advance(&p, 70 * NS_PER_MS);
	expect_response(&p.b, 1, LAST, PSN_A + 3, 1, 1024);
	wire_deliver_all(&p.b);
	expect_sent(&p.a, 0, IBV_WC_SUCCESS);
	expect_data(6);
	sr_close();
}

/* A response that was placed comes again: it is stale. */
static void
placed_response_comes_twice(void **state)
{
	sr_open(1);
	read_post(0, 0, 4);
	requests_pull(1);
	assert_int_equal(host_pull(&p.b, PULL_ALL), 4);
	wire_dup(&p.b, 2);
	wire_drop(&p.b, 1);
	wire_deliver_all(&p.b);
	assert_int_equal(p.a.stats.read_placed, 2);
	assert_int_equal(p.a.stats.drop[DROP_stale_response], 1);
	expect_request(1, 1);
	responses_deliver(1, 0);
	expect_sent(&p.a, 0, IBV_WC_SUCCESS);
	sr_close();
}

/* READs of 155 packets are under way. Responses 128 packets and more ahead of the missing
 * one are dropped, and requested when that has come. */
static void
reach_is_limited(void **state)
{
	struct pkt_view v;

	sr_open(8);
	for (unsigned i = 0; i < 5; i++)
		read_post(i, 0, 31);
	requests_pull(5);
	for (unsigned sent = 0; sent < 155;) {
		sent += host_pull(&p.b, 31);
		if (sent == 31)
			wire_drop(&p.b, 0);
		wire_deliver_all(&p.b);
	}
	assert_int_equal(p.a.stats.read_placed, 127);
	assert_int_equal(p.a.stats.drop[DROP_psn_gap], 27);
	expect_request(0, 1);
	responses_deliver(1, 0);
	for (unsigned i = 0; i < 4; i++)
		expect_sent(&p.a, i, IBV_WC_SUCCESS);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 1);
	expect_frame(&p.a, 0, OPCODE_RC_READ_REQUEST, psn_add(PSN_A, 128), 1);
	v = wire_view(&p.a, 0);
	assert_int_equal(be64toh(view_reth(&v)->va), read_va(1024 * 4));
	assert_int_equal(be32toh(view_reth(&v)->len), 1024 * 27);
	wire_deliver_all(&p.a);
	responses_deliver(27, 0);
	expect_sent(&p.a, 4, IBV_WC_SUCCESS);
	expect_data(31);
	sr_close();
}

/* A response behind a request of another kind is not placed: everything is requested
 * again. */
static void
other_requests_go_back_n(void **state)
{
	sr_open(4);
	read_post(0, 0, 2);
	host_send(&p.a, 1, 0x7000, 8, IBV_SEND_SIGNALED);
	read_post(2, 2, 2);
	requests_pull(3);
	responses_deliver(4, 1u << 1);
	assert_int_equal(p.a.stats.read_placed, 0);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 3);
	expect_frame(&p.a, 0, OPCODE_RC_READ_REQUEST, PSN_A + 1, 1);
	wire_deliver_all(&p.a);
	qp_link_drain(&p);
	for (unsigned i = 0; i < 3; i++)
		expect_sent(&p.a, i, IBV_WC_SUCCESS);
	expect_received(&p.b, 0, 8);
	expect_data(4);
	sr_close();
}

/* A response of the wrong length, or one that has no memory to go to, is not placed. */
static void
wrong_response_is_not_placed(void **state)
{
	sr_open(1);
	read_post(0, 0, 4);
	requests_pull(1);
	inject(&p.a, &(struct pkt_spec){
			     .opcode = MIDDLE, .psn = PSN_A + 2, .payload_len = 512});
	assert_int_equal(p.a.stats.read_placed, 0);
	expect_request(0, 4);
	wire_drop_all(&p.b);
	qp_link_drain(&p);
	expect_sent(&p.a, 0, IBV_WC_SUCCESS);
	expect_data(4);
	sr_close();
}

/* The retries are used up by one response that is always lost. */
static void
retries_end(void **state)
{
	sr_open(1);
	read_post(0, 0, 4);
	requests_pull(1);
	responses_deliver(4, 1u << 1);
	for (unsigned i = 0; i < 100 && p.a.qp.state == IBV_QPS_RTS; i++) {
		qp_link_advance(&p, 70 * NS_PER_MS);
		host_pull(&p.a, PULL_ALL);
		wire_drop_all(&p.a);
	}
	expect_sent(&p.a, 0, IBV_WC_RETRY_EXC_ERR);
	assert_int_equal(p.a.qp.state, IBV_QPS_ERR);
	sr_fini();
}

/* RESET forgets what was placed: the next connection reads anew. */
static void
reset_forgets(void **state)
{
	sr_open(1);
	read_post(0, 0, 4);
	requests_pull(1);
	responses_deliver(4, 1u << 0);
	assert_true(p.a.qp.req.read_gap);
	assert_int_equal(host_modify(&p.a, IBV_QPS_RESET), 0);
	assert_int_equal(host_modify(&p.b, IBV_QPS_RESET), 0);
	qp_link_connect(&p);
	memset(p.a.mem, UNTOUCHED, REMOTE);
	read_post(1, 0, 4);
	requests_pull(1);
	responses_deliver(4, 0);
	expect_sent(&p.a, 1, IBV_WC_SUCCESS);
	expect_data(4);
	assert_int_equal(p.a.stats.read_placed, 3);
	sr_close();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_the_missing_one_is_requested),
		cmocka_unit_test(each_gap_is_requested_once),
		cmocka_unit_test(gaps_in_several_bursts),
		cmocka_unit_test(later_reads_complete_behind_the_first),
		cmocka_unit_test(gap_over_two_requests),
		cmocka_unit_test(reordering_requests_nothing),
		cmocka_unit_test(late_one_of_two),
		cmocka_unit_test(lost_again),
		cmocka_unit_test(lost_again_before_others),
		cmocka_unit_test(reach_is_limited),
		cmocka_unit_test(timer_finds_a_lost_repetition),
		cmocka_unit_test(late_answer_to_a_repetition),
		cmocka_unit_test(placed_response_comes_twice),
		cmocka_unit_test(other_requests_go_back_n),
		cmocka_unit_test(wrong_response_is_not_placed),
		cmocka_unit_test(retries_end),
		cmocka_unit_test(reset_forgets),
	};

	return cmocka_run_group_tests_name("qp read_sr", tests, NULL, NULL);
}
