/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/*
 * SRQs whose messages are handed to the application in mbufs (rocade/mbuf.h). The mbuf of a frame,
 * with its headers cut off, becomes that of its payload. The further packets of a message are chained
 * to it. A frame that must not be given away is copied into an mbuf of the SRQ's mempool.
 *
 * A receive of such an SRQ has no SGE. While a message is under way qp->wqe has the chain:
 * qp->resp.chained, wqe->wr_id is the first segment, and the room of the SGE has the rest. So a
 * completion is written as that of any receive. A receive that completes in error, or is
 * dropped, first gets the posted wr_id back.
 */
#ifndef ROCADE_QP_MBUF_RECEIVE_H
#define ROCADE_QP_MBUF_RECEIVE_H

#include "qp/qp.h"
#include "wire/pkt_parse.h"

/* Frames that are given away before the free buffers of the mempool are counted again. */
#define MBUF_SPARE_MOST PKT_BURST
/* Buffers of a mempool of received frames that are left to the port, for each engine: what may be
 * given away before it counts again, a burst received, one looped back, one allocated, and the tx
 * backlog of four. */
#define MBUF_RESERVE (MBUF_SPARE_MOST + 7 * PKT_BURST)
static_assert(MBUF_RESERVE == 256, "as rocade/mbuf.h says");

/* Takes the payload of a SEND packet, which is not empty. Returns 0; -EMSGSIZE: the message is longer
 * than the SRQ allows; -ENOBUFS: there is no mbuf, and nothing has changed. */
int mbuf_receive(struct qp *qp, const struct pkt_view *v);

/* The message under way is dropped: frees what has come of it, and gives the receive its wr_id back. */
void mbuf_receive_drop(struct qp *qp);

/* A completion of the QP that the application will not get: frees the mbuf that it names, if any. */
void mbuf_cqe_drop(const struct qp *qp, const struct cqe *cqe);

/* The same for all completions of the QP that are not polled. The caller holds the locks of
 * cq_clean(). */
void mbuf_cqes_drop(const struct qp *qp);

#endif
