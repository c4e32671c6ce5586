/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/*
 * Selective acknowledgements (docs/protocol.md 20.4 to 20.6), the requester's half. A
 * peer that holds packets behind a missing one tells which. The requester notes that on a
 * scoreboard, a record of missing packets (loss.h), and resends only what is missing, all
 * of it within a round trip. una_psn is moved by standard acknowledgements alone.
 *
 * The network keeps the order of a connection (docs/protocol.md 16), so a packet is lost
 * if one that was sent after it has arrived.
 *
 * A QP takes a scoreboard when its peer misses a packet, and gives it back when that
 * packet and all up to the last held one are acknowledged. If none is free, the QP
 * resends as it does for other peers. A scoreboard ends at the first READ, atomic or the
 * like: their requests take PSNs of which no packet is sent.
 *
 * Called by qp_io.c, requester.c and nak.c, with the engine lock held.
 */
#ifndef ROCADE_QP_SACK_H
#define ROCADE_QP_SACK_H

#include "qp/loss.h"

/* Takes in a selective acknowledgement. Returns why it is dropped, or DROP_none. */
enum drop_reason sack_rx(struct qp *qp, const struct pkt_view *view, uint64_t now);

/* A sequence NAK names una_psn, which is not of a READ or the like. Returns whether the
 * scoreboard takes care of it; *lost is then set if the packet has not been sent again
 * since it was lost. False: there is no scoreboard, or no selective acknowledgement has
 * come for this QP. */
bool sack_nak(struct qp *qp, bool *lost);

/* For a QP with a scoreboard: returns whether a copy is due, and of which packet. */
bool sack_next_lost(const struct qp *qp, uint32_t *psn);

#endif
