/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests to a QP of this daemon that is not connected yet. Its peer may be connected, and send,
 * before the QP's process has moved it to RTR. A NIC drops these packets, and the sender repeats
 * them after ACK timeouts. The switch keeps copies of them until the QP has registered its peer.
 * Then it delivers them in order, and the sender's next packets after them. The sender's other QPs
 * go on meanwhile.
 *
 * Each thread of the switch keeps the packets of its clients. What a user's clients have the thread
 * keep is limited in the way of an account (base/account.h). The limits count packets, each of
 * which takes a slot of the size of a client's buffer.
 */
#ifndef ROCADE_SWITCH_SW_WAIT_H
#define ROCADE_SWITCH_SW_WAIT_H

#include "switch/sw_packet.h"

#define SW_WAIT_PACKETS 2048 /* of a thread; a user's clients: half of them and 1/16 */
#define SW_WAIT_CLIENT 384
#define SW_WAIT_QP 128 /* as many as a QP sends unacknowledged */
/* A QP's packets are dropped when the first one has waited for as long as 7 retries with the ACK
 * timeout of 67 ms take, about. */
#define SW_WAIT_NS (500 * NS_PER_MS)

struct sw_wait_packet {
	STAILQ_ENTRY(sw_wait_packet) link;
	uint32_t len;
	uint8_t *bytes;
};

/* Of a sending QP, by the index of its entry in sw->qpns. Touched by the thread of its client, and
 * by thread 0 with the locks of all. */
struct sw_wait_queue {
	TAILQ_ENTRY(sw_wait_queue) link; /* in waiting or ready */
	STAILQ_HEAD(, sw_wait_packet) packets;
	struct sw_qp *qp;
	const struct sw_qp *dest;
	uint64_t until_ns;
	uint32_t count; /* of the packets; 0: in no list */
	uint32_t last_psn;
	bool ready; /* in ready */
};

TAILQ_HEAD(sw_wait_queues, sw_wait_queue);

struct sw_wait {
	struct account_limit packets;  /* by user */
	struct sw_wait_queues waiting; /* oldest first */
	struct sw_wait_queues ready;   /* dest is connected; its client's ring was full */
	STAILQ_HEAD(, sw_wait_packet) free;
	struct sw_wait_packet *slots;
	uint8_t *bytes;
	uint32_t buf_size;
};

/* Returns 0 or -ENOMEM; on failure the caller calls sw_wait_destroy(). buf_size: of the longest
 * packet. */
int sw_wait_create(struct sw *sw, uint32_t buf_size);
void sw_wait_destroy(struct sw *sw);

/* Called by route.c: keeps a copy of a checked request of qp. qp has registered dest, which has no
 * peer. */
enum sw_sent sw_wait_add(struct sw_packet *p, struct sw_qp *qp, struct sw_qp *dest);

/* Called by sw_qp.c, with the locks of all threads. */

/* dest has registered a peer: delivers what that one's packets are, drops the others'. */
void sw_wait_connected(struct sw_qp *dest);
/* The QP will not send again what waits, and is no destination any more. */
void sw_wait_sender_ended(struct sw_qp *qp);
void sw_wait_dest_ended(struct sw_qp *dest);

/* Called by sw.c, with the lock of the client's thread: the client has ended. */
void sw_wait_forget(struct sw_client *client);

/* Called by sw_tx.c: sw_wait_serve(). */
void sw_wait_pass(struct sw_thread *t);

/* In each pass of the thread: delivers what a full ring has stopped, and drops what has waited for
 * too long. */
static inline void
sw_wait_serve(struct sw_thread *t)
{
	if (unlikely(t->wait->packets.used != 0))
		sw_wait_pass(t);
}

/* Returns whether the thread must not sleep. */
static inline bool
sw_wait_pending(const struct sw_thread *t)
{
	return !TAILQ_EMPTY(&t->wait->ready);
}

#endif
