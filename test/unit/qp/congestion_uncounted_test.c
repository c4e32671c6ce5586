/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets that congestion control does not count: those of a QP that gets no answer
 * (docs/protocol.md 17.2). And samples that it does not count. */
#include "congestion_fixture.h"
#include "qp/req.h"

/* Packets that were resent count as acknowledged, but do not widen the window. */
TEST(resend_does_not_widen)
{
	init();
	writes_post(1, 8);
	host_pull(&p.a, PULL_ALL);
	wire_drop(&p.a, 0);
	acks_return(9 * US); /* a NAK halves the window */
	while (p.a.qp.req.una_psn != p.a.qp.req.sent_psn) {
		host_pull(&p.a, PULL_ALL);
		acks_return(9 * US);
	}
	writes_post(1, 1);
	host_pull(&p.a, PULL_ALL);
	acks_return(9 * US);
	assert_int_equal(p.a.peer.send_cc.acked, 9);
	assert_true(window() == 4);
	fini();
}

/* A QP whose remote QP is gone does not hold the window of the others. From its second
 * probe on its packets do not count, and it sends no further ones but its probes, and one
 * after the ACK timeout. The window is not cut if others have had an answer meanwhile. */
TEST(stalled_qp_does_not_count)
{
	for (unsigned others = 0; others < 2; others++) {
		init();
		writes_post(1, 1);
		host_pull(&p.a, PULL_ALL);
		acks_return(9 * US);
		writes_post(1, 40);
		assert_int_equal(host_pull(&p.a, PULL_ALL), 8);
		for (unsigned nth = 1; nth <= 3; nth++) {
			wire_drop_all(&p.a);
			if (others)
				p.a.peer.send_cc.sample_at = p.now + 50 * US;
			qp_link_advance(&p, (100 * US) << (nth - 1));
			assert_int_equal(host_pull(&p.a, PULL_ALL), 1);
			assert_int_equal(p.a.peer.send.inflight, nth == 1 ? 8 : 0);
		}
		assert_false(qp_wants_tx(&p.a.qp));
		wire_drop_all(&p.a);
		assert_true(others ? window() == 8 : window() < 0.11);
		assert_true(!others || peer_room(&p.a.peer.send) == 8);
		fini();
	}
}

TEST(stalled_qp_sends_one_packet_after_its_timeout)
{
	init();
	writes_post(1, 1);
	host_pull(&p.a, PULL_ALL);
	acks_return(9 * US);
	writes_post(1, 40);
	host_pull(&p.a, PULL_ALL);
	p.a.qp.cc_probes = 1;
	wire_drop_all(&p.a);
	qp_link_advance(&p, 100 * US);
	assert_true(p.a.qp.req.stalled);
	host_pull(&p.a, PULL_ALL);
	wire_drop_all(&p.a);
	while (p.a.stats.ack_timeouts == 0) {
		qp_link_advance(&p, NS_PER_MS);
		host_pull(&p.a, p.a.stats.ack_timeouts == 0 ? PULL_ALL : 0);
		wire_drop_all(&p.a);
	}
	assert_int_equal(p.a.peer.send.inflight, 0);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 1);
	assert_int_equal(req_outstanding(&p.a.qp), 1);
	assert_int_equal(p.a.peer.send.inflight, 0);
	assert_false(qp_wants_tx(&p.a.qp));
	/* An answer ends it. */
	acks_return(9 * US);
	assert_false(p.a.qp.req.stalled);
	assert_true(host_pull(&p.a, PULL_ALL) > 1);
	assert_int_equal(p.a.peer.send.inflight, req_outstanding(&p.a.qp));
	qp_link_drain(&p);
	fini();
}

/* The same without an ACK timeout, though no copy is sent. The rest of the requests is. */
TEST(stalled_qp_without_timeout)
{
	unsigned rest = 0;

	init();
	p.a.qp.params.timeout = 0;
	writes_post(1, 40);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 8);
	wire_drop_all(&p.a);
	for (unsigned i = 0; i < 600; i++) {
		qp_link_advance(&p, NS_PER_MS);
		rest += host_pull(&p.a, PULL_ALL);
		wire_drop_all(&p.a);
	}
	assert_int_equal(rest, 32);
	assert_int_equal(p.a.peer.send.inflight, 0);
	assert_int_equal(peer_room(&p.a.peer.send), 8);
	assert_int_equal(p.a.stats.tlp_sent, 0);
	assert_int_equal(p.a.qp.req.tlp_deadline, TIME_NEVER);
	fini();
}

/* Its ACK is lost, so the QP is stalled. The answer to the next request acknowledges both, or a
 * NAK shows what is missing. */
TEST(next_request_without_timeout_ends_the_stall)
{
	for (unsigned request_lost = 0; request_lost < 2; request_lost++) {
		init();
		p.a.qp.params.timeout = 0;
		writes_post(1, 1);
		host_pull(&p.a, PULL_ALL);
		if (request_lost)
			wire_drop_all(&p.a);
		wire_deliver_all(&p.a);
		host_pull(&p.b, PULL_ALL);
		wire_drop_all(&p.b);
		for (unsigned i = 0; i < 2; i++) {
			qp_link_advance(&p, NS_PER_MS);
			assert_int_equal(host_pull(&p.a, PULL_ALL), 0);
		}
		assert_true(p.a.qp.req.stalled);
		writes_post(1, 1);
		assert_int_equal(host_pull(&p.a, PULL_ALL), 1);
		qp_link_drain(&p);
		assert_int_equal(req_outstanding(&p.a.qp), 0);
		assert_false(p.a.qp.req.stalled);
		fini();
	}
}

/* The remote host did not run for a while: the probes cut the window, but the answer shows
 * that nothing was lost, and the window is the one before. */
TEST(late_answer_restores_the_window)
{
	init();
	writes_post(1, 1);
	host_pull(&p.a, PULL_ALL);
	acks_return(9 * US);
	p.a.peer.send_cc.cwnd = 20 * CC_ONE;
	peer_window_set(&p.a.peer.send, p.now);
	writes_post(1, 60);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 20);
	for (unsigned nth = 1; nth <= 3; nth++) {
		qp_link_advance(&p, (100 * US) << (nth - 1));
		host_pull(&p.a, PULL_ALL);
	}
	assert_true(window() < 0.11);
	assert_int_equal(p.a.peer.send.inflight, 0);
	acks_return(NS_PER_MS);
	assert_true(window() >= 20);
	assert_int_equal(p.a.qp.cc_probes, 0);
	qp_link_drain(&p);
	fini();
}

/* Probes are counted since the last progress, also for a QP that has no round trip of its
 * own, whose wait stays doubled. */
TEST(probes_between_progress_do_not_add_up)
{
	init();
	p.a.peer.srtt_ns = p.a.peer.send_cc.srtt_ns = 9 * US;
	for (unsigned i = 0; i < 5; i++) {
		writes_post(1, 1);
		host_pull(&p.a, PULL_ALL);
		qp_link_advance(&p, (100 * US) << p.a.qp.req.tlp_backoff);
		assert_int_equal(host_pull(&p.a, PULL_ALL), 1);
		acks_return(9 * US);
		p.a.qp.req.srtt_ns = 0;
	}
	assert_int_equal(p.a.stats.cc_cut_loss, 0);
	fini();
}

/* A round trip that began with one peer is no sample of another, which may be without
 * control. */
TEST(change_of_peer_ends_the_sample)
{
	struct peer other;

	for (unsigned on = 0; on < 2; on++) {
		init();
		other = (struct peer){.qps = 1};
		peer_windows_init(&other, 100, &(struct cc_conf){.on = on != 0});
		writes_post(1, 1);
		host_pull(&p.a, PULL_ALL);
		qp_set_peer(&p.a.qp, &other);
		assert_int_equal(p.a.peer.send.inflight, 0);
		assert_int_equal(other.send.inflight, 1);
		acks_return(9 * US);
		assert_int_equal(other.srtt_ns, 0);
		assert_int_equal(other.send_cc.srtt_ns, 0);
		assert_int_equal(other.send.inflight, 0);
		qp_set_peer(&p.a.qp, &p.a.peer);
		fini();
	}
}
