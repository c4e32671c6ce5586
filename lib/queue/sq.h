/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/*
 * Send queue. Posting threads write WQEs directly into slots and publish them by
 * advancing prod. The engine reads them. A slot is freed only when a completion of its
 * request or of a later one is polled (IBA 10.8.5.1), never by an ACK alone: the poller
 * advances freed. The room that ibv_post_send(3) sees is max_wr - (prod - freed).
 */
#ifndef ROCADE_QUEUE_SQ_H
#define ROCADE_QUEUE_SQ_H

#include <rte_spinlock.h>

#include "base/base_alloc.h"
#include "mem/sge.h"
#include "mem/memory_window.h"
#include "wire/psn.h"

#define SEND_MAX_SGE 16
#define SEND_MAX_INLINE 512
#define SQ_MAX_WR (1u << 16)
#define WR_ROWS 32 /* opcodes of work requests: enum ibv_wr_opcode, and with WQE_FAULT */

/* In send_wqe.opcode, beside enum ibv_wr_opcode: the request fails (qp/request_fault.h). */
#define WQE_FAULT 0x10

/* In send_wqe.flags, beside IBV_SEND_*: the payload is in an mbuf (qp/mbuf_send.h). */
#define WQE_MBUF 0x80
/* The QP has completion counters (qp/counting.h). */
#define WQE_COUNTED 0x40

struct send_wqe {
	uint64_t wr_id;
	uint32_t len;   /* bytes of the message; FLUSH: of the range */
	uint32_t srqn;  /* XRC (annex A14): SRQ that the request names */
	uint8_t opcode; /* enum ibv_wr_opcode */
	/* IBV_SEND_*; the post sets IBV_SEND_SIGNALED if the QP has sq_sig_all */
	uint8_t flags;
	uint8_t num_sge;
	uint8_t status; /* WQE_FAULT: enum ibv_wc_status */
	uint32_t rkey;  /* BIND_MW: the new key; LOCAL_INV: the key; fault: vendor_err */
	uint64_t remote_va; /* BIND_MW: where the window begins */
	union {             /* by opcode */
		/* big-endian, as in the packet: */
		uint32_t imm;
		uint32_t invalidate_rkey; /* SEND with invalidate */
		uint32_t feth;            /* FLUSH (annex A19) */
		struct {
			uint64_t compare_add;
			uint64_t swap;
		} atomic;
		struct {
			uint64_t len;
			uint32_t parent; /* key of the region */
			uint32_t access; /* IBV_ACCESS_* */
		} bind;
	};
	union {
		struct sge sge[0];
		uint8_t inline_data[0]; /* len bytes, with IBV_SEND_INLINE */
	};
};
static_assert(offsetof(struct send_wqe, sge) == 48, "with one SGE: one cache line");

/* Destination of a datagram: a copy of the address handle, QPN and Q_Key. In a UD QP's
 * slot it precedes the SGEs and takes the room of two. */
struct ud_dest {
	uint8_t dgid[16];
	uint32_t flow_label;
	uint8_t tclass;
	uint8_t hop_limit;
	uint8_t sgid_index;
	uint8_t sl;
	/* The members below differ between datagrams to one address. */
	uint32_t qpn;
	uint32_t qkey;
};
static_assert(
	sizeof(struct ud_dest) == 2 * sizeof(struct sge), "takes the room of two SGEs");
#define UD_DEST_SGES 2
#define UD_DEST_PATH offsetof(struct ud_dest, qpn)

/* The PSN range of a request, one for each slot: lets the engine complete an unsignaled
 * request without reading its WQE. Valid once the request was started. */
struct psn_range {
	uint32_t first_psn; /* 24 bits */
	/* The PSN after the last, and PSN_RANGE_*. One word, written by one store,
	 * because it is read back soon after. */
	uint32_t end;
};
static_assert(sizeof(struct psn_range) == 8, "eight per cache line");

#define PSN_NONE                                                                         \
	UINT32_C(0x1000000) /* first_psn of a request that was flushed without PSNs */
#define PSN_RANGE_END_MASK UINT32_C(0xFFFFFF)
#define PSN_RANGE_SIGNALED (UINT32_C(1) << 24)
/* READ, atomic, ATOMIC_WRITE or FLUSH: completed by its own response only */
#define PSN_RANGE_NEEDS_RESPONSE (UINT32_C(1) << 25)
/* it gives up an mbuf when it completes */
#define PSN_RANGE_MBUF (UINT32_C(1) << 30)
/* it is counted when it completes */
#define PSN_RANGE_COUNTED (UINT32_C(1) << 29)
/* the time that it takes is measured */
#define PSN_RANGE_TIMED (UINT32_C(1) << 28)
/* from the bits of the flags to those of the range */
#define PSN_RANGE_FLAGS_SHIFT 23
static_assert(
	(IBV_SEND_SIGNALED << PSN_RANGE_FLAGS_SHIFT) == PSN_RANGE_SIGNALED &&
		((uint32_t)WQE_MBUF << PSN_RANGE_FLAGS_SHIFT) == PSN_RANGE_MBUF &&
		((uint32_t)WQE_COUNTED << PSN_RANGE_FLAGS_SHIFT) == PSN_RANGE_COUNTED,
	"one shift for all");
#define WQE_MARKS ((uint32_t)(IBV_SEND_SIGNALED | WQE_MBUF | WQE_COUNTED))
/* of a request for which more is to be done when it completes */
#define PSN_RANGE_MARKS (WQE_MARKS << PSN_RANGE_FLAGS_SHIFT | PSN_RANGE_TIMED)

static inline uint32_t
psn_range_end(const struct psn_range *range)
{
	return range->end & PSN_RANGE_END_MASK;
}

static inline bool
psn_range_needs_response(const struct psn_range *range)
{
	return (range->end & PSN_RANGE_NEEDS_RESPONSE) != 0;
}

/* READ requests: a bit for each PSN with which one ends, and with which parts that were
 * requested again begin and end. Valid for PSNs of READs from una_psn - 1 up to sent_psn. */
struct read_bits {
	struct psn_bits ends;
	struct psn_bits repeat_first, repeat_last; /* only if qp->read_repeated */
};

/* Location of the slots. The engine and the posting threads each have a copy in their
 * cache line. */
struct flight;

struct sq_ring {
	uint8_t *slots;
	uint32_t mask;
	uint32_t stride;
};

struct sq {
	/* written by the engine */
	struct sq_ring ring;
	struct psn_range *psn_ranges;
	struct read_bits *read_bits; /* NULL before sq_allow_reads() */
	const struct alloc *mem;
	struct mw_list bound_mws; /* type 2 memory windows bound by its requests */
	/* The QP's flight recorder (qp/flight.h), or NULL. It is the QP's; struct qp is
	 * full, and this line is not. */
	struct flight *flight;
	/* At mark_tick[i] the requests before mark_end[i] had been posted: see qp/send_age.h. */
	uint32_t mark_end[2];
	/* written by posting threads */
	rte_spinlock_t lock LINE_ALIGNED;
	uint32_t prod; /* stored with release; the engine reads it with acquire */
	/* written by pollers under the CQ's lock (release), read by posting threads */
	uint32_t freed;
	uint32_t max_wr; /* a power of two */
	struct sq_ring post;
	uint16_t max_sge;
	uint16_t max_inline;
	bool unlocked;
	/* flags added to every request: IBV_SEND_SIGNALED with sq_sig_all, WQE_COUNTED */
	uint8_t always;
	uint32_t doorbell; /* index of the QP's doorbell; set by the engine */
	/* Posts refused because the queue was full with no signaled request in it. */
	uint32_t full_unsignaled;
	/* Written by the engine, rarely; this line has room for it. At oldest_tick the request before
	 * oldest_end became the oldest unacknowledged one, or was sent. */
	uint32_t mark_tick[2], oldest_tick, oldest_end;
};
static_assert(sizeof(struct sq) == 2 * LINE_SIZE,
	"one cache line of the engine, one of the posting threads");

/* max_wr is rounded up to a power of two, at least 1. max_inline is raised to the room
 * that the slot has anyway (at most SEND_MAX_INLINE). The actual values are sq->max_wr
 * and sq->max_inline. The caller has checked the three against SQ_MAX_WR, SEND_MAX_SGE
 * and SEND_MAX_INLINE (asserted). ud: with room for a struct ud_dest in every slot.
 * -ENOMEM. */
int sq_init(struct sq *sq, const struct alloc *mem, uint32_t max_wr, uint32_t max_sge,
	uint32_t max_inline, bool ud);
void sq_fini(struct sq *sq);
/* Allocates what READ requests need, unless that was done before: a QP that may send none does
 * without, so that an idle one fits 1 KiB. Returns 0 or -ENOMEM. */
int sq_allow_reads(struct sq *sq);
/* Discards all requests (RESET): the indices start at 0 again. The caller holds the
 * engine lock and the SQ's lock. To an unlocked SQ no thread may be posting. The QP's
 * CQEs must have been cleaned: one polled later would free slots of new requests. */
void sq_clear(struct sq *sq);

static inline struct send_wqe *
sq_ring_slot(const struct sq_ring *ring, uint32_t index)
{
	return (struct send_wqe *)(ring->slots +
				   (size_t)(index & ring->mask) * ring->stride);
}

/* For the engine. */
static inline struct send_wqe *
sq_slot(const struct sq *sq, uint32_t index)
{
	return sq_ring_slot(&sq->ring, index);
}

static inline struct psn_range *
sq_psn_range(const struct sq *sq, uint32_t index)
{
	return &sq->psn_ranges[index & sq->ring.mask];
}

/* The PSNs with which READ requests end. Only after sq_allow_reads(). */
static inline struct psn_bits *
sq_read_ends(const struct sq *sq)
{
	return &sq->read_bits->ends;
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

/* Returns the slot for local index prod, NULL if the queue is full. */
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

/* For the engine. Returns the index after the last posted request. Pairs with the release
 * in sq_publish(). */
static inline uint32_t
sq_posted(const struct sq *sq)
{
	return __atomic_load_n(&sq->prod, __ATOMIC_ACQUIRE);
}

/* For the poller. Frees all slots before index end. Pairs with the acquire in
 * sq_next(). */
static inline void
sq_free(struct sq *sq, uint32_t end)
{
	__atomic_store_n(&sq->freed, end, __ATOMIC_RELEASE);
}

#endif
