/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <string.h>

#include "post.h"

static void
inline_copy(uint8_t *to, const struct send_req *req)
{
	for (unsigned i = 0; i < req->num_sge; i++) {
		memcpy(to, (void *)(uintptr_t)req->sge[i].addr, req->sge[i].len);
		to += req->sge[i].len;
	}
}

static uint8_t
wr_opcode(const struct send_req *req)
{
	if (req->opcode == WR_RDMA_WRITE)
		return IBV_WR_RDMA_WRITE;
	return (uint8_t)(req->opcode != 0 ? req->opcode : IBV_WR_SEND);
}

static void
members_write(struct send_wqe *wqe, const struct send_req *req)
{
	wqe->imm = req->imm;
	wqe->remote_va = req->remote_va;
	wqe->rkey = req->rkey;
	wqe->srqn = req->srqn;
	if (wqe->opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
		wqe->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wqe->atomic.compare_add = req->compare_add;
		wqe->atomic.swap = req->swap;
	} else if (wqe->opcode == IBV_WR_BIND_MW) {
		wqe->bind.len = req->bind_len;
		wqe->bind.parent = req->bind_parent;
		wqe->bind.access = req->bind_access;
	}
}

int
sq_post(struct sq *sq, const struct send_req *req)
{
	struct send_wqe *wqe;
	size_t at = 0;

	sq_lock(sq);
	wqe = sq_next(sq, sq->prod);
	if (wqe == NULL) {
		sq_unlock(sq);
		return -ENOMEM;
	}
	wqe->wr_id = req->wr_id;
	wqe->opcode = wr_opcode(req);
	wqe->flags = (uint8_t)req->flags;
	members_write(wqe, req);
	wqe->len = req->len + (uint32_t)sge_total(req->sge, req->num_sge);
	wqe->num_sge = req->flags & IBV_SEND_INLINE ? 0 : (uint8_t)req->num_sge;
	if (req->dest != NULL) {
		memcpy(wqe->sge, req->dest, sizeof(*req->dest));
		at = sizeof(*req->dest);
	}
	if (req->flags & IBV_SEND_INLINE)
		inline_copy(wqe->inline_data + at, req);
	else if (req->num_sge != 0)
		memcpy(wqe->inline_data + at, req->sge,
			req->num_sge * sizeof(wqe->sge[0]));
	sq_publish(sq, sq->prod + 1);
	sq_unlock(sq);
	return 0;
}

int
ring_post(struct recv_ring *ring, uint64_t wr_id, const struct sge *sge, unsigned num_sge)
{
	struct recv_slot *slot;

	recv_ring_lock(ring);
	slot = recv_ring_next(ring, ring->prod);
	if (slot == NULL) {
		recv_ring_unlock(ring);
		return -ENOMEM;
	}
	slot->wr_id = wr_id;
	slot->num_sge = num_sge;
	if (num_sge != 0)
		memcpy(slot->sge, sge, num_sge * sizeof(*sge));
	recv_ring_publish(ring, ring->prod + 1);
	recv_ring_unlock(ring);
	return 0;
}

bool
cq_take(struct cq *cq, struct sq *sq, struct cqe *out)
{
	const struct cqe *cqe;
	uint32_t tail;

	cq_lock(cq);
	tail = cq->tail;
	cqe = cq_peek(cq, &tail);
	if (cqe != NULL) {
		*out = *cqe;
		tail++;
		if (out->opcode < IBV_WC_RECV)
			sq_free(sq, out->sq_end);
	}
	cq_consume(cq, tail);
	cq_unlock(cq);
	return cqe != NULL;
}

void
bytes_fill(uint8_t *to, size_t len, uint32_t key)
{
	for (size_t i = 0; i < len; i++)
		to[i] = (uint8_t)(key * 89 + i + (i >> 8) * 7 + (i >> 16));
}

bool
bytes_match(const uint8_t *at, size_t len, uint32_t key)
{
	for (size_t i = 0; i < len; i++) {
		if (at[i] != (uint8_t)(key * 89 + i + (i >> 8) * 7 + (i >> 16)))
			return false;
	}
	return true;
}
