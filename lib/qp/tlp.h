/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/*
 * Tail-loss probe: loss recovery of the requester, besides the ACK timeout. Called by
 * requester.c, completer.c, nak.c, sack.c, read_gap.c, flush.c and qp_io.c. These calls resend nothing: they tell
 * their caller to.
 */
#ifndef ROCADE_QP_TLP_H
#define ROCADE_QP_TLP_H

#include "qp/req.h"

/* next_idx, next_psn and sent_psn of the requester before a burst. Packets before sent_psn
 * were resent. */
struct tlp_burst {
	uint32_t idx, psn, sent_psn;
	bool cc; /* congestion control is on */
};
/* Packets up to next_psn were sent, the last of them with AckReq. */
void tlp_sent(struct qp *qp, const struct tlp_burst *burst, uint64_t now);
/* Packet psn, and perhaps later ones, were sent again, because the peer does not have
 * them. */
void tlp_repair_sent(struct qp *qp, uint32_t psn, uint64_t now);
/* A missing range of a READ was requested again. */
void tlp_repeated(struct qp *qp, uint64_t now);
/* The peer holds more packets than before, or more responses have come behind a missing one.
 * One of them is rtt_psn if `measured`. */
void tlp_sacked(struct qp *qp, bool measured, uint64_t now);
/* una_psn has advanced. packets: by how many PSNs. Returns true if all packets from una_psn
 * on are to be resent. */
bool tlp_progress(struct qp *qp, uint32_t packets, uint64_t now);
/* Nothing is due any more, and no timer of a probe runs: an RNR wait, an error, a rollback,
 * or a NAK. */
void tlp_cancel(struct qp *qp);
/* tlp_deadline has expired, but the answer may still be on its way, for waited_ns: the timer goes on. */
void tlp_restart(struct qp *qp, uint64_t waited_ns, uint64_t now);
/* Handles the expiry of tlp_deadline. Returns true if all packets from una_psn on are to
 * be resent. */
bool tlp_timeout(struct qp *qp, uint64_t now);

#endif
