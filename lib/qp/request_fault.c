/* SPDX-License-Identifier: BSD-3-Clause */
/* Control path. */
#include "qp/req.h"
#include "qp/request_fault.h"

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

/* A datagram is a request, and has no range. When a request has failed, the index has gone on without the PSN. */
static bool
datagram_find(const struct qp *qp, uint32_t psn, struct request_packet *out)
{
	int32_t back = psn_diff(qp->req.next_psn, psn);

	if (qp->state != IBV_QPS_RTS || back <= 0 || (uint32_t)back > qp->req.next_idx)
		return false;
	*out = (struct request_packet){.idx = qp->req.next_idx - (uint32_t)back};
	return true;
}

bool
request_packet_find(const struct qp *qp, uint32_t psn, struct request_packet *out)
{
	uint32_t end = qp->req.started_idx;

	if (qp->type == IBV_QPT_UD)
		return datagram_find(qp, psn, out);
	for (uint32_t n = 1; n <= qp->sq.max_wr && n <= end; n++) {
		const struct psn_range *range = sq_psn_range(&qp->sq, end - n);

		if (psn_diff(psn, range->first_psn) < 0 ||
			psn_diff(psn, psn_range_end(range)) >= 0)
			continue;
		*out = (struct request_packet){
			.idx = end - n, .packet = (psn - range->first_psn) & PSN_MASK};
		return true;
	}
	return false;
}
