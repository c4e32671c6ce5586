/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tail-loss probe (docs/protocol.md 7.7), in virtual time to the nanosecond. If una_psn
 * has not moved for max(4 smoothed round trips, 100 us), the QP resends that packet
 * without charging retry_cnt. The wait doubles each time, up to the ACK timeout. A QP that
 * has not measured a round trip uses its peer's, else 250 us. There is no probe in an RNR
 * wait.
 */
#include "tlp_fixture.h"

/* The probe cannot copy its packet because the memory is deregistered. A longer message
 * behind it is half sent and goes on. */
TEST(probe_memory_deregistered)
{
	uint32_t mtu, key;
	struct sge sge;
	struct send_req req;

	init();
	mtu = 1u << p.a.qp.pmtu_shift;
	round_trip(0, 10 * US);
	key = host_key(&p.a, 0x4000, 8, 0);
	sge = host_sge(&p.a, 0x4000, 8);
	sge.lkey = key;
	req = (struct send_req){
		.wr_id = 1, .opcode = IBV_WR_SEND, .sge = &sge, .num_sge = 1};
	assert_int_equal(host_post_send(&p.a, &req), 0);
	bytes_fill(p.a.mem + 0x5000, 3 * mtu, 7);
	host_write(&p.a, 2, 0x5000, 0x6000, 3 * mtu);
	assert_int_equal(host_pull(&p.a, 2), 2);
	wire_deliver_all(&p.a);
	host_pull(&p.b, PULL_ALL);
	wire_drop_all(&p.b);
	assert_int_equal(key_free(&p.a.keys, key), 0);
	qp_link_advance(&p, 100 * US);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 2);
	expect_frame(&p.a, 0, OPCODE_RC_WRITE_MIDDLE, PSN_A + 3, 0);
	qp_link_drain(&p);
	expect_received(&p.b, 0, 8);
	expect_received(&p.b, 1, 8);
	expect_sent(&p.a, 2, IBV_WC_SUCCESS);
	assert_true(bytes_match(p.b.mem + 0x6000, 3 * mtu, 7));
	qp_link_fini_discard(&p);
}

/* The rest of the probed message cannot be sent, because its memory is deregistered. The
 * message fails, and no timer of the QP runs on. */
TEST(probed_message_fails)
{
	uint32_t mtu, key;
	struct sge sge[2];
	struct send_req req;

	init();
	mtu = 1u << p.a.qp.pmtu_shift;
	round_trip(0, 10 * US);
	key = host_key(&p.a, 0x5000, mtu, 0);
	sge[0] = host_sge(&p.a, 0x4000, mtu);
	sge[1] = host_sge(&p.a, 0x5000, mtu);
	sge[1].lkey = key;
	req = (struct send_req){
		.wr_id = 1, .opcode = IBV_WR_SEND, .sge = sge, .num_sge = 2};
	assert_int_equal(host_post_send(&p.a, &req), 0);
	assert_int_equal(host_pull(&p.a, 1), 1);
	wire_drop_all(&p.a);
	assert_int_equal(key_free(&p.a.keys, key), 0);
	qp_link_advance(&p, 100 * US);
	assert_int_equal(p.a.qp.req.loss_state, LOSS_TLP_DUE);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 1);
	expect_sent(&p.a, 1, IBV_WC_LOC_PROT_ERR);
	assert_int_equal(p.a.qp.state, IBV_QPS_ERR);
	assert_int_equal(qp_deadline(&p.a.qp), TIME_NEVER);
	wire_drop_all(&p.a);
	qp_link_fini_discard(&p);
}

/* Switched off, a loss costs the ACK timeout even after an RTT sample. */
TEST(no_probe_when_switched_off)
{
	init();
	p.a.shared.tlp_off = true;
	round_trip(0, 10 * US);
	send_lost(1);
	expect_resend(TIMEOUT_NS, PSN_A + 1);
	qp_link_drain(&p);
	expect_sent(&p.a, 1, IBV_WC_SUCCESS);
	assert_int_equal(p.a.stats.tlp_sent, 0);
	qp_link_fini_discard(&p);
}

/* The wait is four smoothed round trips, at least 100 us. A sample counts for an
 * eighth. */
TEST(probe_wait_follows_rtt)
{
	static const uint64_t rtts[] = {
		1, 3 * US, 25 * US, 26 * US, 500 * US, 4 * NS_PER_MS};

	for (unsigned i = 0; i < RTE_DIM(rtts); i++) {
		init();
		round_trip(0, rtts[i]);
		assert_int_equal(p.a.qp.req.srtt_ns, rtts[i]);
		send_lost(1);
		expect_resend(RTE_MAX(4 * rtts[i], 100 * US), PSN_A + 1);
		assert_int_equal(p.a.qp.req.retry_left, 7); /* not charged */
		assert_int_equal(p.a.stats.ack_timeouts, 0);
		qp_link_drain(&p);
		expect_sent(&p.a, 1, IBV_WC_SUCCESS);
		assert_int_equal(qp_deadline(&p.a.qp), TIME_NEVER);
		qp_link_fini_discard(&p);
	}
	init();
	round_trip(0, 800 * US);
	round_trip(1, 1600 * US);
	assert_int_equal(p.a.qp.req.srtt_ns, 900 * US);
	round_trip(2, 100 * US);
	assert_int_equal(p.a.qp.req.srtt_ns, 800 * US);
	qp_link_fini_discard(&p);
}

/* The wait doubles each time, up to the ACK timeout. The ACK timer runs from the last
 * progress, and only it charges retry_cnt. */
TEST(probe_wait_doubles)
{
	uint64_t start, wait;
	unsigned resent = 0;

	init();
	round_trip(0, 50 * US);
	send_lost(1);
	start = p.now;
	for (wait = 200 * US; p.now + wait < start + TIMEOUT_NS; wait *= 2) {
		expect_resend(wait, PSN_A + 1);
		wire_drop_all(&p.a);
		assert_int_equal(p.a.qp.req.retry_left, 7);
		resent++;
	}
	assert_int_equal(resent, 8); /* 200 us * (2^8 - 1) < 67 ms */
	expect_resend(start + TIMEOUT_NS - p.now, PSN_A + 1);
	assert_int_equal(p.a.qp.req.retry_left, 6);
	assert_int_equal(p.a.stats.ack_timeouts, 1);
	/* Progress resets the wait. */
	qp_link_drain(&p);
	expect_sent(&p.a, 1, IBV_WC_SUCCESS);
	send_lost(2);
	expect_resend(200 * US, PSN_A + 2);
	qp_link_fini_discard(&p);
}

/* No probe if its wait would be as long as the ACK timeout. */
TEST(no_probe_beyond_ack_timeout)
{
	init();
	round_trip(0, TIMEOUT_NS / 4);
	send_lost(1);
	assert_int_equal(qp_deadline(&p.a.qp), p.now + TIMEOUT_NS);
	qp_link_fini_discard(&p);
}

/* The peer is dead. Probes do not prolong the wait: the QP fails after 1 + retry_cnt
 * timeouts. */
TEST(probes_do_not_prolong_retries)
{
	uint64_t start;

	init();
	round_trip(0, 50 * US);
	send_lost(1);
	start = p.now;
	while (p.a.qp.state == IBV_QPS_RTS) {
		qp_link_advance(&p, qp_deadline(&p.a.qp) - p.now);
		host_pull(&p.a, PULL_ALL);
		wire_drop_all(&p.a);
	}
	assert_int_equal(p.now - start, 8 * TIMEOUT_NS);
	expect_sent_vendor(&p.a, 1, IBV_WC_RETRY_EXC_ERR, VENDOR_ACK_TIMEOUT);
	assert_int_equal(p.a.stats.ack_timeouts, 8);
	qp_link_fini_discard(&p);
}

/* The probe is the packet una, not the lost one. Progress restarts the wait. */
TEST(probe_copies_oldest_packet)
{
	init();
	round_trip(0, 50 * US);
	for (unsigned i = 1; i < 5; i++)
		host_send(&p.a, i, 0, 8, IBV_SEND_SIGNALED);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 4);
	wire_drop(&p.a, 2);
	wire_deliver(&p.a, 0);
	wire_deliver(&p.a, 0);
	host_pull(&p.b, PULL_ALL);
	qp_link_advance(&p, 150 * US);
	wire_drop_all(&p.a);
	wire_deliver_all(&p.b);
	expect_sent(&p.a, 1, IBV_WC_SUCCESS);
	expect_sent(&p.a, 2, IBV_WC_SUCCESS);
	/* The sample in progress is of the last of four packets, so there is none yet. */
	qp_link_advance(&p, 199 * US);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 0);
	qp_link_advance(&p, US);
	/* Only the oldest packet is copied. The packets behind it are resent when the
	 * response shows that they are missing, too. */
	assert_int_equal(host_pull(&p.a, PULL_ALL), 1);
	expect_frame(&p.a, 0, OPCODE_RC_SEND_ONLY, PSN_A + 3, 1);
	assert_int_equal(p.a.qp.req.next_psn, PSN_A + 5);
	wire_deliver_all(&p.a);
	host_pull(&p.b, PULL_ALL);
	wire_deliver_all(&p.b);
	expect_sent(&p.a, 3, IBV_WC_SUCCESS);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 1);
	expect_frame(&p.a, 0, OPCODE_RC_SEND_ONLY, PSN_A + 4, 1);
	qp_link_drain(&p);
	expect_sent(&p.a, 4, IBV_WC_SUCCESS);
	assert_int_equal(p.a.qp.stats.retransmitted, 2);
	qp_link_fini_discard(&p);
}

/* The response was only late: one packet is copied, and nothing else is sent twice. */
TEST(late_response_costs_one_copy)
{
	init();
	round_trip(0, 50 * US);
	for (unsigned i = 1; i < 20; i++)
		host_send(&p.a, i, 0, 8, i == 19 ? IBV_SEND_SIGNALED : 0);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 19);
	wire_deliver_all(&p.a);
	host_pull(&p.b, PULL_ALL);
	qp_link_advance(&p, 200 * US);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 1);
	wire_deliver_all(&p.b);
	expect_sent(&p.a, 19, IBV_WC_SUCCESS);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 0);
	qp_link_drain(&p);
	assert_int_equal(p.a.qp.stats.retransmitted, 1);
	assert_int_equal(p.a.stats.tlp_sent, 1);
	assert_int_equal(p.a.stats.tlp_repaired, 0);
	assert_int_equal(qp_deadline(&p.a.qp), TIME_NEVER);
	qp_link_fini_discard(&p);
}

/* Karn's rule: the response to a packet that was sent twice is no sample, whichever of
 * the two it answers. The response to the next packet that was sent once is. */
TEST(karn_rule)
{
	init();
	round_trip(0, 50 * US);
	host_send(&p.a, 1, 0, 8, IBV_SEND_SIGNALED);
	host_pull(&p.a, PULL_ALL);
	wire_deliver_all(&p.a);
	host_pull(&p.b, PULL_ALL); /* its ACK is late */
	qp_link_advance(&p, 200 * US);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 1); /* the probe */
	p.now += 1;
	wire_deliver_all(&p.b); /* the ACK of the first transmission */
	expect_sent(&p.a, 1, IBV_WC_SUCCESS);
	assert_int_equal(p.a.qp.req.srtt_ns, 50 * US);
	wire_drop_all(&p.a);
	/* The same after a timeout, with a new packet behind. */
	send_lost(2);
	p.a.qp.req.tlp_deadline = TIME_NEVER;
	qp_link_advance(&p, TIMEOUT_NS);
	host_pull(&p.a, PULL_ALL);
	host_send(&p.a, 3, 0, 8, IBV_SEND_SIGNALED);
	host_pull(&p.a, PULL_ALL);
	p.now += 10 * US;
	wire_deliver(&p.a, 0);
	host_pull(&p.b, PULL_ALL);
	wire_deliver_all(&p.b);
	expect_sent(&p.a, 2, IBV_WC_SUCCESS);
	assert_int_equal(p.a.qp.req.srtt_ns, 50 * US);
	qp_link_drain(&p);
	expect_sent(&p.a, 3, IBV_WC_SUCCESS);
	assert_int_equal(p.a.qp.req.srtt_ns, 45 * US); /* 10 us count for an eighth */
	qp_link_fini_discard(&p);
}

/* No probe in an RNR wait, in which NAK 0x60 neither resends nor charges retry_cnt. */
TEST(no_probe_in_rnr_wait)
{
	uint64_t wait = 640 * US; /* code 12 */

	init();
	round_trip(0, 50 * US);
	send_lost(1);
	p.now += 150 * US;
	inject_ack(&p.a, AETH_RNR_NAK | 12, PSN_A + 1);
	assert_int_equal(qp_deadline(&p.a.qp), p.now + wait);
	p.now += 10;
	inject_ack(&p.a, AETH_NAK_SEQ, PSN_A + 1);
	inject_ack(&p.a, AETH_NAK_SEQ, PSN_A + 1);
	assert_int_equal(qp_deadline(&p.a.qp), p.now - 10 + wait);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 0);
	assert_int_equal(p.a.qp.req.retry_left, 7);
	expect_resend(wait - 10, PSN_A + 1);
	wire_drop_all(&p.a);
	/* After the RNR wait the probe is active again. */
	expect_resend(200 * US, PSN_A + 1);
	qp_link_drain(&p);
	expect_sent(&p.a, 1, IBV_WC_SUCCESS);
	qp_link_fini_discard(&p);
}

/* Timeout 0: the application wants no resend by a timer. */
TEST(no_probe_without_ack_timeout)
{
	struct qp_link_conf conf = qp_link_defaults_rdma();

	conf.timeout = 0;
	qp_link_init(&p, &conf);
	host_recv(&p.b, 0, 0x1000, 8);
	round_trip(0, 50 * US);
	send_lost(1);
	assert_int_equal(qp_deadline(&p.a.qp), TIME_NEVER);
	qp_link_advance(&p, 100 * NS_PER_SEC);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 0);
	qp_link_fini_discard(&p);
}

/* A lost NAK or a lost first resend costs no full timeout. */
TEST(lost_nak_costs_no_timeout)
{
	for (int resend = 0; resend < 2; resend++) {
		uint64_t start;

		init();
		round_trip(0, 50 * US);
		host_send(&p.a, 1, 0, 8, IBV_SEND_SIGNALED);
		host_send(&p.a, 2, 0, 8, IBV_SEND_SIGNALED);
		host_pull(&p.a, PULL_ALL);
		start = p.now;
		wire_drop(&p.a, 0);
		wire_deliver_all(&p.a);
		assert_int_equal(host_pull(&p.b, PULL_ALL), 1);
		expect_ack(&p.b, 0, AETH_NAK_SEQ, PSN_A + 1, 1);
		if (resend) {
			wire_deliver_all(&p.b);
			assert_int_equal(host_pull(&p.a, PULL_ALL), 2);
			wire_drop_all(&p.a);
		}
		wire_drop_all(&p.b);
		qp_link_advance(&p, 200 * US);
		qp_link_drain(&p);
		expect_sent(&p.a, 1, IBV_WC_SUCCESS);
		expect_sent(&p.a, 2, IBV_WC_SUCCESS);
		assert_true(p.now - start < NS_PER_MS);
		assert_int_equal(p.a.stats.ack_timeouts, 0);
		assert_int_equal(p.a.stats.tlp_sent, 1);
		assert_int_equal(p.a.stats.tlp_repaired, 1);
		qp_link_fini_discard(&p);
	}
}

/* A READ is probed by a request for its first missing response. */
TEST(read_is_probed_by_request)
{
	init();
	round_trip(0, 50 * US);
	host_read(&p.a, 1, 0x2000, 0x8000, 5000);
	host_pull(&p.a, PULL_ALL);
	wire_deliver_all(&p.a);
	host_pull(&p.b, PULL_ALL);
	wire_deliver(&p.b, 0);
	wire_deliver(&p.b, 0);
	wire_drop_all(&p.b);
	qp_link_advance(&p, 200 * US);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 1);
	expect_frame(&p.a, 0, OPCODE_RC_READ_REQUEST, PSN_A + 3, 1);
	qp_link_drain(&p);
	expect_sent(&p.a, 1, IBV_WC_SUCCESS);
	assert_memory_equal(p.a.mem + 0x2000, p.b.mem + 0x8000, 5000);
	assert_int_equal(p.a.qp.req.retry_left, 7);
	qp_link_fini_discard(&p);
}

/* Posts a READ of this many packets, which leaves. */
static void
read_sent(uint32_t packets)
{
	host_read(&p.a, 1, 0, 0x4000, packets << p.a.qp.pmtu_shift);
	host_pull(&p.a, PULL_ALL);
}

/* Of a READ the first response is measured: in a lossy network all of them rarely come in
 * a row. */
TEST(first_response_is_measured)
{
	init();
	read_sent(8);
	wire_deliver_all(&p.a);
	host_pull(&p.b, PULL_ALL);
	p.now += 20 * US;
	wire_deliver(&p.b, 0);
	assert_int_equal(p.a.qp.req.srtt_ns, 20 * US);
	p.now += 900 * US;
	wire_deliver_all(&p.b);
	assert_int_equal(p.a.qp.req.srtt_ns, 20 * US);
	expect_sent(&p.a, 1, IBV_WC_SUCCESS);
	qp_link_fini_discard(&p);
}

/* Without a sample the wait would double at each loss and stay long, because no response
 * covers more than the probe. */
TEST(lossy_reads_are_probed_in_time)
{
	init();
	read_sent(20);
	for (unsigned i = 0; i < 10; i++) {
		wire_deliver_all(&p.a);
		host_pull(&p.b, PULL_ALL);
		p.now += 20 * US;
		wire_deliver(&p.b, 0);
		wire_drop_all(&p.b); /* all others are lost */
		expect_silence(100 * US - 1);
		qp_link_advance(&p, 1);
		assert_int_equal(host_pull(&p.a, PULL_ALL), 1);
		expect_frame(&p.a, 0, OPCODE_RC_READ_REQUEST, PSN_A + 1 + i, 1);
	}
	qp_link_drain(&p);
	expect_sent(&p.a, 1, IBV_WC_SUCCESS);
	qp_link_fini_discard(&p);
}

/* A burst of a READ that is sent again and a new one gives no sample. */
TEST(resent_read_gives_no_sample)
{
	init();
	read_sent(1);
	wire_drop_all(&p.a);
	qp_link_advance(&p, 250 * US);
	host_read(&p.a, 2, 0, 0x4000, 8);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 2);
	p.now += 20 * US;
	deliver();
	expect_sent(&p.a, 1, IBV_WC_SUCCESS);
	expect_sent(&p.a, 2, IBV_WC_SUCCESS);
	assert_int_equal(p.a.qp.req.srtt_ns, 0);
	qp_link_fini_discard(&p);
}
