/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Send requests: what each opcode may be, and how one is checked whole and written straight
 * into its slot. What ibv_post_send(3) and ibv_wr_post(3) share.
 */
#ifndef ROCADE_VERBS_WQE_H
#define ROCADE_VERBS_WQE_H

#include <string.h>

#include "verbs/objects.h"

/* So that SGEs are copied as they are. */
static_assert(sizeof(struct sge) == sizeof(struct ibv_sge) &&
		      offsetof(struct sge, addr) == offsetof(struct ibv_sge, addr) &&
		      offsetof(struct sge, len) == offsetof(struct ibv_sge, length) &&
		      offsetof(struct sge, lkey) == offsetof(struct ibv_sge, lkey),
	"struct sge is struct ibv_sge");

#define MSG_MAX (UINT64_C(1) << 31)

#define SEND_FLAGS                                                                       \
	(IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED | IBV_SEND_INLINE)

#define READ_FLAGS (SEND_FLAGS & ~IBV_SEND_INLINE)

/* What a request may be, by opcode: flags it may carry, whether it names remote memory.
 */
static const struct post_row {
	uint8_t flags; /* 0: not an opcode of ours */
	bool remote;
	bool atomic;
	bool answered; /* RC alone has it */
	bool ud;       /* UD has it too */
} post_rows[IBV_WR_ATOMIC_WRITE + 1] = {
	[IBV_WR_RDMA_WRITE] = {.flags = SEND_FLAGS, .remote = true},
	[IBV_WR_RDMA_WRITE_WITH_IMM] = {.flags = SEND_FLAGS, .remote = true},
	[IBV_WR_SEND] = {.flags = SEND_FLAGS, .ud = true},
	[IBV_WR_SEND_WITH_IMM] = {.flags = SEND_FLAGS, .ud = true},
	[IBV_WR_RDMA_READ] = {.flags = READ_FLAGS, .remote = true, .answered = true},
	[IBV_WR_ATOMIC_CMP_AND_SWP] = {.flags = READ_FLAGS,
		.remote = true,
		.atomic = true,
		.answered = true},
	[IBV_WR_ATOMIC_FETCH_AND_ADD] = {.flags = READ_FLAGS,
		.remote = true,
		.atomic = true,
		.answered = true},
};

/* Annex A19 gives its operations to RC alone. */
static inline bool
xrc_has(unsigned opcode)
{
	return opcode != IBV_WR_ATOMIC_WRITE;
}

/* 0 and the message's length, or EINVAL. */
static inline int
send_check(const struct sq *sq, const struct ibv_send_wr *wr, uint32_t *len)
{
	const struct post_row *row;
	uint64_t total = 0;

	if (unlikely((unsigned)wr->opcode >= RTE_DIM(post_rows)))
		return EINVAL;
	row = &post_rows[wr->opcode];
	if (unlikely(row->flags == 0 || (wr->send_flags & ~(unsigned)row->flags) != 0))
		return EINVAL;
	if (unlikely(wr->num_sge < 0 || (uint32_t)wr->num_sge > sq->max_sge))
		return EINVAL;
	for (int i = 0; i < wr->num_sge; i++)
		total += wr->sg_list[i].length;
	if (unlikely(total > MSG_MAX))
		return EINVAL;
	if (wr->send_flags & IBV_SEND_INLINE && unlikely(total > sq->max_inline))
		return EINVAL;
	/* C9-91: an atomic is on an aligned word of 8 bytes. */
	if (unlikely(row->atomic) && (total != 8 || wr->wr.atomic.remote_addr % 8 != 0))
		return EINVAL;
	*len = (uint32_t)total;
	return 0;
}

static inline void
remote_write(struct send_wqe *wqe, const struct ibv_send_wr *wr)
{
	if (post_rows[wr->opcode].atomic) {
		wqe->remote_va = wr->wr.atomic.remote_addr;
		wqe->rkey = wr->wr.atomic.rkey;
		wqe->compare_add = wr->wr.atomic.compare_add;
		wqe->swap = wr->wr.atomic.swap;
	} else {
		wqe->remote_va = wr->wr.rdma.remote_addr;
		wqe->rkey = wr->wr.rdma.rkey;
	}
}

static inline void
inline_copy(uint8_t *to, const struct ibv_send_wr *wr)
{
	for (int i = 0; i < wr->num_sge; i++) {
		const struct ibv_sge *sge = &wr->sg_list[i];

		if (sge->length == 0)
			continue;
		memcpy(to, (const void *)(uintptr_t)sge->addr, sge->length);
		to += sge->length;
	}
}

/* What the SGEs or the inline data of a datagram stand behind. */
static inline void
dest_write(struct send_wqe *wqe, struct ibv_ah *ah, uint32_t qpn, uint32_t qkey)
{
	struct ud_dest dest = to_ah(ah)->dest;

	dest.qpn = qpn;
	dest.qkey = qkey;
	memcpy(wqe->inline_data, &dest, sizeof(dest));
}

/* Where a request of UD or XRC goes, all else but the data written before. Bytes that the
 * data stands behind. */
static inline uint32_t
address_write(struct send_wqe *wqe, const struct ibv_send_wr *wr, unsigned type)
{
	if (type == IBV_QPT_XRC_SEND) {
		send_wqe_set_srqn(wqe, wr->qp_type.xrc.remote_srqn);
		return 0;
	}
	dest_write(wqe, wr->wr.ud.ah, wr->wr.ud.remote_qpn, wr->wr.ud.remote_qkey);
	return sizeof(struct ud_dest);
}

/* addressed: the QP is of UD or XRC. */
static inline void
send_write(struct send_wqe *wqe, const struct ibv_send_wr *wr, uint32_t len,
	unsigned flags, bool addressed, unsigned type)
{
	uint32_t offset = 0;

	wqe->wr_id = wr->wr_id;
	wqe->len = len;
	wqe->imm = wr->imm_data;
	wqe->opcode = (uint8_t)wr->opcode;
	wqe->flags = (uint8_t)flags;
	if (post_rows[wr->opcode].remote)
		remote_write(wqe, wr);
	if (unlikely(addressed))
		offset = address_write(wqe, wr, type);
	if (flags & IBV_SEND_INLINE) {
		wqe->num_sge = 0;
		inline_copy(wqe->inline_data + offset, wr);
		return;
	}
	wqe->num_sge = (uint8_t)wr->num_sge;
	for (int i = 0; i < wr->num_sge; i++)
		memcpy(wqe->inline_data + offset + (size_t)i * sizeof(struct sge),
			&wr->sg_list[i], sizeof(struct sge));
}

/* A datagram has somewhere to go. */
static inline bool
dest_allowed(const struct verbs_qp *vqp, const struct ibv_ah *ah, uint32_t qpn)
{
	return ah != NULL && to_pd(ah->pd)->number == vqp->qp->pd && qpn <= 0xFFFFFF;
}

/* And fits one packet. */
static inline bool
dest_check(const struct verbs_qp *vqp, const struct ibv_send_wr *wr, uint32_t len)
{
	return post_rows[wr->opcode].ud &&
	       dest_allowed(vqp, wr->wr.ud.ah, wr->wr.ud.remote_qpn) &&
	       len <= mtu_bytes(to_ctx(vqp->ibv.context)->dev->active_mtu);
}

/* Under the SQ's lock: a request found the queue full. */
void send_count_full(struct verbs_qp *vqp);

#endif
