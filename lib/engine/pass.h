/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/*
 * A pass of the poll loop and its parts. engine.c and manual_progress.c run passes. A part
 * calls only parts that stand before it here. With the engine lock held.
 */
#ifndef ROCADE_ENGINE_PASS_H
#define ROCADE_ENGINE_PASS_H

#include "engine/engine_state.h"
#include "engine/gsi.h"

/* handoff.c: rings on which an engine hands packets to the engines that own their QPs, one
 * for each ordered pair of engines. */
#define HANDOFF_ENTRIES 1024 /* of a ring */
/* Create and destroy the rings on which the engine receives. Returns 0 or -ENOMEM. */
int handoff_create(struct engine *e);
void handoff_destroy(struct engine *e);
/* Hands the packet to the engine that owns its QP. True: the caller must not release
 * it. */
bool engine_hand_off(struct engine *e, struct engine *owner, struct pkt *pkt);

/* engine_mcast.c */
/* Delivers a packet for a multicast group to each attached QP but the sender, to those of
 * other engines by a copy. False: no QP of the device is attached to the group. The
 * caller releases the packet. */
bool engine_group_rx(struct engine *e, const struct pkt *pkt, const struct pkt_view *view,
	const struct qp *sender, uint64_t now);
/* Multicast loopback of packets that the QP is about to send to its group: delivers them
 * to the group's other QPs of this device. */
void engine_group_tx(struct engine *e, const struct qp *qp, const struct pkt *pkts,
	unsigned n, uint64_t now);

/* engine_ext.c: the agent for extensions of the device (port/ext_query.h) */
/* Handles a message of class EXT_MAD_CLASS. */
void engine_ext_rx(struct engine *e, const struct gsi_msg *msg, uint64_t now);
/* Fills in the agent's next message. False: there is none. */
bool engine_ext_tx(struct engine *e, struct gsi_msg *msg, uint64_t now);
/* As ext_query_tx_done(). */
void engine_ext_tx_done(
	struct engine *e, const struct gsi_msg *msg, bool sent, uint64_t now);
/* Asks the agent about peers in e->peers.asking. */
void engine_ext_ask(struct engine *e, uint64_t now);

/* engine_rx.c */
/* Receives a burst and the packets that other engines have handed over. Returns the
 * number of packets. */
unsigned engine_rx(struct engine *e, uint64_t now);
/* Releases the frames of the last burst. */
void engine_rx_fini(struct engine *e);

/* engine_answer.c: which answers are still on their way, on this machine */
void engine_answers_init(struct engine *e);
/* The part of engine_answered() for a pass that has something to tell. */
void engine_answers_tell(struct engine *e, uint64_t now);

/* At the end of each pass. */
static inline void
engine_answered(struct engine *e, uint64_t now)
{
	/* Ordered by rounds_pass(). */
	if (unlikely(e->unanswered ||
		     e->round_done != __atomic_load_n(e->round_number, __ATOMIC_RELAXED)))
		engine_answers_tell(e, now);
}

/* Processes n frames and releases them, except those handed to other engines. */
void engine_rx_process(struct engine *e, struct pkt *pkts, unsigned n, uint64_t now);

/* engine_gsi.c */
/* Sends what is due on QP 1. */
void engine_gsi_tx(struct engine *e, uint64_t now);

/* engine_tx.c */
/* Sends what is due: frames of the port and of QP 1, then packets of ready QPs until
 * ENGINE_TX_PASS are sent. Returns the number of packets of QPs, with those looped
 * back. */
unsigned engine_tx(struct engine *e, uint64_t now);
/* For a post: sends the QP's requests at once. Returns false, and sends none of them, if the QP is not in
 * RTS, is on the ready or unresolved list, has another route than ROUTE_PEER, or if the port takes no
 * packets: the caller rings the doorbell. Returns true without sending if QPs wait for the peer window:
 * the QP is scheduled behind them. */
bool engine_tx_qp(struct engine *e, struct qp *qp, uint64_t now);

/* engine_pass.c */
/* Runs a pass. */
unsigned engine_pass(struct engine *e, uint64_t now);
/* Before a QP is destroyed or moves to ERR, or a CQ of it gets smaller: runs passes while it has requests
 * or responses to send, at most FINAL_PASSES. Without them, a request that was posted while no thread could
 * run a pass would be lost, where an adapter sends it. The application may also know of the packets that are
 * not acknowledged yet, and the peer would take them for lost. */
void engine_finish_qp(struct engine *e, const struct qp *qp, uint64_t now);
/* If an acknowledgement of the QP waits for an answer or for more packets, makes the QP ready. Its
 * stream ends, so that no later one waits for more packets. Frames that the queue of the port holds back, leave. */
void engine_ack_wait_end(struct engine *e, const struct qp *qp);
/* Removes the QP from the engine: from every list, its timer, its doorbell, its peer. */
void engine_forget(struct engine *e, struct qp *qp);
/* Returns when the next timer fires, the next peer window opens for blocked QPs, the next moderated
 * event is due, or QP 1 has something to send. */
uint64_t engine_next_time(const struct engine *e);

#endif
