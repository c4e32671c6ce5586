/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies for rocade-dump of packets that come from the daemon's port, or go there. */
#include "switch/sw_dump.h"
#include "uplink_fixture.h"

/* Client 2 has no QP, and gets copies of all packets. */
static void
dump_open(struct uplink_fixture *u, uint32_t threads)
{
	const struct sw_dump_filter all = {.directions = SW_DUMP_IN | SW_DUMP_OUT};
	struct sw_request req = {.type = SW_QPN_GIVE};
	struct sw_reply reply;

	up_open_threads(u, 0, threads);
	req.qpn = u->b.c[2].qpn;
	client_request(&u->b, &u->b.c[2], &req, &reply);
	assert_int_equal(reply.error, 0);
	assert_int_equal(sw_dump_set(u->b.c[2].client, &all, true, 0), 0);
}

/* The next copy is of this frame, whole but for the Ethernet header, which is the switch's. */
static void
expect_copy(struct uplink_fixture *u, const struct frame_spec *f, unsigned client,
	uint32_t qpn, uint32_t direction)
{
	struct fixture_client *c = &u->b.c[2];
	uint8_t want[CLIENT_BUF_SIZE];
	uint16_t len = frame_spec_build(want, f);
	struct sw_dump_head head;
	const uint8_t *got;

	assert_true(ring_cons_refresh(&c->rx));
	assert_int_not_equal(ring_count(&c->rx), 0);
	got = region_rx_buf(&c->region, c->rx.cons & c->rx.mask);
	memcpy(&head, got, sizeof(head));
	assert_int_equal(head.client, u->b.c[client].client->id);
	assert_int_equal(head.qpn, qpn);
	assert_int_equal(head.direction, direction);
	assert_int_equal(head.len, len);
	assert_memory_equal(got + sizeof(head), u->b.sw->conf.net.mac, 6);
	assert_memory_equal(got + sizeof(head) + 12, want + 12, len - 12u);
	ring_release(&c->rx, 1);
}

static void
expect_no_copy(struct uplink_fixture *u)
{
	assert_false(client_received(&u->b.c[2], NULL));
}

static void
arrive_copied(struct uplink_fixture *u, const struct frame_spec *f, uint32_t qpn)
{
	uint8_t frame[CLIENT_BUF_SIZE];
	struct pkt in = {.data = frame, .len = frame_spec_build(frame, f)};

	assert_true(fake_arrive(&u->port, 0, &in));
	up_pass(u);
	assert_true(client_received(&u->b.c[1], f));
	expect_copy(u, f, 1, qpn, SW_DUMP_IN);
	expect_no_copy(u);
}

TEST(packets_from_the_port)
{
	uint8_t gid[16];
	struct uplink_fixture u;
	struct frame_spec f;

	dump_open(&u, 1);
	f = frame_spec_valid(&u.b);
	memcpy(f.sgid, u.b.other, 16);
	for (f.payload = 0; f.payload < 5; f.payload++)
		arrive_copied(&u, &f, u.b.c[1].qpn);
	assert_int_equal(gid_parse("239.1.1.1", gid, NULL), 0);
	assert_int_equal(sw_group_join(u.b.sw, u.b.c[1].qpn, gid), 0);
	f.opcode = OPCODE_UD_SEND_ONLY;
	f.dest_qpn = QPN_MULTICAST;
	memcpy(f.dgid, gid, 16);
	arrive_copied(&u, &f, QPN_MULTICAST);
	up_close(&u);
}

TEST(packets_to_the_port)
{
	struct uplink_fixture u;
	struct frame_spec f;

	dump_open(&u, 1);
	f = frame_spec_valid(&u.b);
	f.dest_qpn = 0x77;
	memcpy(f.dgid, u.b.other, 16);
	assert_int_equal(
		client_set_peer(&u.b, &u.b.c[0], u.b.c[0].qpn, u.b.other, 0x77), 0);
	for (unsigned i = 0; i < 3; i++) /* ARP */
		up_pass(&u);
	assert_false(up_sent(&u));
	up_post(&u, &f);
	up_pass(&u);
	expect_copy(&u, &f, 0, u.b.c[0].qpn, SW_DUMP_OUT);
	expect_no_copy(&u);
	/* Without a link it is dropped, and not copied. */
	u.up->link_up = false;
	up_post(&u, &f);
	sw_run(u.b.sw, u.b.now);
	assert_int_equal(u.b.c[0].client->stats.drop_no_link, 1);
	expect_no_copy(&u);
	u.up->link_up = true;
	up_close(&u);
}

/* A thread hands copies over to the thread of the client that dumps. A packet to a group is handed
 * over in one piece, and the thread of its member copies it. */
TEST(copies_of_another_thread)
{
	struct uplink_fixture u;
	struct fixture_client *from;
	struct sw_thread *other;
	struct frame_spec f;
	uint8_t gid[16];

	dump_open(&u, 2);
	from = &u.b.c[1];
	other = u.b.sw->threads[1];
	assert_ptr_equal(from->client->thread, other);
	assert_ptr_equal(u.b.c[2].client->thread, u.b.sw->threads[0]);
	f = frame_spec_valid(&u.b);
	f.dest_qpn = u.b.c[0].qpn;
	client_post(from, 0, from->qpn,
		frame_spec_build(region_tx_buf(&from->region, 0), &f));
	sw_thread_run(other, u.b.now);
	expect_no_copy(&u);
	sw_run(u.b.sw, u.b.now);
	assert_true(client_received(&u.b.c[0], &f));
	expect_copy(&u, &f, 1, from->qpn, SW_DUMP_OUT);
	expect_copy(&u, &f, 0, u.b.c[0].qpn, SW_DUMP_IN);
	expect_no_copy(&u);
	assert_int_equal(gid_parse("239.1.1.1", gid, NULL), 0);
	assert_int_equal(sw_group_join(u.b.sw, from->qpn, gid), 0);
	f = frame_spec_valid(&u.b);
	memcpy(f.sgid, u.b.other, 16);
	f.opcode = OPCODE_UD_SEND_ONLY;
	f.dest_qpn = QPN_MULTICAST;
	f.payload = 200;
	memcpy(f.dgid, gid, 16);
	{
		uint8_t frame[CLIENT_BUF_SIZE];
		struct pkt in = {.data = frame, .len = frame_spec_build(frame, &f)};

		assert_true(fake_arrive(&u.port, 0, &in));
	}
	up_pass(&u);
	sw_thread_run(other, u.b.now);
	assert_true(client_received(from, &f));
	sw_run(u.b.sw, u.b.now);
	expect_copy(&u, &f, 1, QPN_MULTICAST, SW_DUMP_IN);
	expect_no_copy(&u);
	up_close(&u);
}

/* A thread without the next hop hands its client's packets over to thread 0: they are copied as the
 * later ones, which it sends itself. */
TEST(packets_that_thread_0_sends)
{
	struct uplink_fixture u;
	struct fixture_client *from;
	struct frame_spec f;

	dump_open(&u, 2);
	from = &u.b.c[1];
	f = frame_spec_valid(&u.b);
	f.dest_qpn = 0x77;
	memcpy(f.dgid, u.b.other, 16);
	assert_int_equal(client_set_peer(&u.b, from, from->qpn, u.b.other, 0x77), 0);
	for (unsigned i = 0; i < 3; i++) /* ARP */
		up_pass(&u);
	assert_false(up_sent(&u));
	for (unsigned i = 0; i < 2; i++) {
		f.payload = i;
		client_post(from, 0, from->qpn,
			frame_spec_build(region_tx_buf(&from->region, 0), &f));
		sw_thread_run(u.b.sw->threads[1], u.b.now);
		up_pass(&u);
		assert_true(up_sent(&u));
		expect_copy(&u, &f, 1, from->qpn, SW_DUMP_OUT);
		expect_no_copy(&u);
	}
	assert_int_equal(from->client->control_stats.tx_packets, 1);
	assert_int_equal(from->client->stats.tx_packets, 1);
	up_close(&u);
}

/* No client sends to the one that dumps: its full ring holds no sender, and takes none of the time for
 * which its user's clients may hold some. */
TEST(full_ring_of_copies_holds_no_sender)
{
	struct uplink_fixture u;
	struct fixture_client *from;
	struct sw_hold before;
	struct frame_spec f;

	dump_open(&u, 2);
	from = &u.b.c[1];
	f = frame_spec_valid(&u.b);
	f.dest_qpn = u.b.c[0].qpn;
	before = u.b.c[2].client->user->holds[0];
	for (unsigned i = 0; i < CLIENT_SLOTS; i++) {
		client_post(from, 0, from->qpn,
			frame_spec_build(region_tx_buf(&from->region, 0), &f));
		sw_thread_run(u.b.sw->threads[1], u.b.now);
		u.b.now += NS_PER_US;
		sw_run(u.b.sw, u.b.now);
		assert_true(client_received(&u.b.c[0], &f));
	}
	assert_int_not_equal(u.b.c[2].client->stats.rx_full, 0);
	assert_false(u.b.c[2].client->holding);
	assert_int_equal(u.b.c[2].client->user->holds[0].credit, before.credit);
	up_close(&u);
}
