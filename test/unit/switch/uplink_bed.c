/* SPDX-License-Identifier: BSD-3-Clause */
#include "uplink_bed.h"

void
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

void
up_open(struct up_bed *u)
{
	up_open_vlan(u, 0);
}

void
up_close(struct up_bed *u)
{
	for (unsigned i = 0; i < BED_CLIENTS; i++)
		bed_detach(&u->b.c[i]);
	uplink_destroy(u->up);
	net_destroy(u->peer);
	fake_fini(&u->port);
	bed_close(&u->b);
}

bool
up_is_roce(const struct pkt *frame, uint16_t vlan)
{
	struct pkt copy = *frame;
	struct pkt_view view;

	return pkt_parse(&copy, vlan, &view) == DROP_none;
}

void
up_turn(struct up_bed *u)
{
	uplink_rx(u->up, u->b.now);
	sw_run(u->b.sw, u->b.now);
	uplink_tx(u->up, u->b.now);
}

bool
up_left(struct up_bed *u)
{
	uint8_t room[256];
	struct pkt frame, reply = {.data = room, .room = sizeof(room)};
	bool roce = false;

	while (!roce && fake_sent(&u->port, &frame)) {
		roce = up_is_roce(&frame, net_conf(u->peer)->vlan);
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

void
up_post(struct up_bed *u, const struct bed_frame *f)
{
	struct bed_client *c = &u->b.c[0];
	uint32_t buf = c->tx.prod % BED_BUFS;

	bed_post(c, buf, c->qpn, bed_build(region_tx_buf(&c->region, buf), f));
}
