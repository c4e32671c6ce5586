/* SPDX-License-Identifier: BSD-3-Clause */
#include "uplink_fixture.h"

void
up_open_threads(struct uplink_fixture *u, uint16_t vlan, uint32_t threads)
{
	struct net_conf peer = {.vlan = vlan, .addr_count = 2};
	struct net_conf *net;

	memset(u, 0, sizeof(*u));
	fixture_open_threads(&u->b, (const uint32_t[CLIENTS]){0}, threads);
	fake_init(&u->port, threads, 7);
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
	u->b.now = NS_PER_SEC;
}

void
up_open_vlan(struct uplink_fixture *u, uint16_t vlan)
{
	up_open_threads(u, vlan, 1);
}

void
up_open(struct uplink_fixture *u)
{
	up_open_vlan(u, 0);
}

void
up_close(struct uplink_fixture *u)
{
	for (unsigned i = 0; i < CLIENTS; i++)
		client_detach(&u->b.c[i]);
	uplink_destroy(u->up);
	net_destroy(u->peer);
	fake_fini(&u->port);
	fixture_close(&u->b);
}

bool
up_is_roce(const struct pkt *frame, uint16_t vlan)
{
	struct pkt copy = *frame;
	struct pkt_view view;

	return pkt_parse(&copy, vlan, &view) == DROP_none;
}

void
up_pass(struct uplink_fixture *u)
{
	uplink_rx(u->up, u->b.now);
	sw_run(u->b.sw, u->b.now);
	uplink_tx(u->up, u->b.now);
}

bool
up_sent(struct uplink_fixture *u)
{
	uint8_t room[256];
	struct pkt frame, reply = {.data = room, .room = sizeof(room)};
	enum drop_reason why;
	bool roce = false;

	while (!roce && fake_sent(&u->port, &frame)) {
		roce = up_is_roce(&frame, net_conf(u->peer)->vlan);
		if (roce) {
			memcpy(u->frame, frame.data, frame.len);
			u->frame_len = frame.len;
		} else {
			u->peer_rx_control++;
			if (u->answers && net_rx(u->peer, &frame, &reply, &why, u->b.now))
				assert_true(fake_arrive(&u->port, 0, &reply));
		}
		free(frame.data);
	}
	return roce;
}

void
up_post(struct uplink_fixture *u, const struct frame_spec *f)
{
	struct fixture_client *c = &u->b.c[0];
	uint32_t buf = c->tx.prod % CLIENT_BUFS;

	client_post(c, buf, c->qpn, frame_spec_build(region_tx_buf(&c->region, buf), f));
}
