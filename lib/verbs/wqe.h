/* SPDX-License-Identifier: BSD-3-Clause */
/* Send requests, for ibv_post_send(3) and ibv_wr_post(3): how a request is checked as a
 * whole and written into its slot. */
#ifndef ROCADE_VERBS_WQE_H
#define ROCADE_VERBS_WQE_H

#include <endian.h>
#include <string.h>

#include "base/usdt.h"
#include "qp/wr_row.h"
#include "verbs/objects.h"

/* SGEs are copied as they are. */
static_assert(sizeof(struct sge) == sizeof(struct ibv_sge) &&
		      offsetof(struct sge, addr) == offsetof(struct ibv_sge, addr) &&
		      offsetof(struct sge, len) == offsetof(struct ibv_sge, length) &&
		      offsetof(struct sge, lkey) == offsetof(struct ibv_sge, lkey),
	"struct sge has the layout of struct ibv_sge");

/* Does the part of send_check() for opcodes with `needs_check`. Returns whether wr is
 * valid. */
bool send_check_more(const struct ibv_send_wr *wr, uint64_t total);
/* Writes a bind. wqe->rkey gets the low 8 bits of key and the window's index. info->mr: NULL
 * if nothing is to be bound. */
void wqe_bind_write(struct send_wqe *wqe, const struct ibv_mw *mw, uint32_t key,
	const struct ibv_mw_bind_info *info);
/* Returns whether info is valid for a bind. Its execution checks what the region grants
 * and its PD. */
bool wqe_bind_info_check(const struct ibv_mw_bind_info *info);
/* Returns whether mw is a window of type 2, and info valid for it. */
bool wqe_bind_check(const struct ibv_mw *mw, const struct ibv_mw_bind_info *info);

/* The case of one SGE comes first, because a compiler sets the loop up for many. */
static inline uint64_t
sges_len(const struct ibv_sge *list, uint32_t num)
{
	uint64_t total = 0;

	if (likely(num == 1))
		return list->length;
	for (uint32_t i = 0; i < num; i++)
		total += list[i].length;
	return total;
}

/* Returns NULL for an unsupported opcode. */
static inline const struct wr_row *
send_row(const struct ibv_send_wr *wr)
{
	unsigned opcode = (unsigned)wr->opcode;

	if (unlikely(opcode >= RTE_DIM(wr_rows) || wr_rows[opcode].flags == 0))
		return NULL;
	return &wr_rows[opcode];
}

/* Checks a request; row: that of its opcode; num: its number of SGEs. Returns 0 and the
 * message's length, or EINVAL. */
static inline int
send_check(const struct sq *sq, const struct ibv_send_wr *wr, const struct wr_row *row,
	uint32_t num, uint32_t *len)
{
	uint64_t total;

	if (unlikely(row == NULL || (wr->send_flags & ~(unsigned)row->flags) != 0))
		return EINVAL;
	if (unlikely(num > sq->max_sge))
		return EINVAL;
	total = sges_len(wr->sg_list, num);
	if (unlikely(total > MSG_MAX))
		return EINVAL;
	if (wr->send_flags & IBV_SEND_INLINE && unlikely(total > sq->max_inline))
		return EINVAL;
	if (unlikely(row->needs_check) && !send_check_more(wr, total))
		return EINVAL;
	*len = (uint32_t)total;
	return 0;
}

static inline void
members_write(struct send_wqe *wqe, const struct ibv_send_wr *wr, unsigned form)
{
	switch (form) {
	case POST_RDMA:
		wqe->remote_va = wr->wr.rdma.remote_addr;
		wqe->rkey = wr->wr.rdma.rkey;
		break;
	case POST_ATOMIC:
		wqe->remote_va = wr->wr.atomic.remote_addr;
		wqe->rkey = wr->wr.atomic.rkey;
		wqe->atomic.compare_add = wr->wr.atomic.compare_add;
		wqe->atomic.swap = wr->wr.atomic.swap;
		break;
	case POST_INVALIDATE:
		wqe->invalidate_rkey = htobe32(wr->invalidate_rkey);
		break;
	case POST_LOCAL_INV:
		wqe->rkey = wr->invalidate_rkey;
		wqe->len = 0;
		break;
	default:
		wqe_bind_write(
			wqe, wr->bind_mw.mw, wr->bind_mw.rkey, &wr->bind_mw.bind_info);
		wr->bind_mw.mw->rkey = wqe->rkey;
		break;
	}
}

/* Copies at most len bytes, the length that was checked: another thread may be changing
 * the list. */
static inline void
inline_copy(uint8_t *to, const struct ibv_sge *list, uint32_t num, uint32_t len)
{
	for (uint32_t i = 0; i < num; i++) {
		uint32_t length = __atomic_load_n(&list[i].length, __ATOMIC_RELAXED);
		uint32_t part = RTE_MIN(length, len);

		if (part == 0)
			continue;
		memcpy(to, (const void *)(uintptr_t)list[i].addr, part);
		to += part;
		len -= part;
	}
}

/* Writes the address of a datagram. SGEs or inline data follow it. */
static inline void
dest_write(struct send_wqe *wqe, struct ibv_ah *ah, uint32_t qpn, uint32_t qkey)
{
	struct ud_dest dest = to_ah(ah)->dest;

	dest.qpn = qpn;
	dest.qkey = qkey;
	memcpy(wqe->inline_data, &dest, sizeof(dest));
}

/* Writes the destination of a UD or XRC request. Returns the offset of SGEs or inline
 * data behind it. */
static inline uint32_t
address_write(struct send_wqe *wqe, const struct ibv_send_wr *wr, unsigned type)
{
	if (type == IBV_QPT_XRC_SEND) {
		wqe->srqn = wr->qp_type.xrc.remote_srqn;
		return 0;
	}
	dest_write(wqe, wr->wr.ud.ah, wr->wr.ud.remote_qpn, wr->wr.ud.remote_qkey);
	return sizeof(struct ud_dest);
}

/* Returns two adjacent fields, for one store. */
static inline uint64_t
pair_of(uint32_t first, uint32_t second)
{
#if __BYTE_ORDER == __LITTLE_ENDIAN
	return first | (uint64_t)second << 32;
#else
	return (uint64_t)first << 32 | second;
#endif
}

/*
 * Loads field by field, which the compiler would merge without the atomic loads. The
 * application has often just written these fields. A load wider than those stores cannot
 * be forwarded from the store buffer: it waits until they and all earlier stores have
 * reached the cache. An earlier store may be to a slot of another QP that is not in the
 * cache.
 */
static inline void
sge_write(uint64_t *to, const struct ibv_sge *sge)
{
	to[0] = __atomic_load_n(&sge->addr, __ATOMIC_RELAXED);
	to[1] = pair_of(__atomic_load_n(&sge->length, __ATOMIC_RELAXED),
		__atomic_load_n(&sge->lkey, __ATOMIC_RELAXED));
}

static inline void
sges_write(void *to, const struct ibv_sge *list, uint32_t num)
{
	if (likely(num == 1)) {
		sge_write(to, list);
		return;
	}
	for (uint32_t i = 0; i < num; i++)
		sge_write((uint64_t *)to + 2 * i, &list[i]);
}

/* Writes a checked request into its slot. row, num: as for send_check(); len: its result.
 * addressed: the QP is UD or XRC. type: the QP's. */
static inline void
send_write(struct send_wqe *wqe, const struct ibv_send_wr *wr, const struct wr_row *row,
	uint32_t num, uint32_t len, unsigned flags, bool addressed, unsigned type)
{
	uint32_t offset = 0;

	wqe->wr_id = wr->wr_id;
	wqe->len = len;
	wqe->imm = wr->imm_data;
	wqe->opcode = (uint8_t)wr->opcode;
	wqe->flags = (uint8_t)flags;
	if (row->form != POST_PLAIN)
		members_write(wqe, wr, row->form);
	if (unlikely(addressed))
		offset = address_write(wqe, wr, type);
	if (flags & IBV_SEND_INLINE) {
		wqe->num_sge = 0;
		inline_copy(wqe->inline_data + offset, wr->sg_list, num, len);
		return;
	}
	wqe->num_sge = (uint8_t)num;
	sges_write(wqe->inline_data + offset, wr->sg_list, num);
}

/* Returns whether the QP may send a datagram to this address. */
static inline bool
dest_allowed(const struct verbs_qp *vqp, const struct ibv_ah *ah, uint32_t qpn)
{
	return ah != NULL && to_pd(ah->pd)->number == vqp->qp->pd && qpn <= 0xFFFFFF;
}

/* Checks the restrictions of QP types other than RC. */
static inline bool
send_type_check(const struct verbs_qp *vqp, const struct ibv_send_wr *wr,
	const struct wr_row *row, uint32_t len)
{
	unsigned type = vqp->qp->type;

	if (!wr_of_type(row, type))
		return false;
	if (type == IBV_QPT_UD) /* it must fit one packet */
		return dest_allowed(vqp, wr->wr.ud.ah, wr->wr.ud.remote_qpn) &&
		       len <= mtu_bytes(to_ctx(vqp->ibv.context)->dev->active_mtu);
	return type != IBV_QPT_XRC_SEND || row->form >= POST_LOCAL_INV ||
	       wr->qp_type.xrc.remote_srqn <= 0xFFFFFF;
}

/* Counts a request that found the queue full without a signaled request in it. Called
 * with the SQ's lock held. */
void send_count_full(struct verbs_qp *vqp, const char *call);

/* ---- ibv_wr_post(3): wr.c, wr_ops.c, wr_set.c, for each other and for ibv_create_qp_ex(3) ---- */

/* Returns 0, or EOPNOTSUPP: an operation is not supported, or not by this QP type. */
int wr_ops_check(enum ibv_qp_type type, uint64_t send_ops_flags);

/* Sets the QP's functions. send_ops_flags passed wr_ops_check(). */
void wr_ops_fill(struct verbs_qp *vqp, uint64_t send_ops_flags);

/* Sets the functions that begin a request. */
void wr_builders_fill(struct ibv_qp_ex *ex);
/* Completes the last request of a batch. Returns how many the batch has; 0: ibv_wr_complete() refuses it. */
unsigned wr_batch_end(struct ibv_qp_ex *ex);
/* Sets the functions that fill in data and destination of a request. */
void wr_setters_fill(struct ibv_qp_ex *ex);

/* Records the first error of the batch, and drops the request being built. Setters fail
 * from then on. */
void wr_fail(struct verbs_wr *wr, int err);

static inline struct verbs_qp *
ex_to_qp(struct ibv_qp_ex *ex)
{
	return container_of(ex, struct verbs_qp, ex);
}

#endif
