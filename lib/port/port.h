/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The port interface: an engine's view of a network interface, implemented by drivers/.
 * Function pointers are called once per burst, never per packet. A queue is used by one
 * engine at a time. Exception: rx_release() and tx_release() of any queue accept packets
 * of any queue of the same port, from any engine, because engines pass packets to each
 * other.
 */
#ifndef ROCADE_PORT_PORT_H
#define ROCADE_PORT_PORT_H

#include "wire/pkt.h"

struct answer_wait;
struct mbuf_ops;
struct net_conf;
struct port_flow;
struct rounds;
struct rte_mempool;

struct port_caps {
	/* bytes of the longest frame that fits a buffer, with the L2 header */
	uint32_t max_frame;
	uint32_t rx_ring;   /* capacity of one receive ring, in frames */
	bool tx_ipv4_cksum; /* honours PKT_TX_IPV4_CKSUM */
};

struct port_ops {
	/* Receives up to n frames, each in one segment. Returns how many. */
	unsigned (*rx_burst)(void *queue, struct pkt *pkts, unsigned n);
	/* Gives received frames back to the port. Also accepts frames of tx_alloc(),
	 * filled or not. Of a port with mbufs, owner may be NULL: the mbuf is the application's now. */
	void (*rx_release)(void *queue, struct pkt *pkts, unsigned n);
	/* Allocates up to n empty frames: data, room and owner are set, len and flags are
	 * 0. Returns how many. */
	unsigned (*tx_alloc)(void *queue, struct pkt *pkts, unsigned n);
	/* Points up to n allocated frames at memory from which packets of the QP leave without a
	 * copy. Returns how many, from the first on. Next, the caller offers those that this QP has
	 * filled to tx_burst(). May be NULL. */
	unsigned (*tx_place)(void *queue, uint32_t qpn, struct pkt *pkts, unsigned n);
	/* Moves frames and what they hold back to their buffers: those that were not filled. */
	void (*tx_unplace)(void *queue, struct pkt *pkts, unsigned n);
	/* Gives allocated frames that were not sent back to the port. */
	void (*tx_release)(void *queue, struct pkt *pkts, unsigned n);
	/* Sends pkts[0..n). Returns how many it took, in order. The caller keeps the
	 * rest. */
	unsigned (*tx_burst)(void *queue, struct pkt *pkts, unsigned n);
	/* Returns whether it holds sent frames back that leave in later polls (port/impair.h). NULL: never. */
	bool (*holds)(void *queue);
	/* Sends them now, as far as the port takes them. NULL: it never holds any. */
	void (*held_send)(void *queue);
	/* Returns a descriptor that polls readable when frames may be waiting, -1 if
	 * there is none. */
	int (*wait_fd)(void *queue);
	/* Returns whether packets that the QP has sent by this queue, or their answers, may still
	 * be in a ring, or with an engine that has not completed a pass since. Called when a
	 * timer of the QP has expired, and then again and again (base/answer_wait.h) until it
	 * returns false, or packets are acknowledged. Rings and passes of this machine only: of
	 * other packets false. May be NULL. */
	bool (*tx_waits)(
		void *queue, uint32_t qpn, struct answer_wait *wait, uint64_t now);
	/* The engine has completed a pass, and given to tx_burst() the answers to all that
	 * rx_burst() had returned before. May be NULL. */
	void (*rx_answered)(void *queue);
	/* Returns what the engines of this port share with those of another port of this process
	 * to which it sends by rings (port/rounds.h), and which of them this queue is of. For the
	 * queues of a port, not for one that wraps them. NULL: there is no such port. */
	struct rounds *(*rounds)(void *queue, uint32_t *index);
	/* Turns the announcing of frames by wait_fd() on or off. Off also discards what it has
	 * announced. It is off at first. NULL: it is always on. */
	void (*rx_arm)(void *queue, bool on);
	/* Control path. */
	bool (*link_up)(void *drv);
	/* Returns whether the port has ended for good: its link comes up no more. NULL: it never
	 * ends. */
	bool (*has_ended)(void *drv);
	/* Sets the multicast MACs that the port has to receive: the full list, which
	 * replaces the previous one. The port may receive more. May be NULL. */
	void (*set_groups)(void *drv, const uint8_t (*macs)[6], unsigned n);
	/* Tells the port its addresses: when the device is created, and after each change.
	 * May be NULL. */
	void (*set_addresses)(void *drv, const struct net_conf *conf);
	/* Returns the index of the queue that receives the packets of a flow, or -1 if that is
	 * not known. May be NULL. */
	int (*flow_queue)(void *drv, const struct port_flow *flow);
	/* Takes the link down or up. Returns 0 or -errno. May be NULL. */
	int (*set_link)(void *drv, bool up);
	void (*close)(void *drv);
};

struct port_queue {
	const struct port_ops *ops;
	void *queue;
};

static inline bool
port_queue_holds(const struct port_queue *q)
{
	return q->ops->holds != NULL && q->ops->holds(q->queue);
}

static inline void
port_queue_held_send(const struct port_queue *q)
{
	if (q->ops->held_send != NULL)
		q->ops->held_send(q->queue);
}

/* Filled in by a driver's open call. */
struct port {
	const struct port_ops *ops;
	void *drv;
	void **queues; /* owned by the driver; queue_count of them */
	unsigned queue_count;
	struct port_caps caps;
	uint8_t mac[6];
	/* The owner of each frame is an mbuf, see mem/mbuf_ops.h; NULL: it is something else. */
	const struct mbuf_ops *mbufs;
	/* That of the frames it sends. */
	const struct rte_mempool *tx_pool;
	/* Only its buffers are given away; NULL: those of any other mempool. */
	const struct rte_mempool *frame_pool;
};

#endif
