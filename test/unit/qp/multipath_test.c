/* SPDX-License-Identifier: BSD-3-Clause */
/* A QP with several paths: which packet takes which path, and which one is lost
 * (docs/protocol.md 20.7). */
#include "multipath_fixture.h"
#include "qp/nak.h"

TEST(packets_take_all_paths)
{
	static const bool kinds[][2] = {{false, false}, {true, false}, {false, true}};

	for (unsigned kind = 0; kind < 3; kind++) {
		struct qp_link_conf conf = qp_link_defaults_rdma();

		conf.ipv6 = kinds[kind][0];
		if (kinds[kind][1])
			conf.type = IBV_QPT_XRC_SEND;
		open_unmeasured(&conf);
		send_some(8);
		for (unsigned i = 0; i < 8; i++) {
			assert_int_equal(port_of(&p.a, i), path_port(&p.a, i % PATHS));
			assert_true(port_of(&p.a, i) >= 0xC000);
			for (unsigned other = 0; other < i % PATHS; other++)
				assert_int_not_equal(
					port_of(&p.a, i), port_of(&p.a, other));
		}
		wire_deliver_all(&p.a);
		respond(1);
		expect_all();
		assert_int_equal(p.a.stats.spread, 6);
		close_paths();
	}
}

/* Path 0 is slower than the others. Nothing is sent again, and no retry is charged. */
TEST(packets_that_are_overtaken_are_not_lost)
{
	open_paths();
	send_some(8); /* paths 1, 2, 3, 0, 1, 2, 3, 0 */
	deliver_only(0x77);
	respond(2); /* up to the first one of path 0, and what is held behind it */
	assert_int_equal(host_pull(&p.a, PULL_ALL), 0);
	assert_int_equal(p.a.qp.req.retry_left, p.a.qp.params.retry_cnt);
	wire_deliver_all(&p.a);
	respond(1);
	expect_all();
	assert_int_equal(p.a.stats.retransmitted, 0);
	assert_int_equal(p.a.stats.seq_nak_received, 1);
	assert_int_equal(p.b.stats.duplicates, 0);
	close_paths();
}

/* A later packet of its path shows that a packet is lost. The copy takes another path. */
TEST(path_keeps_its_order)
{
	open_paths();
	send_some(8);
	wire_drop(&p.a, 1); /* path 2 */
	deliver_only(0xf);  /* up to 4: nothing of path 2 */
	respond(2);
	assert_int_equal(p.a.wire_count, 3);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 0);
	deliver_only(0x1); /* 5, of path 2 */
	respond(1);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 1);
	expect_frame(&p.a, 2, OPCODE_RC_SEND_ONLY, PSN_A + 2, 1);
	assert_int_not_equal(port_of(&p.a, 2), path_port(&p.a, 2));
	wire_deliver_all(&p.a);
	respond(1);
	expect_all();
	assert_int_equal(p.a.stats.retransmitted, 1);
	assert_int_equal(p.a.stats.paths_moved, 0);
	close_paths();
}

TEST(last_packet_of_a_path_is_late_after_four_round_trips)
{
	open_paths();
	send_some(4);
	wire_drop(&p.a, 1);
	deliver_only(0x7);
	respond(2);
	pass(LATE - RTT);
	send_some(1); /* not four round trips after the lost one */
	deliver_only(0x1);
	respond(1);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 0);
	send_some(1);
	deliver_only(0x1);
	respond(1);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 1);
	expect_frame(&p.a, 0, OPCODE_RC_SEND_ONLY, PSN_A + 2, 1);
	wire_deliver_all(&p.a);
	respond(1);
	expect_all();
	assert_int_equal(p.a.stats.tlp_sent, 0);
	close_paths();
}

/* The peer drops what it held. All that is sent again as soon as it says so. */
TEST(packets_that_the_peer_dropped_are_sent_again)
{
	open_paths();
	send_some(8);
	deliver_only(0xee); /* but 0 and 4: path 1 */
	respond(2);
	hold_drop(&p.b.qp);
	deliver_only(0x1);
	send_some(4);
	deliver_only(0x1e); /* 4 is still under way */
	respond(2);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 6);
	wire_deliver_all(&p.a);
	respond(1);
	expect_all();
	assert_int_equal(p.a.stats.tlp_sent, 0);
	close_paths();
}

/* The answer to a probe acknowledges one packet. Those behind it were sent a short time ago:
 * they may be on their way. */
TEST(answer_to_a_probe_resends_nothing_too_early)
{
	open_paths();
	send_some(1);
	pass(70 * NS_PER_US);
	send_some(3);
	pass(p.a.qp.req.tlp_deadline - p.now);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 1);
	wire_deliver(&p.a, 0);
	respond(1);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 0);
	wire_deliver_all(&p.a);
	respond(1);
	expect_all();
	assert_int_equal(p.a.stats.tlp_sent, 1);
	assert_int_equal(p.a.stats.tlp_repaired, 0);
	close_paths();
}

/* A probe copies the first packet to path 2, but the packet itself arrives. That says nothing
 * about the last packet of path 2. */
TEST(packet_that_was_sent_twice_is_no_evidence)
{
	open_paths();
	send_some(8);
	pass(p.a.qp.req.tlp_deadline - p.now);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 1);
	assert_int_equal(port_of(&p.a, 8), path_port(&p.a, 2));
	deliver_only(0xcf); /* but the last packets of paths 1 and 2 */
	respond(2);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 0);
	wire_deliver_all(&p.a);
	respond(1);
	expect_all();
	assert_int_equal(p.a.stats.retransmitted, 1);
	close_paths();
}

/* Arrivals before an idle time say nothing about packets after it, however long it was: times
 * have 32 bits. */
TEST(idle_time_begins_anew)
{
	static const uint64_t idle[] = {NS_PER_SEC, 3 * NS_PER_SEC, 5 * NS_PER_SEC};

	open_paths();
	for (unsigned i = 0; i < 3; i++) {
		pass(idle[i]);
		send_some(8);
		deliver_only(0xee);
		respond(2);
		assert_int_equal(host_pull(&p.a, PULL_ALL), 0);
		wire_deliver_all(&p.a);
		respond(1);
		expect_all();
	}
	assert_int_equal(p.a.stats.retransmitted, 0);
	close_paths();
}

/* Nor do arrivals before the QP goes back, as for an RNR NAK. Requests wait all the time. */
TEST(rollback_begins_anew)
{
	static const uint64_t waits[] = {NS_PER_SEC, 3 * NS_PER_SEC, 5 * NS_PER_SEC};

	open_paths();
	for (unsigned i = 0; i < 3; i++) {
		uint32_t mask = 0x3;

		send_some(2);
		deliver_only(0x2);
		respond(2);
		lose(1);
		assert_int_equal(nak_resend(&p.a.qp, FAULT_SEQ_RETRIES), VERDICT_DROP);
		pass(waits[i]);
		for (unsigned k = 0; k < 8; k++) {
			host_recv(&p.b, posted, 0, 1024);
			host_send(&p.a, posted++, 0, 8, k == 7 ? IBV_SEND_SIGNALED : 0);
		}
		assert_int_equal(host_pull(&p.a, PULL_ALL), 10);
		/* Path 1 is slower than the others. */
		for (unsigned k = 2; k < 10; k++)
			mask |= (port_of(&p.a, k) != path_port(&p.a, 1)) << k;
		deliver_only(mask);
		respond(2);
		assert_int_equal(host_pull(&p.a, PULL_ALL), 0);
		wire_deliver_all(&p.a);
		respond(1);
		expect_all();
	}
	close_paths();
}

/* While packets of path 1 are under way the others take what comes. */
TEST(slow_path_gets_fewer_packets)
{
	open_paths();
	send_some(8);
	deliver_only(0xee); /* but 0 and 4: path 1 */
	respond(2);
	send_some(6);
	for (unsigned i = 2; i < 8; i++)
		assert_int_not_equal(port_of(&p.a, i), path_port(&p.a, 1));
	wire_deliver_all(&p.a);
	respond(1);
	expect_all();
	multipath_acknowledged(&p.a.qp);
	for (unsigned i = 0; i < PATHS; i++)
		assert_int_equal(multipath_of(&p.a.qp)->path[i].inflight, 0);
	close_paths();
}

/* SENDs behind a READ take its path, so that a NAK of the READ shows that it is lost. */
TEST(reads_keep_all_on_one_path)
{
	open_paths();
	host_read(&p.a, posted++, 0, 0, 8);
	for (unsigned i = 0; i < 3; i++) {
		host_recv(&p.b, posted, 0, 1024);
		host_send(&p.a, posted++, 0, 8, 0);
	}
	assert_int_equal(host_pull(&p.a, PULL_ALL), 4);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(port_of(&p.a, i), path_port(&p.a, 0));
	wire_drop(&p.a, 0);
	deliver_only(0x7);
	respond(2);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 4);
	wire_deliver_all(&p.a);
	respond(2);
	received++;
	expect_all();
	send_some(4);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(port_of(&p.a, i), path_port(&p.a, (i + 1) % PATHS));
	wire_deliver_all(&p.a);
	respond(1);
	expect_all();
	close_paths();
}

TEST(peer_without_sacks_gets_one_path)
{
	open_paths();
	p.a.peer.extensions = 0;
	send_some(8);
	for (unsigned i = 0; i < 8; i++)
		assert_int_equal(port_of(&p.a, i), path_port(&p.a, 0));
	wire_drop(&p.a, 2);
	deliver_only(0x7f);
	respond(2);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 1);
	wire_deliver_all(&p.a);
	respond(1);
	expect_all();
	assert_int_equal(p.a.stats.spread, 0);
	close_paths();
}

/* A QP without probes does not spread its packets: a NAK shows a loss. */
TEST(timeout_of_zero_gets_one_path)
{
	open_paths();
	p.a.qp.params.timeout = 0;
	p.a.qp.sacks = false;
	p.b.peer.extensions = 0;
	send_some(4);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(port_of(&p.a, i), path_port(&p.a, 0));
	wire_drop(&p.a, 1);
	deliver_only(0x7);
	respond(1);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 3);
	wire_deliver_all(&p.a);
	respond(1);
	expect_all();
	close_paths();
}

/* The peer's host understands SACKs, but this process of it sends none: the requester pauses,
 * 1 ms at first, then 2 ms. */
TEST(silent_process_makes_it_pause)
{
	open_paths();
	p.a.qp.sacks = false;
	p.b.peer.extensions = 0;
	for (unsigned pause = 0; pause < 2; pause++) {
		for (unsigned nak = 0; nak < MULTIPATH_NAKS; nak++) {
			unsigned spread = (unsigned)p.a.stats.spread;

			send_some(4);
			assert_int_not_equal(p.a.stats.spread, spread);
			deliver_only(0xe);
			respond(1);
			wire_deliver_all(&p.a);
			if (nak + 1 < MULTIPATH_NAKS)
				assert_int_equal(host_pull(&p.a, PULL_ALL), 0);
			respond(1);
		}
		/* what the last NAK asked for may be sent again */
		(void)host_pull(&p.a, PULL_ALL);
		wire_deliver_all(&p.a);
		(void)host_pull(&p.b, PULL_ALL);
		wire_deliver_all(&p.b);
		expect_all();
		pass((NS_PER_MS << pause) - 2 * RTT);
		send_some(1);
		assert_int_equal(port_of(&p.a, 0), path_port(&p.a, 0));
		deliver_only(0x1);
		respond(1);
		expect_all();
		pass(2 * RTT);
	}
	close_paths();
}
