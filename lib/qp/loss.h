/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/*
 * Loss recovery of the requester, besides the ACK timeout: the tail-loss probe (tlp.c).
 * Called by requester.c and completer.c, and by the files above them (qp_io.c, modify.c,
 * flush.c). These calls resend nothing: they tell their caller to.
 */
#ifndef ROCADE_QP_LOSS_H
#define ROCADE_QP_LOSS_H

#include "qp/req.h"

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
/* Handles the expiry of tlp_deadline. Returns true if all packets from una_psn on are to
 * be resent. */
bool tlp_timeout(struct qp *qp, uint64_t now);

#endif
