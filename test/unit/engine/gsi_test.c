/* SPDX-License-Identifier: BSD-3-Clause */
/* QP 1: which datagrams are delivered to its user, how the user's datagrams are sent, and
 * how they wait for a neighbour. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_byteorder.h>

#include "engine/engine_gsi.h"
#include "engine/engine_state.h"
#include "engine_link.h"
#include "port/neigh.h"

static struct engine_link fixture;

struct user {
	struct gsi_msg in[64], out[64];
	unsigned in_count, out_count, out_next;
	uint64_t due;
};
static struct user user_a, user_b;

static void
on_rx(void *arg, const struct gsi_msg *msg, uint64_t now)
{
	struct user *u = arg;

	assert_int_equal(now, fixture.now);
	assert_true(u->in_count < RTE_DIM(u->in));
	u->in[u->in_count++] = *msg;
}

static bool
on_tx(void *arg, struct gsi_msg *msg, uint64_t now)
{
	struct user *u = arg;

	(void)now;
	u->due = TIME_NEVER;
	if (u->out_next == u->out_count)
		return false;
	*msg = u->out[u->out_next++];
	return true;
}

static void
user_register(struct link_side *s, struct user *u)
{
	struct gsi_user user = {.rx = on_rx, .tx = on_tx, .arg = u, .due = &u->due};

	*u = (struct user){.due = TIME_NEVER};
	assert_int_equal(dev_gsi_set(s->dev, GSI_USER_CM, &user), 0);
	assert_int_equal(dev_gsi_set(s->dev, GSI_USER_CM, &user), -EBUSY);
}

static void
message_queue(struct link_side *s, struct user *u, const char *to, uint8_t fill)
{
	struct gsi_msg *msg = &u->out[u->out_count++];

	assert_int_equal(gid_parse(to, msg->dgid, NULL), 0);
	memcpy(msg->sgid, s->dev->gids[gid_is_ipv4(msg->dgid) ? 0 : 1], 16);
	memset(msg->bytes, fill, GSI_LEN);
	u->due = 0;
}

TEST(messages_reach_peer_in_order)
{
	char link_local[46];

	engine_link_init(&fixture, NULL);
	user_register(&fixture.a, &user_a);
	user_register(&fixture.b, &user_b);
	/* The first waits for ARP; the others queue behind it. */
	for (uint8_t i = 0; i < 5; i++)
		message_queue(&fixture.a, &user_a, "192.0.2.2", (uint8_t)(i + 1));
	gid_format(fixture.b.dev->gids[1], link_local, sizeof(link_local));
	message_queue(&fixture.a, &user_a, link_local, 9);
	engine_link_advance(&fixture, 100 * NS_PER_MS);
	assert_int_equal(user_b.in_count, 6);
	for (unsigned i = 0; i < 6; i++) {
		const struct gsi_msg *msg = &user_b.in[i];
		unsigned fill = msg->bytes[0];

		assert_memory_equal(msg->dgid, fixture.a.dev->gids[fill == 9], 16);
		assert_memory_equal(msg->sgid, fixture.b.dev->gids[fill == 9], 16);
		for (unsigned k = 0; k < GSI_LEN; k++)
			assert_int_equal(msg->bytes[k], fill);
	}
	for (unsigned i = 0; i < 5; i++) /* in the order in which they were sent */
		assert_int_equal(user_b.in[i].bytes[0], i + 1);
	dev_gsi_clear(fixture.a.dev, GSI_USER_CM);
	dev_gsi_clear(fixture.b.dev, GSI_USER_CM);
	engine_link_fini(&fixture);
}

static bool
claims_odd(void *arg, const struct gsi_msg *msg)
{
	(void)arg;
	return msg->bytes[0] % 2 == 1;
}

static bool
claims_large(void *arg, const struct gsi_msg *msg)
{
	(void)arg;
	return msg->bytes[0] >= 8;
}

/* Each of two users gets what it claims, and the first one what neither does. Both send. */
TEST(two_users_share_qp_1)
{
	static struct user odd, large;
	struct gsi_user first = {.claims = claims_odd,
		.rx = on_rx,
		.tx = on_tx,
		.arg = &odd,
		.due = &odd.due};
	struct gsi_user second = {.claims = claims_large,
		.rx = on_rx,
		.tx = on_tx,
		.arg = &large,
		.due = &large.due};
	static const uint8_t fills[] = {1, 8, 2, 9};
	struct dev *dev;

	engine_link_init(&fixture, NULL);
	dev = fixture.a.dev;
	user_register(&fixture.b, &user_b);
	odd = (struct user){.due = TIME_NEVER};
	large = (struct user){.due = TIME_NEVER};
	assert_int_equal(dev_gsi_set(dev, GSI_USER_CM, &first), 0);
	assert_int_equal(dev_gsi_set(dev, GSI_USER_RDMACM, &second), 0);
	assert_int_equal(dev_gsi_set(dev, GSI_USER_RDMACM, &second), -EBUSY);
	for (unsigned i = 0; i < RTE_DIM(fills); i++)
		message_queue(&fixture.b, &user_b, "192.0.2.1", fills[i]);
	engine_link_advance(&fixture, 100 * NS_PER_MS);
	assert_int_equal(odd.in_count, 3);
	assert_int_equal(odd.in[0].bytes[0], 1);
	assert_int_equal(odd.in[1].bytes[0], 2); /* neither claims this one */
	assert_int_equal(odd.in[2].bytes[0], 9); /* and both this one */
	assert_int_equal(large.in_count, 1);
	assert_int_equal(large.in[0].bytes[0], 8);
	message_queue(&fixture.a, &large, "192.0.2.2", 20);
	dev_gsi_due(dev);
	engine_link_advance(&fixture, NS_PER_MS);
	assert_int_equal(user_b.in_count, 1);
	message_queue(&fixture.a, &odd, "192.0.2.2", 21);
	message_queue(&fixture.a, &large, "192.0.2.2", 22);
	dev_gsi_due(dev);
	engine_link_advance(&fixture, NS_PER_MS);
	assert_int_equal(user_b.in_count, 3);
	/* The other one goes on alone. */
	dev_gsi_clear(dev, GSI_USER_CM);
	message_queue(&fixture.b, &user_b, "192.0.2.1", 1);
	message_queue(&fixture.a, &large, "192.0.2.2", 23);
	engine_link_advance(&fixture, NS_PER_MS);
	assert_int_equal(large.in_count, 2);
	assert_int_equal(user_b.in_count, 4);
	dev_gsi_clear(dev, GSI_USER_RDMACM);
	message_queue(&fixture.b, &user_b, "192.0.2.1", 1);
	engine_link_advance(&fixture, NS_PER_MS);
	assert_int_equal(large.in_count + odd.in_count, 5);
	dev_gsi_clear(fixture.b.dev, GSI_USER_CM);
	engine_link_fini(&fixture);
}

/* A datagram to a local address is looped back: nothing is sent. */
TEST(message_to_local_address_is_looped_back)
{
	struct port_stats stats;

	engine_link_init(&fixture, NULL);
	engine_link_advance(&fixture, 10 * NS_PER_SEC); /* announcements are over */
	user_register(&fixture.a, &user_a);
	fixture.a.roce_frames = fixture.b.roce_frames = 0;
	message_queue(&fixture.a, &user_a, "192.0.2.1", 3);
	engine_link_advance(&fixture, NS_PER_MS);
	assert_int_equal(user_a.in_count, 1);
	assert_int_equal(user_a.in[0].bytes[255], 3);
	assert_memory_equal(user_a.in[0].dgid, user_a.in[0].sgid, 16);
	assert_int_equal(fixture.b.roce_frames, 0);
	dev_stats(fixture.a.dev, &stats);
	assert_int_equal(stats.tx_loopback, 1);
	dev_gsi_clear(fixture.a.dev, GSI_USER_CM);
	engine_link_fini(&fixture);
}

/* An answer goes to the MAC that the request came from: it costs no resolution, and no
 * user's place in the neighbour table. */
TEST(answers_need_no_resolution)
{
	const struct neigh *e;
	struct net *net;

	engine_link_init(&fixture, NULL);
	engine_link_advance(&fixture, 10 * NS_PER_SEC); /* announcements are over */
	user_register(&fixture.a, &user_a);
	user_register(&fixture.b, &user_b);
	net = fixture.b.dev->net;
	for (uint8_t i = 1; i <= 2; i++) {
		neigh_flush(net, true); /* b learns a's MAC from its ARP request */
		message_queue(&fixture.a, &user_a, "192.0.2.2", i);
		engine_link_advance(&fixture, 10 * NS_PER_MS);
		assert_int_equal(user_b.in_count, i);
	}
	message_queue(&fixture.b, &user_b, "192.0.2.1", 3);
	user_b.out[user_b.out_count - 1].answer = true;
	engine_link_advance(&fixture, 10 * NS_PER_MS);
	assert_int_equal(user_a.in_count, 1);
	e = neigh_find(net, user_b.in[0].dgid);
	assert_non_null(e);
	assert_false(e->wanted);
	assert_int_equal(e->state, NEIGH_STALE);
	dev_gsi_clear(fixture.a.dev, GSI_USER_CM);
	dev_gsi_clear(fixture.b.dev, GSI_USER_CM);
	engine_link_fini(&fixture);
}

/* An unresolvable neighbour: datagrams are dropped when ARP fails, and at once when the
 * queue of unresolved ones is full. */
TEST(unresolvable_messages_are_dropped)
{
	struct port_stats stats;

	engine_link_init(&fixture, NULL);
	user_register(&fixture.a, &user_a);
	user_register(&fixture.b, &user_b);
	for (unsigned i = 0; i < 40; i++)
		message_queue(&fixture.a, &user_a, "192.0.2.99", 1);
	/* Datagrams to other destinations are still sent. */
	message_queue(&fixture.a, &user_a, "192.0.2.2", 2);
	engine_link_advance(&fixture, 500 * NS_PER_MS);
	dev_stats(fixture.a.dev, &stats);
	assert_in_range(stats.tx_no_neighbour, 8, 9);
	engine_link_advance(&fixture, 2 * NS_PER_SEC);
	dev_stats(fixture.a.dev, &stats);
	assert_in_range(stats.tx_no_neighbour, 40, 41);
	user_a.out_count = user_a.out_next = 0;
	message_queue(&fixture.a, &user_a, "192.0.2.2", 2);
	engine_link_advance(&fixture, 100 * NS_PER_MS);
	assert_true(user_b.in_count >= 1);
	assert_int_equal(user_b.in[0].bytes[0], 2);
	/* No route. */
	message_queue(&fixture.a, &user_a, "203.0.113.1", 1);
	engine_link_advance(&fixture, NS_PER_MS);
	dev_stats(fixture.a.dev, &stats);
	assert_in_range(stats.tx_no_neighbour, 41, 42);
	dev_gsi_clear(fixture.a.dev, GSI_USER_CM);
	dev_gsi_clear(fixture.b.dev, GSI_USER_CM);
	engine_link_fini(&fixture);
}

/* Sends a datagram for b's QP 1 with one field changed; returns the reason of the
 * drop. */
static enum drop_reason
datagram_drop_reason(unsigned what)
{
	struct path_addr addr = {.udp_sport = 0xC123, .hop_limit = 1};
	struct bth_fields bth = {.dest_qpn = 1,
		.pkey = what == 1   ? 0x1234
			: what == 2 ? 0x7FFF
				    : 0xFFFF,
		.opcode = what == 3 ? OPCODE_UD_SEND_ONLY_IMM : OPCODE_UD_SEND_ONLY};
	uint32_t len = what == 4 ? 252 : what == 5 ? 260 : 256;
	uint8_t *data = calloc(1, 512);
	struct pkt frame = {.data = data, .room = 512};
	struct port_stats before, after;
	struct path_hdr hdr;
	struct deth *deth;

	memcpy(addr.src_gid, fixture.a.dev->gids[0], 16);
	memcpy(addr.dst_gid, fixture.b.dev->gids[0], 16);
	addr.dst_gid[15] ^= what == 6 ? 0x40 : 0;
	memcpy(addr.src_mac, fixture.a.dev->port.mac, 6);
	memcpy(addr.dst_mac, fixture.b.dev->port.mac, 6);
	path_hdr_init(&hdr, &addr);
	deth = (struct deth *)frame_begin(&hdr, &frame, &bth, len);
	deth->qkey = rte_cpu_to_be_32(what == 7 ? 0x80010001 : GSI_QKEY);
	be24_put(deth->src_qpn, what == 8 ? 2 : 1);
	memset(frame_payload(&hdr, &frame, bth.opcode), 7, len);
	frame_end(&hdr, &frame, len);
	dev_stats(fixture.b.dev, &before);
	assert_true(fake_arrive(&fixture.b.port, 0, &frame));
	engine_run(fixture.b.dev->engines[0], fixture.now);
	dev_stats(fixture.b.dev, &after);
	free(data);
	for (unsigned i = 0; i < DROP_COUNT; i++)
		if (after.drop[i] != before.drop[i])
			return (enum drop_reason)i;
	return DROP_none;
}

TEST(invalid_datagrams_are_dropped)
{
	static const enum drop_reason why[] = {DROP_none, DROP_pkey, DROP_none,
		DROP_qp_type, DROP_length, DROP_length, DROP_address, DROP_qkey,
		DROP_qpn};

	engine_link_init(&fixture, NULL);
	assert_int_equal(datagram_drop_reason(0), DROP_qpn); /* no user yet */
	user_register(&fixture.b, &user_b);
	for (unsigned what = 0; what < RTE_DIM(why); what++) {
		unsigned count = user_b.in_count;

		assert_int_equal(datagram_drop_reason(what), why[what]);
		assert_int_equal(user_b.in_count - count, why[what] == DROP_none);
	}
	dev_gsi_clear(fixture.b.dev, GSI_USER_CM);
	assert_int_equal(datagram_drop_reason(0), DROP_qpn);
	engine_link_fini(&fixture);
}
