/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/* The transports besides RC: UC, UD and XRC. Called by qp_io.c; uc_discard() by verdict.c,
 * xrc_reset() by flush.c, ud_admit() by admit.c. */
#ifndef ROCADE_QP_TRANSPORT_H
#define ROCADE_QP_TRANSPORT_H

#include "qp/qp_state.h"

/* ---- uc.c ---- */

enum verdict uc_rx(struct qp *qp, const struct pkt_view *view);
/* Discards the message in progress. A receive taken from an SRQ completes with status and
 * vendor. */
enum verdict uc_discard(struct qp *qp, enum ibv_wc_status status, uint32_t vendor);
/* req_tx() has built a burst: completes the requests whose packets are in it, as UC has no
 * acknowledgements. Returns what is left of the burst if their CQ has overflowed: the
 * packets up to the request that found no room. */
struct burst uc_sent(struct qp *qp, struct burst burst);

/* ---- ud.c ---- */

enum drop_reason ud_admit(const struct qp *qp, const struct pkt_view *view);
enum verdict ud_rx(struct qp *qp, const struct pkt_view *view);
struct burst ud_tx(struct qp *qp, struct pkt *pkts, unsigned n);

/* ---- qp_xrc.c ---- */

/* A request packet for a target QP. */
enum verdict xrc_rx(struct qp *qp, const struct pkt_view *view);
/* Detaches a target from its SRQ until the next message names one. */
void xrc_reset(struct qp *qp);

#endif
