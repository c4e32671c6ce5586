/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/*
 * SENDs and WRITEs whose payload is in an mbuf of the application (rocade/mbuf.h). The request owns the
 * mbuf until it completes, and its packets are built from it, also again after a loss.
 *
 * A packet that is the whole of an mbuf leaves in place: its headers are written into the headroom, pad
 * and ICRC behind the payload, and the frame that is sent is the mbuf itself, with one reference more.
 * The frame that was allocated for the packet goes back to the tx frame cache. Other packets are copied
 * into their frames: those of long messages and of chains, those for the port itself, and those whose
 * mbuf has another holder, as after a resend the port may still have the first copy.
 */
#ifndef ROCADE_QP_MBUF_SEND_H
#define ROCADE_QP_MBUF_SEND_H

#include "qp/qp.h"

struct rte_mbuf;

/* Writes the mbuf, which has wqe->len bytes, into the request. */
void mbuf_send_write(struct send_wqe *wqe, struct rte_mbuf *m);

/* Points an allocated frame at the mbuf, if its packet, of len bytes, can leave in place. */
void mbuf_send_place(
	struct qp *qp, const struct send_wqe *wqe, struct pkt *pkt, uint32_t len);

/* Copies the payload bytes [offset, offset + len) of a request into the frame of sum, unless the frame
 * is its mbuf. */
void mbuf_send_copy(const struct send_wqe *wqe, const struct pkt *pkt, uint32_t offset,
	uint8_t *dst, uint32_t len, struct icrc_sum *sum);

/* Request idx has completed, or fails: gives up its mbuf, if it has one. */
void mbuf_send_done(struct qp *qp, uint32_t idx);

/* The same for all requests that have not completed: RESET. */
void mbuf_send_drop(struct qp *qp);

#endif
