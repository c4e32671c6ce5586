/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets between clients and queues of two threads. Clients 0 and 2 belong to thread 0 and queue 0,
 * client 1 to thread 1 and queue 1. */
#include "uplink_fixture.h"

#include "switch/handover.h"
#include "switch/sw_take.h"
#include "wire/ext_mad.h"
#include "wire/extensions.h"

#define GROUP "239.1.2.3"

static struct uplink_fixture u;

static void
two_threads_open(void)
{
	up_open_threads(&u, 0, 2);
	for (unsigned i = 0; i < CLIENTS; i++)
		assert_int_equal(u.b.c[i].client->thread->index, i % 2);
}

static struct sw_thread *
thread(unsigned index)
{
	return u.b.sw->threads[index];
}

static unsigned
pass_1(void)
{
	return sw_thread_run(thread(1), u.b.now);
}

static void
post(struct fixture_client *c, const struct frame_spec *f)
{
	uint32_t buf = c->tx.prod % CLIENT_BUFS;

	client_post(c, buf, c->qpn, frame_spec_build(region_tx_buf(&c->region, buf), f));
}

static void
arrive(unsigned queue, const struct frame_spec *f)
{
	uint8_t frame[CLIENT_BUF_SIZE];
	struct pkt in = {.data = frame, .len = frame_spec_build(frame, f)};

	assert_true(fake_arrive(&u.port, queue, &in));
}

static struct frame_spec
from_peer(unsigned client)
{
	struct frame_spec f = frame_spec_valid(&u.b);

	memcpy(f.sgid, u.b.other, 16);
	f.dest_qpn = u.b.c[client].qpn;
	return f;
}

static struct frame_spec
to_peer(void)
{
	struct frame_spec f = frame_spec_valid(&u.b);

	memcpy(f.dgid, u.b.other, 16);
	f.dest_qpn = 0x77;
	return f;
}

TEST(packets_cross_in_both_directions)
{
	struct fixture_client *c = u.b.c;
	struct frame_spec there, back;

	two_threads_open();
	there = back = frame_spec_valid(&u.b);
	back.dest_qpn = c[0].qpn;
	for (unsigned i = 0; i < 100; i++) {
		there.payload = back.payload = i;
		post(&c[0], &there);
		up_pass(&u);
		assert_false(client_received(&c[1], NULL)); /* its thread puts it there */
		assert_int_equal(pass_1(), 1);
		assert_true(client_received(&c[1], &there));
		post(&c[1], &back);
		assert_int_equal(pass_1(), 1);
		assert_false(client_received(&c[0], NULL));
		up_pass(&u);
		assert_true(client_received(&c[0], &back));
	}
	assert_int_equal(c[0].client->stats.tx_packets, 100);
	assert_int_equal(c[1].client->stats.rx_packets, 100);
	assert_int_equal(thread(0)->stats.handed_over, 100);
	assert_int_equal(thread(1)->stats.taken_over, 100);
	assert_int_equal(thread(1)->stats.handed_over, 100);
	assert_int_equal(thread(0)->stats.taken_over, 100);
	up_close(&u);
}

/* Packets from a client, and packets for it, are shown without a pass of either thread. */
TEST(packets_are_shown_at_once)
{
	struct fixture_client *c = u.b.c;
	struct frame_spec there, back;

	two_threads_open();
	there = back = frame_spec_valid(&u.b);
	back.dest_qpn = c[0].qpn;
	post(&c[0], &there);
	sw_client_show_sent(c[0].client);
	assert_true(client_received(&c[1], &there));
	post(&c[1], &back);
	sw_client_show_sent(c[1].client);
	assert_true(client_received(&c[0], &back));
	/* Frames of queue 0, which thread 0 has handed over, and its own. */
	for (unsigned client = 0; client < 2; client++) {
		back = from_peer(client);
		arrive(0, &back);
		uplink_rx(u.b.sw->up, u.b.now);
		assert_false(client_received(&c[client], NULL));
		sw_client_show_received(c[client].client);
		assert_true(client_received(&c[client], &back));
	}
	up_close(&u);
}

/* A frame goes to its client's thread, whichever queue received it. The fixture checks that each
 * is given back to the port. */
TEST(frames_go_to_the_thread_of_their_client)
{
	struct frame_spec f;

	two_threads_open();
	for (unsigned queue = 0; queue < 2; queue++) {
		for (unsigned client = 0; client < 2; client++) {
			f = from_peer(client);
			arrive(queue, &f);
			up_pass(&u);
			pass_1();
			up_pass(&u);
			assert_true(client_received(&u.b.c[client], &f));
			assert_false(client_received(&u.b.c[1 - client], NULL));
		}
	}
	assert_int_equal(thread(0)->stats.rx_packets, 2);
	assert_int_equal(thread(1)->stats.rx_packets, 2);
	assert_int_equal(thread(0)->stats.handed_over, 1);
	assert_int_equal(thread(1)->stats.handed_over, 1);
	assert_int_equal(thread(0)->port_stats->rx_roce, 2);
	assert_int_equal(thread(1)->port_stats->rx_roce, 2);
	up_close(&u);
}

/* While thread 0 does not run, its ring fills: frames are lost and counted, and frames for the
 * other thread's own client are not. */
TEST(full_ring_loses_frames)
{
	struct frame_spec f, own;
	unsigned got = 0;

	two_threads_open();
	f = from_peer(0);
	own = from_peer(1);
	for (unsigned i = 0; i < HANDOVER_SLOTS + 9; i++) {
		arrive(1, &f);
		pass_1();
	}
	assert_int_equal(thread(1)->stats.drop_handover_full, 9);
	arrive(1, &own);
	pass_1();
	assert_true(client_received(&u.b.c[1], &own));
	for (unsigned i = 0; i < HANDOVER_SLOTS / SW_TAKE_BURST; i++) {
		assert_false(sw_sleep(u.b.sw));
		assert_true(sw_take_pending(thread(0)));
		up_pass(&u);
		while (client_received(&u.b.c[0], &f))
			got++;
	}
	assert_false(sw_take_pending(thread(0)));
	u.b.now += SW_LAG_NS; /* the client is seen to have taken all */
	up_pass(&u);
	assert_true(sw_sleep(u.b.sw));
	sw_awake(u.b.sw);
	assert_int_equal(got + u.b.c[0].client->stats.rx_full, HANDOVER_SLOTS);
	up_close(&u);
}

/* A client's packets stay in its ring while the ring to the other thread is full. */
TEST(full_ring_blocks_a_client)
{
	struct fixture_client *c = u.b.c;
	struct frame_spec f, remote;

	two_threads_open();
	f = frame_spec_valid(&u.b);
	f.dest_qpn = c[0].qpn;
	remote = from_peer(0);
	for (unsigned i = 0; i < HANDOVER_SLOTS; i++) {
		arrive(1, &remote);
		pass_1();
	}
	post(&c[1], &f);
	assert_int_equal(pass_1(), 0);
	assert_int_equal(pass_1(), 0);
	assert_int_equal(c[1].client->stats.tx_blocked, 2);
	assert_int_equal(thread(1)->stats.handover_blocked, 2);
	assert_int_equal(thread(1)->stats.drop_handover_full, 0);
	up_pass(&u);
	assert_int_equal(pass_1(), 1);
	up_close(&u);
}

/* Senders of another thread wait while a client's ring is half full, but not for ever. */
TEST(client_that_takes_nothing_blocks_for_a_while)
{
	struct fixture_client *c = u.b.c;
	struct frame_spec f;
	uint64_t blocked;

	two_threads_open();
	f = frame_spec_valid(&u.b);
	u.b.now += NS_PER_SEC;
	for (unsigned i = 0; i < CLIENT_SLOTS / 2 + 1; i++) {
		post(&c[0], &f);
		up_pass(&u);
		pass_1();
	}
	assert_true(sw_client_holds(c[1].client));
	assert_false(sw_thread_sleep(thread(1)));
	post(&c[0], &f);
	up_pass(&u);
	assert_int_equal(c[0].client->stats.tx_blocked, 1);
	/* It takes its packets: the next one comes. */
	for (unsigned i = 0; i < CLIENT_SLOTS / 2 + 1; i++)
		assert_true(client_received(&c[1], &f));
	pass_1();
	assert_false(sw_client_holds(c[1].client));
	up_pass(&u);
	pass_1();
	assert_true(client_received(&c[1], &f));
	/* It takes no more: after the time its packets are lost, and the sender goes on. */
	for (unsigned ms = 0; ms < 3 * SW_BACKPRESSURE_OTHERS_NS / NS_PER_MS; ms++) {
		for (unsigned i = 0; i < CLIENT_SLOTS; i++) {
			assert_true(ring_prod_refresh(&c[0].tx));
			if (ring_room(&c[0].tx) != 0)
				post(&c[0], &f);
			up_pass(&u);
			pass_1();
		}
		u.b.now += NS_PER_MS;
	}
	blocked = c[0].client->stats.tx_blocked;
	assert_int_not_equal(c[1].client->stats.rx_full, 0);
	assert_false(sw_client_holds(c[1].client));
	up_pass(&u);
	assert_int_equal(c[0].client->stats.tx_blocked, blocked);
	up_close(&u);
}

/* Thread 0 resolves the next hop for a client of thread 1, which then sends on its own queue. */
TEST(next_hop_is_resolved_by_thread_0)
{
	struct fixture_client *c = &u.b.c[1];
	struct frame_spec f;
	struct pkt frame;

	two_threads_open();
	assert_int_equal(client_set_peer(&u.b, c, c->qpn, u.b.other, 0x77), 0);
	f = to_peer();
	post(c, &f);
	assert_int_equal(pass_1(), 1);
	assert_int_equal(u.port.q[1].tx.count, 0);
	assert_int_equal(c->client->stats.tx_packets, 0); /* thread 0 counts it */
	up_pass(&u);                                      /* the packet waits for ARP */
	assert_false(up_sent(&u));
	up_pass(&u); /* the answer */
	assert_true(up_sent(&u));
	assert_memory_equal(u.frame, PEER_MAC, 6);
	assert_int_equal(c->client->control_stats.tx_packets, 1);
	/* The next one comes the same way, and the next hop goes back. */
	post(c, &f);
	pass_1();
	up_pass(&u);
	assert_true(up_sent(&u));
	post(c, &f);
	pass_1();
	assert_int_equal(u.port.q[0].tx.count, 0);
	assert_int_equal(u.port.q[1].tx.count, 1);
	assert_true(fake_sent(&u.port, &frame));
	assert_memory_equal(frame.data, PEER_MAC, 6);
	free(frame.data);
	assert_int_equal(c->client->stats.tx_packets, 1);
	assert_int_equal(c->client->control_stats.tx_packets, 2);
	up_close(&u);
}

/* Each client with members gets one copy, whichever thread has received or sent it. */
TEST(groups_span_threads)
{
	struct frame_spec f;

	two_threads_open();
	for (unsigned i = 0; i < CLIENTS; i++) {
		struct sw_request req = {.type = SW_GROUP_JOIN, .qpn = u.b.c[i].qpn};
		struct sw_reply reply;

		assert_int_equal(gid_parse(GROUP, req.dgid, NULL), 0);
		client_request(&u.b, &u.b.c[i], &req, &reply);
		assert_int_equal(reply.error, 0);
	}
	f = from_peer(0);
	f.opcode = OPCODE_UD_SEND_ONLY;
	f.dest_qpn = 0xFFFFFF;
	assert_int_equal(gid_parse(GROUP, f.dgid, NULL), 0);
	for (unsigned queue = 0; queue < 2; queue++) {
		arrive(queue, &f);
		up_pass(&u);
		pass_1();
		up_pass(&u);
		for (unsigned i = 0; i < CLIENTS; i++) {
			assert_true(client_received(&u.b.c[i], &f));
			assert_false(client_received(&u.b.c[i], NULL));
		}
	}
	/* From client 1 to the others and to the port. */
	memcpy(f.sgid, u.b.addr, 16);
	f.deth_qpn = u.b.c[1].qpn;
	while (up_sent(&u))
		;
	post(&u.b.c[1], &f);
	pass_1();
	up_pass(&u);
	assert_true(client_received(&u.b.c[0], &f));
	assert_true(client_received(&u.b.c[2], &f));
	assert_false(client_received(&u.b.c[1], NULL));
	assert_true(up_sent(&u));
	assert_int_equal(u.frame[0], 0x01);
	up_close(&u);
}

/* Thread 0 answers what is not RoCEv2, on every queue. */
TEST(arp_on_another_queue_is_answered)
{
	enum drop_reason why;
	struct pkt frame, in = {.room = 256};
	uint8_t room[256], mac[6];
	bool answered = false;

	two_threads_open();
	while (fake_sent(&u.port, &frame))
		free(frame.data);
	in.data = room;
	assert_int_equal(net_resolve(u.peer, u.b.addr, mac, u.b.now), -EAGAIN);
	while (net_tx(u.peer, &in, 1, u.b.now) != 0)
		assert_true(fake_arrive(&u.port, 1, &in));
	pass_1();
	assert_int_equal(fake_sent_count(&u.port), 0);
	up_pass(&u);
	while (fake_sent(&u.port, &frame)) {
		in.len = 0;
		(void)net_rx(u.peer, &frame, &in, &why, u.b.now);
		free(frame.data);
	}
	answered = net_lookup(u.peer, u.b.addr, mac) == 0;
	assert_true(answered);
	assert_memory_equal(mac, u.port.port.mac, 6);
	up_close(&u);
}

/* A client of thread 1 asks what the daemon itself understands: thread 0 answers. */
TEST(query_is_answered_by_thread_0)
{
	const struct ext_mad mad = {.tid = 9, .extensions = EXT_ALL};
	struct path_addr addr = {.udp_sport = 0xC000, .hop_limit = 64};
	struct fixture_client *c = &u.b.c[1];
	struct pkt pkt = {.room = CLIENT_BUF_SIZE};
	uint8_t bytes[GSI_LEN];

	two_threads_open();
	pkt.data = region_tx_buf(&c->region, 0);
	memcpy(addr.src_gid, u.b.addr, 16);
	memcpy(addr.dst_gid, u.b.addr, 16);
	ext_mad_write(bytes, EXT_MAD_QUERY, &mad);
	gsi_frame_build(&pkt, &addr, 0, bytes);
	client_post(c, 0, GSI_QPN, pkt.len);
	assert_int_equal(pass_1(), 1);
	assert_false(client_received(c, NULL));
	up_pass(&u);
	pass_1();
	assert_true(client_received(c, NULL));
	assert_int_equal(c->client->control_stats.ext_queries, 1);
	up_close(&u);
}

/* A client of thread 1 ends right after it has posted a packet for another host, whose next hop only
 * thread 0 knows. */
TEST(last_packet_of_a_client_is_sent)
{
	struct fixture_client *c = &u.b.c[1];
	struct frame_spec f;
	uint8_t mac[6];

	two_threads_open();
	assert_int_equal(client_set_peer(&u.b, c, c->qpn, u.b.other, 0x77), 0);
	up_pass(&u);
	assert_false(up_sent(&u)); /* the request, whose answer comes */
	up_pass(&u);
	assert_int_equal(net_lookup(u.up->net, u.b.other, mac), 0);
	f = to_peer();
	post(c, &f);
	client_detach(c);
	sw_ended_free(u.b.sw);
	up_pass(&u);
	assert_true(up_sent(&u));
	assert_memory_equal(u.frame, PEER_MAC, 6);
	up_close(&u);
}

/* Packets on their way to a client that ends, and its own, do no harm. */
TEST(client_ends_while_packets_are_on_their_way)
{
	struct fixture_client *c = u.b.c;
	struct frame_spec f, back;
	struct sw_stats stats;

	two_threads_open();
	f = back = frame_spec_valid(&u.b);
	back.dest_qpn = c[0].qpn;
	for (unsigned i = 0; i < 5; i++)
		post(&c[0], &f);
	up_pass(&u);
	post(&c[1], &back);
	sw_client_stats_read(c[1].client, &stats);
	assert_int_equal(stats.rx_packets, 0);
	client_detach(&c[1]); /* what it has posted is forwarded, as thread 1 */
	assert_int_equal(thread(1)->client_count, 0);
	pass_1();
	up_pass(&u);
	assert_true(client_received(&c[0], &back));
	post(&c[0], &f);
	up_pass(&u);
	pass_1();
	assert_int_equal(c[0].client->stats.drop_no_qp, 1);
	assert_int_equal(thread(1)->stats.drop_handover_full, 0);
	up_close(&u);
}
