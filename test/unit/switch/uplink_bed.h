/* SPDX-License-Identifier: BSD-3-Clause */
/* A switch with its clients and a port behind it that is lists of frames, and another
 * host there. */
#ifndef ROCADE_TEST_SWITCH_UPLINK_BED_H
#define ROCADE_TEST_SWITCH_UPLINK_BED_H

#include "bed.h"

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

void
up_open_vlan(struct up_bed *u, uint16_t vlan);
void
up_open(struct up_bed *u);
void
up_close(struct up_bed *u);
bool
up_is_roce(const struct pkt *frame, uint16_t vlan);
/* A turn of the daemon. */
void
up_turn(struct up_bed *u);
/* What has left: the next packet stays in u->frame. The port's own frames go to the
 * peer, and what that answers comes back. */
bool
up_left(struct up_bed *u);
void
up_post(struct up_bed *u, const struct bed_frame *f);

#endif
