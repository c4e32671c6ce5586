/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/*
 * Held packets: a responder keeps request packets that arrive behind a missing one, and
 * executes them in order once that has come (docs/protocol.md 8.10). No peer notices:
 * only executed packets are acknowledged. So held packets may be dropped at any time, as
 * if the network had lost them.
 *
 * An engine has one arena for all its QPs, whose pages take memory once they are used.
 * When it is full, the QP that has waited longest for its missing packet gives up what it
 * holds. Called by ack.c, responder.c, qp_io.c and flush.c, with the engine lock held.
 */
#ifndef ROCADE_QP_HOLD_H
#define ROCADE_QP_HOLD_H

#include <sys/queue.h>

#include "qp/qp.h"

#define HOLD_PACKETS 512 /* of an engine: four QPs that hold as many as they can */
#define HOLD_QPS 63      /* QPs of an engine that hold any; qp->resp.hold has 6 bits */
/* Longest packet from the IP header to the end of the payload: IPv6, UDP, BTH, extended
 * headers, payload. */
#define HOLD_BYTES (40 + 8 + 12 + EXT_LEN_MAX + 4096)

struct held_packet {
	TAILQ_ENTRY(held_packet) link;
	struct pkt_view view; /* of the bytes below */
	uint8_t bytes[HOLD_BYTES];
};
TAILQ_HEAD(held_packets, held_packet);

/* The packets that a QP holds. */
struct hold {
	struct qp *qp;
	struct held_packets packets; /* ordered by PSN */
	TAILQ_ENTRY(hold) link;
	uint32_t
		echo; /* of the selective acknowledgement that is due: PSN of its cause */
};
TAILQ_HEAD(holds, hold);

struct hold_arena {
	struct held_packet *packets;
	uint32_t touched;         /* the packets before this index were used already */
	struct held_packets free; /* of those */
	struct holds
		waiting; /* of QPs that hold packets; the first one has waited longest */
	struct holds unused;
	struct hold holds[HOLD_QPS];
};

/* Returns 0 or -ENOMEM. */
int hold_arena_init(struct hold_arena *arena);
/* No QP holds packets any more (asserted). */
void hold_arena_fini(struct hold_arena *arena);

/* Keeps a copy of a packet with a PSN after ePSN. Returns false if that is not possible:
 * the packet is lost. */
bool hold_add(struct qp *qp, const struct pkt_view *view);

/* Drops held packets with a PSN before ePSN, and takes the one with ePSN out. NULL: it is
 * not held. hold_put() frees it. */
struct held_packet *hold_take(struct qp *qp);
void hold_put(struct qp *qp, struct held_packet *packet);

/* ---- Selective acknowledgements (docs/protocol.md 20.4) ---- */

/* Packet psn has changed what the QP holds: if it holds any, and its peer understands
 * selective acknowledgements, one is due. */
void hold_sack_owe(struct qp *qp, uint32_t psn);

/* Fills in the selective acknowledgement, which is no longer due then. */
void hold_sack_take(struct qp *qp, struct seth *seth);

/* Drops all packets that the QP holds. */
void hold_drop(struct qp *qp);

#endif
