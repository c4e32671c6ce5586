/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
#include "qp/req.h"
#include "qp/request_fault.h"

/* Control path. */

void
request_fault_set(
	struct send_wqe *wqe, bool ud, enum ibv_wc_status status, uint32_t vendor_err)
{
	struct sge *sge = wqe->sge + (ud ? UD_DEST_SGES : 0);

	wqe->opcode |= WQE_FAULT;
	wqe->status = (uint8_t)status;
	wqe->rkey = vendor_err;
	/* A datagram cannot be built of it: no region has the lkey 0 (key.h). */
	wqe->flags &= (uint8_t)~IBV_SEND_INLINE;
	wqe->num_sge = 1;
	wqe->len = 1;
	*sge = (struct sge){.addr = 0, .len = 1, .lkey = 0};
}

/* Data path. */

/* A datagram is one packet, and its range has no end (ud.c). */
static bool
range_has(const struct psn_range *range, bool ud, uint32_t psn)
{
	return ud ? range->first_psn == psn
		  : psn_diff(psn, range->first_psn) >= 0 &&
			       psn_diff(psn, psn_range_end(range)) < 0;
}

/* Looks from the newest request back. Requests that were flushed without PSNs have
 * PSN_NONE: a later request of the same burst may have failed, so that the QP is in ERR
 * or SQE by now. */
bool
request_packet_find(const struct qp *qp, uint32_t psn, struct request_packet *out)
{
	uint32_t end = qp->req.started_idx;

	for (uint32_t n = 1; n <= qp->sq.max_wr && n <= end; n++) {
		const struct psn_range *range = sq_psn_range(&qp->sq, end - n);

		if (!range_has(range, qp->type == IBV_QPT_UD, psn))
			continue;
		*out = (struct request_packet){
			.idx = end - n, .packet = (psn - range->first_psn) & PSN_MASK};
		return true;
	}
	return false;
}
