/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/*
 * Multipath (docs/protocol.md 20.7): an RC or XRC requester spreads the packets of its
 * SENDs and WRITEs over several UDP source ports, its paths. Routers choose among equal
 * links by these ports, and clouds cap the rate of each. Each packet takes the path with
 * the fewest packets in flight, so a slow path gets fewer. Packets of different paths
 * overtake each other, which a peer that holds packets and sends selective
 * acknowledgements puts right: a QP spreads its packets only if its peer sends those.
 *
 * Path 0 has the source port of qp->hdr. Everything else takes it: requests while READs
 * and the like are outstanding, acknowledgements and responses.
 *
 * A missing packet is lost if a later one of the same path has arrived, or one of any
 * path that was sent four round trips later (as in RFC 8985, RACK). A path on which
 * packets get lost and none arrive is dead: it gets another source port.
 *
 * Called by req_build.c, requester.c, loss.c, sack.c, completer.c, tlp.c and ack.c, with
 * the engine lock held.
 */
#ifndef ROCADE_QP_MULTIPATH_H
#define ROCADE_QP_MULTIPATH_H

#include "qp/req.h"

#define PATHS_MAX 8
#define MULTIPATH_QPS 1024 /* QPs of an engine that may use several paths */

struct mp_path {
	struct port_flip flip; /* from the source port of qp->hdr to its own */
	uint16_t inflight;     /* packets that have not arrived, as far as is known */
	uint8_t lost;          /* packets lost since one arrived, up to 255 */
	bool heard;            /* a packet of this busy period has arrived: */
	uint32_t last_psn;     /* of the last one */
	uint32_t last_sent_ns; /* when that was sent */
	uint32_t heard_ns;     /* when one arrived, or the path got its port */
};

/* The last transmission of an unacknowledged packet. */
struct mp_sent {
	uint32_t ns;
	uint8_t path; /* PATH_NONE: the packet has arrived */
	bool again;   /* it was sent before */
};
#define PATH_NONE 0xFF

/* All times: their low 32 bits. */
struct multipath {
	uint8_t next;     /* path of the next packet, if no other has fewer in flight */
	uint32_t una_psn; /* the packets before it are known to have arrived */
	bool heard;       /* a packet of this busy period has arrived: */
	uint32_t last_sent_ns; /* time of transmission of the one that was sent last */
	uint16_t ports;        /* source ports that the paths have had so far */
	/* NAKs without a selective acknowledgement, see multipath_nak() */
	uint8_t naks, pauses;
	uint32_t pause_ns;
	bool moved;        /* acknowledgements have got another port since RESET: */
	uint32_t moved_ns; /* when, the last time */
	bool duplicate;    /* a duplicate request has come: */
	uint32_t duplicate_epsn, duplicate_ns; /* ePSN and time then */
	struct mp_path path[PATHS_MAX];
	struct mp_sent sent[PSN_BITS]; /* by PSN */
	SLIST_ENTRY(multipath) link;   /* among the free ones */
};

/* The multipath states of an engine. */
struct multipaths {
	unsigned paths; /* of each QP, 2 to PATHS_MAX */
	struct multipath *all;
	uint32_t touched; /* the states before this index were used already */
	SLIST_HEAD(, multipath) free;
};

/* Control path. ROCADE_PATHS, if it is set, takes the place of *paths. Returns 0;
 * -EINVAL: it is no number of 1 to PATHS_MAX, and why says so. */
int multipath_conf_read(uint8_t *paths, char *why, size_t size);
/* Returns 0 or -ENOMEM. */
int multipaths_init(struct multipaths *all, unsigned paths);
/* No QP has a state any more (asserted). */
void multipaths_fini(struct multipaths *all);
/* Gives a new QP a state, if its engine has several paths and a free state. */
void multipath_attach(struct qp *qp);
void multipath_detach(struct qp *qp);

/* NAKs without a selective acknowledgement after which a QP pauses: it spreads no packets
 * for a while. The peer's host has said that it sends these, but this process of it does
 * not, or does not know yet that this host understands them. */
#define MULTIPATH_NAKS 4

/* The state of a QP that has one (qp->multipath != 0). */
static inline struct multipath *
multipath_of(const struct qp *qp)
{
	return &qp->shared->multipaths->all[qp->multipath - 1];
}

/* True if packets of the QP may have overtaken each other: a gap shows no loss. Without
 * probes nothing would find the loss of a last packet: such a QP uses path 0 only. */
static inline bool
multipath_reorders(const struct qp *qp)
{
	return unlikely(qp->multipath != 0) && qp->peer != NULL && peer_sacks(qp->peer) &&
	       req_probes(qp) && multipath_of(qp)->naks < MULTIPATH_NAKS;
}

/* For a QP that has a state: */

/* The QP begins anew, with the ports that it had. */
void multipath_reset(struct qp *qp);
/* frame_begin() has written the headers of packet req.next_psn of a SEND or WRITE:
 * chooses its path. */
void multipath_choose(struct qp *qp, struct pkt *pkt, struct icrc_sum *sum);
/* The QP sends everything again. Earlier arrivals say nothing about what is sent
 * afterwards, which may be so late that times of 32 bits do not compare. */
void multipath_rollback(struct qp *qp);
/* The peer has packet psn. It may be called again for the same packet. */
void multipath_arrived(struct qp *qp, uint32_t psn);
/* Notes which packets were acknowledged since the last call, before multipath_lost() and
 * the calls below it. */
void multipath_acknowledged(struct qp *qp);
/* A sequence NAK has come, and multipath_reorders(). Returns true if it need not show a
 * loss: the packet that it names may be on its way. */
bool multipath_nak(struct qp *qp);
/* True if packet psn, which is missing while later ones have arrived, is lost. */
bool multipath_lost(const struct qp *qp, uint32_t psn);
/* True if packet psn was sent so long ago that it should have arrived. */
bool multipath_is_late(const struct qp *qp, uint32_t psn);
/* Packet psn is taken for lost. */
void multipath_note_lost(struct qp *qp, uint32_t psn);
/* Gives dead paths other ports. */
void multipath_move_dead(struct qp *qp);
/* The ACK timeout has expired: all paths get other ports. */
void multipath_timeout(struct qp *qp);
/* A duplicate request has come. If acknowledgements seem to get lost, path 0 gets another
 * port. */
void multipath_duplicate(struct qp *qp);

#endif
