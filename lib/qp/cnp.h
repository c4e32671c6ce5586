/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/* Congestion notification packets, CNPs (IBA annex A17): sent for packets that a switch has
 * marked, and received. Called by qp_io.c. */
#ifndef ROCADE_QP_CNP_H
#define ROCADE_QP_CNP_H

#include "qp/qp.h"

/* An accepted packet carries the mark CE, so a CNP is due, unless the last one was sent
 * less than CNP_INTERVAL_NS ago. */
void cnp_owe(struct qp *qp);
#define CNP_INTERVAL_NS (50 * NS_PER_US)

/* Builds the CNP that is due. */
void cnp_build(struct qp *qp, struct pkt *pkt);

/* Takes in a CNP with this QP as DestQP. Returns why it is dropped, or DROP_none. */
enum drop_reason cnp_rx(struct qp *qp, const struct pkt_view *view);

#endif
