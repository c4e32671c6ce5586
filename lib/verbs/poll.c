/* SPDX-License-Identifier: BSD-3-Clause */
/* ibv_poll_cq(3). Polling a send completion frees the SQ's slots up to its own, and
 * nothing else does (IBA 10.8.5.1). */
#include "engine/manual_progress.h"
#include "verbs/context_ops.h"
#include "verbs/objects.h"

/* A range of slots of one SQ to free. Successive completions are often of one QP. */
struct free_run {
	uint32_t qpn;
	uint32_t end;
	bool any;
};

/* tail: the index of cqe. The CQ's slots are freed before the SQ's: a post into those may
 * complete at once, and the CQ has to have room for it. */
static inline void
free_run_add(
	struct verbs_cq *vcq, struct free_run *run, const struct cqe *cqe, uint32_t tail)
{
	if (run->any && run->qpn != cqe->qpn) {
		cq_consume(&vcq->cq, tail);
		cq_free_slots(vcq->dev, run->qpn, run->end);
	}
	*run = (struct free_run){.qpn = cqe->qpn, .end = cqe->sq_end, .any = true};
}

static inline void
wc_fill(struct ibv_wc *wc, const struct cqe *cqe)
{
	bool good = likely(cqe->status == IBV_WC_SUCCESS);

	wc->wr_id = cqe->wr_id;
	wc->status = (enum ibv_wc_status)cqe->status;
	wc->opcode = (enum ibv_wc_opcode)cqe->opcode;
	wc->vendor_err = good ? 0 : cqe->byte_len;
	wc->byte_len = good ? cqe->byte_len : 0;
	wc->imm_data = cqe->imm;
	wc->qp_num = cqe->qpn;
	wc->src_qp = cqe->src_qpn & 0xFFFFFF;
	wc->wc_flags = cqe->wc_flags & CQE_WC_REPORTED;
	wc->pkey_index = 0;
	wc->slid = 0;
	wc->sl = (uint8_t)(cqe->src_qpn >> 24);
	wc->dlid_path_bits = 0;
}

static inline int
poll_once(struct verbs_cq *vcq, int num_entries, struct ibv_wc *wc)
{
	struct cq *cq = &vcq->cq;
	struct free_run run = {.any = false};
	uint32_t tail;
	int n;

	cq_lock(cq);
	tail = cq->tail;
	for (n = 0; n < num_entries; n++) {
		const struct cqe *cqe = cq_peek(cq, &tail);

		if (cqe == NULL)
			break;
		wc_fill(&wc[n], cqe);
		if (cqe->opcode < IBV_WC_RECV)
			free_run_add(vcq, &run, cqe, tail);
		tail++;
	}
	cq_consume(cq, tail);
	if (run.any)
		cq_free_slots(vcq->dev, run.qpn, run.end);
	cq_unlock(cq);
	return n;
}

/* A CQ in error returns the completions written before, then none. IBV_EVENT_CQ_ERR has
 * reported the error. */
int
verbs_poll_cq(struct ibv_cq *ibv, int num_entries, struct ibv_wc *wc)
{
	struct verbs_cq *vcq = to_cq(ibv);
	int n = poll_once(vcq, num_entries, wc);

	if (likely(n != 0) || !engine_is_manual(vcq->dev->engines[0]))
		return n;
	engine_progress(vcq->dev->engines[0]);
	return poll_once(vcq, num_entries, wc);
}
