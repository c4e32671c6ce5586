/* SPDX-License-Identifier: BSD-3-Clause */
/* Lost READ responses: the requester requests only what is missing (docs/protocol.md 7.5;
 * IBA 9.7.5.1.2). */
#include <endian.h>
#include <string.h>

#include "read_fixture.h"

static void
run_until_complete(unsigned from, unsigned end)
{
	qp_link_drain(&p);
	for (unsigned i = 0; i < 3 && p.a.qp.req.una_idx != end; i++) {
		qp_link_advance(&p, 70 * NS_PER_MS);
		qp_link_drain(&p);
	}
	for (unsigned i = from; i < end; i++)
		expect_sent(&p.a, i, IBV_WC_SUCCESS);
}

/* Each frame of READ 3000, SEND, READ 100 is lost once, in either direction. Data and
 * order are right, and each request is executed once. */
TEST(each_frame_lost_once)
{
	for (unsigned lost = 0; lost < 8; lost++) {
		bool request = lost < 3;

		read_init_receives(4);
		memset(p.a.mem, 0, 0x4000);
		host_read(&p.a, 0, 0, REMOTE, 3000);
		host_send(&p.a, 1, 0x7000, 8, IBV_SEND_SIGNALED);
		host_read(&p.a, 2, 0x1000, REMOTE + 5000, 100);
		assert_int_equal(host_pull(&p.a, PULL_ALL), 3);
		if (request)
			wire_drop(&p.a, lost);
		wire_deliver_all(&p.a);
		if (!request) {
			/* Three responses of the first READ; the second READ's response
			 * is the SEND's ACK. */
			assert_int_equal(host_pull(&p.b, PULL_ALL), 4);
			if (lost - 3 < 4)
				wire_drop(&p.b, lost - 3);
			else
				wire_drop_all(&p.b);
		}
		run_until_complete(0, 3);
		assert_memory_equal(p.a.mem, p.b.mem + REMOTE, 3000);
		assert_int_equal(p.a.mem[3000], 0);
		assert_memory_equal(p.a.mem + 0x1000, p.b.mem + REMOTE + 5000, 100);
		expect_received(&p.b, 0, 8);
		assert_int_equal(p.b.qp.resp.msn, 3);
		expect_idle(&p.b);
		qp_link_fini_discard(&p);
	}
}

/* A READ is resent for its first missing response, with PSN, address and length moved
 * accordingly (docs/protocol.md 7.5; capture 59), once per loss. Then FIRST (IBA) or
 * MIDDLE (rxe) is accepted. */
TEST(read_resumes_at_missing_response)
{
	for (int rxe = 0; rxe < 2; rxe++) {
		struct pkt_view v;

		read_init_receives(4);
		host_read(&p.a, 0, 0, REMOTE, 5000);
		host_pull(&p.a, PULL_ALL);
		wire_deliver_all(&p.a);
		assert_int_equal(host_pull(&p.b, PULL_ALL), 5);
		wire_drop(&p.b, 2);
		wire_deliver(&p.b, 0);
		wire_deliver(&p.b, 0);
		wire_deliver(&p.b, 0); /* the requester sees the gap */
		wire_deliver(&p.b, 0); /* the same gap again */
		assert_int_equal(host_pull(&p.a, PULL_ALL), 1);
		/* an implied NAK is charged */
		assert_int_equal(p.a.qp.req.retry_left, 6);
		expect_frame(&p.a, 0, OPCODE_RC_READ_REQUEST, PSN_A + 2, 1);
		v = wire_view(&p.a, 0);
		assert_int_equal(
			be64toh(view_reth(&v)->va), (uintptr_t)p.b.mem + REMOTE + 2048);
		assert_int_equal(be32toh(view_reth(&v)->len), 5000 - 2048);
		wire_drop_all(&p.a);
		for (unsigned i = 2; i < 5; i++) {
			uint8_t op = i == 4 ? LAST : i == 2 && !rxe ? FIRST : MIDDLE;

			inject(&p.a, &(struct pkt_spec){.opcode = op,
					     .psn = PSN_A + i,
					     .payload_len = i == 4 ? 904 : 1024,
					     .payload_key = i});
		}
		expect_sent(&p.a, 0, IBV_WC_SUCCESS);
		assert_int_equal(p.a.qp.req.retry_left, 7);
		assert_memory_equal(p.a.mem, p.b.mem + REMOTE, 2048);
		assert_true(bytes_match(p.a.mem + 2048, 1024, 2));
		assert_true(bytes_match(p.a.mem + 4096, 904, 4));
		qp_link_fini_discard(&p);
	}
}

/* A response may restart only at the PSN that was requested again: not at the next one,
 * and not after an acknowledgement moved una. */
TEST(response_restarts_only_where_requested)
{
	read_init_receives(4);
	host_send(&p.a, 0, 0, 8, 0);
	host_read(&p.a, 1, 0, REMOTE, 3000);
	host_pull(&p.a, PULL_ALL);
	qp_link_advance(&p, 68 * NS_PER_MS);
	wire_drop_all(&p.a);
	host_pull(&p.a, PULL_ALL);
	wire_drop_all(&p.a);
	inject_ack(&p.a, AETH_ACK, PSN_A);
	inject(&p.a, &(struct pkt_spec){
			     .opcode = MIDDLE, .psn = PSN_A + 1, .payload_len = 1024});
	expect_sent(&p.a, 1, IBV_WC_BAD_RESP_ERR);
	qp_link_fini_discard(&p);
}

/* An ACK behind an unanswered READ is an implied NAK: the requester resends from the READ
 * (docs/protocol.md 7.4; capture d16). The ACK has the PSN of the READ, one inside or one
 * behind. */
TEST(ack_without_response_is_implied_nak)
{
	for (unsigned at = 0; at < 5; at++) {
		read_init_receives(4);
		host_send(&p.a, 0, 0, 8, IBV_SEND_SIGNALED);
		host_read(&p.a, 1, 0x2000, REMOTE, 3000);
		host_send(&p.a, 2, 0, 8, IBV_SEND_SIGNALED);
		host_pull(&p.a, PULL_ALL);
		wire_deliver_all(&p.a);
		host_pull(&p.b, PULL_ALL);
		wire_drop_all(&p.b);
		inject_ack(&p.a, AETH_ACK, PSN_A + at);
		expect_sent(&p.a, 0, IBV_WC_SUCCESS);
		expect_idle(&p.a);
		if (at == 0) { /* before the READ: no NAK */
			assert_int_equal(host_pull(&p.a, PULL_ALL), 0);
		} else {
			inject_ack(&p.a, AETH_ACK, PSN_A + at); /* once per loss */
			assert_int_equal(host_pull(&p.a, PULL_ALL), 2);
			expect_frame(&p.a, 0, OPCODE_RC_READ_REQUEST, PSN_A + 1, 1);
			assert_int_equal(p.a.qp.req.retry_left, 6);
		}
		run_until_complete(1, 3);
		assert_memory_equal(p.a.mem + 0x2000, p.b.mem + REMOTE, 3000);
		qp_link_fini_discard(&p);
	}
}
