/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
#include <string.h>

#include "qp/cnp.h"
#include "qp/congestion.h"
#include "qp/flight.h"
#include "qp/resp.h"

/* The times are compared by their low 32 bits: a CNP may be left out once in 4.3 s, which
 * the next marked packet makes up for. */
static bool
sent_lately(const struct qp *qp)
{
	return qp->cnp_timed && (uint32_t)qp->shared->now - qp->cnp_ns < CNP_INTERVAL_NS;
}

/* A UD QP has no path: its headers are those of the next datagram to send. */
void RARE
cnp_owe(struct qp *qp)
{
	qp->shared->stats->ecn_marked++;
	if (qp->type == IBV_QPT_UD || qp->shared->cnp_off || sent_lately(qp))
		return;
	qp->resp.cnp_due = true;
	resp_due_changed(qp);
}

void RARE
cnp_build(struct qp *qp, struct pkt *pkt)
{
	struct path_hdr hdr = qp->hdr;
	struct bth_fields bth = {
		.dest_qpn = qp->dest_qpn, .pkey = PKEY_DEFAULT, .opcode = OPCODE_CNP};
	struct bth *at;

	qp->resp.cnp_due = false;
	resp_due_changed(qp);
	qp->cnp_timed = true;
	qp->cnp_ns = (uint32_t)qp->shared->now;
	qp->shared->stats->cnp_sent++;
	flight_note(qp, FLIGHT_CNP_SENT, 0, 0);
	path_hdr_set_class(&hdr, CNP_TCLASS, CNP_PRIORITY);
	memset(frame_begin(&hdr, pkt, &bth, CNP_PAYLOAD), 0, CNP_PAYLOAD);
	at = (struct bth *)(pkt->data + hdr.len);
	at->flags = 0; /* MigReq, too */
	frame_end(&hdr, pkt, CNP_PAYLOAD);
	at->ecn = BTH_BECN; /* not covered by the ICRC */
}

enum drop_reason RARE
cnp_rx(struct qp *qp, const struct pkt_view *view)
{
	enum drop_reason why = qp_admit_cnp(qp, view);

	if (why == DROP_none) {
		qp->shared->stats->cnp_received++;
		qp->stats.cnp_received++;
		flight_note(qp, FLIGHT_CNP_RECEIVED, 0, 0);
		congestion_cnp(qp, qp->shared->now);
	}
	return why;
}
