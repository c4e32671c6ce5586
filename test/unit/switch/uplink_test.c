/* SPDX-License-Identifier: BSD-3-Clause */
/* The daemon's port: frames sent, and changes that clients are told. Received frames:
 * uplink_in_test.c. */
#include <rte_ether.h>
#include <rte_ip.h>

#include "uplink_fixture.h"

/* Resolves the peer's MAC. */
static void
up_resolve(struct uplink_fixture *u, const uint8_t gid[16])
{
	uplink_resolve(u->up, u->b.c[0].client, gid);
	for (unsigned i = 0; i < 4; i++) {
		up_pass(u);
		assert_false(up_sent(u));
	}
}

/* A frame to the peer's QP 0x77, to which client 0 gets connected. */
static struct frame_spec
up_to_peer(struct uplink_fixture *u, const uint8_t from[16], const uint8_t to[16])
{
	struct frame_spec f = frame_spec_valid(&u->b);
	struct sw_request req = {
		.type = SW_PEER_SET, .qpn = u->b.c[0].qpn, .dest_qpn = 0x77};
	struct sw_reply reply;

	memcpy(f.sgid, from, 16);
	memcpy(f.dgid, to, 16);
	memcpy(req.sgid, from, 16);
	memcpy(req.dgid, to, 16);
	f.dest_qpn = 0x77;
	client_request(&u->b, &u->b.c[0], &req, &reply);
	assert_int_equal(reply.error, 0);
	return f;
}

/* Expects the sent frame to be f behind an Ethernet header from the port to the peer. */
static void
expect_sent(struct uplink_fixture *u, const struct frame_spec *f, uint32_t l2)
{
	uint8_t want[CLIENT_BUF_SIZE];
	uint16_t len = frame_spec_build(want, f);
	struct rte_ipv4_hdr *ip = (struct rte_ipv4_hdr *)(u->frame + l2);

	assert_int_equal(u->frame_len, len - 14u + l2);
	assert_memory_equal(u->frame, PEER_MAC, 6);
	assert_memory_equal(u->frame + 6, u->port.port.mac, 6);
	if (gid_is_ipv4(f->dgid)) {
		assert_int_equal(rte_raw_cksum(ip, sizeof(*ip)), 0xffff);
		ip->hdr_checksum = 0;
		((struct rte_ipv4_hdr *)(want + 14))->hdr_checksum = 0;
	}
	assert_memory_equal(u->frame + l2, want + 14, len - 14u);
}

TEST(sent_with_the_ports_ethernet_header)
{
	struct uplink_fixture u;
	struct frame_spec f;

	up_open(&u);
	up_resolve(&u, u.b.other);
	f = up_to_peer(&u, u.b.addr, u.b.other);
	up_post(&u, &f);
	up_pass(&u);
	assert_true(up_sent(&u));
	expect_sent(&u, &f, 14);
	assert_false(up_sent(&u));
	assert_int_equal(u.b.c[0].client->stats.tx_packets, 1);
	/* A wrong IPv4 checksum of the client is corrected. */
	up_post(&u, &f);
	((struct rte_ipv4_hdr *)(region_tx_buf(&u.b.c[0].region, 1) + 14))
		->hdr_checksum ^= 1;
	up_pass(&u);
	assert_true(up_sent(&u));
	expect_sent(&u, &f, 14);
	up_resolve(&u, u.other6);
	f = up_to_peer(&u, u.addr6, u.other6);
	up_post(&u, &f);
	up_pass(&u);
	assert_true(up_sent(&u));
	expect_sent(&u, &f, 14);
	up_close(&u);
}

TEST(peer_registration_resolves_the_next_hop)
{
	struct uplink_fixture u;
	struct frame_spec f;
	unsigned before;

	up_open(&u);
	up_pass(&u);
	assert_false(up_sent(&u));
	before = u.peer_rx_control;
	f = up_to_peer(&u, u.b.addr, u.b.other);
	up_pass(&u);
	assert_false(up_sent(&u));
	assert_int_equal(u.peer_rx_control, before + 1);
	up_pass(&u); /* receives the answer */
	up_post(&u, &f);
	up_pass(&u);
	assert_int_equal(u.up->neigh_queue_count, 0);
	assert_true(up_sent(&u));
	up_close(&u);
}

TEST(frames_wait_for_resolution)
{
	struct uplink_fixture u;
	struct frame_spec f;

	up_open(&u);
	u.answers = false;
	f = up_to_peer(&u, u.b.addr, u.b.other);
	for (unsigned i = 0; i < 3; i++) {
		f.payload = i;
		up_post(&u, &f);
		up_pass(&u);
	}
	assert_false(up_sent(&u));
	assert_int_equal(u.up->neigh_queue_count, 3);
	u.answers = true;
	u.b.now += NEIGH_RETRY_NS + NS_PER_US;
	up_pass(&u); /* asks again */
	assert_false(up_sent(&u));
	f.payload = 3;
	up_post(&u, &f); /* posted in the pass of the answer: goes behind the others */
	up_pass(&u);
	for (unsigned i = 0; i < 4; i++) {
		assert_true(up_sent(&u));
		f.payload = i;
		expect_sent(&u, &f, 14);
	}
	assert_int_equal(u.up->neigh_queue_count, 0);
	up_close(&u);
}

TEST(unresolved_neighbour_drops_frames)
{
	struct uplink_fixture u;
	struct frame_spec f;
	struct sw_stats *stats;

	up_open(&u);
	stats = &u.b.c[0].client->stats;
	u.answers = false;
	f = up_to_peer(&u, u.b.addr, u.b.other);
	for (unsigned i = 0; i < UPLINK_NEIGH_QUEUE_EACH + 3; i++) {
		up_post(&u, &f);
		up_pass(&u);
	}
	assert_int_equal(u.up->neigh_queue_count, UPLINK_NEIGH_QUEUE_EACH);
	assert_int_equal(stats->drop_unresolved, 3);
	for (unsigned i = 0; i <= NEIGH_TRIES; i++) {
		u.b.now += NEIGH_RETRY_NS + NS_PER_US;
		up_pass(&u);
		assert_false(up_sent(&u));
	}
	up_pass(&u);
	assert_int_equal(u.up->neigh_queue_count, 0);
	assert_int_equal(u.up->stats.tx_no_neighbour, UPLINK_NEIGH_QUEUE_EACH);
	up_post(&u, &f);
	up_pass(&u);
	assert_int_equal(stats->drop_no_route, 1);
	/* Another network is unreachable, too: there is no gateway. */
	memcpy(f.dgid + 12, "\xc6\x33\x64\x01", 4);
	f = up_to_peer(&u, u.b.addr, f.dgid);
	up_post(&u, &f);
	up_pass(&u);
	assert_int_equal(stats->drop_no_route, 2);
	up_close(&u);
}

/* Advances the time without an answer from the peer. Returns how many ARP requests and
 * neighbour solicitations are sent. */
static unsigned
requests_until(struct uplink_fixture *u, uint64_t end)
{
	unsigned before = u->peer_rx_control;

	u->answers = false;
	for (; u->b.now < end; u->b.now += 100 * NS_PER_MS) {
		up_pass(u);
		while (up_sent(u))
			;
	}
	u->answers = true;
	return u->peer_rx_control - before;
}

/* A client registers thousands of peers that do not exist, one after the other, and ends.
 * The requests for them are few, end soon, and do not keep another client waiting. */
TEST(many_peers_cause_no_arp_storm)
{
	struct uplink_fixture u;
	uint8_t dgid[16];
	struct frame_spec f;

	up_open(&u);
	(void)requests_until(&u, u.b.now + 3 * NS_PER_SEC); /* announcements */
	client_detach(&u.b.c[0]);
	u.b.c[0].uid = 7;
	client_attach(&u.b, &u.b.c[0]);
	memcpy(dgid, u.other6, 16);
	for (unsigned i = 0; i < NET_NEIGHS; i++) {
		dgid[12] = 1;
		dgid[13] = (uint8_t)(i >> 8);
		dgid[14] = (uint8_t)i;
		(void)up_to_peer(&u, u.addr6, dgid);
	}
	assert_int_equal(
		u.b.c[0].client->user->neighs.unresolved.count, NET_USER_UNRESOLVED);
	/* Its packets to further hosts are dropped, and counted. */
	f = up_to_peer(&u, u.addr6, dgid);
	up_post(&u, &f);
	up_pass(&u);
	assert_int_equal(u.b.c[0].client->stats.drop_unresolved, 1);
	(void)requests_until(&u, u.b.now + 100 * NS_PER_MS);
	uplink_resolve(u.up, u.b.c[1].client, u.b.other);
	assert_int_equal(requests_until(&u, u.b.now + 1), 1);
	client_detach(&u.b.c[0]);
	assert_in_range(requests_until(&u, u.b.now + 2 * NS_PER_SEC), 0,
		5 * NET_USER_UNRESOLVED + 10);
	assert_in_range(requests_until(&u, u.b.now + 60 * NS_PER_SEC), 0, 4);
	up_close(&u);
}

TEST(vlan_tag_is_added_and_removed)
{
	struct uplink_fixture u;
	struct frame_spec f;
	struct pkt in;

	up_open_vlan(&u, 42);
	up_resolve(&u, u.b.other);
	f = up_to_peer(&u, u.b.addr, u.b.other);
	up_post(&u, &f);
	up_pass(&u);
	assert_true(up_sent(&u));
	assert_memory_equal(u.frame + 12, "\x81\x00\x00\x2a\x08\x00", 6);
	expect_sent(&u, &f, 18);
	/* A congestion notification has priority 6. */
	f.opcode = OPCODE_CNP;
	f.payload = CNP_PAYLOAD;
	up_post(&u, &f);
	up_pass(&u);
	assert_true(up_sent(&u));
	assert_memory_equal(u.frame + 12, "\x81\x00\xc0\x2a\x08\x00", 6);
	expect_sent(&u, &f, 18);
	/* A received frame loses its tag. */
	f = frame_spec_valid(&u.b);
	memcpy(f.sgid, u.b.other, 16);
	f.dest_qpn = u.b.c[1].qpn;
	in = (struct pkt){.data = u.frame,
		.len = (uint16_t)(frame_spec_build(u.frame + 4, &f) + 4)};
	memmove(u.frame, u.frame + 4, 12);
	memcpy(u.frame + 12, "\x81\x00\x00\x2a", 4);
	assert_true(fake_arrive(&u.port, 0, &in));
	up_pass(&u);
	assert_true(client_received(&u.b.c[1], &f));
	/* Frames of another VLAN and untagged frames are dropped. */
	u.frame[15] = 0x2b;
	assert_true(fake_arrive(&u.port, 0, &in));
	in.len = frame_spec_build(u.frame, &f);
	assert_true(fake_arrive(&u.port, 0, &in));
	up_pass(&u);
	assert_int_equal(u.up->stats.drop[DROP_vlan], 2);
	assert_false(client_received(&u.b.c[1], NULL));
	up_close(&u);
}

TEST(full_port_blocks_remote_traffic_only)
{
	struct uplink_fixture u;
	struct frame_spec f, local;
	struct fixture_client *c;
	unsigned sent = 0;
	uint32_t other;

	up_open(&u);
	c = &u.b.c[0];
	up_resolve(&u, u.b.other);
	f = up_to_peer(&u, u.b.addr, u.b.other);
	u.port.q[0].tx_take = 0;
	/* Fills the TX backlog, then the client's ring. */
	for (; sent < PORT_IO_BACKLOG + CLIENT_SLOTS; sent++) {
		f.payload = sent;
		up_post(&u, &f);
		up_pass(&u);
	}
	assert_true(c->client->stats.tx_blocked != 0);
	assert_int_equal(c->client->stats.tx_packets, PORT_IO_BACKLOG);
	assert_false(sw_sleep(u.b.sw));
	/* Local traffic goes on. */
	local = frame_spec_valid(&u.b);
	other = local.dest_qpn = client_take_qpn(&u.b, c);
	assert_int_equal(client_set_peer(&u.b, c, other, u.b.addr, u.b.c[1].qpn), 0);
	assert_int_equal(
		client_set_peer(&u.b, &u.b.c[1], u.b.c[1].qpn, u.b.addr, other), 0);
	client_send(&u.b, &u.b.c[1], u.b.c[1].qpn, &local);
	assert_true(client_received(c, &local));
	/* When the port takes frames again, all leave in order. */
	u.port.q[0].tx_take = 7;
	for (unsigned i = 0; i < sent; i++) {
		while (!up_sent(&u))
			up_pass(&u);
		f.payload = i;
		expect_sent(&u, &f, 14);
	}
	assert_int_equal(u.up->stats.tx_given_up, 0);
	up_close(&u);
}

/* The port was idle for long, and is busy only for a moment. */
TEST(control_answer_waits_for_a_busy_port)
{
	uint8_t mac[6], room[256];
	struct pkt frame = {.data = room, .room = sizeof(room)};
	struct uplink_fixture u;

	up_open(&u);
	up_pass(&u);
	assert_false(up_sent(&u));
	u.b.now += 10 * UPLINK_STALL_NS;
	assert_int_equal(net_resolve(u.peer, u.b.addr, mac, u.b.now), -EAGAIN);
	while (net_tx(u.peer, &frame, 1, u.b.now) != 0)
		assert_true(fake_arrive(&u.port, 0, &frame));
	u.port.q[0].tx_take = 0;
	up_pass(&u);
	assert_int_equal(u.up->stats.tx_given_up, 0);
	u.port.q[0].tx_take = UINT32_MAX;
	up_pass(&u);
	assert_false(up_sent(&u));
	assert_int_equal(net_resolve(u.peer, u.b.addr, mac, u.b.now), 0);
	assert_memory_equal(mac, u.port.port.mac, 6);
	up_close(&u);
}

TEST(stalled_port_drops_frames)
{
	unsigned sent = 0;
	struct uplink_fixture u;
	struct frame_spec f;

	up_open(&u);
	up_resolve(&u, u.b.other);
	f = up_to_peer(&u, u.b.addr, u.b.other);
	u.port.q[0].tx_take = 0;
	for (unsigned i = 0; i < 5; i++)
		up_post(&u, &f);
	up_pass(&u);
	u.b.now += UPLINK_STALL_NS;
	up_pass(&u);
	assert_int_equal(u.up->stats.tx_given_up, 5);
	assert_int_equal(u.up->io.backlog_count, 0);
	/* Without TX buffers the packets stay in the client's ring. */
	u.port.alloc_left = 0;
	for (unsigned i = 0; i < PKT_BURST + 5; i++) {
		up_post(&u, &f);
		up_pass(&u);
	}
	assert_true(u.up->stats.tx_no_buffer != 0);
	u.port.q[0].tx_take = UINT32_MAX;
	u.port.alloc_left = 1000;
	up_pass(&u);
	up_pass(&u);
	while (up_sent(&u))
		sent++;
	assert_int_equal(sent, PKT_BURST + 5);
	up_close(&u);
}

TEST(clients_see_link_and_address_changes)
{
	struct sw_request request = {.type = SW_DEVICE_INFO};
	struct sw_reply reply;
	struct uplink_fixture u;
	struct frame_spec f;
	struct region_daemon *head;
	struct net_conf net;
	struct sw_stats *stats;
	unsigned woken;

	up_open(&u);
	up_resolve(&u, u.b.other);
	stats = &u.b.c[0].client->stats;
	head = u.b.c[0].region.daemon;
	f = up_to_peer(&u, u.b.addr, u.b.other);
	u.port.link_down = true;
	u.b.now += PORT_IO_LINK_POLL_NS;
	woken = u.b.c[0].woken;
	up_pass(&u);
	assert_int_equal(head->link_down, 1);
	client_request(&u.b, &u.b.c[0], &request, &reply);
	assert_int_equal(reply.device.link_up, 0);
	assert_int_equal(head->changes, 1);
	assert_int_equal(u.b.c[0].woken, woken + 1);
	up_post(&u, &f);
	up_pass(&u);
	assert_int_equal(stats->drop_no_link, 1);
	/* A client that attaches now sees it too. */
	client_detach(&u.b.c[2]);
	client_attach(&u.b, &u.b.c[2]);
	assert_int_equal(u.b.c[2].region.daemon->link_down, 1);
	u.port.link_down = false;
	u.b.now += PORT_IO_LINK_POLL_NS;
	up_pass(&u);
	assert_int_equal(head->link_down, 0);
	assert_int_equal(head->changes, 2);
	/* The address of client 0's connection is removed. */
	net = u.b.sw->conf.net;
	net.addr[0] = net.addr[1];
	net.addr_count = 1;
	assert_int_equal(uplink_set_net(u.up, &net), 0);
	sw_set_net(u.b.sw, &net);
	up_post(&u, &f);
	up_pass(&u);
	assert_int_equal(stats->drop_peer, 1);
	assert_int_equal(
		client_set_peer(&u.b, &u.b.c[0], u.b.c[0].qpn, u.b.other, 0x77), EINVAL);
	up_close(&u);
}

TEST(frames_beyond_the_mtu_are_dropped)
{
	struct uplink_fixture u;
	struct frame_spec f;

	up_open(&u);
	up_resolve(&u, u.b.other);
	f = up_to_peer(&u, u.b.addr, u.b.other);
	f.payload = PORT_MTU - 44; /* IPv4, UDP, BTH, ICRC */
	up_post(&u, &f);
	up_pass(&u);
	assert_true(up_sent(&u));
	f.payload += 4;
	up_post(&u, &f);
	up_pass(&u);
	assert_false(up_sent(&u));
	assert_int_equal(u.b.c[0].client->stats.drop_too_long, 1);
	up_close(&u);
}
