/* SPDX-License-Identifier: BSD-3-Clause */
/* The window of READs and atomics (docs/protocol.md 17.2): how much a host requests of its
 * peer at once. */
#include <rte_byteorder.h>

#include "congestion_fixture.h"
#include "qp/req.h"

#define FROM 0x8000 /* in b's memory */
#define TO 0x2000   /* in a's */

static void
read_post(unsigned id, uint32_t packets)
{
	host_read(&p.a, id, TO, FROM, packets * MTU);
}

static const struct peer_window *
reads(void)
{
	return &p.a.peer.read;
}

static double
read_window(void)
{
	return (double)p.a.peer.read_cc.cwnd / CC_ONE;
}

static void
read_window_set(uint32_t cwnd)
{
	p.a.peer.read_cc.cwnd = cwnd;
	p.a.peer.read_cc.slow_start = false;
	p.a.peer.read_cc.active_at = p.now;
	peer_window_set(&p.a.peer.read, p.now);
}

/* Packets that READ request i on the wire asks for. */
static uint32_t
asked(unsigned i)
{
	struct pkt_view v = wire_view(&p.a, i);

	assert_int_equal(v.op->kind, OP_READ);
	return (rte_be_to_cpu_32(view_reth(&v)->len) + MTU - 1) / MTU;
}

/* The requests for a READ share the window: as many as max_rd_atomic, 8 at most. */
TEST(requests_share_the_window)
{
	static const struct {
		uint8_t max_rd;
		uint32_t window, requests, each;
	} rows[] = {{1, 8, 1, 8}, {2, 8, 2, 4}, {4, 8, 4, 2}, {16, 8, 8, 1},
		{16, 32, 8, 4}, {4, 2, 2, 1}, {1, 500, 1, 32}, {2, 32, 2, 16}};

	for (unsigned i = 0; i < RTE_DIM(rows); i++) {
		uint32_t total = 0;

		init_reads(rows[i].max_rd);
		read_window_set(rows[i].window * CC_ONE);
		read_post(1, 32);
		assert_int_equal(host_pull(&p.a, PULL_ALL), rows[i].requests);
		for (unsigned k = 0; k < rows[i].requests; k++) {
			assert_int_equal(asked(k), rows[i].each);
			total += asked(k);
		}
		assert_int_equal(reads()->inflight, total);
		assert_int_equal(p.a.peer.send.inflight, 0);
		qp_link_drain(&p);
		expect_sent(&p.a, 1, IBV_WC_SUCCESS);
		fini();
	}
}

/* Neither window counts the packets of the other. */
TEST(windows_are_independent)
{
	init_reads(16);
	writes_post(1, 8);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 8);
	read_post(1, 8);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 8);
	assert_int_equal(p.a.peer.send.inflight, 8);
	assert_int_equal(reads()->inflight, 8);
	assert_true(peer_full(&p.a.peer.send) && peer_full(reads()));
	/* The next request is a READ, then a WRITE: each waits for its own window. */
	read_post(2, 1);
	assert_ptr_equal(qp_next_window(&p.a.qp), reads());
	assert_true(qp_window_blocked(&p.a.qp));
	assert_int_equal(host_pull(&p.a, PULL_ALL), 0);
	read_window_set(9 * CC_ONE);
	assert_false(qp_window_blocked(&p.a.qp));
	assert_int_equal(host_pull(&p.a, PULL_ALL), 1);
	writes_post(1, 1);
	assert_ptr_equal(qp_next_window(&p.a.qp), &p.a.peer.send);
	assert_true(qp_window_blocked(&p.a.qp));
	assert_int_equal(host_pull(&p.a, PULL_ALL), 0);
	qp_link_drain(&p);
	assert_int_equal(p.a.peer.send.inflight + reads()->inflight, 0);
	fini();
}

/* The first response is measured, and the window opens as that of SENDs does. */
TEST(responses_widen_the_window)
{
	init();
	read_post(1, 24);
	for (unsigned packets = 8; packets <= 16; packets *= 2) {
		assert_int_equal(host_pull(&p.a, PULL_ALL), 4);
		assert_int_equal(reads()->inflight, packets);
		wire_deliver_all(&p.a);
		assert_int_equal(host_pull(&p.b, PULL_ALL), packets);
		p.now += 9 * US;
		p.a.shared.polled_ns = p.now;
		wire_deliver(&p.b, 0);
		assert_int_equal(p.a.peer.read_cc.delay_ns, 9 * US);
		assert_int_equal(reads()->inflight, packets - 1);
		p.now += 90 * US; /* the rest is no sample */
		p.a.shared.polled_ns = p.now;
		wire_deliver_all(&p.b);
		assert_int_equal(p.a.peer.read_cc.delay_ns, 9 * US);
		assert_int_equal(reads()->inflight, 0);
		/* Of the first window one packet had come with the sample, 7 later. */
		if (packets == 8)
			read_window_set(16 * CC_ONE);
	}
	assert_true(read_window() > 16);
	assert_int_equal(p.a.peer.send_cc.delay_ns, UINT32_MAX);
	assert_int_equal(p.a.peer.send.window, 8);
	qp_link_drain(&p);
	fini();
}

TEST(long_delays_cut_the_read_window)
{
	init();
	read_post(1, 8);
	host_pull(&p.a, PULL_ALL);
	acks_return(100 * US);
	assert_int_equal(reads()->window, 4);
	assert_int_equal(p.a.stats.cc_cut_delay, 1);
	assert_int_equal(p.a.peer.send.window, 8);
	fini();
}

/* A lost response counts as a loss. A lost request does not, because it takes another way than
 * the responses. */
TEST(lost_responses_cut)
{
	for (unsigned response = 0; response < 2; response++) {
		init();
		read_post(1, 8);
		host_pull(&p.a, PULL_ALL);
		if (!response)
			wire_drop(&p.a, 0);
		wire_deliver_all(&p.a);
		host_pull(&p.b, PULL_ALL);
		if (response)
			wire_drop(&p.b, 0); /* nothing is measured yet */
		wire_deliver_all(&p.b);
		assert_int_equal(p.a.stats.seq_nak_received, !response);
		assert_int_equal(p.a.peer.read_cc.lost, response * CC_ONE);
		assert_int_equal(p.a.stats.cc_cut_loss, response);
		assert_int_equal(reads()->window, response ? 4 : 8);
		assert_int_equal(p.a.peer.send.window, 8);
		qp_link_drain(&p);
		expect_sent(&p.a, 1, IBV_WC_SUCCESS);
		fini();
	}
}

/* The cap limits READs, too. The last request may exceed it. */
TEST(reads_stay_within_the_cap)
{
	init();
	read_window_set(400 * CC_ONE);
	p.a.peer.read.cap = 15;
	peer_window_set(&p.a.peer.read, p.now);
	for (unsigned i = 0; i < 3; i++)
		read_post(i, 10);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 2);
	assert_int_equal(reads()->inflight, 20);
	qp_link_drain(&p);
	assert_int_equal(reads()->inflight, 0);
	fini();
}

/* A resend counts the packets anew, an error gives them back. */
TEST(reads_that_end_early)
{
	init();
	read_post(0, 8);
	host_pull(&p.a, PULL_ALL);
	wire_drop_all(&p.a);
	qp_link_advance(&p, 250 * US); /* the probe is a resend */
	assert_int_equal(reads()->inflight, 0);
	host_pull(&p.a, PULL_ALL);
	assert_int_equal(reads()->inflight, 8);
	wire_drop_all(&p.a);
	assert_int_equal(host_modify(&p.a, IBV_QPS_ERR), 0);
	host_pull(&p.a, PULL_ALL);
	assert_int_equal(reads()->inflight, 0);
	assert_int_equal(p.a.qp.req.reading, 0);
	fini();
}

/* A request that is sent again ends where it did, although the window is smaller: the first
 * answer may still come. It takes the time that its packets take in the window. */
TEST(resent_request_keeps_its_end)
{
	init();
	bytes_fill(p.b.mem + FROM, 32 * MTU, 3);
	read_window_set(32 * CC_ONE);
	read_post(1, 32);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 4);
	wire_deliver_all(&p.a);
	host_pull(&p.b, PULL_ALL);
	wire_drop(&p.b, 1);
	wire_deliver(&p.b, 0);
	wire_deliver(&p.b, 0); /* the implied NAK */
	p.a.peer.read_cc.srtt_ns = 50 * US;
	read_window_set(2 * CC_ONE);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 1);
	assert_int_equal(asked(0), 7);
	assert_int_equal(wire_view(&p.a, 0).psn, PSN_A + 1);
	assert_int_equal(p.a.stats.cc_waits, 1);
	assert_int_equal(peer_opens_at(reads(), p.now), p.now + 7 * 25 * US);
	/* The answer to the first request goes on, with its LAST and the FIRST after it. */
	wire_deliver_all(&p.b);
	qp_link_drain(&p);
	expect_sent(&p.a, 1, IBV_WC_SUCCESS);
	assert_true(bytes_match(p.a.mem + TO, 32 * MTU, 3));
	fini();
}

/* Below one packet each READ request has its time, and SENDs do not wait for it. */
TEST(less_than_a_packet_waits)
{
	init();
	read_post(1, 1);
	host_pull(&p.a, PULL_ALL);
	acks_return(40 * US);
	read_window_set(CC_ONE / 4);
	read_post(2, 2);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 1);
	assert_int_equal(asked(0), 1);
	assert_int_equal(p.a.stats.cc_waits, 1);
	assert_int_equal(peer_opens_at(reads(), p.now), p.now + 160 * US);
	acks_return(40 * US);
	read_window_set(CC_ONE / 4);
	assert_int_equal(reads()->inflight, 0);
	assert_true(qp_window_blocked(&p.a.qp));
	assert_int_equal(host_pull(&p.a, PULL_ALL), 0);
	p.now += 120 * US;
	assert_int_equal(host_pull(&p.a, PULL_ALL), 1);
	acks_return(40 * US);
	read_window_set(CC_ONE / 4);
	writes_post(1, 1);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 1);
	qp_link_drain(&p);
	fini();
}

/* Responses are no sign of a send window in use: that of the WRITE behind them has one
 * packet. The ACK of a WRITE waits for the responses of READs before it: no sample. */
TEST(samples_do_not_mix)
{
	init();
	for (unsigned i = 0; i < 3; i++) {
		read_post(i, 8);
		host_pull(&p.a, PULL_ALL);
		acks_return(9 * US);
	}
	assert_int_equal(p.a.peer.send_cc.srtt_ns, 0);
	assert_int_equal(p.a.peer.read_cc.srtt_ns, 9 * US);
	writes_post(1, 1);
	host_pull(&p.a, PULL_ALL);
	acks_return(9 * US);
	assert_int_equal(p.a.peer.send_cc.srtt_ns, 9 * US);
	assert_int_equal(p.a.peer.send_cc.acked, 1);
	assert_true(window() == 8);
	read_post(4, 1);
	host_pull(&p.a, PULL_ALL);
	acks_return(9 * US);
	read_post(5, 1);
	host_pull(&p.a, 1);
	p.a.qp.req.rtt_start = TIME_NEVER; /* as if the READ were not measured */
	writes_post(1, 1);
	host_pull(&p.a, PULL_ALL);
	acks_return(90 * US);
	assert_int_equal(p.a.peer.send_cc.srtt_ns, 9 * US);
	assert_int_equal(p.a.peer.read_cc.delay_ns, 9 * US);
	fini();
}

/* A QP that gets no answer to its READ does not hold the window of the others. */
TEST(stalled_reads_do_not_count)
{
	init();
	read_post(1, 1);
	host_pull(&p.a, PULL_ALL);
	acks_return(9 * US);
	read_post(2, 32);
	host_pull(&p.a, PULL_ALL);
	assert_int_equal(reads()->inflight, 8);
	for (unsigned nth = 1; nth <= 3; nth++) {
		wire_drop_all(&p.a);
		qp_link_advance(&p, (100 * US) << (nth - 1));
		/* One request is sent again. */
		assert_in_range(host_pull(&p.a, PULL_ALL), 1, nth == 1 ? 4 : 1);
		assert_int_equal(reads()->inflight, nth == 1 ? 8 : 0);
	}
	assert_true(p.a.qp.req.stalled);
	assert_true(read_window() < 0.11);
	assert_true(window() == 8);
	/* Its requests do not close the window of the others. */
	assert_int_equal(peer_opens_at(reads(), p.now), TIME_NEVER);
	acks_return(9 * US);
	assert_false(p.a.qp.req.stalled);
	/* The answer may be one to the first request, or to the last. */
	assert_true(read_window() == 4);
	assert_int_equal(reads()->inflight, p.a.qp.req.reading);
	qp_link_drain(&p);
	assert_int_equal(reads()->inflight, 0);
	fini();
}

/* A change of the peer takes the READs under way along. */
TEST(change_of_peer)
{
	struct peer other = {.qps = 1};

	for (unsigned stalled = 0; stalled < 2; stalled++) {
		init();
		peer_windows_init(&other, 100, &(struct cc_conf){.on = true});
		read_post(1, 8);
		writes_post(1, 3);
		host_pull(&p.a, PULL_ALL);
		if (stalled) {
			p.a.qp.cc_probes = 1;
			congestion_probe(&p.a.qp, 100 * US, p.now);
			assert_int_equal(p.a.peer.send.inflight + reads()->inflight, 0);
		}
		qp_set_peer(&p.a.qp, &other);
		assert_false(p.a.qp.req.stalled);
		assert_int_equal(p.a.peer.send.inflight + reads()->inflight, 0);
		assert_int_equal(other.send.inflight, 3);
		assert_int_equal(other.read.inflight, 8);
		qp_link_drain(&p);
		assert_int_equal(other.send.inflight + other.read.inflight, 0);
		qp_set_peer(&p.a.qp, &p.a.peer);
		fini();
	}
}
