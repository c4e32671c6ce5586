/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The daemon's port. It sends packets of clients to other hosts, with the Ethernet header
 * that the neighbour table gives. It delivers packets of other hosts to the client that
 * owns their QPN. It serves ARP, ND, ICMP and group membership for the addresses that all
 * clients share. Pure logic like the switch, run by the same threads: each has a queue of the
 * port. Thread 0 also has the link, the neighbour table, the packets that wait for it, and all
 * frames that are not RoCEv2 or are for QP 1.
 *
 * A packet whose next hop is not resolved yet is queued, because datagrams are not
 * resent. ibv_modify_qp() resolves the next hop of a connection in advance.
 */
#ifndef ROCADE_SWITCH_UPLINK_H
#define ROCADE_SWITCH_UPLINK_H

#include "port/port_io.h"
#include "switch/sw_packet.h"

#define UPLINK_NEIGH_QUEUE 256     /* packets queued for neighbour resolution */
#define UPLINK_NEIGH_QUEUE_EACH 32 /* packets of one client among them */
#define UPLINK_NEIGH_QUEUE_USER 96 /* packets of all clients of one user */
/* Kept for the daemon's connection manager: requests, and answers. */
#define UPLINK_NEIGH_QUEUE_CM (2 * UPLINK_NEIGH_QUEUE_EACH)
#define UPLINK_NEIGH_QUEUE_NS (2 * NS_PER_SEC) /* longest time in the queue */
/* a port that accepts no frame for this long loses its backlog */
#define UPLINK_STALL_NS (100 * NS_PER_MS)

/* An open port, for rocade_daemon_create(). */
struct rocade_daemon_port {
	struct port port;
	uint32_t mtu; /* IP */
};

struct uplink_neigh_entry {
	struct pkt frame; /* complete but for the next hop's MAC */
	uint8_t dgid[16];
	/* &sw_user.neighs: a packet of this user's clients; &departed (uplink.c): of a
	 * user that has no clients any more; &uplink.cm: a request of the connection
	 * manager; NULL: its answer to another host */
	const struct net_user *user;
	uint32_t client; /* client id; 0: the connection manager's */
	uint64_t until_ns;
};

/* Of a thread other than thread 0. */
struct uplink_queue {
	struct port_io io;
	struct port_stats stats;
};

struct uplink {
	struct sw *sw;
	struct port port;
	struct net *net;
	struct net_user cm; /* neighbours to which the connection manager connects */
	uint16_t vlan;
	uint32_t mtu;
	bool link_up;                /* written by thread 0 */
	struct port_io io;           /* of thread 0 */
	struct uplink_queue *queues; /* of threads 1 and so on */
	struct uplink_neigh_entry neigh_queue[UPLINK_NEIGH_QUEUE]; /* oldest first */
	uint32_t neigh_queue_count;
	uint32_t neigh_queue_generation; /* of the neighbour table, at the last retry */
	/* Receives datagrams between connection managers (wire/wire_gsi.h), sent to one
	 * of the daemon's addresses (ours) by another host (theirs). NULL: they are
	 * dropped. Those of class EXT_MAD_CLASS go to sw->ext. */
	void (*gsi_rx)(void *arg, const uint8_t *bytes, const uint8_t ours[16],
		const uint8_t theirs[16], uint64_t now);
	void *gsi_arg;
	uint32_t gsi_psn;
	struct port_stats stats; /* of thread 0 */
};

/* ---- Called by the daemon (drivers/server) ---- */

/* net: complete, with the port's MAC. On success takes ownership of the port and sets
 * sw->up. Returns 0, -EINVAL (bad address, or not a queue for each thread) or -ENOMEM. */
int uplink_create(struct sw *sw, const struct port *port, const struct net_conf *net,
	uint32_t mtu, struct uplink **out);
/* Drops all queued frames and closes the port. The other threads have stopped. */
void uplink_destroy(struct uplink *u);
/* Replaces the addresses. Returns 0 or -EINVAL. */
int uplink_set_net(struct uplink *u, const struct net_conf *net);

/* Receives a burst, on the queue of thread 0. Returns the number of packets. The next sw_run()
 * publishes them to the clients. */
unsigned uplink_rx(struct uplink *u, uint64_t now);
/* Sends the tx backlog and the port's own frames (ARP, ND, MLD, ...). Returns false if
 * some are left. */
bool uplink_tx(struct uplink *u, uint64_t now);
/* Returns when uplink_tx() must be called even if nothing happens. */
uint64_t uplink_deadline(const struct uplink *u);

/* Adds up the counters of all queues. */
void uplink_stats_read(struct uplink *u, struct port_stats *stats);

/* Returns how many packets of the user wait for neighbour resolution. */
uint32_t uplink_queued(const struct uplink *u, const struct net_user *user);

/* Sends a datagram of GSI_LEN bytes from QP 1 to QP 1. answer: the other host has sent
 * first, see net_resolve_answer(). Returns false if there is no buffer, no route or no
 * room. */
bool uplink_gsi_send(struct uplink *u, const uint8_t *bytes, const uint8_t sgid[16],
	const uint8_t dgid[16], bool answer);

/* ---- Called within lib/switch ---- */

/* sw.c: receives a burst on the thread's queue. */
unsigned uplink_queue_rx(struct uplink *u, struct sw_thread *t, uint64_t now);
/* sw_take.c: as if the frame had been received on the thread's queue, and gives it back. */
void uplink_frame_taken(
	struct uplink *u, struct sw_thread *t, struct pkt *frame, uint64_t now);
/* sw_take.c, in thread 0: tells another thread the next hop, if that is known. */
void uplink_hop_tell(
	struct uplink *u, const struct sw_thread *to, const uint8_t dgid[16]);
/* route.c: sends a checked packet. Counts the reason of a drop. qp: NULL if it is another
 * thread's. */
enum sw_sent uplink_send(struct uplink *u, const struct sw_packet *p, struct sw_qp *qp);
/* proto.c: resolves the next hop in advance, for packets that will soon follow. */
void uplink_resolve(struct uplink *u, struct sw_client *client, const uint8_t dgid[16]);
/* sw.c: the user has no clients any more. Their queued packets are still sent. */
void uplink_forget(struct uplink *u, struct sw_user *user);
/* sw_group.c. */
int uplink_join(struct uplink *u, const uint8_t gid[16]);
void uplink_leave(struct uplink *u, const uint8_t gid[16]);
/* sw.c: sends what sw->ext has to send. */
void uplink_ext_tx(struct uplink *u, uint64_t now);
/* uplink_rx.c: handles a packet to QP 0 or QP 1 whose addresses have been checked. */
void uplink_gsi_rx(struct uplink *u, const struct pkt *pkt, const struct pkt_view *view,
	const uint8_t ours[16], const uint8_t theirs[16], uint64_t now);
/* uplink_gsi.c: sends a frame that is complete but for the next hop's MAC. Returns false
 * if there is no route or no room; the frame is then released. */
bool uplink_frame_send(
	struct uplink *u, const struct pkt *frame, const uint8_t dgid[16], bool answer);

#endif
