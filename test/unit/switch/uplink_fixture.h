/* SPDX-License-Identifier: BSD-3-Clause */
/* A switch with its clients, a port that is lists of frames, and another host on the
 * link. */
#ifndef ROCADE_TEST_SWITCH_UPLINK_FIXTURE_H
#define ROCADE_TEST_SWITCH_UPLINK_FIXTURE_H

#include "switch_fixture.h"

#include "switch/uplink.h"
#include "../../lib/fake_port.h"

#define PEER_MAC "\x02\x00\x00\x00\x00\x63"
#define PORT_MTU (CLIENT_BUF_SIZE - 64)

struct uplink_fixture {
	struct switch_fixture b;
	struct fake_port port;
	struct uplink *up;
	struct net *peer; /* the other host, which answers ARP and ND if answers is set */
	bool answers;
	unsigned peer_rx_control; /* control frames that the peer has received */
	uint8_t addr6[16], other6[16];
	uint8_t frame[2048]; /* the last RoCE frame that was sent */
	uint32_t frame_len;
};

/* As up_open(), with that many queues and threads. */
void up_open_threads(struct uplink_fixture *u, uint16_t vlan, uint32_t threads);
void up_open_vlan(struct uplink_fixture *u, uint16_t vlan);
void up_open(struct uplink_fixture *u);
void up_close(struct uplink_fixture *u);
bool up_is_roce(const struct pkt *frame, uint16_t vlan);
/* One pass of the daemon's loop, in thread 0. */
void up_pass(struct uplink_fixture *u);
/* Takes the next RoCE frame that was sent into u->frame; false: none. Control frames are
 * passed to the peer, and its answers come back. */
bool up_sent(struct uplink_fixture *u);
void up_post(struct uplink_fixture *u, const struct frame_spec *f);

#endif
