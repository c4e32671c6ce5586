/* SPDX-License-Identifier: BSD-3-Clause */
/* The daemon's port: what leaves by it, what comes in, who is told of what. */
#include "bed.h"

#include <rte_ether.h>
#include <rte_ip.h>

#include "switch/uplink.h"
#include "../../lib/fake_port.h"

#define PEER_MAC "\x02\x00\x00\x00\x00\x63"
#define PORT_MTU (BED_BUF_SIZE - 64)

struct up_bed {
	struct bed b;
	struct fake_port port;
	struct uplink *up;
	struct net *peer; /* another host's, that answers ARP and ND when it is let */
	bool answers;
	unsigned asked; /* questions and reports that the peer has seen */
	uint8_t addr6[16], other6[16];
	uint8_t frame[2048]; /* of the last packet that left */
	uint32_t frame_len;
};

static void
up_open_vlan(struct up_bed *u, uint16_t vlan)
{
	struct net_conf peer = {.vlan = vlan, .addr_count = 2};
	struct net_conf *net;

	memset(u, 0, sizeof(*u));
	bed_open(&u->b);
	fake_init(&u->port, 1, 7);
	net = &u->b.sw->conf.net;
	assert_int_equal(gid_parse("2001:db8::1", u->addr6, NULL), 0);
	assert_int_equal(gid_parse("2001:db8::9", u->other6, NULL), 0);
	memcpy(net->addr[net->addr_count].gid, u->addr6, 16);
	net->addr[net->addr_count++].prefix_len = 64;
	net->vlan = vlan;
	assert_int_equal(uplink_create(u->b.sw, &u->port.port, net, PORT_MTU, &u->up), 0);
	memcpy(peer.mac, PEER_MAC, 6);
	memcpy(peer.addr[0].gid, u->b.other, 16);
	peer.addr[0].prefix_len = 24;
	memcpy(peer.addr[1].gid, u->other6, 16);
	peer.addr[1].prefix_len = 64;
	assert_int_equal(net_create(&peer, &u->peer), 0);
	u->answers = true;
	u->b.now = SEC_NS;
}

static void
up_open(struct up_bed *u)
{
	up_open_vlan(u, 0);
}

static void
up_close(struct up_bed *u)
{
	for (unsigned i = 0; i < BED_CLIENTS; i++)
		bed_detach(&u->b.c[i]);
	uplink_destroy(u->up);
	net_destroy(u->peer);
	fake_fini(&u->port);
	bed_close(&u->b);
}

static bool
is_roce(const struct pkt *frame, uint16_t vlan)
{
	struct pkt copy = *frame;
	struct pkt_view view;

	return parse(&copy, vlan, &view) == DROP_none;
}

/* A turn of the daemon. */
static void
turn(struct up_bed *u)
{
	uplink_rx(u->up, u->b.now);
	sw_run(u->b.sw, u->b.now);
	uplink_tx(u->up, u->b.now);
}

/* What has left: the next packet stays in u->frame. The port's own frames go to the
 * peer, and what that answers comes back. */
static bool
left(struct up_bed *u)
{
	uint8_t room[256];
	struct pkt frame, reply = {.data = room, .room = sizeof(room)};
	bool roce = false;

	while (!roce && fake_sent(&u->port, &frame)) {
		roce = is_roce(&frame, net_conf(u->peer)->vlan);
		if (roce) {
			memcpy(u->frame, frame.data, frame.len);
			u->frame_len = frame.len;
		} else {
			u->asked++;
			if (u->answers && net_rx(u->peer, &frame, &reply, u->b.now))
				assert_true(fake_arrive(&u->port, 0, &reply));
		}
		free(frame.data);
	}
	return roce;
}

/* Lets the two find each other. */
static void
meet(struct up_bed *u, const uint8_t gid[16])
{
	uplink_resolve(u->up, gid);
	for (unsigned i = 0; i < 4; i++) {
		turn(u);
		assert_false(left(u));
	}
}

/* To the peer's QP 0x77, which client 0 is connected with. */
static struct bed_frame
to_peer(struct up_bed *u, const uint8_t from[16], const uint8_t to[16])
{
	struct bed_frame f = bed_good(&u->b);
	struct sw_request req = {
		.type = SW_PEER_SET, .qpn = u->b.c[0].qpn, .dest_qpn = 0x77};
	struct sw_reply reply;

	memcpy(f.sgid, from, 16);
	memcpy(f.dgid, to, 16);
	memcpy(req.sgid, from, 16);
	memcpy(req.dgid, to, 16);
	f.dest_qpn = 0x77;
	bed_request(&u->b, &u->b.c[0], &req, &reply);
	assert_int_equal(reply.error, 0);
	return f;
}

static void
post(struct up_bed *u, const struct bed_frame *f)
{
	struct bed_client *c = &u->b.c[0];
	uint32_t buf = c->tx.prod % BED_BUFS;

	bed_post(c, buf, c->qpn, bed_build(region_tx_buf(&c->region, buf), f));
}

/* The frame that left is f behind an Ethernet header from us to the peer. */
static void
assert_left(struct up_bed *u, const struct bed_frame *f, uint32_t l2)
{
	uint8_t want[BED_BUF_SIZE];
	uint16_t len = bed_build(want, f);
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

static void
leaves_with_our_ethernet_header(void **state)
{
	struct up_bed u;
	struct bed_frame f;

	(void)state;
	up_open(&u);
	meet(&u, u.b.other);
	f = to_peer(&u, u.b.addr, u.b.other);
	post(&u, &f);
	turn(&u);
	assert_true(left(&u));
	assert_left(&u, &f, 14);
	assert_false(left(&u));
	assert_int_equal(u.b.c[0].client->stats.tx_packets, 1);
	/* A wrong checksum of the client's leaves as ours. */
	post(&u, &f);
	((struct rte_ipv4_hdr *)(region_tx_buf(&u.b.c[0].region, 1) + 14))
		->hdr_checksum ^= 1;
	turn(&u);
	assert_true(left(&u));
	assert_left(&u, &f, 14);
	meet(&u, u.other6);
	f = to_peer(&u, u.addr6, u.other6);
	post(&u, &f);
	turn(&u);
	assert_true(left(&u));
	assert_left(&u, &f, 14);
	up_close(&u);
}

static void
registering_a_peer_asks_for_its_hop(void **state)
{
	struct up_bed u;
	struct bed_frame f;
	unsigned asked;

	(void)state;
	up_open(&u);
	turn(&u);
	assert_false(left(&u));
	asked = u.asked;
	f = to_peer(&u, u.b.addr, u.b.other);
	turn(&u);
	assert_false(left(&u));
	assert_int_equal(u.asked, asked + 1);
	turn(&u); /* the answer */
	post(&u, &f);
	turn(&u);
	assert_int_equal(u.up->held_count, 0);
	assert_true(left(&u));
	up_close(&u);
}

static void
held_until_the_hop_is_known(void **state)
{
	struct up_bed u;
	struct bed_frame f;

	(void)state;
	up_open(&u);
	u.answers = false;
	f = to_peer(&u, u.b.addr, u.b.other);
	for (unsigned i = 0; i < 3; i++) {
		f.payload = i;
		post(&u, &f);
		turn(&u);
	}
	assert_false(left(&u));
	assert_int_equal(u.up->held_count, 3);
	u.answers = true;
	u.b.now += NEIGH_RETRY_NS + NS_PER_US;
	turn(&u); /* asks again */
	assert_false(left(&u));
	f.payload = 3;
	post(&u, &f); /* comes together with the answer: behind the others */
	turn(&u);
	for (unsigned i = 0; i < 4; i++) {
		assert_true(left(&u));
		f.payload = i;
		assert_left(&u, &f, 14);
	}
	assert_int_equal(u.up->held_count, 0);
	up_close(&u);
}

static void
nobody_answers(void **state)
{
	struct up_bed u;
	struct bed_frame f;
	struct sw_stats *stats;

	(void)state;
	up_open(&u);
	stats = &u.b.c[0].client->stats;
	u.answers = false;
	f = to_peer(&u, u.b.addr, u.b.other);
	for (unsigned i = 0; i < UPLINK_HELD_EACH + 3; i++) {
		post(&u, &f);
		turn(&u);
	}
	assert_int_equal(u.up->held_count, UPLINK_HELD_EACH);
	assert_int_equal(stats->drop_unresolved, 3);
	for (unsigned i = 0; i <= NEIGH_TRIES; i++) {
		u.b.now += NEIGH_RETRY_NS + NS_PER_US;
		turn(&u);
		assert_false(left(&u));
	}
	turn(&u);
	assert_int_equal(u.up->held_count, 0);
	assert_int_equal(u.up->stats.tx_no_neighbour, UPLINK_HELD_EACH);
	post(&u, &f);
	turn(&u);
	assert_int_equal(stats->drop_no_route, 1);
	/* Nor is there a way to another network. */
	memcpy(f.dgid + 12, "\xc6\x33\x64\x01", 4);
	f = to_peer(&u, u.b.addr, f.dgid);
	post(&u, &f);
	turn(&u);
	assert_int_equal(stats->drop_no_route, 2);
	up_close(&u);
}

static void
tagged(void **state)
{
	struct up_bed u;
	struct bed_frame f;
	struct pkt in;

	(void)state;
	up_open_vlan(&u, 42);
	meet(&u, u.b.other);
	f = to_peer(&u, u.b.addr, u.b.other);
	post(&u, &f);
	turn(&u);
	assert_true(left(&u));
	assert_memory_equal(u.frame + 12, "\x81\x00\x00\x2a\x08\x00", 6);
	assert_left(&u, &f, 18);
	/* Back: without the tag. */
	f = bed_good(&u.b);
	memcpy(f.sgid, u.b.other, 16);
	f.dest_qpn = u.b.c[1].qpn;
	in = (struct pkt){
		.data = u.frame, .len = (uint16_t)(bed_build(u.frame + 4, &f) + 4)};
	memmove(u.frame, u.frame + 4, 12);
	memcpy(u.frame + 12, "\x81\x00\x00\x2a", 4);
	assert_true(fake_arrive(&u.port, 0, &in));
	turn(&u);
	assert_true(bed_got(&u.b.c[1], &f));
	/* Another VLAN's, and untagged: not ours. */
	u.frame[15] = 0x2b;
	assert_true(fake_arrive(&u.port, 0, &in));
	in.len = bed_build(u.frame, &f);
	assert_true(fake_arrive(&u.port, 0, &in));
	turn(&u);
	assert_int_equal(u.up->stats.drop[DROP_vlan], 2);
	assert_false(bed_got(&u.b.c[1], NULL));
	up_close(&u);
}

static void
arrive(struct up_bed *u, const struct bed_frame *f)
{
	uint8_t frame[BED_BUF_SIZE];
	struct pkt in = {.data = frame, .len = bed_build(frame, f)};

	assert_true(fake_arrive(&u->port, 0, &in));
	turn(u);
}

/* From the peer to client 1. */
static struct bed_frame
from_peer(const struct up_bed *u)
{
	struct bed_frame f = bed_good(&u->b);

	memcpy(f.sgid, u->b.other, 16);
	return f;
}

#define assert_not_taken(u, f, reason)                                                   \
	do {                                                                             \
		uint64_t before_ = (u)->up->stats.drop[DROP_##reason];                   \
		arrive(u, f);                                                            \
		assert_int_equal((u)->up->stats.drop[DROP_##reason], before_ + 1);       \
		for (unsigned i_ = 0; i_ < BED_CLIENTS; i_++)                            \
			assert_false(bed_got(&(u)->b.c[i_], NULL));                      \
	} while (0)

static void
arrives_by_qpn(void **state)
{
	struct up_bed u;
	struct bed_frame f;

	(void)state;
	up_open(&u);
	f = from_peer(&u);
	for (f.payload = 0; f.payload < 3 * BED_SLOTS; f.payload++) {
		arrive(&u, &f);
		assert_true(bed_got(&u.b.c[1], &f));
	}
	memcpy(f.sgid, u.other6, 16);
	memcpy(f.dgid, u.addr6, 16);
	f.dest_qpn = u.b.c[2].qpn;
	arrive(&u, &f);
	assert_true(bed_got(&u.b.c[2], &f));
	assert_int_equal(u.up->stats.rx_roce, 3 * BED_SLOTS + 1);
	/* A full ring loses what comes and holds up nobody. */
	for (unsigned i = 0; i < BED_SLOTS + 5; i++)
		arrive(&u, &f);
	assert_int_equal(u.b.c[2].client->stats.rx_full, 5);
	up_close(&u);
}

static void
not_for_us(void **state)
{
	struct up_bed u;
	struct bed_frame f;

	(void)state;
	up_open(&u);
	f = from_peer(&u);
	f.dest_qpn = BED_BASE + BED_QPNS - 1; /* nobody's */
	assert_not_taken(&u, &f, qpn);
	for (f.dest_qpn = 0; f.dest_qpn < 2; f.dest_qpn++)
		assert_not_taken(&u, &f, qpn);
	f = from_peer(&u);
	f.dgid[15]++; /* another host's address */
	assert_not_taken(&u, &f, address);
	f = from_peer(&u);
	memcpy(f.sgid, u.b.addr, 16); /* from us, by the wire */
	assert_not_taken(&u, &f, address);
	f = from_peer(&u);
	f.dest_qpn = 0xFFFFFF; /* no group's address */
	f.opcode = OPCODE_UD_SEND_ONLY;
	assert_not_taken(&u, &f, address);
	assert_int_equal(gid_parse("239.1.2.3", f.dgid, NULL), 0);
	assert_not_taken(&u, &f, group);
	f.dest_qpn = u.b.c[1].qpn; /* a group's, but one QP */
	assert_not_taken(&u, &f, address);
	up_close(&u);
}

static void
scribbled_frames(void **state)
{
	uint64_t rng = 1;
	struct up_bed u;
	struct bed_frame f;
	uint8_t frame[BED_BUF_SIZE];

	(void)state;
	up_open(&u);
	f = from_peer(&u);
	for (unsigned i = 0; i < 20000; i++) {
		struct pkt in = {.data = frame, .len = bed_build(frame, &f)};

		for (uint64_t n = rand_below(&rng, 4); n > 0; n--)
			frame[rand_below(&rng, 90)] = (uint8_t)rand_below(&rng, 256);
		if (rand_below(&rng, 8) == 0)
			in.len = (uint16_t)rand_below(&rng, in.len + 1u);
		if (in.len == 0)
			continue;
		assert_true(fake_arrive(&u.port, 0, &in));
		turn(&u);
		while (bed_got(&u.b.c[1], NULL))
			;
		assert_false(bed_got(&u.b.c[2], NULL));
		(void)left(&u);
	}
	assert_in_range(u.up->stats.rx_roce, 4000, 19000);
	up_close(&u);
}

static void
groups_in_and_out(void **state)
{
	struct up_bed u;
	struct bed_frame f;
	uint8_t gid[16];
	unsigned asked;

	(void)state;
	up_open(&u);
	turn(&u);
	assert_false(left(&u));
	asked = u.asked;
	assert_int_equal(gid_parse("239.1.2.3", gid, NULL), 0);
	for (unsigned i = 1; i < BED_CLIENTS; i++)
		assert_int_equal(sw_group_join(u.b.sw, u.b.c[i].qpn, gid), 0);
	turn(&u);
	assert_false(left(&u));
	assert_int_equal(u.asked, asked + 1); /* one IGMP report */
	f = from_peer(&u);
	f.opcode = OPCODE_UD_SEND_ONLY;
	f.dest_qpn = 0xFFFFFF;
	memcpy(f.dgid, gid, 16);
	arrive(&u, &f);
	assert_true(bed_got(&u.b.c[1], &f));
	assert_true(bed_got(&u.b.c[2], &f));
	assert_false(bed_got(&u.b.c[0], NULL));
	/* From a client: to the others, and to the link. */
	memcpy(f.sgid, u.b.addr, 16);
	f.deth_qpn = u.b.c[0].qpn;
	post(&u, &f);
	turn(&u);
	assert_true(bed_got(&u.b.c[1], &f));
	assert_true(bed_got(&u.b.c[2], &f));
	assert_true(left(&u));
	assert_memory_equal(u.frame, "\x01\x00\x5e\x01\x02\x03", 6);
	assert_memory_equal(u.frame + 6, u.port.port.mac, 6);
	/* The last one leaves it on the link too. */
	assert_int_equal(sw_group_leave(u.b.sw, u.b.c[1].qpn, gid), 0);
	bed_detach(&u.b.c[2]);
	assert_int_equal(net_leave(u.up->net, gid), -EINVAL);
	up_close(&u);
}

static void
a_full_port_keeps_them_waiting(void **state)
{
	struct up_bed u;
	struct bed_frame f, local;
	struct bed_client *c;
	unsigned sent = 0;
	uint32_t other;

	(void)state;
	up_open(&u);
	c = &u.b.c[0];
	meet(&u, u.b.other);
	f = to_peer(&u, u.b.addr, u.b.other);
	u.port.q[0].tx_take = 0;
	/* As much as the stage takes, and then the client's own ring. */
	for (; sent < UPLINK_STAGE + BED_SLOTS; sent++) {
		f.payload = sent;
		post(&u, &f);
		turn(&u);
	}
	assert_true(c->client->stats.tx_held != 0);
	assert_int_equal(c->client->stats.tx_packets, UPLINK_STAGE);
	assert_false(sw_sleep(u.b.sw));
	/* Others go on. */
	local = bed_good(&u.b);
	other = local.dest_qpn = bed_qpn(&u.b, c);
	assert_int_equal(bed_peer(&u.b, c, other, u.b.addr, u.b.c[1].qpn), 0);
	assert_int_equal(bed_peer(&u.b, &u.b.c[1], u.b.c[1].qpn, u.b.addr, other), 0);
	bed_send(&u.b, &u.b.c[1], u.b.c[1].qpn, &local);
	assert_true(bed_got(c, &local));
	/* All of them, in order, when it takes some again. */
	u.port.q[0].tx_take = 7;
	for (unsigned i = 0; i < sent; i++) {
		while (!left(&u))
			turn(&u);
		f.payload = i;
		assert_left(&u, &f, 14);
	}
	assert_int_equal(u.up->stats.tx_given_up, 0);
	up_close(&u);
}

static void
a_dead_port_loses_them(void **state)
{
	unsigned sent = 0;
	struct up_bed u;
	struct bed_frame f;

	(void)state;
	up_open(&u);
	meet(&u, u.b.other);
	f = to_peer(&u, u.b.addr, u.b.other);
	u.port.q[0].tx_take = 0;
	for (unsigned i = 0; i < 5; i++)
		post(&u, &f);
	turn(&u);
	u.b.now += UPLINK_STALL_NS;
	turn(&u);
	assert_int_equal(u.up->stats.tx_given_up, 5);
	assert_int_equal(u.up->stage_count, 0);
	/* No buffer: they stay where they are until there is one. */
	u.port.alloc_left = 0;
	for (unsigned i = 0; i < PKT_BURST + 5; i++) {
		post(&u, &f);
		turn(&u);
	}
	assert_true(u.up->stats.tx_no_buffer != 0);
	u.port.q[0].tx_take = UINT32_MAX;
	u.port.alloc_left = 1000;
	turn(&u);
	turn(&u);
	while (left(&u))
		sent++;
	assert_int_equal(sent, PKT_BURST + 5);
	up_close(&u);
}

static void
link_and_addresses_are_told(void **state)
{
	struct up_bed u;
	struct bed_frame f;
	struct region_head *head;
	struct net_conf net;
	struct sw_stats *stats;
	unsigned woken;

	(void)state;
	up_open(&u);
	meet(&u, u.b.other);
	stats = &u.b.c[0].client->stats;
	head = u.b.c[0].region.head;
	f = to_peer(&u, u.b.addr, u.b.other);
	u.port.link_down = true;
	u.b.now += UPLINK_LINK_NS;
	woken = u.b.c[0].woken;
	turn(&u);
	assert_int_equal(head->link_down, 1);
	assert_int_equal(head->changes, 1);
	assert_int_equal(u.b.c[0].woken, woken + 1);
	post(&u, &f);
	turn(&u);
	assert_int_equal(stats->drop_no_link, 1);
	/* One that comes now knows it too. */
	bed_detach(&u.b.c[2]);
	bed_attach(&u.b, &u.b.c[2]);
	assert_int_equal(u.b.c[2].region.head->link_down, 1);
	u.port.link_down = false;
	u.b.now += UPLINK_LINK_NS;
	turn(&u);
	assert_int_equal(head->link_down, 0);
	assert_int_equal(head->changes, 2);
	/* The address of its connection goes. */
	net = u.b.sw->conf.net;
	net.addr[0] = net.addr[1];
	net.addr_count = 1;
	assert_int_equal(uplink_set_net(u.up, &net), 0);
	sw_set_net(u.b.sw, &net);
	post(&u, &f);
	turn(&u);
	assert_int_equal(stats->drop_peer, 1);
	assert_int_equal(
		bed_peer(&u.b, &u.b.c[0], u.b.c[0].qpn, u.b.other, 0x77), EINVAL);
	up_close(&u);
}

static void
longer_than_the_link_takes(void **state)
{
	struct up_bed u;
	struct bed_frame f;

	(void)state;
	up_open(&u);
	meet(&u, u.b.other);
	f = to_peer(&u, u.b.addr, u.b.other);
	f.payload = PORT_MTU - 44; /* IPv4, UDP, BTH, ICRC */
	post(&u, &f);
	turn(&u);
	assert_true(left(&u));
	f.payload += 4;
	post(&u, &f);
	turn(&u);
	assert_false(left(&u));
	assert_int_equal(u.b.c[0].client->stats.drop_too_long, 1);
	up_close(&u);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(leaves_with_our_ethernet_header),
		cmocka_unit_test(registering_a_peer_asks_for_its_hop),
		cmocka_unit_test(held_until_the_hop_is_known),
		cmocka_unit_test(nobody_answers),
		cmocka_unit_test(tagged),
		cmocka_unit_test(arrives_by_qpn),
		cmocka_unit_test(not_for_us),
		cmocka_unit_test(scribbled_frames),
		cmocka_unit_test(groups_in_and_out),
		cmocka_unit_test(a_full_port_keeps_them_waiting),
		cmocka_unit_test(a_dead_port_loses_them),
		cmocka_unit_test(link_and_addresses_are_told),
		cmocka_unit_test(longer_than_the_link_takes),
	};

	return cmocka_run_group_tests_name("uplink", tests, NULL, NULL);
}
