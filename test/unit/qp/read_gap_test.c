/* SPDX-License-Identifier: BSD-3-Clause */
/* READ responses behind a missing one are placed, and only what is missing is requested
 * again (docs/protocol.md 7.10). */
#include "read_gap_fixture.h"

/* The responses behind a missing one are in memory at once. One packet is requested
 * again, and its answer completes the READ. */
TEST(only_the_missing_range_is_requested)
{
	gap_open(4, true);
	gap_read(8);
	gap_respond(8, 0x0c);
	assert_memory_equal(p.a.mem + 4 * MTU, p.b.mem + REMOTE + 4 * MTU, 4 * MTU);
	assert_int_equal(p.a.mem[2 * MTU], UNTOUCHED);
	expect_idle(&p.a);
	assert_int_equal(p.a.qp.req.una_psn, PSN_A + 2);
	assert_int_equal(p.a.qp.req.reading, 2);
	assert_int_equal(p.a.peer.read.inflight, 2);
	assert_int_equal(p.a.qp.req.retry_left, 6); /* charged once */
	assert_int_equal(host_pull(&p.a, PULL_ALL), 1);
	expect_request(0, 2, 2);
	assert_int_equal(p.a.peer.send.inflight, 0);
	assert_int_equal(p.a.peer.read.inflight, 2);
	wire_deliver_all(&p.a);
	gap_respond(2, 0);
	expect_read(8);
	assert_int_equal(p.a.qp.req.retry_left, 7);
	assert_int_equal(p.a.stats.read_placed, 4);
	assert_int_equal(p.a.stats.read_repeated, 1);
	assert_int_equal(p.a.stats.retransmitted, 1);
	gap_close();
}

/* Several ranges are requested again at once, in rising order of PSNs, and each only up
 * to the end of its original request: with max_rd_atomic 4 that is each 32nd packet. */
TEST(ranges_end_with_their_request)
{
	gap_open(4, true);
	host_read(&p.a, 0, 0, REMOTE, 0x7000); /* 28 packets */
	host_read(&p.a, 1, 0x7000, REMOTE + 0x7000, MTU);
	host_pull(&p.a, PULL_ALL);
	wire_deliver_all(&p.a);
	host_recv(&p.a, 0, 0, 8);
	gap_respond(29, UINT64_C(1) << 3 | UINT64_C(1) << 27);
	assert_int_equal(p.a.qp.req.una_psn, PSN_A + 3);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 3);
	expect_request(0, 3, 1);
	expect_request(1, 27, 1);
	expect_request(2, 28, 1);
	wire_deliver_all(&p.a);
	gap_respond(3, 0);
	expect_sent(&p.a, 0, IBV_WC_SUCCESS);
	expect_sent(&p.a, 1, IBV_WC_SUCCESS);
	assert_memory_equal(p.a.mem, p.b.mem + REMOTE, 0x7000 + MTU);
	assert_false(p.a.qp.req.missing);
	gap_close();
}

/* Two READs. The second one was executed before the repeat of the first one is: its
 * response is dropped, and it sees no older memory than the first one. It is requested
 * again at once, behind that repeat; but if the repeat is lost, too, once the first one
 * is complete. */
TEST(later_read_is_executed_later)
{
	gap_open(4, true);
	host_read(&p.a, 0, 0, REMOTE, 3 * MTU);
	host_read(&p.a, 1, 3 * MTU, REMOTE + 3 * MTU, 3 * MTU);
	host_pull(&p.a, PULL_ALL);
	wire_deliver_all(&p.a);
	gap_respond(6, 0x1c); /* the end of one, and the begin of the other */
	assert_int_equal(host_pull(&p.a, PULL_ALL), 2);
	expect_request(0, 2, 1);
	expect_request(1, 3, 3);
	wire_deliver_all(&p.a);
	gap_respond(4, 0x1);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 1);
	expect_request(0, 2, 1);
	bytes_fill(p.b.mem + REMOTE, 6 * MTU, 77);
	wire_deliver_all(&p.a);
	gap_respond(1, 0);
	expect_sent(&p.a, 0, IBV_WC_SUCCESS);
	assert_memory_equal(p.a.mem + 2 * MTU, p.b.mem + REMOTE + 2 * MTU, MTU);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 1);
	expect_request(0, 3, 3);
	wire_deliver_all(&p.a);
	gap_respond(3, 0);
	expect_sent(&p.a, 1, IBV_WC_SUCCESS);
	assert_memory_equal(p.a.mem + 3 * MTU, p.b.mem + REMOTE + 3 * MTU, 3 * MTU);
	gap_close();
}

/* Three READs. Responses of the third one are still under way when one of the second is
 * dropped: they will be, too. So a fourth READ leaves only behind the repeat of the
 * third: else its responses would be dropped, too, and so would those of each one after
 * it. A later READ is requested again as a whole, once all its responses have come. */
TEST(new_reads_leave_behind_the_repeats)
{
	gap_open(8, true);
	for (unsigned i = 0; i < 3; i++)
		host_read(&p.a, i, i * 2 * MTU, REMOTE + i * 2 * MTU, 2 * MTU);
	host_pull(&p.a, PULL_ALL);
	wire_deliver_all(&p.a);
	host_read(&p.a, 3, 6 * MTU, REMOTE + 6 * MTU, MTU);
	assert_int_equal(host_pull(&p.b, PULL_ALL), 6);
	wire_drop(&p.b, 1);
	wire_deliver(&p.b, 0);
	wire_deliver(&p.b, 0);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 1);
	expect_request(0, 1, 1);
	wire_deliver(&p.b, 0);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 1);
	expect_request(1, 2, 2);
	qp_link_advance(&p, 10 * US);
	wire_deliver_all(&p.b);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 2);
	expect_request(2, 4, 2);
	expect_request(3, 6, 1);
	wire_deliver_all(&p.a);
	gap_respond(6, 0);
	for (unsigned i = 0; i < 4; i++)
		expect_sent(&p.a, i, IBV_WC_SUCCESS);
	assert_memory_equal(p.a.mem, p.b.mem + REMOTE, 7 * MTU);
	assert_false(p.a.qp.req.missing);
	assert_int_equal(p.a.stats.read_repeated, 3);
	gap_close();
}

/* A response that comes earlier than the answer to a repeat can is another copy: it is
 * dropped, and no repeat was in vain: that of the next READ leaves. */
TEST(early_response_is_no_answer)
{
	gap_open(4, true);
	host_read(&p.a, 0, 0, REMOTE, 2 * MTU);
	host_read(&p.a, 1, 2 * MTU, REMOTE + 2 * MTU, MTU);
	host_read(&p.a, 2, 3 * MTU, REMOTE + 3 * MTU, MTU);
	host_pull(&p.a, PULL_ALL);
	wire_deliver_all(&p.a);
	gap_respond(4, 0xa);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 2);
	inject(&p.a,
		&(struct pkt_spec){.opcode = ONLY, .psn = PSN_A + 2, .payload_len = MTU});
	assert_int_equal(host_pull(&p.a, PULL_ALL), 0);
	inject(&p.a,
		&(struct pkt_spec){.opcode = ONLY, .psn = PSN_A + 3, .payload_len = MTU});
	assert_int_equal(host_pull(&p.a, PULL_ALL), 1);
	expect_request(2, 3, 1);
	wire_deliver_all(&p.a);
	gap_respond(3, 0);
	for (unsigned i = 0; i < 3; i++)
		expect_sent(&p.a, i, IBV_WC_SUCCESS);
	assert_memory_equal(p.a.mem, p.b.mem + REMOTE, 4 * MTU);
	gap_close();
}

/* An ACK covers a SEND behind a READ whose last response is lost. It is not forgotten,
 * and the SEND does not count in the window any more. */
TEST(acknowledgement_behind_a_missing_response_counts)
{
	gap_open(4, true);
	host_read(&p.a, 0, 0, REMOTE, 3 * MTU);
	host_send(&p.a, 1, 0x7000, 8, IBV_SEND_SIGNALED);
	host_read(&p.a, 2, 3 * MTU, REMOTE + 3 * MTU, MTU);
	host_send(&p.a, 3, 0x7000, 8, IBV_SEND_SIGNALED);
	host_pull(&p.a, PULL_ALL);
	wire_deliver_all(&p.a);
	gap_respond(5, 0x04);
	expect_idle(&p.a);
	assert_int_equal(p.a.peer.send.inflight, 0);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 2);
	expect_request(0, 2, 1);
	expect_frame(&p.a, 1, OPCODE_RC_READ_REQUEST, PSN_A + 4, 1);
	wire_deliver_all(&p.a);
	gap_respond(2, 0);
	expect_sent(&p.a, 0, IBV_WC_SUCCESS);
	expect_sent(&p.a, 1, IBV_WC_SUCCESS);
	expect_sent(&p.a, 2, IBV_WC_SUCCESS);
	expect_sent(&p.a, 3, IBV_WC_SUCCESS);
	assert_memory_equal(p.a.mem, p.b.mem + REMOTE, 4 * MTU);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 0);
	assert_int_equal(p.a.peer.send.inflight, 0);
	gap_close();
}

/* The answer to a repeat is lost. The response to a later request shows that. */
TEST(later_response_shows_a_lost_repeat)
{
	gap_open(4, true);
	gap_read(8);
	gap_respond(8, 0x04);
	host_read(&p.a, 1, 8 * MTU, REMOTE + 8 * MTU, MTU);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 2);
	expect_request(0, 2, 1);
	wire_deliver_all(&p.a);
	gap_respond(2, 0x1);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 2);
	expect_request(0, 2, 1);
	expect_request(1, 8, 1);
	wire_deliver_all(&p.a);
	gap_respond(2, 0);
	expect_sent(&p.a, 0, IBV_WC_SUCCESS);
	expect_sent(&p.a, 1, IBV_WC_SUCCESS);
	assert_memory_equal(p.a.mem, p.b.mem + REMOTE, 9 * MTU);
	assert_int_equal(p.a.qp.req.retry_left, 7);
	gap_close();
}

/* The answer to one repeat shows that those to an earlier one, and to the begin of its
 * own range, are lost. */
TEST(answer_shows_what_was_lost_before_it)
{
	gap_open(4, true);
	gap_read(12);
	gap_respond(12, 0x3c2); /* 1, 6 to 9 */
	assert_int_equal(host_pull(&p.a, PULL_ALL), 2);
	expect_request(0, 1, 1);
	expect_request(1, 6, 4);
	wire_deliver_all(&p.a);
	gap_respond(5, 0x7); /* 1, 6 and 7 */
	assert_int_equal(host_pull(&p.a, PULL_ALL), 2);
	expect_request(0, 1, 1);
	expect_request(1, 6, 2);
	wire_deliver_all(&p.a);
	gap_respond(3, 0);
	expect_read(12);
	gap_close();
}

/* No round trip is known. The begin of a repeat's answer is lost: its next packet shows
 * that. */
TEST(begin_of_an_answer_is_lost)
{
	gap_open(4, true);
	gap_read(8);
	gap_respond(8, 0x07);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 1);
	expect_request(0, 0, 3);
	wire_deliver_all(&p.a);
	gap_respond(3, 0x1);
	assert_int_equal(p.a.peer.srtt_ns, 0);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 1);
	expect_request(0, 0, 1);
	wire_deliver_all(&p.a);
	gap_respond(1, 0);
	expect_read(8);
	gap_close();
}

/* A repeat is answered before the rest of an earlier one with higher PSNs, which is not
 * lost. */
TEST(answer_shows_nothing_of_what_lies_behind_it)
{
	gap_open(4, true);
	gap_read(12);
	gap_respond(12, 0x3ca); /* 1, 3, 6 to 9 */
	assert_int_equal(host_pull(&p.a, PULL_ALL), 3);
	expect_request(2, 6, 4);
	wire_deliver_all(&p.a);
	assert_int_equal(host_pull(&p.b, PULL_ALL), 6);
	wire_drop(&p.b, 0);
	wire_drop(&p.b, 0);
	qp_link_advance(&p, 10 * US);
	wire_deliver(&p.b, 0); /* 6 */
	assert_int_equal(host_pull(&p.a, PULL_ALL), 2);
	expect_request(0, 1, 1);
	expect_request(1, 3, 1);
	wire_deliver_all(&p.a);
	assert_int_equal(host_pull(&p.b, PULL_ALL), 2);
	qp_link_advance(&p, 10 * US);
	wire_drop(&p.b, 3);    /* 1 */
	wire_deliver(&p.b, 3); /* 3 */
	assert_int_equal(host_pull(&p.a, PULL_ALL), 1);
	expect_request(0, 1, 1);
	wire_deliver_all(&p.b); /* 7 to 9 */
	wire_deliver_all(&p.a);
	gap_respond(1, 0);
	expect_read(12);
	gap_close();
}

/* WRITEs that are acknowledged behind a missing response do not count among the 128
 * packets. */
TEST(writes_behind_a_missing_response_go_on)
{
	unsigned sent;

	gap_open(4, true);
	gap_read(8);
	gap_respond(8, 0x04);
	for (unsigned i = 0; i < 6; i++)
		host_write(&p.a, 1 + i, 8 * MTU, REMOTE + 8 * MTU, 24 * MTU);
	sent = host_pull(&p.a, PULL_ALL);
	expect_request(0, 2, 1);
	assert_int_equal(p.a.peer.send.inflight, sent - 1);
	assert_true(p.a.qp.req.next_psn < PSN_A + 8 + 6 * 24);
	wire_drop(&p.a, 0);
	wire_deliver_all(&p.a);
	host_pull(&p.b, PULL_ALL);
	wire_deliver_all(&p.b);
	assert_int_equal(p.a.peer.send.inflight, 0);
	host_pull(&p.a, PULL_ALL);
	assert_int_equal(p.a.qp.req.una_psn, PSN_A + 2);
	assert_int_equal(p.a.qp.req.next_psn, PSN_A + 8 + 6 * 24);
	wire_deliver_all(&p.a);
	host_pull(&p.b, PULL_ALL);
	wire_deliver_all(&p.b);
	qp_link_advance(&p, 250 * US);
	qp_link_drain(&p);
	for (unsigned i = 0; i < 7; i++)
		expect_sent(&p.a, i, IBV_WC_SUCCESS);
	assert_memory_equal(p.a.mem, p.b.mem + REMOTE, 8 * MTU);
	assert_int_equal(p.a.qp.req.next_psn, p.a.qp.req.una_psn);
	gap_close();
}

/* An ACK names the last PSN of a READ whose responses are lost: all of them are requested
 * again. */
TEST(acknowledgement_of_a_read_counts)
{
	gap_open(4, true);
	host_read(&p.a, 0, 0, REMOTE, 3 * MTU);
	host_read(&p.a, 1, 3 * MTU, REMOTE + 3 * MTU, 2 * MTU);
	host_pull(&p.a, PULL_ALL);
	wire_deliver_all(&p.a);
	assert_int_equal(host_pull(&p.b, PULL_ALL), 5);
	wire_drop_all(&p.b);
	qp_link_advance(&p, 10 * US);
	inject_ack(&p.a, AETH_ACK, PSN_A + 4);
	assert_int_equal(p.a.qp.req.retry_left, 6);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 2);
	expect_request(0, 0, 3);
	expect_request(1, 3, 2);
	wire_deliver_all(&p.a);
	gap_respond(5, 0);
	expect_sent(&p.a, 0, IBV_WC_SUCCESS);
	expect_sent(&p.a, 1, IBV_WC_SUCCESS);
	assert_memory_equal(p.a.mem, p.b.mem + REMOTE, 5 * MTU);
	gap_close();
}

/* The only repeat is lost, and nothing comes behind it. A probe asks once more for what
 * is missing, a second one for all. */
TEST(probes_find_a_lost_last_repeat)
{
	gap_open(4, true);
	gap_read(8);
	gap_respond(8, 0x04);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 1);
	wire_drop_all(&p.a);
	qp_link_advance(&p, 250 * US);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 1);
	expect_request(0, 2, 1);
	wire_drop_all(&p.a);
	assert_int_equal(p.a.qp.req.tlp_backoff, 1);
	qp_link_advance(&p, 1000 * US);
	assert_false(p.a.qp.req.missing);
	assert_int_equal(p.a.qp.req.reading, 0);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 1);
	expect_request(0, 2, 6);
	wire_deliver_all(&p.a);
	gap_respond(6, 0);
	expect_read(8);
	gap_close();
}

/* The answer to a repeat comes after the requester went back: it may end in the
 * middle. */
TEST(late_answer_to_a_repeat_fits)
{
	gap_open(4, true);
	gap_read(8);
	gap_respond(8, 0x04);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 1);
	wire_deliver_all(&p.a);
	assert_int_equal(host_pull(&p.b, PULL_ALL), 1); /* ONLY, under way */
	p.a.qp.req.tlp_backoff = 2;
	qp_link_advance(&p, 1000 * US);
	assert_false(p.a.qp.req.missing);
	wire_deliver_all(&p.b);
	assert_int_equal(p.a.qp.req.una_psn, PSN_A + 3);
	qp_link_drain(&p);
	expect_read(8);
	gap_close();
}

/* A response that has been placed is dropped when it comes again, whatever it
 * contains. */
TEST(placed_response_is_not_overwritten)
{
	struct pkt_spec c = {.opcode = MIDDLE, .psn = PSN_A + 4, .payload_len = MTU};

	gap_open(4, true);
	gap_read(8);
	gap_respond(8, 0x04);
	inject(&p.a, &c);
	assert_int_equal(p.a.stats.drop[DROP_stale_response], 1);
	assert_int_equal(p.a.qp.req.reading, 1);
	assert_memory_equal(p.a.mem + 4 * MTU, p.b.mem + REMOTE + 4 * MTU, MTU);
	qp_link_drain(&p);
	expect_read(8);
	gap_close();
}

/* A missing response comes late: it is placed, and the rest of the range is requested. */
TEST(late_response_is_taken)
{
	gap_open(4, true);
	gap_read(8);
	assert_int_equal(host_pull(&p.b, PULL_ALL), 8);
	wire_move(&p.b, 3, 7); /* behind the last one */
	wire_drop(&p.b, 2);
	wire_deliver_all(&p.b);
	assert_int_equal(p.a.stats.read_placed, 5);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 1);
	expect_request(0, 2, 1);
	wire_deliver_all(&p.a);
	gap_respond(1, 0);
	expect_read(8);
	gap_close();
}

/* Responses that are placed do not count against the limit of 128: new requests leave. */
TEST(placed_responses_make_room)
{
	gap_open(4, true);
	p.a.qp.params.max_rd_atomic = p.b.qp.params.max_dest_rd_atomic = 16;
	for (unsigned i = 0; i < 16; i++)
		host_read(&p.a, i, 0, REMOTE, 16 * MTU);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 8);
	for (unsigned i = 1; i < 16; i++)
		inject(&p.a, &(struct pkt_spec){.opcode = i == 15 ? LAST : MIDDLE,
				     .psn = PSN_A + i,
				     .payload_len = MTU});
	assert_int_equal(req_outstanding(&p.a.qp), 128);
	wire_drop_all(&p.a);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 2); /* the repeat, and one more */
	expect_request(0, 0, 1);
	assert_int_equal(req_outstanding(&p.a.qp), 144);
	assert_int_equal(p.a.qp.req.reading, 129);
	gap_close();
}
