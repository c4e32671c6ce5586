/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/*
 * The state of an engine. The files of lib/engine include it, and tests. A thread uses
 * the members with the engine lock held. Exceptions are those of the last section, and
 * progress_calls, delegated_polls and idle, which engine_progress() and
 * engine_delegate() write without it.
 */
#ifndef ROCADE_ENGINE_STATE_H
#define ROCADE_ENGINE_STATE_H

#include "base/ringmem.h"
#include "engine/delegation.h"
#include "engine/doorbell.h"
#include "engine/engine.h"
#include "engine/idle_polls.h"
#include "engine/stream.h"
#include "port/port_io.h"
#include "port/rounds.h"
#include "qp/hold.h"
#include "qp/multipath.h"
#include "qp/req_time.h"
#include "recovery/txmap.h"

#define ENGINE_BUDGET 16               /* packets that a QP may send before the next QP */
#define ENGINE_TX_PASS (2 * PKT_BURST) /* packets sent in one pass */
/* after this long without taking a packet, the port's backlog is dropped */
#define ENGINE_STALL_NS (250 * NS_PER_MS)
#define ENGINE_POSTED 64 /* posts of the owner that the next pass schedules together */
#define ENGINE_OWNERS 4  /* threads that may become the owner, see engine_lock.h */

/* See engine_sleep.h. Descriptors are kept plus 1: 0 means none. */
struct engine_sleep {
	int epoll_fd, wake_fd, timer_fd;
	int rx_fd;        /* of the port */
	uint32_t idle;    /* sleeps in a row between which no packet came or left */
	uint64_t packets; /* received and sent before the last sleep */
	bool armed;       /* the engine sleeps, and rx_fd announces packets */
};

/* See delayed_ack.h. */
struct delayed_ack {
	/* the only ready QP of the last pass, if all that it had to send was an
	 * acknowledgement or NAK; else NULL */
	struct qp *qp;
	uint64_t since_ns; /* the time of that pass */
	bool delayed;      /* the acknowledgement or NAK is left to a later pass */
	bool answered;     /* the thread of the pass has posted to qp in time */
	uint8_t answers;   /* such posts in a row; stops at DELAYED_ACK_ANSWERS */
	bool manual;       /* see engine_allow_delayed_acks() */
};

/* See ack_coalesce.h. */
struct ack_coalesce {
	struct qp *qp;     /* whose acknowledgement waits for more packets; else NULL */
	uint64_t since_ns; /* the time of the pass from which on it waits */
	uint32_t packets;  /* that it covers */
	uint32_t next_idx; /* the requester's next_idx when the last of them came */
	bool off;          /* never changes */
	struct stream stream; /* of packets */
};

struct engine {
	/* Hot: the poll loop. */
	struct dev *dev;
	uint16_t vlan;
	uint8_t index;
	/* The control engine: sends the ARP, ND and group messages of the port, and polls
	 * its link. Frames that arrive are answered by the engine that receives them. */
	bool is_control;
	struct gsi
		*gsi; /* engine 0, which sends for QP 1: that of the device; else NULL */
	uint32_t net_generation;
	struct qp_shared shared;
	struct srq *taken_srqs; /* SRQs with takes in this pass, see srq_settle() */
	TAILQ_HEAD(engine_qps, qp) ready;
	struct engine_qps unresolved; /* wait for the next hop's MAC */
	struct delayed_ack delayed_ack;
	struct ack_coalesce ack_coalesce;
	struct port_io io;
	/* loopback queue: packets to the port itself, processed next */
	struct pkt loopback[PKT_BURST];
	uint32_t loopback_count;
	/* the last burst; the first unreleased_count frames are still to be released */
	struct pkt unreleased[PKT_BURST];
	uint32_t unreleased_count;
	/* rounds of passes with the engines from which answers come by rings of this process: how
	 * many rounds an answer takes at most, and whether they are those of another port, too */
	struct rounds *rounds;
	struct round_engine *round;
	uint8_t answer_rounds;
	bool rounds_of_port;
	bool unanswered;     /* packets have come that the port has not been told of */
	bool tells_answers;  /* the port wants to know */
	uint32_t round_done; /* of round */
	const uint32_t *round_number; /* of rounds */
	struct wheel wheel;
	/* hand-off rings, from each other engine; NULL for this one */
	struct rte_ring *handoff[DEV_MAX_ENGINES];
	struct peers peers;
	struct hold_arena hold;
	struct txmaps txmaps;
	struct multipaths multipaths;
	struct req_times times;
	/* engine_ext.c: the agent's generation, and when all peers in peers.asking are next
	 * looked at, whatever that is */
	uint32_t ext_generation;
	uint64_t ext_look_ns;
	struct port_stats stats;

	/* Manual progress: used by manual_progress.c. Times are in nanoseconds. */

	/* the earliest timer set since the progress thread went to sleep, or time at which
	 * a peer window opens for blocked QPs */
	uint64_t earliest_ns;
	uint64_t sleep_until_ns; /* end of the progress thread's sleep; 0: it is awake */
	uint32_t progress_calls; /* calls of engine_progress() */
	/* empty polls left before the application counts as awake again; see
	 * engine_delegate() */
	uint32_t delegated_polls;
	uint32_t arming; /* threads that arm a CQ, and have not set the flag yet */
	struct delegation delegation;
	struct idle_polls idle; /* polls in a row that found nothing */

	struct engine_sleep sleep;

	/* QPs that the owner has posted to since the last pass. With the engine lock held */
	uint32_t posted_count;
	struct qp *posted[ENGINE_POSTED];

	struct qp_claim claim; /* used by QPs with a shared SRQ */

	/* The engine lock, see engine_lock.h. */
	rte_ticketlock_t lock LINE_ALIGNED;
	/* By number of the owner. Each is written by its thread. */
	bool inside[ENGINE_OWNERS + 1];
	bool was_inside; /* the owner, before it took the ticket lock */
	uint32_t
		grace_passed; /* the last grace_asked that a thread saw when it left; see grace.h */
	uintptr_t last_thread; /* that ran a pass with the ticket lock */
	uint64_t last_passes;  /* of it, in a row */
	uint64_t
		owner_passes; /* in a row that make a thread the owner; 0: none becomes it */

	/* Written by posting threads and control calls. */
	struct doorbells doorbells;
	/* engine_thread() of the thread that ran the last pass, until its next post; 0: none */
	uintptr_t tx_thread;
	bool tx_from_post;   /* never changes */
	bool pass_requested; /* a thread that found the lock taken asks for a pass */

	/* See event_wait.h: turned off, or not offered by the kernel; a thread is the waiter. */
	bool event_wait_off;
	bool has_waiter;
	struct event_taker taker; /* under the lock of the waiter's queue */

	/* Rarely written, read by every thread that polls a CQ of the device, and so not on a
	 * line that the engine writes. NULL: a loop polls the engine */
	const struct engine_progress_thread *progress_thread LINE_ALIGNED;
	/* The owner's number, 0: there is none. Written with the ticket lock held, read by each
	 * thread that polls the engine or posts */
	uint32_t owner;
	uint32_t grace_asked; /* counts the calls of dev_grace_wait() */
	uintptr_t owner_thread[ENGINE_OWNERS + 1]; /* by number; never changes again */
};

/* For threads without the lock of the QP's engine: the QP may move to another one. */
static inline struct engine *
qp_engine_now(const struct qp *qp)
{
	return __atomic_load_n(&qp->sched.engine, __ATOMIC_RELAXED);
}

/* Counts atomically, for threads that do not hold the engine lock. */
static inline void
engine_stat_add(uint64_t *stat, uint64_t n)
{
	__atomic_fetch_add(stat, n, __ATOMIC_RELAXED);
}

#endif
