/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets to a QP that is not connected yet wait for it. */
#include "uplink_fixture.h"

#include "switch/handover.h"
#include "switch/route.h"
#include "switch/sw_wait.h"

#define ALICE 1000
#define BOB 1001

static struct switch_fixture b;

static void
peer_end(unsigned client, uint32_t type, uint32_t qpn)
{
	struct sw_request req = {.type = type, .qpn = qpn};
	struct sw_reply reply;

	client_request(&b, &b.c[client], &req, &reply);
	assert_int_equal(reply.error, 0);
}

static void
connect_to(unsigned client, uint32_t qpn, uint32_t dest_qpn)
{
	assert_int_equal(client_set_peer(&b, &b.c[client], qpn, b.addr, dest_qpn), 0);
}

static const struct sw_stats *
stats(unsigned client)
{
	return &b.c[client].client->stats;
}

static uint32_t
user_holds(unsigned client)
{
	return b.c[client].client->user->waiting[b.c[client].client->thread->index];
}

/* Clients 0 and 1 are Alice's, client 2 is Bob's. The QP of client 0 has registered that of client
 * 1, which has no peer. Returns a packet between them. */
static struct frame_spec
waiting_open(void)
{
	fixture_open_users(&b, (const uint32_t[CLIENTS]){ALICE, ALICE, BOB});
	b.now = NS_PER_SEC;
	peer_end(1, SW_PEER_CLEAR, b.c[1].qpn);
	sw_run(b.sw, b.now);
	return frame_spec_valid(&b);
}

/* Everything that waited has been delivered or dropped. */
static void
waiting_close(void)
{
	for (uint32_t i = 0; i < b.sw->thread_count; i++) {
		const struct sw_wait *w = b.sw->threads[i]->wait;

		assert_true(TAILQ_EMPTY(&w->waiting) && TAILQ_EMPTY(&w->ready));
		assert_int_equal(w->packets.used, 0);
		assert_int_equal(w->packets.shared_used, 0);
	}
	for (unsigned i = 0; i < CLIENTS; i++) {
		if (b.c[i].client == NULL)
			continue;
		assert_int_equal(b.c[i].client->waiting, 0);
		assert_int_equal(user_holds(i), 0);
	}
	fixture_close(&b);
}

static void
send_psn(unsigned client, struct frame_spec *f, uint32_t psn)
{
	f->psn = psn;
	client_send(&b, &b.c[client], b.c[client].qpn, f);
}

static void
expect_psns(unsigned client, struct frame_spec *f, uint32_t from, uint32_t to)
{
	for (f->psn = from; f->psn != to; f->psn++)
		assert_true(client_received(&b.c[client], f));
	assert_false(client_received(&b.c[client], NULL));
}

static void
time_pass(uint64_t ns)
{
	b.now += ns;
	sw_run(b.sw, b.now);
}

/* They are delivered in order when the QP registers its peer, without a pass, and the next ones
 * after them. */
TEST(packets_wait_for_their_qp)
{
	struct frame_spec f = waiting_open();
	uint64_t sent = stats(0)->tx_packets;

	for (uint32_t psn = 0; psn < 4; psn++)
		send_psn(0, &f, psn);
	assert_false(client_received(&b.c[1], NULL));
	assert_int_equal(stats(0)->waited, 4);
	assert_int_equal(stats(0)->tx_packets, sent);
	assert_int_equal(b.c[0].client->waiting, 4);
	assert_int_equal(user_holds(0), 4);
	/* The daemon may sleep meanwhile. */
	assert_true(sw_sleep(b.sw));
	sw_awake(b.sw);
	connect_to(1, b.c[1].qpn, b.c[0].qpn);
	expect_psns(1, &f, 0, 4);
	assert_int_equal(stats(0)->tx_packets, sent + 4);
	send_psn(0, &f, 4);
	expect_psns(1, &f, 4, 5);
	assert_int_equal(stats(0)->waited, 4);
	waiting_close();
}

/* A sender repeats what is not answered. No second copy is kept. */
TEST(repeated_packets_wait_once)
{
	struct frame_spec f = waiting_open();

	for (unsigned i = 0; i < 3; i++)
		for (uint32_t psn = 0xFFFFFE; psn != 0x1000001; psn++)
			send_psn(0, &f, psn & PSN_MASK);
	assert_int_equal(stats(0)->waited, 3);
	assert_int_equal(stats(0)->drop_not_ready, 0);
	connect_to(1, b.c[1].qpn, b.c[0].qpn);
	f.psn = 0xFFFFFE;
	assert_true(client_received(&b.c[1], &f));
	f.psn = 0xFFFFFF;
	assert_true(client_received(&b.c[1], &f));
	expect_psns(1, &f, 0, 1);
	waiting_close();
}

/* The other QPs of both clients go on. */
TEST(other_qps_go_on)
{
	struct frame_spec f = waiting_open(), other = f;
	uint32_t from = client_take_qpn(&b, &b.c[0]), to = client_take_qpn(&b, &b.c[1]);

	connect_to(0, from, to);
	connect_to(1, to, from);
	other.dest_qpn = to;
	send_psn(0, &f, 0);
	client_send(&b, &b.c[0], from, &other);
	assert_true(client_received(&b.c[1], &other));
	assert_false(client_received(&b.c[1], NULL));
	time_pass(SW_WAIT_NS);
	waiting_close();
}

/* A QP without a peer has requested nothing that could be answered. */
TEST(responses_do_not_wait)
{
	struct frame_spec f = waiting_open();

	f.payload = 0;
	f.opcode = OPCODE_RC_ACKNOWLEDGE;
	send_psn(0, &f, 0);
	assert_int_equal(stats(0)->drop_not_connected, 1);
	f.opcode = OPCODE_CNP;
	f.payload = 16;
	send_psn(0, &f, 0);
	assert_int_equal(stats(0)->drop_not_connected, 2);
	assert_int_equal(stats(0)->waited, 0);
	waiting_close();
}

/* The packets of a QP are dropped together: later ones are of no use without the first. */
TEST(packets_wait_for_a_limited_time)
{
	struct frame_spec f = waiting_open();

	send_psn(0, &f, 0);
	time_pass(SW_WAIT_NS - 1);
	send_psn(0, &f, 1);
	assert_int_equal(stats(0)->drop_not_ready, 0);
	time_pass(1);
	assert_int_equal(stats(0)->drop_not_ready, 2);
	/* Sent again: that waits anew. */
	send_psn(0, &f, 0);
	assert_int_equal(stats(0)->waited, 3);
	time_pass(SW_WAIT_NS - 1);
	connect_to(1, b.c[1].qpn, b.c[0].qpn);
	expect_psns(1, &f, 0, 1);
	waiting_close();
}

/* The packets that wait of a QP, and of a client, are limited. */
TEST(packets_of_a_client_are_limited)
{
	struct frame_spec f = waiting_open();
	uint32_t qpn = b.c[0].qpn, psn = 0;

	while (psn < SW_WAIT_QP)
		send_psn(0, &f, psn++);
	assert_int_equal(stats(0)->drop_not_ready, 0);
	send_psn(0, &f, psn);
	assert_int_equal(stats(0)->drop_not_ready, 1);
	for (unsigned i = 1; i < CLIENT_QPS; i++) {
		b.c[0].qpn = client_take_qpn(&b, &b.c[0]);
		connect_to(0, b.c[0].qpn, f.dest_qpn);
		for (psn = 0; psn < SW_WAIT_QP; psn++)
			send_psn(0, &f, psn);
	}
	assert_int_equal(stats(0)->waited, SW_WAIT_CLIENT);
	assert_int_equal(
		stats(0)->drop_not_ready, 1 + CLIENT_QPS * SW_WAIT_QP - SW_WAIT_CLIENT);
	/* The QP names one peer: the packets of the others are dropped. */
	connect_to(1, f.dest_qpn, qpn);
	assert_int_equal(stats(0)->drop_not_connected, SW_WAIT_CLIENT - SW_WAIT_QP);
	for (uint32_t at = 0; at < SW_WAIT_QP; at += CLIENT_SLOTS) {
		expect_psns(1, &f, at, at + CLIENT_SLOTS);
		sw_run(b.sw, b.now);
	}
	assert_false(client_received(&b.c[1], NULL));
	waiting_close();
}

/* A user cannot take the part that is reserved for others. */
TEST(packets_of_a_user_are_limited)
{
	struct frame_spec f = waiting_open();
	struct account_limit *limit = &b.sw->threads[0]->wait->packets;

	account_limit_set(limit, 64, true);
	for (uint32_t psn = 0; psn < 64; psn++)
		send_psn(0, &f, psn);
	assert_int_equal(stats(0)->waited, limit->shared + limit->reserve);
	assert_int_equal(stats(0)->drop_not_ready, 64 - limit->shared - limit->reserve);
	connect_to(2, b.c[2].qpn, f.dest_qpn);
	for (uint32_t psn = 0; psn < 64; psn++)
		send_psn(2, &f, psn);
	assert_int_equal(stats(2)->waited, limit->reserve);
	time_pass(SW_WAIT_NS);
	waiting_close();
}

/* The receiver's ring is full: what is left goes first once there is room. Then the sender is
 * blocked, as by any full ring. */
TEST(full_ring_keeps_the_order)
{
	struct frame_spec f = waiting_open();
	struct ring_desc desc;
	uint32_t psn = 0;

	while (psn < CLIENT_SLOTS + 2)
		send_psn(0, &f, psn++);
	connect_to(1, b.c[1].qpn, b.c[0].qpn);
	assert_int_equal(b.c[0].client->waiting, 2);
	/* There is something to deliver. */
	assert_false(sw_sleep(b.sw));
	send_psn(0, &f, psn++);
	assert_int_equal(stats(0)->tx_blocked, 1);
	assert_int_equal(stats(0)->waited, CLIENT_SLOTS + 2);
	expect_psns(1, &f, 0, CLIENT_SLOTS);
	/* There is room now, and the sender's packet must not take it. */
	desc = ring_peek(&b.c[0].client->tx, 0);
	assert_false(sw_forward(b.c[0].client, &desc));
	sw_run(b.sw, b.now);
	expect_psns(1, &f, CLIENT_SLOTS, psn);
	assert_int_equal(stats(1)->rx_full, 0);
	assert_int_equal(stats(0)->tx_packets - stats(0)->waited, 1);
	waiting_close();
}

/* A receiver that takes nothing loses them, and the sender goes on. */
TEST(full_ring_blocks_for_a_limited_time)
{
	struct frame_spec f = waiting_open();

	for (uint32_t psn = 0; psn < CLIENT_SLOTS + 2; psn++)
		send_psn(0, &f, psn);
	connect_to(1, b.c[1].qpn, b.c[0].qpn);
	time_pass(SW_BACKPRESSURE_NS - 1);
	assert_int_equal(stats(1)->rx_full, 0);
	time_pass(1);
	assert_int_equal(stats(1)->rx_full, 2);
	waiting_close();
}

/* The QP is reset before the rest is delivered. */
TEST(reset_qp_gets_no_rest)
{
	struct frame_spec f = waiting_open();

	for (uint32_t psn = 0; psn < CLIENT_SLOTS + 2; psn++)
		send_psn(0, &f, psn);
	connect_to(1, b.c[1].qpn, b.c[0].qpn);
	peer_end(1, SW_PEER_CLEAR, b.c[1].qpn);
	expect_psns(1, &f, 0, CLIENT_SLOTS);
	sw_run(b.sw, b.now);
	assert_int_equal(stats(0)->drop_not_connected, 2);
	assert_false(client_received(&b.c[1], NULL));
	waiting_close();
}

enum end {
	SENDER_QP,
	SENDER_RESET,
	SENDER,
	RECEIVER_QP,
	RECEIVER,
	ENDS,
};

/* When an end goes, its packets are freed at once, also those that are to be delivered. */
TEST(ended_qps_leave_nothing)
{
	for (enum end end = 0; end < 2 * ENDS; end++) {
		struct frame_spec f = waiting_open();
		bool sender = end % ENDS <= SENDER, ready = end >= ENDS;
		struct fixture_client *c = &b.c[sender ? 0 : 1];

		for (uint32_t psn = 0; psn < CLIENT_SLOTS + 2; psn++)
			send_psn(0, &f, psn);
		if (ready)
			connect_to(1, b.c[1].qpn, b.c[0].qpn);
		if (end % ENDS == SENDER || end % ENDS == RECEIVER)
			client_detach(c);
		else
			peer_end(sender ? 0 : 1,
				end % ENDS == SENDER_RESET ? SW_PEER_CLEAR : SW_QPN_GIVE,
				c->qpn);
		sw_ended_free(b.sw);
		/* Counted before the client's counters are added to those of the departed. */
		if (end % ENDS == SENDER)
			assert_int_equal(b.sw->departed.drop_not_ready,
				ready ? 2 : CLIENT_SLOTS + 2);
		waiting_close();
	}
}

/* A packet from thread 1 to a client of thread 0, and the other way. */
TEST(packets_wait_in_the_thread_of_their_client)
{
	for (unsigned from = 0; from < 2; from++) {
		struct uplink_fixture u;
		struct frame_spec f;
		unsigned to = 1 - from;

		up_open_threads(&u, 0, 2);
		b = u.b;
		f = frame_spec_valid(&b);
		f.dest_qpn = b.c[to].qpn;
		peer_end(to, SW_PEER_CLEAR, b.c[to].qpn);
		for (uint32_t psn = 0; psn < 3; psn++) {
			send_psn(from, &f, psn);
			sw_thread_run(b.sw->threads[1], b.now);
		}
		assert_int_equal(b.sw->threads[from]->wait->packets.used, 3);
		assert_int_equal(b.sw->threads[to]->wait->packets.used, 0);
		connect_to(to, b.c[to].qpn, b.c[from].qpn);
		assert_int_equal(b.sw->threads[from]->wait->packets.used, 0);
		send_psn(from, &f, 3);
		for (unsigned i = 0; i < 2; i++) {
			sw_thread_run(b.sw->threads[1], b.now);
			sw_run(b.sw, b.now);
		}
		expect_psns(to, &f, 0, 4);
		u.b = b;
		up_close(&u);
	}
}

static unsigned woken[2];

static void
wake_count(void *arg, uint32_t index)
{
	(void)arg;
	woken[index]++;
}

/* A thread that may sleep has to look for room in the ring of the receiver's thread. */
TEST(thread_with_a_rest_is_woken)
{
	struct uplink_fixture u;
	struct frame_spec f;
	struct sw_thread *t;

	up_open_threads(&u, 0, 2);
	b = u.b;
	t = b.sw->threads[1];
	b.sw->wake_thread = wake_count;
	f = frame_spec_valid(&b);
	f.dest_qpn = b.c[0].qpn;
	peer_end(0, SW_PEER_CLEAR, b.c[0].qpn);
	send_psn(1, &f, 0);
	sw_thread_run(t, b.now);
	assert_true(sw_thread_sleep(t));
	sw_thread_awake(t);
	/* The receiver's thread lets no other thread send to it. */
	__atomic_store_n(&b.c[0].client->holding, true, __ATOMIC_RELAXED);
	connect_to(0, b.c[0].qpn, b.c[1].qpn);
	assert_int_equal(woken[1], 1);
	assert_int_equal(t->wait->packets.used, 1);
	assert_false(sw_thread_sleep(t));
	sw_thread_run(t, b.now);
	assert_int_equal(t->wait->packets.used, 1);
	__atomic_store_n(&b.c[0].client->holding, false, __ATOMIC_RELAXED);
	sw_thread_run(t, b.now);
	sw_run(b.sw, b.now);
	expect_psns(0, &f, 0, 1);
	u.b = b;
	up_close(&u);
}
