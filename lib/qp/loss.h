/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/*
 * Loss recovery of the requester, besides the ACK timeout: AckReq suppression (ackreq.c)
 * and the tail-loss probe (tlp.c). Called by requester.c and completer.c, and by the files
 * above them (qp_io.c, modify.c, flush.c). These calls resend nothing: they tell their
 * caller to.
 */
#ifndef ROCADE_QP_LOSS_H
#define ROCADE_QP_LOSS_H

#include "qp/req.h"

/* ---- ackreq.c ---- */

/* True if the QP may send without AckReq. The caller has checked
 * qp_peer_has_many_qps(). */
bool ackreq_can_suppress(const struct qp *qp);
/* Packets up to next_psn were sent, the last of them without AckReq. */
void ackreq_suppress(struct qp *qp);
/* The last packet had AckReq set: piggybacks the peer's packets sent without AckReq on
 * it. */
void ackreq_piggyback(struct qp *qp);
/* Releases the piggybacked in-flight count: acknowledged, or the QP stops. */
void ackreq_release(struct qp *qp);
/* Counts all packets from una_psn on again: they are resent or given up. */
void ackreq_count_all(struct qp *qp);
/* How long packets may stay without AckReq before a tail-loss probe is sent. */
uint64_t ackreq_delay_ns(const struct qp *qp);

/* ---- tlp.c ---- */

/* Arms the probe timer after packets were sent without AckReq. */
void tlp_sent_suppressed(struct qp *qp, uint64_t now);
/* Packets up to next_psn were sent, the last of them with AckReq. sent: req.sent_psn
 * before that; packets before it were resent. */
void tlp_sent(struct qp *qp, uint32_t sent, uint64_t now);
/* Packet una_psn was sent again, because a NAK had asked for it. */
void tlp_hole_sent(struct qp *qp, uint64_t now);
/* una_psn has advanced. packets: by how many PSNs. Returns true if all packets from una_psn
 * on are to be resent. */
bool tlp_progress(struct qp *qp, uint32_t packets, uint64_t now);
/* Cancels the probe: an RNR wait, an error, or a rollback for another reason. */
void tlp_cancel(struct qp *qp);
/* Requests an acknowledgement of packets sent without AckReq, by a copy of the oldest
 * packet. If the oldest request is a READ or an atomic, its response or its timeout comes
 * first. */
void tlp_request_ack(struct qp *qp);
/* Handles the expiry of tlp_deadline. Returns true if all packets from una_psn on are to
 * be resent. */
bool tlp_timeout(struct qp *qp, uint64_t now);

#endif
