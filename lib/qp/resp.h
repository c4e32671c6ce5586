/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/*
 * The responder: responder.c takes in requests, resp_read.c and mpe.c those that take a
 * responder resource, ack.c the others' acknowledgements. Called by qp_io.c, by the
 * transports on top (uc.c, qp_xrc.c), and for a reset by modify.c, flush.c and qp_init.c.
 */
#ifndef ROCADE_QP_RESP_H
#define ROCADE_QP_RESP_H

#include "qp/qp_state.h"

/* hold.c: for resp_advance(), while qp->resp.wait is not RESP_OPEN. */
enum verdict resp_hole_filled(struct qp *qp);

/* Sets ePSN: the packets before it were executed. Returns VERDICT_GO, or VERDICT_FILLED if
 * the QP holds packets. If qp->resp.wait is RESP_OPEN afterwards, the responder waits for
 * nothing any more. */
static inline enum verdict
resp_advance(struct qp *qp, uint32_t epsn)
{
	qp->resp.epsn = epsn;
	return likely(qp->resp.wait == RESP_OPEN) ? VERDICT_GO : resp_hole_filled(qp);
}

/* The last packet of a message was executed. */
static inline void
resp_message_done(struct qp *qp)
{
	qp->resp.msn = psn_add(qp->resp.msn, 1);
	qp->stats.rx_msgs++;
}

/* ---- responder.c ---- */

void resp_reset(struct qp *qp, uint32_t psn);
enum verdict resp_rx(struct qp *qp, const struct pkt_view *view);
/* Takes in a request packet that is in sequence. */
enum verdict resp_request(struct qp *qp, const struct pkt_view *view);
/* Raises COMM_EST once. */
void resp_established(struct qp *qp);

/* ---- ack.c ---- */

/* A request packet with a PSN after ePSN: packets are missing. It is held, or dropped. */
void resp_out_of_sequence(struct qp *qp, const struct pkt_view *view);
/* The packet with ePSN is missing: a sequence NAK asks for it. */
void resp_hole(struct qp *qp);
/* A duplicate of a SEND or WRITE packet. */
void resp_duplicate(struct qp *qp, uint32_t psn);
/* Builds the pending acknowledgement. */
void resp_ack_build(struct qp *qp, struct pkt *pkt);
/* Builds the selective acknowledgement that is due. */
void resp_sack_build(struct qp *qp, struct pkt *pkt);

/* ---- resp_read.c: READ and atomic requests ---- */

/* Makes room for this many READs and atomics. Returns 0 or -ENOMEM. */
int resp_set_depth(struct qp *qp, uint32_t depth);
/* Returns the number of READs, atomics and the like that are not answered yet. */
static inline uint32_t
resp_unanswered(const struct qp *qp)
{
	return qp->resp.res_end - qp->resp.res_done;
}
enum verdict resp_read(struct qp *qp, const struct pkt_view *view);
enum verdict resp_atomic(struct qp *qp, const struct pkt_view *view);
/* VERDICT_GO if a responder resource is free. */
enum verdict resp_depth_check(struct qp *qp, const struct pkt_view *view);
/* Adds an executed request: it takes its PSNs and a responder resource. Its response
 * acknowledges everything before it, so a pending acknowledgement is cancelled. Returns
 * the verdict of resp_advance(). */
enum verdict resp_res_add(struct qp *qp, const struct resp_res *res);
void resp_res_replay(struct qp *qp, const struct pkt_view *view);
/* The highest PSN that an acknowledgement of a duplicate at psn may name. */
uint32_t resp_ack_limit(const struct qp *qp, uint32_t psn);
/* Forgets responder resources so old that their PSNs are about to be reused. Call after
 * ePSN has advanced, at the latest after RES_EXPIRE_EVERY packets. */
void resp_res_expire(struct qp *qp);
#define RES_EXPIRE_EVERY (UINT32_C(1) << 21)
/* True if a response that is still to be sent acknowledges psn. */
bool resp_res_cover(const struct qp *qp, uint32_t psn);
/* Takes the PD from responder resources of this XRC SRQ: the PD's number may be reused
 * soon. */
void resp_res_revoke(struct qp *qp, uint32_t srqn);
/* Builds up to n responses in PSN order. After a fault a NAK takes the place of the
 * rest; its PSN is in ack_psn. */
struct burst resp_res_tx(struct qp *qp, struct pkt *pkts, unsigned n);

/* ---- mpe.c ---- */

enum verdict resp_atomic_write(struct qp *qp, const struct pkt_view *view);
enum verdict resp_flush(struct qp *qp, const struct pkt_view *view);

#endif
