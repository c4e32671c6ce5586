/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Send queue. A posting thread writes WQEs straight into slots and publishes them by prod. The
 * engine walks them. A slot comes back only when a completion of its request or of a later one
 * is polled (IBA 10.8.5.1: the poller moves freed), never by an ACK alone: the room that
 * ibv_post_send(3) sees is max_wr - (prod - freed).
 */
#ifndef ROCADE_QUEUE_SQ_H
#define ROCADE_QUEUE_SQ_H

#include <rte_spinlock.h>

#include "base/alloc.h"
#include "mem/sge.h"
#include "mem/window.h"

#define SEND_MAX_SGE 16
#define SEND_MAX_INLINE 512
#define SQ_MAX_WR (1u << 16)

struct send_wqe {
	uint64_t wr_id;
	uint32_t len; /* bytes of the message */
	uint32_t imm; /* immediate data as given (big-endian), or the rkey to invalidate */
	uint64_t remote_va;
	uint32_t rkey;
	uint8_t opcode; /* enum ibv_wr_opcode */
	uint8_t flags;	/* IBV_SEND_*; IBV_SEND_SIGNALED is set by the post where the QP has
			 * sq_sig_all */
	uint8_t num_sge;
	uint8_t reserved;
	uint64_t compare_add;
	union {
		uint64_t swap;
		uint32_t srqn; /* see send_wqe_srqn() */
	};
	union {
		struct sge sge[0];
		uint8_t inline_data[0]; /* len bytes, with IBV_SEND_INLINE */
	};
};
static_assert(offsetof(struct send_wqe, sge) == 48, "with one SGE: a line");

static inline bool
send_wqe_is_atomic(const struct send_wqe *wqe)
{
	return wqe->opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
	       wqe->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

/* The SRQ that an XRC request names (annex A14) stands where the request has nothing else:
 * in the place of swap, and of imm in an atomic. */
static inline uint32_t
send_wqe_srqn(const struct send_wqe *wqe)
{
	return send_wqe_is_atomic(wqe) ? wqe->imm : wqe->srqn;
}

/* Last: the opcode has been set. */
static inline void
send_wqe_set_srqn(struct send_wqe *wqe, uint32_t srqn)
{
	if (send_wqe_is_atomic(wqe))
		wqe->imm = srqn;
	else if (likely(wqe->opcode != IBV_WR_BIND_MW)) /* no packet */
		wqe->srqn = srqn;
}

/* Where a datagram goes: a copy of the address handle. On a UD QP it stands before the SGEs, in
 * the place of two. */
struct ud_dest {
	uint8_t dgid[16];
	uint32_t flow_label;
	uint8_t tclass;
	uint8_t hop_limit;
	uint8_t sgid_index;
	uint8_t sl;
	/* Behind here: what differs between datagrams to one address. */
	uint32_t qpn;
	uint32_t qkey;
};
static_assert(sizeof(struct ud_dest) == 2 * sizeof(struct sge), "two SGEs");
#define UD_DEST_SGES 2
#define UD_DEST_PATH offsetof(struct ud_dest, qpn)

/* The engine's notes on a slot: enough to complete an unsignaled request without touching its
 * WQE. Valid once the request was started. */
struct sq_note {
	uint32_t first_psn; /* 24 bits */
	/* The PSN behind the last, and NOTE_*: in one store, for it is read back at once. */
	uint32_t end;
};
static_assert(sizeof(struct sq_note) == 8, "eight to a line");

#define NOTE_PSN UINT32_C(0xFFFFFF)
#define NOTE_SIGNALED (UINT32_C(1) << 24)
#define NOTE_ANSWERED (UINT32_C(1) << 25) /* READ or atomic: complete by its own response only */

static inline uint32_t
note_end(const struct sq_note *note)
{
	return note->end & NOTE_PSN;
}

static inline bool
note_answered(const struct sq_note *note)
{
	return (note->end & NOTE_ANSWERED) != 0;
}

/* Where the slots are: the same for the engine and for those who post, in a line of each. */
struct sq_ring {
	uint8_t *slots;
	uint32_t mask;
	uint32_t stride;
};

struct sq {
	/* the engine */
	struct sq_ring ring;
	struct sq_note *notes;
	const struct alloc *mem;
	struct window_list windows; /* of type 2, bound by its requests */
	/* posting threads */
	rte_spinlock_t lock LINE_ALIGNED;
	uint32_t prod; /* release; acquired by the engine */
	/* written by pollers under the CQ's lock (release), read by posting threads */
	uint32_t freed;
	uint32_t max_wr; /* a power of two */
	struct sq_ring post;
	uint32_t max_sge;
	uint32_t max_inline;
	bool unlocked;
	uint8_t always; /* flags that every request has: IBV_SEND_SIGNALED by sq_sig_all */
};
static_assert(sizeof(struct sq) == 2 * LINE_SIZE, "one is the posting threads'");

/* max_wr is rounded up to a power of two, 0 to 1; max_inline is raised to what the slot has room
 * for anyway (at most SEND_MAX_INLINE). Read both back. The caller has checked the three against
 * SQ_MAX_WR, SEND_MAX_SGE and SEND_MAX_INLINE (asserted). -ENOMEM. */
int sq_init(struct sq *sq, const struct alloc *mem, uint32_t max_wr, uint32_t max_sge,
	uint32_t max_inline);
/* The same with room for a struct ud_dest in every slot. */
int sq_init_ud(struct sq *sq, const struct alloc *mem, uint32_t max_wr, uint32_t max_sge,
	uint32_t max_inline);
void sq_fini(struct sq *sq);
/* Forgets everything (RESET): the indices start at 0 again. No poster, no poller, no engine
 * inside, and the QP's CQEs have been purged: one polled later would free slots. */
void sq_clear(struct sq *sq);

static inline struct send_wqe *
sq_ring_slot(const struct sq_ring *ring, uint32_t index)
{
	return (struct send_wqe *)(ring->slots +
				   (size_t)(index & ring->mask) * ring->stride);
}

/* The engine's. */
static inline struct send_wqe *
sq_slot(const struct sq *sq, uint32_t index)
{
	return sq_ring_slot(&sq->ring, index);
}

static inline struct sq_note *
sq_note(const struct sq *sq, uint32_t index)
{
	return &sq->notes[index & sq->ring.mask];
}

static inline void
sq_lock(struct sq *sq)
{
	if (!sq->unlocked)
		rte_spinlock_lock(&sq->lock);
}

static inline void
sq_unlock(struct sq *sq)
{
	if (!sq->unlocked)
		rte_spinlock_unlock(&sq->lock);
}

/* The slot for local index prod, NULL when the queue is full. */
static inline struct send_wqe *
sq_next(const struct sq *sq, uint32_t prod)
{
	/* Pairs with the release in sq_free(). */
	if (unlikely(prod - __atomic_load_n(&sq->freed, __ATOMIC_ACQUIRE) >= sq->max_wr))
		return NULL;
	return sq_ring_slot(&sq->post, prod);
}

static inline void
sq_publish(struct sq *sq, uint32_t prod)
{
	/* Pairs with the acquire in sq_posted(). */
	__atomic_store_n(&sq->prod, prod, __ATOMIC_RELEASE);
}

/* The engine: index behind the last posted request. */
static inline uint32_t
sq_posted(const struct sq *sq)
{
	return __atomic_load_n(&sq->prod, __ATOMIC_ACQUIRE);
}

/* The poller: everything before index end is free. */
static inline void
sq_free(struct sq *sq, uint32_t end)
{
	__atomic_store_n(&sq->freed, end, __ATOMIC_RELEASE);
}

#endif
