/* SPDX-License-Identifier: BSD-3-Clause */
/* The daemon's QP 1: datagrams to and from other machines. */
#include "uplink_fixture.h"

#include <rte_byteorder.h>

#include "engine/engine_gsi.h"
#include "port/neigh.h"

struct gsi_log {
	unsigned count;
	uint8_t bytes[GSI_LEN];
	uint8_t ours[16], theirs[16];
};

static void
gsi_received(void *arg, const uint8_t *bytes, const uint8_t ours[16],
	const uint8_t theirs[16], uint64_t now)
{
	struct gsi_log *h = arg;

	assert_true(now != 0);
	h->count++;
	memcpy(h->bytes, bytes, GSI_LEN);
	memcpy(h->ours, ours, 16);
	memcpy(h->theirs, theirs, 16);
}

static void
bytes_fill(uint8_t *bytes, uint8_t from)
{
	for (unsigned i = 0; i < GSI_LEN; i++)
		bytes[i] = (uint8_t)(from + i);
}

/* Fields of a datagram, valid or not. */
struct datagram_spec {
	uint8_t opcode;
	uint32_t dest_qpn, src_qpn, qkey;
	uint16_t pkey;
	uint32_t len;
	bool broken; /* one bit of the payload is wrong */
};

static struct datagram_spec
datagram_spec_valid(void)
{
	return (struct datagram_spec){.opcode = OPCODE_UD_SEND_ONLY,
		.dest_qpn = GSI_QPN,
		.src_qpn = GSI_QPN,
		.qkey = GSI_QKEY,
		.pkey = PKEY_DEFAULT,
		.len = GSI_LEN};
}

/* The datagram arrives from the peer. */
static void
arrive(struct uplink_fixture *u, const struct datagram_spec *l, const uint8_t from[16],
	const uint8_t to[16])
{
	struct path_addr addr = {.udp_sport = 0xC000, .hop_limit = 64};
	struct bth_fields bth = {
		.dest_qpn = l->dest_qpn, .pkey = l->pkey, .opcode = l->opcode};
	uint8_t frame[1024];
	struct pkt pkt = {.data = frame, .room = sizeof(frame)};
	struct path_hdr hdr;
	struct deth *deth;
	uint8_t *payload;

	memcpy(addr.src_gid, from, 16);
	memcpy(addr.dst_gid, to, 16);
	memcpy(addr.src_mac, PEER_MAC, 6);
	path_hdr_init(&hdr, &addr);
	deth = (struct deth *)frame_begin(&hdr, &pkt, &bth, l->len);
	if (op_rows[l->opcode].service == SERVICE_UD) {
		memset(deth, 0, op_rows[l->opcode].ext_len);
		deth->qkey = rte_cpu_to_be_32(l->qkey);
		be24_put(deth->src_qpn, l->src_qpn);
	}
	payload = frame_payload(&hdr, &pkt, l->opcode);
	for (unsigned i = 0; i < l->len; i++)
		payload[i] = (uint8_t)(7 + i);
	frame_end(&hdr, &pkt, l->len);
	payload[9] ^= l->broken;
	assert_true(fake_arrive(&u->port, 0, &pkt));
	up_pass(u);
}

TEST(datagram_is_received)
{
	struct datagram_spec l = datagram_spec_valid();
	struct gsi_log h = {.count = 0};
	uint8_t want[GSI_LEN];
	struct uplink_fixture u;

	up_open(&u);
	arrive(&u, &l, u.b.other, u.b.addr); /* no receiver is set */
	assert_int_equal(u.up->stats.drop[DROP_qpn], 1);
	u.up->gsi_rx = gsi_received;
	u.up->gsi_arg = &h;
	arrive(&u, &l, u.b.other, u.b.addr);
	assert_int_equal(h.count, 1);
	bytes_fill(want, 7);
	assert_memory_equal(h.bytes, want, GSI_LEN);
	assert_memory_equal(h.ours, u.b.addr, 16);
	assert_memory_equal(h.theirs, u.b.other, 16);
	arrive(&u, &l, u.other6, u.addr6);
	assert_int_equal(h.count, 2);
	assert_memory_equal(h.theirs, u.other6, 16);
	/* From this host, and to another one. */
	arrive(&u, &l, u.b.addr, u.b.addr);
	arrive(&u, &l, u.b.other, u.b.other);
	assert_int_equal(u.up->stats.drop[DROP_address], 2);
	assert_int_equal(h.count, 2);
	up_close(&u);
}

TEST(invalid_datagrams_are_dropped)
{
	struct datagram_spec good = datagram_spec_valid(), l;
	struct gsi_log h = {.count = 0};
	const uint64_t *drop;
	struct uplink_fixture u;

	up_open(&u);
	drop = u.up->stats.drop;
	u.up->gsi_rx = gsi_received;
	u.up->gsi_arg = &h;
	l = good;
	l.dest_qpn = 0;
	arrive(&u, &l, u.b.other, u.b.addr);
	l = good;
	l.src_qpn = 0x77;
	arrive(&u, &l, u.b.other, u.b.addr);
	assert_int_equal(drop[DROP_qpn], 2);
	l = good;
	l.qkey = 0x11111111;
	arrive(&u, &l, u.b.other, u.b.addr);
	assert_int_equal(drop[DROP_qkey], 1);
	l = good;
	l.pkey = 0x1234;
	arrive(&u, &l, u.b.other, u.b.addr);
	assert_int_equal(drop[DROP_pkey], 1);
	l = good;
	l.opcode = OPCODE_UD_SEND_ONLY_IMM;
	arrive(&u, &l, u.b.other, u.b.addr);
	l.opcode = OPCODE_RC_SEND_ONLY;
	arrive(&u, &l, u.b.other, u.b.addr);
	assert_int_equal(drop[DROP_qp_type], 2);
	l = good;
	l.len = GSI_LEN - 4;
	arrive(&u, &l, u.b.other, u.b.addr);
	l.len = GSI_LEN + 4;
	arrive(&u, &l, u.b.other, u.b.addr);
	assert_int_equal(drop[DROP_length], 2);
	l = good;
	l.broken = true;
	arrive(&u, &l, u.b.other, u.b.addr);
	assert_int_equal(drop[DROP_icrc], 1);
	assert_int_equal(h.count, 0);
	up_close(&u);
}

static void
expect_sent_datagram(struct uplink_fixture *u, uint16_t vlan, uint8_t from)
{
	struct pkt pkt = {.data = u->frame, .len = (uint16_t)u->frame_len};
	uint8_t want[GSI_LEN];
	struct pkt_view view;

	/* the ICRC is checked too */
	assert_int_equal(pkt_parse(&pkt, vlan, &view), DROP_none);
	assert_memory_equal(u->frame, PEER_MAC, 6);
	assert_memory_equal(u->frame + 6, u->port.port.mac, 6);
	assert_int_equal(view.dest_qpn, GSI_QPN);
	assert_int_equal(be24_get(view_deth(&view)->src_qpn), GSI_QPN);
	assert_int_equal(rte_be_to_cpu_32(view_deth(&view)->qkey), GSI_QKEY);
	assert_int_equal(view.payload_len, GSI_LEN);
	bytes_fill(want, from);
	assert_memory_equal(view.payload, want, GSI_LEN);
}

TEST(datagrams_are_sent_after_resolution)
{
	uint8_t bytes[GSI_LEN], elsewhere[16];
	struct uplink_fixture u;

	for (uint16_t vlan = 0; vlan <= 42; vlan += 42) {
		up_open_vlan(&u, vlan);
		/* The datagrams are queued until the peer's MAC is known. */
		for (uint8_t i = 1; i <= 3; i++) {
			bytes_fill(bytes, i);
			assert_true(
				uplink_gsi_send(u.up, bytes, u.b.addr, u.b.other, false));
		}
		assert_int_equal(u.up->neigh_queue_count, 3);
		up_pass(&u);
		assert_false(up_sent(&u));
		up_pass(&u);
		for (uint8_t i = 1; i <= 3; i++) {
			assert_true(up_sent(&u));
			expect_sent_datagram(&u, vlan, i);
		}
		bytes_fill(bytes, 9);
		assert_true(uplink_gsi_send(u.up, bytes, u.b.addr, u.b.other, false));
		up_pass(&u);
		assert_true(up_sent(&u));
		expect_sent_datagram(&u, vlan, 9);
		assert_int_equal(gid_parse("198.51.100.1", elsewhere, NULL), 0);
		assert_false(uplink_gsi_send(u.up, bytes, u.b.addr, elsewhere, false));
		up_close(&u);
	}
}

/* Number of ARP requests and neighbour solicitations that the port has sent. */
static unsigned
requests_sent(struct uplink_fixture *u)
{
	unsigned before;

	up_pass(u);
	before = u->peer_rx_control;
	while (up_sent(u))
		;
	return u->peer_rx_control - before;
}

/* An answer leaves at once, to the MAC that the request came from. */
TEST(answers_need_no_resolution)
{
	struct datagram_spec l = datagram_spec_valid();
	struct gsi_log h = {.count = 0};
	uint8_t bytes[GSI_LEN];
	struct uplink_fixture u;

	up_open(&u);
	u.up->gsi_rx = gsi_received;
	u.up->gsi_arg = &h;
	(void)requests_sent(&u); /* announcements */
	arrive(&u, &l, u.other6, u.addr6);
	bytes_fill(bytes, 1);
	assert_true(uplink_gsi_send(u.up, bytes, u.addr6, u.other6, true));
	assert_int_equal(u.up->neigh_queue_count, 0);
	up_pass(&u);
	assert_true(up_sent(&u));
	expect_sent_datagram(&u, 0, 1);
	up_close(&u);
}

/* A host sends requests to connect in the names of thousands of others, and each is
 * answered. Neither is a host of the link asked for, nor does a client notice. */
TEST(spoofed_requests_fill_no_table)
{
	struct datagram_spec l = datagram_spec_valid();
	struct gsi_log h = {.count = 0};
	uint8_t bytes[GSI_LEN] = {0}, from[16];
	struct uplink_fixture u;

	up_open(&u);
	u.up->gsi_rx = gsi_received;
	u.up->gsi_arg = &h;
	(void)requests_sent(&u);
	memcpy(from, u.other6, 16);
	for (unsigned i = 0; i < NET_NEIGHS + 10; i++) {
		from[12] = 1;
		from[13] = (uint8_t)(i >> 8);
		from[14] = (uint8_t)i;
		arrive(&u, &l, from, u.addr6);
		assert_true(uplink_gsi_send(u.up, bytes, u.addr6, from, true));
		assert_int_equal(requests_sent(&u), 0);
	}
	assert_int_equal(h.count, NET_NEIGHS + 10);
	/* Answers to hosts that are no longer known. */
	for (unsigned i = 0; i < NET_NEIGHS; i++) {
		from[12] = 2;
		from[13] = (uint8_t)(i >> 8);
		from[14] = (uint8_t)i;
		(void)uplink_gsi_send(u.up, bytes, u.addr6, from, true);
	}
	assert_int_equal(u.up->neigh_queue_count, UPLINK_NEIGH_QUEUE_EACH);
	assert_in_range(requests_sent(&u), 1, NEIGH_PASSIVE_RATE_BURST);
	/* A client's peer, and a connection that a client opens. */
	uplink_resolve(u.up, u.b.c[0].client, u.b.other);
	assert_int_equal(requests_sent(&u), 1);
	assert_true(uplink_gsi_send(u.up, bytes, u.addr6, u.other6, false));
	assert_int_equal(u.up->neigh_queue_count, UPLINK_NEIGH_QUEUE_EACH + 1);
	assert_int_equal(requests_sent(&u), 1);
	u.b.now += UPLINK_NEIGH_QUEUE_NS;
	up_pass(&u);
	assert_int_equal(u.up->neigh_queue_count, 0);
	up_close(&u);
}

/* Others take the place of the neighbour that a queued answer waits for. */
TEST(answers_do_not_wait_for_ever)
{
	uint8_t bytes[GSI_LEN] = {0}, from[16];
	struct uplink_fixture u;
	uint64_t end;

	up_open(&u);
	u.answers = false;
	up_pass(&u);
	end = u.b.now + UPLINK_NEIGH_QUEUE_NS;
	assert_true(uplink_gsi_send(u.up, bytes, u.addr6, u.other6, true));
	memcpy(from, u.other6, 16);
	from[12] = 1;
	for (unsigned i = 0; i < NET_MAX_PASSIVE; i++) {
		from[14] = (uint8_t)(i >> 8);
		from[15] = (uint8_t)i;
		net_hint(u.up->net, from, (const uint8_t *)PEER_MAC, u.b.now);
	}
	up_pass(&u);
	assert_true(uplink_deadline(u.up) <= end);
	u.b.now = end - 1;
	up_pass(&u);
	assert_int_equal(u.up->neigh_queue_count, 1);
	u.b.now = end;
	up_pass(&u);
	assert_int_equal(u.up->neigh_queue_count, 0);
	assert_int_equal(u.up->stats.tx_no_neighbour, 1);
	up_close(&u);
}

/* A new client 0 of this user sends n datagrams to the peer. Returns how many are
 * dropped. */
static uint64_t
client_sends(struct uplink_fixture *u, uint32_t uid, unsigned n)
{
	struct fixture_client *c = &u->b.c[0];
	struct frame_spec f;

	client_detach(c);
	c->uid = uid;
	client_attach(&u->b, c);
	f = frame_spec_valid(&u->b);
	f.opcode = OPCODE_UD_SEND_ONLY;
	f.deth_qpn = c->qpn;
	memcpy(f.dgid, u->b.other, 16);
	for (unsigned i = 0; i < n; i++) {
		up_post(u, &f);
		up_pass(u);
	}
	return c->client->stats.drop_unresolved;
}

/* A user with many clients has no more than its share of the queue of packets for
 * unresolved next hops. */
TEST(user_has_a_share_of_the_queue)
{
	struct uplink_fixture u;

	up_open(&u);
	u.answers = false;
	for (unsigned i = 0; i < UPLINK_NEIGH_QUEUE_USER / UPLINK_NEIGH_QUEUE_EACH; i++)
		assert_int_equal(client_sends(&u, 0, UPLINK_NEIGH_QUEUE_EACH + 2), 2);
	assert_int_equal(client_sends(&u, 0, 5), 5);
	assert_int_equal(u.up->neigh_queue_count, UPLINK_NEIGH_QUEUE_USER);
	assert_int_equal(client_sends(&u, 8, 5), 0);
	up_close(&u);
}

/* Users fill the queue of packets for unresolved next hops, and are gone. The connection
 * manager has a part of it to itself. */
TEST(connection_manager_keeps_its_queue)
{
	uint8_t bytes[GSI_LEN] = {0};
	struct uplink_fixture u;
	unsigned n;

	up_open(&u);
	u.answers = false;
	for (n = 0; n < UPLINK_NEIGH_QUEUE / UPLINK_NEIGH_QUEUE_EACH; n++)
		assert_true(client_sends(&u, 7 + n, UPLINK_NEIGH_QUEUE_EACH + 1) != 0);
	n = UPLINK_NEIGH_QUEUE - UPLINK_NEIGH_QUEUE_CM;
	assert_int_equal(u.up->neigh_queue_count, n);
	for (unsigned i = 0; i < UPLINK_NEIGH_QUEUE_EACH; i++) {
		assert_true(uplink_gsi_send(u.up, bytes, u.b.addr, u.b.other, false));
		assert_true(uplink_gsi_send(u.up, bytes, u.b.addr, u.b.other, true));
	}
	/* One request more takes the place of the oldest one, an answer has none. */
	assert_int_equal(u.up->stats.tx_no_neighbour, 0);
	assert_true(uplink_gsi_send(u.up, bytes, u.b.addr, u.b.other, false));
	assert_int_equal(u.up->stats.tx_no_neighbour, 1);
	assert_int_equal(u.up->neigh_queue_count, UPLINK_NEIGH_QUEUE);
	assert_false(uplink_gsi_send(u.up, bytes, u.b.addr, u.b.other, true));
	/* All of them leave, those of departed clients too. */
	u.answers = true;
	u.b.now += NEIGH_RETRY_NS + NS_PER_US;
	up_pass(&u);
	n = 0;
	for (unsigned i = 0; i < 8; i++, up_pass(&u))
		while (up_sent(&u))
			n++;
	assert_int_equal(n, UPLINK_NEIGH_QUEUE);
	up_close(&u);
}

/* Connection requests to hosts that do not exist do not keep one to a host that exists
 * from waiting for its MAC address. */
TEST(newest_request_waits)
{
	uint8_t bytes[GSI_LEN] = {0}, silent[16];
	struct uplink_fixture u;
	unsigned sent = 0;

	up_open(&u);
	u.answers = false;
	memcpy(silent, u.b.other, 16);
	for (unsigned i = 0; i < 3 * UPLINK_NEIGH_QUEUE_EACH; i++) {
		silent[15] = (uint8_t)(100 + i);
		assert_true(uplink_gsi_send(u.up, bytes, u.b.addr, silent, false));
	}
	assert_int_equal(u.up->neigh_queue_count, UPLINK_NEIGH_QUEUE_EACH);
	assert_true(uplink_gsi_send(u.up, bytes, u.b.addr, u.b.other, false));
	u.answers = true;
	u.b.now += NEIGH_RETRY_NS + NS_PER_US;
	for (unsigned i = 0; i < 4; i++, up_pass(&u))
		sent += up_sent(&u);
	assert_int_equal(sent, 1);
	up_close(&u);
}

/* A datagram that there is no room for does not count as an unreachable neighbour. */
TEST(full_backlog_refuses_datagrams)
{
	uint8_t bytes[GSI_LEN] = {0}, elsewhere[16];
	struct uplink_fixture u;

	up_open(&u);
	/* Resolves the peer's MAC. */
	assert_true(uplink_gsi_send(u.up, bytes, u.b.addr, u.b.other, false));
	for (unsigned i = 0; i < 2; i++) {
		up_pass(&u);
		assert_int_equal(up_sent(&u), i == 1);
	}
	u.port.q[0].tx_take = 0;
	for (unsigned i = 0; i < PORT_IO_BACKLOG; i++)
		assert_true(uplink_gsi_send(u.up, bytes, u.b.addr, u.b.other, false));
	assert_false(uplink_gsi_send(u.up, bytes, u.b.addr, u.b.other, false));
	assert_int_equal(u.up->stats.tx_no_buffer, 1);
	assert_int_equal(u.up->stats.tx_no_neighbour, 0);
	assert_int_equal(gid_parse("198.51.100.1", elsewhere, NULL), 0);
	assert_false(uplink_gsi_send(u.up, bytes, u.b.addr, elsewhere, false));
	assert_int_equal(u.up->stats.tx_no_neighbour, 1);
	up_close(&u);
}
