/* SPDX-License-Identifier: BSD-3-Clause */
/* RNR waits and ACK timeouts in virtual time, to the nanosecond: counters and timer
 * (docs/protocol.md 7.6; IBA 9.7.5.2.7, 9.7.5.2.8). */
#include "qp_link.h"

static struct qp_link p;

/* docs/protocol.md 4.3, in units of 10 us (IBA table 45). */
static const uint32_t rnr_10us[32] = {65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96,
	128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288,
	16384, 24576, 32768, 49152};

/* An RNR NAK acknowledges the packets before its PSN. The requester waits exactly for the
 * coded time, then resends from that PSN (docs/protocol.md 7.5). The responder names its
 * min_rnr_timer, drops the packets behind silently and gets them again. */
static void
rnr_run(unsigned code)
{
	struct qp_link_conf conf = qp_link_defaults();
	uint64_t wait = rnr_10us[code] * 10 * NS_PER_US;
	uint64_t start;

	conf.min_rnr_timer = (uint8_t)code;
	conf.timeout = 1; /* shorter than any RNR wait: no timeout may end it */
	qp_link_init(&p, &conf);
	host_recv(&p.b, 0, 0, 100);
	for (unsigned i = 0; i < 4; i++)
		host_send(&p.a, i, 0, 100, IBV_SEND_SIGNALED);
	host_pull(&p.a, PULL_ALL);
	wire_deliver_all(&p.a);
	host_pull(&p.b, PULL_ALL);
	assert_int_equal(p.b.wire_count, 1);
	expect_ack(&p.b, 0, AETH_RNR_NAK | code, PSN_A + 1, 1);
	assert_int_equal(p.b.stats.drop[DROP_rnr_wait], 2);
	start = p.now += 123;
	wire_deliver(&p.b, 0);
	expect_sent(&p.a, 0, IBV_WC_SUCCESS);
	expect_received(&p.b, 0, 100);
	assert_int_equal(qp_deadline(&p.a.qp), start + wait);
	host_send(&p.a, 4, 0, 100, IBV_SEND_SIGNALED); /* has to wait, too */
	for (unsigned i = 1; i < 5; i++)
		host_recv(&p.b, i, 0, 100);
	qp_link_advance(&p, wait - 1);
	assert_false(qp_wants_tx(&p.a.qp));
	assert_int_equal(host_pull(&p.a, PULL_ALL), 0);
	qp_link_advance(&p, 1);
	assert_true(qp_wants_tx(&p.a.qp));
	assert_int_equal(host_pull(&p.a, PULL_ALL), 4);
	expect_frame(&p.a, 0, OPCODE_RC_SEND_ONLY, PSN_A + 1, -1);
	qp_link_drain(&p);
	for (unsigned i = 1; i < 5; i++) {
		expect_sent(&p.a, i, IBV_WC_SUCCESS);
		expect_received(&p.b, i, 100);
	}
	assert_int_equal(p.a.stats.ack_timeouts, 0);
	qp_link_fini(&p);
}

TEST(rnr_wait_by_timer_code)
{
	for (unsigned code = 0; code < 32; code++)
		rnr_run(code);
}

/* rnr_retry n: 1 + n transmissions, then RNR_RETRY_EXC_ERR and a flush in order; 7: no
 * limit. */
static void
rnr_retry_run(uint8_t retry)
{
	struct qp_link_conf conf = qp_link_defaults();
	unsigned rounds = retry == 7 ? 200 : retry + 1u;

	conf.rnr_retry = retry;
	conf.retry_cnt = 0; /* RNR NAKs do not charge it */
	qp_link_init(&p, &conf);
	for (unsigned i = 0; i < 3; i++)
		host_send(&p.a, i, 0, 100, 0);
	for (unsigned i = 0; i < rounds; i++) {
		expect_idle(&p.a);
		assert_int_equal(host_pull(&p.a, PULL_ALL), 3);
		wire_deliver_all(&p.a);
		assert_int_equal(host_pull(&p.b, PULL_ALL), 1);
		wire_deliver_all(&p.b);
		qp_link_advance(&p, 640 * NS_PER_US);
	}
	assert_int_equal(p.b.stats.rnr_nak_sent, rounds);
	assert_int_equal(p.a.stats.rnr_nak_received, rounds);
	if (retry != 7) {
		expect_sent_vendor(&p.a, 0, IBV_WC_RNR_RETRY_EXC_ERR, VENDOR_RNR_RETRIES);
		assert_int_equal(p.a.stats.rnr_retries_exceeded, 1);
		assert_int_equal(p.a.stats.retries_exceeded, 0);
		expect_sent(&p.a, 1, IBV_WC_WR_FLUSH_ERR);
		expect_sent(&p.a, 2, IBV_WC_WR_FLUSH_ERR);
		assert_int_equal(qp_deadline(&p.a.qp), TIME_NEVER);
	}
	qp_link_fini_reset(&p);
}

TEST(rnr_retry_limit)
{
	for (uint8_t retry = 0; retry <= 7; retry++)
		rnr_retry_run(retry);
}

/* Progress restores rnr_retry: with a value of 1 ten requests get an RNR NAK each. */
TEST(progress_restores_rnr_retry)
{
	struct qp_link_conf conf = qp_link_defaults();

	conf.rnr_retry = 1;
	qp_link_init(&p, &conf);
	for (unsigned i = 0; i < 10; i++)
		host_send(&p.a, i, 0, 2000, IBV_SEND_SIGNALED);
	for (unsigned i = 0; i < 10; i++) {
		qp_link_drain(&p);
		expect_idle(&p.a);
		qp_link_advance(&p, 640 * NS_PER_US);
		host_recv(&p.b, i, 0, 2000);
		qp_link_drain(&p);
		expect_sent(&p.a, i, IBV_WC_SUCCESS);
		expect_received(&p.b, i, 2000);
	}
	assert_int_equal(p.a.stats.rnr_nak_received, 10);
	qp_link_fini(&p);
}

/* rxe sends NAK 0x60 for the packets behind an RNR NAK (docs/protocol.md 19). In the RNR
 * wait it neither resends nor charges a retry. A repeated RNR NAK neither prolongs the
 * wait nor charges one. */
TEST(sequence_nak_in_rnr_wait_is_ignored)
{
	struct qp_link_conf conf = qp_link_defaults();
	uint64_t deadline;

	conf.retry_cnt = 0;
	conf.rnr_retry = 1;
	qp_link_init(&p, &conf);
	for (unsigned i = 0; i < 3; i++)
		host_send(&p.a, i, 0, 100, IBV_SEND_SIGNALED);
	host_pull(&p.a, PULL_ALL);
	wire_drop_all(&p.a);
	inject_ack(&p.a, AETH_RNR_NAK | 10, PSN_A + 1);
	expect_sent(&p.a, 0, IBV_WC_SUCCESS);
	deadline = qp_deadline(&p.a.qp);
	for (unsigned i = 0; i < 3; i++) {
		p.now += 100;
		inject_ack(&p.a, AETH_NAK_SEQ, PSN_A + 1);
		inject_ack(&p.a, AETH_RNR_NAK | 10, PSN_A + 1);
		assert_int_equal(host_pull(&p.a, PULL_ALL), 0);
		assert_int_equal(qp_deadline(&p.a.qp), deadline);
	}
	expect_idle(&p.a);
	qp_link_advance(&p, deadline - p.now);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 2);
	expect_frame(&p.a, 0, OPCODE_RC_SEND_ONLY, PSN_A + 1, -1);
	wire_drop_all(&p.a);
	inject_ack(&p.a, AETH_ACK, PSN_A + 2);
	expect_sent(&p.a, 1, IBV_WC_SUCCESS);
	expect_sent(&p.a, 2, IBV_WC_SUCCESS);
	qp_link_fini(&p);
}

/* An ACK of the PSN of the RNR NAK ends the wait: the request has been executed. */
TEST(ack_ends_rnr_wait)
{
	qp_link_init_default(&p);
	for (unsigned i = 0; i < 3; i++)
		host_send(&p.a, i, 0, 100, IBV_SEND_SIGNALED);
	host_pull(&p.a, PULL_ALL);
	wire_drop_all(&p.a);
	inject_ack(&p.a, AETH_RNR_NAK | 10, PSN_A);
	inject_ack(&p.a, AETH_ACK, PSN_A);
	expect_sent(&p.a, 0, IBV_WC_SUCCESS);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 2);
	wire_drop_all(&p.a);
	inject_ack(&p.a, AETH_ACK, PSN_A + 2);
	expect_sent(&p.a, 1, IBV_WC_SUCCESS);
	expect_sent(&p.a, 2, IBV_WC_SUCCESS);
	qp_link_fini(&p);
}

/* ---- Local ACK timeout ---- */

/* Tr = 4.096 us * 2^code, 0 = none (docs/protocol.md 7.6). The timeout must come between
 * Tr and 4 Tr. */
TEST(ack_timeout_by_code)
{
	for (uint8_t code = 0; code < 32; code++) {
		struct qp_link_conf conf = qp_link_defaults();
		uint64_t tr = UINT64_C(4096) << code;

		conf.timeout = code;
		qp_link_init(&p, &conf);
		p.a.shared.tlp_off = true;
		/* nothing is outstanding */
		assert_int_equal(qp_deadline(&p.a.qp), TIME_NEVER);
		host_send(&p.a, 0, 0, 100, IBV_SEND_SIGNALED);
		host_pull(&p.a, PULL_ALL);
		wire_drop_all(&p.a);
		if (code == 0) {
			assert_int_equal(qp_deadline(&p.a.qp), TIME_NEVER);
			qp_link_fini_reset(&p);
			continue;
		}
		qp_link_advance(&p, tr - 1);
		assert_int_equal(host_pull(&p.a, PULL_ALL), 0);
		assert_int_equal(p.a.stats.ack_timeouts, 0);
		qp_link_advance(&p, 3 * tr + 1);
		assert_int_equal(p.a.stats.ack_timeouts, 1);
		assert_int_equal(host_pull(&p.a, PULL_ALL), 1);
		wire_drop_all(&p.a);
		inject_ack(&p.a, AETH_ACK, PSN_A);
		expect_sent(&p.a, 0, IBV_WC_SUCCESS);
		assert_int_equal(qp_deadline(&p.a.qp), TIME_NEVER);
		qp_link_fini(&p);
	}
}

/* The timer restarts when una moves, and on no other response. */
TEST(ack_timer_restarts_on_progress)
{
	struct qp_link_conf conf = qp_link_defaults();
	uint64_t tr = UINT64_C(4096) << 14;
	uint64_t first;

	qp_link_init(&p, &conf);
	p.a.shared.tlp_off = true;
	first = p.now;
	for (unsigned i = 0; i < 4; i++)
		host_send(&p.a, i, 0, 100, IBV_SEND_SIGNALED);
	host_pull(&p.a, PULL_ALL);
	wire_drop_all(&p.a);
	assert_int_equal(qp_deadline(&p.a.qp), first + tr);
	qp_link_advance(&p, tr / 2);
	host_send(&p.a, 4, 0, 100, 0); /* sending more packets does not restart it */
	host_pull(&p.a, PULL_ALL);
	wire_drop_all(&p.a);
	inject_ack(&p.a, AETH_ACK, PSN_A - 1);
	inject_ack(&p.a, AETH_ACK, PSN_A + 17);
	assert_int_equal(qp_deadline(&p.a.qp), first + tr);
	inject_ack(&p.a, AETH_ACK, PSN_A);
	expect_sent(&p.a, 0, IBV_WC_SUCCESS);
	assert_int_equal(qp_deadline(&p.a.qp), p.now + tr);
	qp_link_fini_reset(&p);
}

/* 1 + retry_cnt transmissions without progress (docs/protocol.md 7.6), then
 * RETRY_EXC_ERR, and the rest is flushed in order. 7 means seven (docs/protocol.md
 * 19). */
TEST(retry_cnt_limit)
{
	for (uint8_t retry = 0; retry <= 7; retry++) {
		struct qp_link_conf conf = qp_link_defaults();

		conf.retry_cnt = retry;
		conf.rnr_retry = 0;
		qp_link_init(&p, &conf);
		for (unsigned i = 0; i < 3; i++)
			host_send(&p.a, i, 0, 3000, i == 1 ? IBV_SEND_SIGNALED : 0);
		for (unsigned i = 0; i < retry + 1u; i++) {
			expect_idle(&p.a);
			assert_int_equal(host_pull(&p.a, PULL_ALL), 9);
			expect_frame(&p.a, 0, OPCODE_RC_SEND_FIRST, PSN_A, -1);
			wire_drop_all(&p.a);
			qp_link_advance(&p, 68 * NS_PER_MS);
		}
		expect_sent_vendor(&p.a, 0, IBV_WC_RETRY_EXC_ERR, VENDOR_ACK_TIMEOUT);
		assert_int_equal(p.a.stats.retries_exceeded, 1);
		assert_int_equal(p.a.stats.rnr_retries_exceeded, 0);
		expect_sent(&p.a, 1, IBV_WC_WR_FLUSH_ERR);
		expect_sent(&p.a, 2, IBV_WC_WR_FLUSH_ERR);
		assert_int_equal(host_pull(&p.a, PULL_ALL), 0);
		assert_int_equal(p.a.stats.ack_timeouts, retry + 1u);
		assert_int_equal(p.a.stats.retransmitted, retry * 9u);
		qp_link_fini(&p);
	}
}

/* Retries are restored when una moves, also inside a message. */
TEST(progress_restores_retry_cnt)
{
	struct qp_link_conf conf = qp_link_defaults();

	conf.retry_cnt = 1;
	qp_link_init(&p, &conf);
	host_send(&p.a, 0, 0, 10 * 1024, IBV_SEND_SIGNALED);
	host_pull(&p.a, PULL_ALL);
	for (unsigned i = 0; i < 9; i++) {
		qp_link_advance(&p, 68 * NS_PER_MS);
		wire_drop_all(&p.a);
		assert_int_equal(host_pull(&p.a, PULL_ALL), 10 - i);
		expect_idle(&p.a);
		inject_ack(&p.a, AETH_ACK, PSN_A + i);
	}
	wire_drop_all(&p.a);
	inject_ack(&p.a, AETH_ACK, PSN_A + 9);
	expect_sent(&p.a, 0, IBV_WC_SUCCESS);
	qp_link_fini(&p);
}

/* A lost ACK: the duplicate is acknowledged with ePSN - 1 and completes nothing a second
 * time (docs/protocol.md 8.7). */
TEST(lost_ack_is_repeated)
{
	qp_link_init_default(&p);
	for (unsigned i = 0; i < 3; i++) {
		host_recv(&p.b, i, 0, 2000);
		host_send(&p.a, i, 0, 2000, IBV_SEND_SIGNALED);
	}
	host_pull(&p.a, PULL_ALL);
	wire_deliver_all(&p.a);
	host_pull(&p.b, PULL_ALL);
	expect_ack(&p.b, 0, AETH_ACK, PSN_A + 5, 3);
	wire_drop_all(&p.b);
	for (unsigned i = 0; i < 3; i++)
		expect_received(&p.b, i, 2000);
	qp_link_advance(&p, 68 * NS_PER_MS);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 6);
	wire_deliver(&p.a, 0); /* the first packet alone is enough */
	wire_drop_all(&p.a);
	host_pull(&p.b, PULL_ALL);
	expect_ack(&p.b, 0, AETH_ACK, PSN_A + 5, 3);
	wire_deliver(&p.b, 0);
	for (unsigned i = 0; i < 3; i++)
		expect_sent(&p.a, i, IBV_WC_SUCCESS);
	expect_idle(&p.b);
	qp_link_fini(&p);
}
