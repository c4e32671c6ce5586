/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/*
 * SENDs and WRITEs whose payload is in an mbuf of the application (rocade/mbuf.h). The request owns the
 * mbuf until it completes. Each packet is copied from it into a frame, also again after a loss, in the
 * pass that computes the ICRC.
 */
#ifndef ROCADE_QP_MBUF_SEND_H
#define ROCADE_QP_MBUF_SEND_H

#include "qp/qp.h"

struct rte_mbuf;

/* Writes the mbuf, which has wqe->len bytes, into the request. */
void mbuf_send_write(struct send_wqe *wqe, struct rte_mbuf *m);

/* Copies the payload bytes [offset, offset + len) of a request into the frame of sum. */
void mbuf_send_copy(const struct send_wqe *wqe, uint32_t offset, uint8_t *dst,
	uint32_t len, struct icrc_sum *sum);

/* Request idx has completed, or fails: gives up its mbuf, if it has one. */
void mbuf_send_done(struct qp *qp, uint32_t idx);

/* The same for all requests that have not completed: RESET. */
void mbuf_send_drop(struct qp *qp);

#endif
