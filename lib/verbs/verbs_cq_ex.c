/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ibv_create_cq_ex(3). Between ibv_start_poll() and ibv_end_poll() the pollers' lock is
 * held. SQ slots are freed at each step, so that the application can post while it goes
 * through a batch.
 */
#include "engine/manual_progress.h"
#include "verbs/context_ops.h"
#include "verbs/verbs_cq.h"
#include "verbs/refusal.h"

#define CQ_MASKS (IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD)
#define CQ_WC_FLAGS ((uint64_t)IBV_WC_STANDARD_FLAGS | CQ_STAMP_FLAGS)

static inline struct verbs_cq *
ex_to_cq(struct ibv_cq_ex *ex)
{
	return (struct verbs_cq *)ex;
}

/* Moves to the next completion that is not cleaned. Returns ENOENT if there is none. The
 * CQ's slot is freed before the SQ's: a post into that may complete at once, and the CQ
 * has to have room for it. So the completion is copied. */
static inline int
cq_ex_step(struct verbs_cq *vcq)
{
	struct cq *cq = &vcq->cq;
	uint32_t tail = cq->tail;
	const struct cqe *cqe = cq_peek(cq, &tail);

	if (cqe == NULL) {
		cq_consume(cq, tail);
		return ENOENT;
	}
	vcq->cqe = *cqe;
	if (cq->stamps != NULL)
		vcq->stamp = cq->stamps[tail & cq->mask];
	cq_consume(cq, tail + 1);
	vcq->ex.wr_id = vcq->cqe.wr_id;
	vcq->ex.status = (enum ibv_wc_status)vcq->cqe.status;
	if (vcq->cqe.opcode < IBV_WC_RECV)
		cq_free_slots(vcq->dev, vcq->cqe.qpn, vcq->cqe.sq_end);
	return 0;
}

static int
cq_ex_start_once(struct verbs_cq *vcq)
{
	int err;

	cq_lock(&vcq->cq);
	err = cq_ex_step(vcq);
	if (err != 0)
		cq_unlock(&vcq->cq);
	return err;
}

static int
start_poll(struct ibv_cq_ex *ex, struct ibv_poll_cq_attr *attr)
{
	struct verbs_cq *vcq = ex_to_cq(ex);
	int err;

	if (unlikely(attr->comp_mask != 0))
		return EINVAL;
	err = cq_ex_start_once(vcq);
	if (likely(err == 0) || !engine_is_manual(vcq->dev->engines[0]))
		return err;
	engine_progress(vcq->dev->engines[0]);
	return cq_ex_start_once(vcq);
}

static int
next_poll(struct ibv_cq_ex *ex)
{
	return cq_ex_step(ex_to_cq(ex));
}

static void
end_poll(struct ibv_cq_ex *ex)
{
	cq_unlock(&ex_to_cq(ex)->cq);
}

static enum ibv_wc_opcode
read_opcode(struct ibv_cq_ex *ex)
{
	return (enum ibv_wc_opcode)ex_to_cq(ex)->cqe.opcode;
}

static uint32_t
read_vendor_err(struct ibv_cq_ex *ex)
{
	const struct cqe *cqe = &ex_to_cq(ex)->cqe;

	return cqe->status == IBV_WC_SUCCESS ? 0 : cqe->byte_len;
}

static uint32_t
read_byte_len(struct ibv_cq_ex *ex)
{
	const struct cqe *cqe = &ex_to_cq(ex)->cqe;

	return cqe->status == IBV_WC_SUCCESS ? cqe->byte_len : 0;
}

static __be32
read_imm_data(struct ibv_cq_ex *ex)
{
	return ex_to_cq(ex)->cqe.imm;
}

static uint32_t
read_qp_num(struct ibv_cq_ex *ex)
{
	return ex_to_cq(ex)->cqe.qpn;
}

static uint32_t
read_src_qp(struct ibv_cq_ex *ex)
{
	return ex_to_cq(ex)->cqe.src_qpn & 0xFFFFFF;
}

static unsigned
read_wc_flags(struct ibv_cq_ex *ex)
{
	return ex_to_cq(ex)->cqe.wc_flags & CQE_WC_REPORTED;
}

static uint8_t
read_sl(struct ibv_cq_ex *ex)
{
	return (uint8_t)(ex_to_cq(ex)->cqe.src_qpn >> 24);
}

/* Ethernet has no LIDs. */
static uint32_t
read_slid(struct ibv_cq_ex *ex)
{
	(void)ex;
	return 0;
}

static uint8_t
read_dlid_path_bits(struct ibv_cq_ex *ex)
{
	(void)ex;
	return 0;
}

static uint64_t
read_completion_ts(struct ibv_cq_ex *ex)
{
	return ex_to_cq(ex)->stamp;
}

static uint64_t
read_completion_wallclock_ns(struct ibv_cq_ex *ex)
{
	return engine_clock_wall_of(&ex_to_cq(ex)->wall, read_completion_ts(ex));
}

/* Sets only the functions of fields that were requested: the others must not be
 * called. */
static void
cq_ex_functions_fill(struct ibv_cq_ex *ex, uint64_t wc_flags)
{
	ex->start_poll = start_poll;
	ex->next_poll = next_poll;
	ex->end_poll = end_poll;
	ex->read_opcode = read_opcode;
	ex->read_vendor_err = read_vendor_err;
	ex->read_wc_flags = read_wc_flags;
	if (wc_flags & IBV_WC_EX_WITH_BYTE_LEN)
		ex->read_byte_len = read_byte_len;
	if (wc_flags & IBV_WC_EX_WITH_IMM)
		ex->read_imm_data = read_imm_data;
	if (wc_flags & IBV_WC_EX_WITH_QP_NUM)
		ex->read_qp_num = read_qp_num;
	if (wc_flags & IBV_WC_EX_WITH_SRC_QP)
		ex->read_src_qp = read_src_qp;
	if (wc_flags & IBV_WC_EX_WITH_SLID)
		ex->read_slid = read_slid;
	if (wc_flags & IBV_WC_EX_WITH_SL)
		ex->read_sl = read_sl;
	if (wc_flags & IBV_WC_EX_WITH_DLID_PATH_BITS)
		ex->read_dlid_path_bits = read_dlid_path_bits;
	if (wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP)
		ex->read_completion_ts = read_completion_ts;
	if (wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)
		ex->read_completion_wallclock_ns = read_completion_wallclock_ns;
}

struct ibv_cq_ex *
verbs_create_cq_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr)
{
	bool flags = (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) != 0;
	bool domain = (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD) != 0;
	struct verbs_cq *cq;

	if ((attr->comp_mask & ~(uint32_t)CQ_MASKS) != 0 ||
		(attr->wc_flags & ~CQ_WC_FLAGS) != 0)
		return null_errno(refusal_note(EOPNOTSUPP, "ibv_create_cq_ex", NULL));
	/* IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN is not supported: a CQE is never
	 * overwritten. */
	if (flags && (attr->flags & ~(uint32_t)IBV_CREATE_CQ_ATTR_SINGLE_THREADED) != 0)
		return null_errno(refusal_note(EOPNOTSUPP, "ibv_create_cq_ex", NULL));
	if (domain &&
		(attr->parent_domain == NULL || attr->parent_domain->context != context ||
			to_pd(attr->parent_domain)->base == NULL))
		return null_errno(EINVAL);
	cq = verbs_cq_create(context, attr);
	if (cq == NULL)
		return NULL;
	cq->cq.unlocked = (flags && (attr->flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED)) ||
			  (domain && pd_unlocked(attr->parent_domain));
	if (domain) {
		cq->domain = to_pd(attr->parent_domain);
		pd_use(cq->domain);
	}
	cq_ex_functions_fill(&cq->ex, attr->wc_flags);
	return &cq->ex;
}
