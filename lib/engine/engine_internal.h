/* SPDX-License-Identifier: BSD-3-Clause */
/* Internal interfaces of lib/engine. */
#ifndef ROCADE_ENGINE_INTERNAL_H
#define ROCADE_ENGINE_INTERNAL_H

#include <rte_prefetch.h>

#include "base/ringmem.h"
#include "engine/post_prefetch.h"
#include "engine/doorbell.h"
#include "engine/engine.h"
#include "port/port_io.h"

#define ENGINE_BUDGET 16               /* packets that a QP may send before the next QP */
#define ENGINE_TX_PASS (2 * PKT_BURST) /* packets sent in one pass */
/* after this long without taking a packet, the port's backlog is dropped */
#define ENGINE_STALL_NS (250 * NS_PER_MS)
#define ENGINE_HANDOFF 1024 /* entries of the ring from one engine to another */

struct engine {
	/* Hot: the poll loop. */
	struct dev *dev;
	uint16_t vlan;
	uint8_t index;
	/* The control engine: sends the ARP, ND and group messages of the port, polls its
	 * link, and sends for QP 1. Frames that arrive are answered by the engine that
	 * receives them. */
	bool is_control;
	uint32_t net_generation;
	struct qp_shared shared;
	TAILQ_HEAD(engine_qps, qp) ready;
	struct engine_qps unresolved; /* wait for the next hop's MAC */
	struct port_io io;
	/* loopback queue: packets to the port itself, processed next */
	struct pkt loopback[PKT_BURST];
	uint32_t loopback_count;
	/* the last burst; the first unreleased_count frames are still to be released */
	struct pkt unreleased[PKT_BURST];
	uint32_t unreleased_count;
	struct wheel wheel;
	/* hand-off rings, from each other engine; NULL for this one */
	struct rte_ring *handoff[DEV_MAX_ENGINES];
	struct peers peers;
	struct port_stats stats;

	/* Manual progress: used by manual_progress.c. Times are in nanoseconds. */

	/* the earliest timer set since the progress thread went to sleep */
	uint64_t earliest_ns;
	uint64_t sleep_until_ns; /* end of the progress thread's sleep; 0: it is awake */
	uint32_t progress_calls; /* calls of engine_progress() */
	/* empty polls left before the application counts as awake again; see
	 * engine_delegate() */
	uint32_t delegated_polls;
	uint32_t idle; /* polls in a row that found nothing */

	/* Written by posting threads and control calls. */
	rte_ticketlock_t lock LINE_ALIGNED;
	struct doorbells doorbells;
	struct post_prefetch post_prefetch;
	/* the thread that ran the last pass, until its next post; 0: none */
	pthread_t tx_thread;
	bool tx_from_post;   /* never changes */
	bool pass_requested; /* a thread that found the lock taken asks for a pass */
	/* NULL: a loop polls the engine */
	const struct engine_progress_thread *progress_thread;
};

/* engine_rx.c */
/* Receives a burst and the packets that other engines have handed over. Returns the
 * number of packets. */
unsigned engine_rx(struct engine *e, uint64_t now);
/* Releases the frames of the last burst. */
void engine_rx_fini(struct engine *e);

/* Processes n frames and releases them, except those handed to other engines. */
void engine_rx_process(struct engine *e, struct pkt *pkts, unsigned n, uint64_t now);
/* Hands the packet to the engine that owns its QP. True: the caller must not release
 * it. */
bool engine_hand_off(struct engine *e, struct engine *owner, struct pkt *pkt);

/* engine_gsi.c */
/* Processes a packet for QP 1. */
void engine_gsi_rx(struct engine *e, const struct pkt_view *view, uint64_t now);
/* Sends what is due. There must be a user (dev->gsi). */
void engine_gsi_tx(struct engine *e, uint64_t now);
/* Returns when engine_gsi_tx() next has something to send; TIME_NEVER: nothing. */
uint64_t gsi_due(const struct gsi *gsi);

/* engine_mcast.c */
/* Delivers a packet for a multicast group to each attached QP but the sender, to those of
 * other engines by a copy. False: no QP of the device is attached to the group. The
 * caller releases the packet. */
bool engine_group_rx(struct engine *e, const struct pkt *pkt, const struct pkt_view *view,
	const struct qp *sender, uint64_t now);
/* Tells the port which multicast MACs to receive. With dev->lock held, or before the
 * device is in use. */
void dev_filter_set(struct dev *dev);
/* Multicast loopback of packets that the QP is about to send to its group: delivers them
 * to the group's other QPs of this device. */
void engine_group_tx(struct engine *e, const struct qp *qp, const struct pkt *pkts,
	unsigned n, uint64_t now);

/* engine_tx.c */
/* Sends what is due: frames of the port and of QP 1, then packets of ready QPs until
 * ENGINE_TX_PASS are sent. Returns the number of packets of QPs, with those looped
 * back. */
unsigned engine_tx(struct engine *e, uint64_t now);
/* Sends at once what was posted to a QP that has nothing else queued or in flight. False:
 * it has, or sending is not possible now; nothing has happened. */
bool engine_tx_qp(struct engine *e, struct qp *qp, uint64_t now);

/* Prefetches what sending from the QP reads. */
static inline void
qp_prefetch_tx(const struct qp *qp)
{
	rte_prefetch0(qp);
	rte_prefetch0(&qp->sched.ready_link);
	rte_prefetch0(&qp->req);
	rte_prefetch0((const uint8_t *)&qp->req + LINE_SIZE);
	rte_prefetch0(&qp->hdr);
	rte_prefetch0(&qp->hdr.len);
	rte_prefetch0(&qp->sq);
	rte_prefetch0(&qp->sq.lock);
}

/* Prefetches the WQEs and PSN ranges of the QP's next requests, which have left the cache
 * if they were posted long ago. Reads the QP, which must be in the cache already. */
static inline void
qp_prefetch_requests(const struct qp *qp)
{
	uint32_t first = qp->req.next_idx;
	uint32_t n = RTE_MIN(sq_posted(&qp->sq) - first, (uint32_t)ENGINE_BUDGET);

	if (n == 0)
		return; /* an XRC target has no send queue at all */
	rte_prefetch0(sq_psn_range(&qp->sq, first));
	for (uint32_t i = 0; i < n; i++)
		rte_prefetch0(sq_slot(&qp->sq, first + i));
}

/* sched.c */
/* Sets the QP's timer. If the QP has something to send, puts it on the ready list, or
 * blocks it on the peer window. */
void engine_schedule(struct engine *e, struct qp *qp);
/* As engine_schedule(), for a QP that has only received a request: its timer stays. */
void engine_schedule_responder(struct engine *e, struct qp *qp);
void engine_timer_set(struct engine *e, struct qp *qp);
/* Puts the QP on the ready list, unless it is on that or on the unresolved list. */
void engine_ready(struct engine *e, struct qp *qp);
/* Removes the QP from the engine: from every list, its timer, its doorbell, its peer. */
void engine_forget(struct engine *e, struct qp *qp);
/* Schedules every QP whose doorbell is pending. */
void engine_doorbells_drain(struct engine *e);
/* dev_qp.c */
/* As dev_qp_stop(), with dev->lock and all engine locks held. */
void dev_qp_remove(struct dev *dev, struct qp *qp);
/* Builds the headers for qp->path. The next hop's MAC is filled in when the first packet
 * is sent. */
void engine_headers_build(const struct dev *dev, struct qp *qp);

/* engine.c */
/* Runs a pass, with the engine lock held. */
unsigned engine_pass(struct engine *e, uint64_t now);
struct engine *engine_create(struct dev *dev, unsigned index);
void engine_destroy(struct engine *e);

#endif
