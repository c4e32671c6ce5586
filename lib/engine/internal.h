/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of lib/engine tell each other. */
#ifndef ROCADE_ENGINE_INTERNAL_H
#define ROCADE_ENGINE_INTERNAL_H

#include <rte_prefetch.h>

#include "base/ringmem.h"
#include "engine/ahead.h"
#include "engine/bells.h"
#include "engine/engine.h"
#include "qp/ball.h"
#include "wire/expect.h"

#define ENGINE_BUDGET 16 /* packets a QP may send before the next one's turn */
#define ENGINE_TX_TURN (2 * PKT_BURST) /* packets sent in one turn of the loop */
#define ENGINE_STALL_NS (250 * NS_PER_MS) /* so long may a port refuse everything */
#define ENGINE_LINK_NS (250 * NS_PER_MS)  /* how often the link is looked at */
#define ENGINE_HANDOFF 1024            /* packets on the way from one engine to another */

/* See answer.h. */
struct answers {
	uint8_t row;    /* of messages that were answered before the next turn */
	bool waited;    /* the last turn took in a message */
	bool kept;      /* and its acknowledgement has not left */
	bool held;      /* because the answer has not left either */
	uint8_t balls;  /* kept: messages that it is for */
	uint16_t vain;  /* messages whose acknowledgement waits for no other */
	bool prepare;   /* somebody has answered since the last turn */
	bool drafted;   /* there is a draft of the next answer of qp */
	bool posted;    /* that has left, and qp_draft_sent() is to be called */
	bool ready;     /* what is expected is ready to be caught, */
	bool matched;   /* or has come, and was */
	struct qp *qp;  /* who answered last, and is expected to; NULL: nobody */
	pthread_t loop; /* who called engine_poll() last */
	uint64_t last_ns;      /* kept: when the last of them came, */
	uint64_t messages;     /* and how many the QP had received then */
	struct qp_draft draft; /* of as many bytes as the answer before; pkt.data NULL: no frame */
	struct expect expect;
	struct qp_catch ball;
};

struct engine {
	/* Hot: the loop. */
	struct dev *dev;
	struct port_queue queue;
	uint16_t vlan;
	uint8_t index;
	bool net_duty; /* this engine answers for the port: ARP, ND, ICMP */
	uint32_t net_generation;
	struct qp_env env;
	TAILQ_HEAD(engine_qps, qp) ready;
	struct engine_qps unresolved;     /* wait for the next hop's MAC */
	struct pkt stage[ENGINE_TX_TURN]; /* what the port refused: goes first */
	uint32_t stage_from, stage_count;
	uint64_t stage_ns;   /* when the port took something last, or the stage began */
	uint64_t link_at_ns; /* when the link is looked at next */
	struct pkt
		frames[PKT_BURST]; /* allocated and not used yet: frame_count of them */
	uint32_t frame_from, frame_count;
	struct pkt looped[PKT_BURST]; /* to the port itself: taken in next */
	uint32_t looped_count;
	struct pkt taken[PKT_BURST]; /* received; the first taken_count are to be given back */
	uint32_t taken_count;
	struct answers answers;
	uint32_t waiting; /* QPs that wait for a peer's window */
	struct wheel wheel;
	struct rte_ring
		*handoff[DEV_MAX_ENGINES]; /* from each other engine; NULL for itself */
	LIST_HEAD(, peer) peers;
	struct port_stats stats;

	/* drive.c */
	uint64_t earliest; /* of the timers set since the keeper went to rest */
	uint64_t rest_ns;  /* until when it rests; 0: it does not */
	uint32_t drives;
	uint32_t handover;
	uint32_t idle; /* polls in a row that found nothing */

	/* Written by posting threads and control calls. */
	rte_ticketlock_t gate LINE_ALIGNED;
	struct bells bells;
	struct ahead ahead;
	bool again; /* drive.c: somebody wants a turn and did not get the gate */
	const struct engine_driver *driver; /* NULL: a loop polls the engine */
};

/* rx.c */
/* Looks at the port, several times while there is nothing, nor a bell. */
unsigned
engine_rx(struct engine *e, unsigned looks, uint64_t now);
/* Gives back what the last turn took in. */
void
engine_rx_fini(struct engine *e);

/* Takes in n frames and releases them, except those handed to other engines. */
void
engine_take_in(struct engine *e, struct pkt *pkts, unsigned n, uint64_t now);
/* True when the packet is no longer ours to release. */
bool
engine_hand_off(struct engine *e, struct engine *owner, struct pkt *pkt);

/* gsi.c */
/* A packet for QP 1. */
void
engine_gsi_rx(struct engine *e, const struct pkt_view *view, uint64_t now);
/* Sends what is due; there is a user. */
void
engine_gsi_tx(struct engine *e, uint64_t now);
uint64_t
gsi_due(const struct gsi *gsi);

/* mcast.c */
/* A packet to a group: every QP attached to it but the sender gets it, those of other
 * engines by a copy. False: the group has no QP here. The packet stays the caller's. */
bool
engine_group_rx(struct engine *e, const struct pkt *pkt, const struct pkt_view *view,
	const struct qp *sender, uint64_t now);
/* Tells the port which groups it has to receive. With dev->lock held, or nobody else. */
void
dev_filter_set(struct dev *dev);
/* What the QP, whose path is a group's, is about to send: to its neighbours here. */
void
engine_group_tx(struct engine *e, const struct qp *qp, const struct pkt *pkts, unsigned n,
	uint64_t now);

/* tx.c */
unsigned
engine_tx(struct engine *e, uint64_t now);
/* What the QP has to say for itself leaves at once. False where that cannot be. */
bool
engine_answer(struct engine *e, struct qp *qp, uint64_t now);
/* What the QP owes to a request of its peer leaves at once, where that can be. */
void
engine_acknowledge(struct engine *e, struct qp *qp, uint64_t now);
/* Takes a frame for the port's own use; false when none is free. */
bool
engine_frame(struct engine *e, struct pkt *frame);
void
engine_frame_return(struct engine *e, const struct pkt *frame);
/* Sends a frame of the port's own (not a QP's). */
void
engine_send_own(struct engine *e, struct pkt *frame, uint64_t now);
void
engine_tx_fini(struct engine *e);

/* What a turn of a QP touches. */
static inline void
qp_prefetch_tx(const struct qp *qp)
{
	rte_prefetch0(qp);
	rte_prefetch0(&qp->ready_link);
	rte_prefetch0(&qp->req);
	rte_prefetch0((const uint8_t *)&qp->req + LINE_SIZE);
	rte_prefetch0(&qp->hdr);
	rte_prefetch0(&qp->hdr.len);
	rte_prefetch0(&qp->sq);
	rte_prefetch0(&qp->sq.lock);
}

/* And, when that is there, its next requests: what was posted long ago has left the cache. */
static inline void
qp_prefetch_requests(const struct qp *qp)
{
	uint32_t first = qp->req.next_idx;
	uint32_t n = RTE_MIN(sq_posted(&qp->sq) - first, (uint32_t)ENGINE_BUDGET);

	if (n == 0)
		return; /* an XRC target has no send queue at all */
	rte_prefetch0(sq_note(&qp->sq, first));
	for (uint32_t i = 0; i < n; i++)
		rte_prefetch0(sq_slot(&qp->sq, first + i));
}

/* qps.c */
/* Puts the QP on the ready list if it has something to send, and its timer in place. */
void
engine_touch(struct engine *e, struct qp *qp);
/* The same when all that has come is a request of the peer. */
void
engine_touch_responder(struct engine *e, struct qp *qp);
void
engine_timer_set(struct engine *e, struct qp *qp);
/* On the ready list, unless it is there or in the unresolved one. */
void
engine_ready(struct engine *e, struct qp *qp);
/* Into the line of those that the peer's window stops; and out of it. */
void
engine_wait(struct engine *e, struct qp *qp);
void
engine_unwait(struct engine *e, struct qp *qp);
/* Takes the QP out of every list of the engine. */
void
engine_forget(struct engine *e, struct qp *qp);
void
engine_ring_served(struct engine *e);
struct peer *
peer_get(struct engine *e, const uint8_t gid[16]);
void
peer_put(struct peer *peer);

/* dev_qp.c */
/* As dev_qp_stop(), with the lock and the gates held. */
void
dev_qp_take_out(struct dev *dev, struct qp *qp);
/* The headers of qp->path; the next hop's MAC comes when the first packet is due. */
void
engine_headers_build(const struct dev *dev, struct qp *qp);

/* engine.c */
/* A turn, with the gate held. */
unsigned
engine_turn(struct engine *e, uint64_t now);
struct engine *
engine_create(struct dev *dev, unsigned index);
void
engine_destroy(struct engine *e);

#endif
