/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The daemon's port: packets of clients to other hosts, with the Ethernet header that the
 * neighbour table gives them; packets of other hosts to the client that has their QPN;
 * ARP, ND, ICMP and group membership for the addresses that all clients share. Pure logic
 * like the switch, and of the same thread.
 *
 * A packet whose next hop has not answered yet is held, for a datagram has nobody who
 * sends it again; modify_qp asks for the next hop of a connection, so that its first
 * packet mostly finds it.
 */
#ifndef ROCADE_SWITCH_UPLINK_H
#define ROCADE_SWITCH_UPLINK_H

#include "base/stats.h"
#include "port/port.h"
#include "switch/sw.h"

#define UPLINK_STAGE (4 * PKT_BURST)
#define UPLINK_HELD 256
#define UPLINK_HELD_EACH 32               /* of one client */
#define UPLINK_STALL_NS (100 * NS_PER_MS) /* so long may the port refuse everything */
#define UPLINK_LINK_NS (250 * NS_PER_MS)  /* how often the link is looked at */

/* A port that is open, for rocade_daemon_create(). */
struct rocade_daemon_port {
	struct port port;
	uint32_t mtu; /* IP */
};

struct uplink_held {
	struct pkt frame; /* complete but for the next hop's MAC */
	uint8_t dgid[16];
	uint32_t client; /* its id */
};

struct uplink {
	struct sw *sw;
	struct port port;
	struct net *net;
	uint16_t vlan;
	uint32_t mtu;
	bool link_up;
	uint64_t link_at_ns;
	struct pkt stage[UPLINK_STAGE]; /* to be sent, oldest first */
	uint32_t stage_count;
	uint64_t stage_ns;            /* when the port took something last */
	struct pkt frames[PKT_BURST]; /* allocated and not used yet */
	uint32_t frame_count;
	struct uplink_held held[UPLINK_HELD]; /* oldest first */
	uint32_t held_count;
	uint32_t held_generation; /* of the neighbours, when they were looked at */
	/* Takes in datagrams between agents (wire/gsi.h), to one of our addresses from
	 * another machine's; NULL: nobody does. */
	void (*gsi_rx)(void *arg, const uint8_t *bytes, const uint8_t ours[16],
		const uint8_t theirs[16], uint64_t now);
	void *gsi_arg;
	uint32_t gsi_psn;
	struct port_stats stats;
};

/* net: complete, with the port's MAC. Takes the port over when it succeeds and makes
 * itself sw->up. -EINVAL: an address; -ENOMEM. */
int
uplink_create(struct sw *sw, const struct port *port, const struct net_conf *net,
	uint32_t mtu, struct uplink **out);
/* Drops what it has, closes the port. */
void
uplink_destroy(struct uplink *u);

/* Takes packets in; returns how many there were. sw_run() shows them to the clients. */
unsigned
uplink_rx(struct uplink *u, uint64_t now);
/* Sends what is staged, and the port's own frames. False: some are left. */
bool
uplink_tx(struct uplink *u, uint64_t now);
/* When uplink_tx() has to be called even if nothing happens. */
uint64_t
uplink_deadline(const struct uplink *u);

/* Of the switch: a packet that has been checked; the reason of a drop is counted. */
enum sw_sent
uplink_send(struct uplink *u, const struct sw_packet *p, struct sw_qp *qp);
/* A frame to fill; false: there is none. */
bool
uplink_frame(struct uplink *u, struct pkt *frame);
/* Sends it, complete but for the next hop's MAC; false: nobody leads there, or no room. */
bool
uplink_frame_send(struct uplink *u, const struct pkt *frame, const uint8_t dgid[16]);

/* The port's own business: ARP, ND, ICMP, IGMP, MLD. */
void
uplink_local_rx(struct uplink *u, const struct pkt *frame, uint64_t now);

/* uplink_gsi.c: a datagram of GSI_LEN bytes from QP 1 to QP 1; false: as above. */
bool
uplink_gsi_send(struct uplink *u, const uint8_t *bytes, const uint8_t sgid[16],
	const uint8_t dgid[16]);
/* One that came to QP 1, or 0; its addresses have been looked at. */
void
uplink_gsi_rx(struct uplink *u, const struct pkt_view *view, const uint8_t ours[16],
	const uint8_t theirs[16], uint64_t now);

/* Somebody will send there soon. */
void
uplink_resolve(struct uplink *u, const uint8_t dgid[16]);
int
uplink_join(struct uplink *u, const uint8_t gid[16]);
void
uplink_leave(struct uplink *u, const uint8_t gid[16]);
/* -EINVAL. */
int
uplink_set_net(struct uplink *u, const struct net_conf *net);

#endif
