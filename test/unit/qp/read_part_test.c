/* SPDX-License-Identifier: BSD-3-Clause */
/* A responder whose peer requests parts of a READ again (docs/protocol.md 8.7). */
#include "read_fixture.h"

/* A part in the middle is requested again while the response is still being sent: the rest
 * of it is sent, too. */
static void
part_of_an_unfinished_response(void **state)
{
	sr_open(1);
	read_post(0, 0, 8);
	requests_pull(1);
	assert_int_equal(host_pull(&p.b, 4), 4);
	wire_drop(&p.b, 1);
	wire_deliver_all(&p.b);
	expect_request(1, 1);
	assert_int_equal(host_pull(&p.b, PULL_ALL), 5);
	expect_response(&p.b, 0, ONLY, PSN_A + 1, 1, 1024);
	expect_response(&p.b, 1, MIDDLE, PSN_A + 4, 1, 1024);
	expect_response(&p.b, 4, LAST, PSN_A + 7, 1, 1024);
	wire_deliver_all(&p.b);
	expect_sent(&p.a, 0, IBV_WC_SUCCESS);
	expect_data(8);
	expect_silence();
	sr_close();
}

static void
inject_part(unsigned first, unsigned packets)
{
	inject_read(PSN_A + first, read_va(1024 * first), p.b.rkey, 1024 * packets);
}

/* Parts that are requested before others have left: none is forgotten. A part that reaches
 * what is still to be sent joins it. */
static void
parts_of_an_unfinished_response_add_up(void **state)
{
	static const struct {
		unsigned first, packets; /* of the second part; the first one is 2, 2 */
		unsigned sent;           /* packets */
		unsigned from;           /* first one */
	} rows[] = {
		{5, 1, 4 + 4, 2}, /* a gap in between is sent, too */
		{1, 1, 3 + 4, 1},
		{3, 1, 2 + 4, 2}, /* is on its way */
		{4, 8, 2 + 8, 2}, /* up to the end */
		{0, 12, 12, 0},
	};

	for (unsigned i = 0; i < RTE_DIM(rows); i++) {
		sr_open(1);
		inject_part(0, 12);
		assert_int_equal(host_pull(&p.b, 8), 8);
		wire_drop_all(&p.b);
		inject_part(2, 2);
		inject_part(rows[i].first, rows[i].packets);
		assert_int_equal(host_pull(&p.b, PULL_ALL), rows[i].sent);
		expect_response(&p.b, 0, FIRST, PSN_A + rows[i].from, 1, 1024);
		expect_response(&p.b, rows[i].sent - 1, LAST, PSN_A + 11, 1, 1024);
		sr_close();
	}
}

/* A later response that is being sent does not start anew for a part of an earlier one. */
static void
part_leaves_later_responses_alone(void **state)
{
	sr_open(4);
	read_post(0, 0, 4);
	read_post(1, 4, 4);
	requests_pull(2);
	assert_int_equal(host_pull(&p.b, 6), 6);
	wire_drop(&p.b, 1);
	wire_deliver_all(&p.b);
	expect_request(1, 1);
	assert_int_equal(host_pull(&p.b, PULL_ALL), 3);
	expect_response(&p.b, 0, ONLY, PSN_A + 1, 2, 1024);
	expect_response(&p.b, 1, MIDDLE, PSN_A + 6, 2, 1024);
	wire_deliver_all(&p.b);
	expect_sent(&p.a, 0, IBV_WC_SUCCESS);
	expect_sent(&p.a, 1, IBV_WC_SUCCESS);
	expect_data(8);
	sr_close();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(part_of_an_unfinished_response),
		cmocka_unit_test(parts_of_an_unfinished_response_add_up),
		cmocka_unit_test(part_leaves_later_responses_alone),
	};

	return cmocka_run_group_tests_name("qp read_part", tests, NULL, NULL);
}
