/* SPDX-License-Identifier: BSD-3-Clause */
/* ibv_wr_post(3): each call builds a request in its slot. The SQ's lock is held from
 * ibv_wr_start() to ibv_wr_complete(). After the first error nothing of the batch is
 * published. */
#include <rocade/flush.h>

#include "verbs/forward.h"
#include "verbs/refusal.h"
#include "verbs/wqe.h"

static_assert(WR_OPCODE_FLUSH == ROCADE_WR_FLUSH, "requests have its number as opcode");

void RARE
wr_fail(struct verbs_wr *wr, int err)
{
	if (wr->err == 0)
		wr->err = err;
	wr->wqe = NULL;
}

/* Checks that can be made only after the last setter. */
static inline int
wr_check(const struct verbs_qp *vqp, const struct send_wqe *wqe)
{
	/* C9-91: an atomic is on an aligned word of 8 bytes. */
	if (unlikely(wr_rows[wqe->opcode].form == POST_ATOMIC ||
		     wqe->opcode == IBV_WR_ATOMIC_WRITE) &&
		(wqe->len != 8 || wqe->remote_va % 8 != 0))
		return EINVAL;
	if (unlikely(vqp->wr.addressed) && (!vqp->wr.dest || wqe->len > vqp->wr.dest_max))
		return EINVAL;
	return 0;
}

/* Counts the request that is being built as complete: no setter follows. */
static inline void
wr_commit(struct verbs_qp *vqp)
{
	struct verbs_wr *wr = &vqp->wr;

	USDT_IN_MEMORY(
		post, vqp->ibv.qp_num, wr->wqe->wr_id, wr->wqe->opcode, wr->wqe->len);
	wr->prod++;
	if (wr->wqe->flags & IBV_SEND_SIGNALED) {
		wr->last_signaled = wr->prod;
		wr->any_signaled = true;
	}
	wr->wqe = NULL;
}

/* Completes the request that is being built, if there is one. */
static inline void
wr_finish(struct verbs_qp *vqp)
{
	struct verbs_wr *wr = &vqp->wr;
	int err;

	if (wr->wqe == NULL)
		return;
	err = wr_check(vqp, wr->wqe);
	if (likely(err == 0))
		wr_commit(vqp);
	else
		wr_fail(wr, err);
}

/* Returns the slot of a new request; NULL after an error. */
static inline struct send_wqe *
wr_begin(struct ibv_qp_ex *ex, enum ibv_wr_opcode opcode)
{
	struct verbs_qp *vqp = ex_to_qp(ex);
	struct verbs_wr *wr = &vqp->wr;
	/* the setter determines whether data is inline */
	unsigned flags = (ex->wr_flags & ~(unsigned)IBV_SEND_INLINE);
	struct send_wqe *wqe;

	wr_finish(vqp);
	if (unlikely(wr->err != 0))
		return NULL;
	if (unlikely((wr->opcodes >> opcode & 1) == 0 ||
		     (flags & ~(unsigned)wr_rows[opcode].flags) != 0)) {
		wr_fail(wr, EINVAL);
		return NULL;
	}
	wqe = sq_next(&vqp->qp->sq, wr->prod);
	if (unlikely(wqe == NULL)) {
		send_count_full(vqp, "ibv_wr_complete");
		wr_fail(wr, ENOMEM);
		return NULL;
	}
	wqe->wr_id = ex->wr_id;
	wqe->len = 0;
	wqe->opcode = (uint8_t)opcode;
	wqe->flags = (uint8_t)(flags | wr->always);
	wqe->num_sge = 0;
	wr->dest = false;
	wr->wqe = wqe;
	return wqe;
}

static inline void
wr_begin_remote(struct ibv_qp_ex *ex, enum ibv_wr_opcode opcode, uint32_t rkey,
	uint64_t remote_addr, uint32_t imm)
{
	struct send_wqe *wqe = wr_begin(ex, opcode);

	if (unlikely(wqe == NULL))
		return;
	wqe->rkey = rkey;
	wqe->remote_va = remote_addr;
	wqe->imm = imm;
}

static void
wr_rdma_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr)
{
	wr_begin_remote(ex, IBV_WR_RDMA_WRITE, rkey, remote_addr, 0);
}

static void
wr_rdma_write_imm(
	struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr, __be32 imm_data)
{
	wr_begin_remote(ex, IBV_WR_RDMA_WRITE_WITH_IMM, rkey, remote_addr, imm_data);
}

static void
wr_rdma_read(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr)
{
	wr_begin_remote(ex, IBV_WR_RDMA_READ, rkey, remote_addr, 0);
}

static void
wr_atomic(struct ibv_qp_ex *ex, enum ibv_wr_opcode opcode, uint32_t rkey,
	uint64_t remote_addr, uint64_t compare_add, uint64_t swap)
{
	struct send_wqe *wqe = wr_begin(ex, opcode);

	if (unlikely(wqe == NULL))
		return;
	wqe->rkey = rkey;
	wqe->remote_va = remote_addr;
	wqe->atomic.compare_add = compare_add;
	wqe->atomic.swap = swap;
}

static void
wr_atomic_cmp_swp(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr,
	uint64_t compare, uint64_t swap)
{
	wr_atomic(ex, IBV_WR_ATOMIC_CMP_AND_SWP, rkey, remote_addr, compare, swap);
}

static void
wr_atomic_fetch_add(
	struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr, uint64_t add)
{
	wr_atomic(ex, IBV_WR_ATOMIC_FETCH_AND_ADD, rkey, remote_addr, add, 0);
}

static void
wr_send(struct ibv_qp_ex *ex)
{
	wr_begin(ex, IBV_WR_SEND);
}

static void
wr_send_imm(struct ibv_qp_ex *ex, __be32 imm_data)
{
	struct send_wqe *wqe = wr_begin(ex, IBV_WR_SEND_WITH_IMM);

	if (likely(wqe != NULL))
		wqe->imm = imm_data;
}

static void
wr_send_inv(struct ibv_qp_ex *ex, uint32_t invalidate_rkey)
{
	struct send_wqe *wqe = wr_begin(ex, IBV_WR_SEND_WITH_INV);

	if (likely(wqe != NULL))
		wqe->invalidate_rkey = htobe32(invalidate_rkey);
}

static void
wr_local_inv(struct ibv_qp_ex *ex, uint32_t invalidate_rkey)
{
	struct send_wqe *wqe = wr_begin(ex, IBV_WR_LOCAL_INV);

	if (likely(wqe != NULL)) {
		wqe->rkey = invalidate_rkey;
		wr_commit(ex_to_qp(ex));
	}
}

static void
wr_bind_mw(struct ibv_qp_ex *ex, struct ibv_mw *mw, uint32_t rkey,
	const struct ibv_mw_bind_info *bind_info)
{
	struct send_wqe *wqe = wr_begin(ex, IBV_WR_BIND_MW);

	if (unlikely(wqe == NULL))
		return;
	if (!wqe_bind_check(mw, bind_info)) {
		wr_fail(&ex_to_qp(ex)->wr, EINVAL);
		return;
	}
	wqe_bind_write(wqe, mw, rkey, bind_info);
	ex_to_qp(ex)->wr.binds = true;
	wr_commit(ex_to_qp(ex));
}

static void
wr_flush(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr, size_t len,
	uint8_t type, uint8_t level)
{
	struct send_wqe *wqe = wr_begin(ex, (enum ibv_wr_opcode)WR_OPCODE_FLUSH);

	if (unlikely(wqe == NULL))
		return;
	if (len > UINT32_MAX || type > 0xF || level > 3) {
		wr_fail(&ex_to_qp(ex)->wr, EINVAL);
		return;
	}
	wqe->rkey = rkey;
	wqe->remote_va = remote_addr;
	wqe->len = (uint32_t)len;
	wqe->feth = htobe32((uint32_t)level << 4 | type);
	wr_commit(ex_to_qp(ex));
}

/* For programs whose <infiniband/verbs.h> has no ibv_wr_flush(). */
EXPORT int
rocade_wr_flush(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr, size_t len,
	uint8_t type, uint8_t level)
{
	if (arg_missing("qp", ex))
		return EINVAL;
	if (!context_is_ours(ex->qp_base.context))
		return rocade_fail(EINVAL, "the QP is not of a Rocade device");
	if (!ex_to_qp(ex)->extended)
		return rocade_fail(EINVAL, "the QP was created without send_ops_flags");
	wr_flush(ex, rkey, remote_addr, len, type, level);
	return 0;
}

/* The 8 bytes are sent with the request. */
static void
wr_atomic_write(
	struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr, const void *data)
{
	struct send_wqe *wqe = wr_begin(ex, IBV_WR_ATOMIC_WRITE);

	if (unlikely(wqe == NULL))
		return;
	wqe->rkey = rkey;
	wqe->remote_va = remote_addr;
	wqe->len = 8;
	wqe->flags |= IBV_SEND_INLINE;
	memcpy(wqe->inline_data + ex_to_qp(ex)->wr.offset, data, 8);
}

/* A QP is not created with operations that have no function above. If a program calls one
 * anyway, ibv_wr_complete() returns EOPNOTSUPP. */
static void RARE
wr_begin_unsupported(struct ibv_qp_ex *ex)
{
	wr_fail(&ex_to_qp(ex)->wr, EOPNOTSUPP);
}

static void RARE
wr_send_tso(struct ibv_qp_ex *ex, void *hdr, uint16_t hdr_sz, uint16_t mss)
{
	(void)hdr;
	(void)hdr_sz;
	(void)mss;
	wr_begin_unsupported(ex);
}

static void
wr_start(struct ibv_qp_ex *ex)
{
	struct verbs_qp *vqp = ex_to_qp(ex);
	struct verbs_wr *wr = &vqp->wr;

	sq_lock(&vqp->qp->sq);
	wr->prod = vqp->qp->sq.prod;
	wr->wqe = NULL;
	wr->any_signaled = false;
	wr->binds = false;
	/* IBA 10.8.2: no posts before RTS. */
	wr->err = unlikely(qp_state(vqp->qp) < IBV_QPS_RTS) ? EINVAL : 0;
}

/* Shows the keys of the binds between the two indices: they are posted. */
static void RARE
wr_binds_show(struct verbs_qp *vqp, uint32_t from, uint32_t to)
{
	for (; from != to; from++) {
		const struct send_wqe *wqe = sq_slot(&vqp->qp->sq, from);
		const struct mw *mw =
			wqe->opcode == IBV_WR_BIND_MW
				? key_object(vqp->qp->shared->keys, wqe->rkey)
				: NULL;

		if (mw != NULL)
			*mw->shown = wqe->rkey;
	}
}

static int
wr_complete(struct ibv_qp_ex *ex)
{
	struct verbs_qp *vqp = ex_to_qp(ex);
	struct verbs_wr *wr = &vqp->wr;
	struct sq *sq = &vqp->qp->sq;
	bool posted;
	int err;

	wr_finish(vqp);
	err = wr->err;
	posted = likely(err == 0) && likely(wr->prod != sq->prod);
	if (posted) {
		if (wr->any_signaled) {
			vqp->last_signaled = wr->last_signaled;
			vqp->any_signaled = true;
		}
		if (unlikely(wr->binds))
			wr_binds_show(vqp, sq->prod, wr->prod);
		sq_publish(sq, wr->prod);
	}
	sq_unlock(sq);
	if (posted)
		engine_doorbell(vqp->qp);
	return unlikely(err != 0) ? refusal_note(err, "ibv_wr_complete", NULL) : 0;
}

unsigned
wr_batch_end(struct ibv_qp_ex *ex)
{
	struct verbs_qp *vqp = ex_to_qp(ex);

	wr_finish(vqp);
	return vqp->wr.err == 0 ? vqp->wr.prod - vqp->qp->sq.prod : 0;
}

static void
wr_abort(struct ibv_qp_ex *ex)
{
	ex_to_qp(ex)->wr.wqe = NULL;
	sq_unlock(&ex_to_qp(ex)->qp->sq);
}

void
wr_builders_fill(struct ibv_qp_ex *ex)
{
	ex->wr_atomic_cmp_swp = wr_atomic_cmp_swp;
	ex->wr_atomic_fetch_add = wr_atomic_fetch_add;
	ex->wr_bind_mw = wr_bind_mw;
	ex->wr_local_inv = wr_local_inv;
	ex->wr_rdma_read = wr_rdma_read;
	ex->wr_rdma_write = wr_rdma_write;
	ex->wr_rdma_write_imm = wr_rdma_write_imm;
	ex->wr_send = wr_send;
	ex->wr_send_imm = wr_send_imm;
	ex->wr_send_inv = wr_send_inv;
	ex->wr_send_tso = wr_send_tso;
	ex->wr_start = wr_start;
	ex->wr_complete = wr_complete;
	ex->wr_abort = wr_abort;
	ex->wr_atomic_write = wr_atomic_write;
	ex_to_qp(ex)->newer.wr_flush = wr_flush;
}
