/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The threads of the switch. Each has a queue of the port, and serves the clients that it got when
 * they were added: only it touches their rings and their statistics. A packet for a client of
 * another thread goes through a ring between the two (handover.h).
 *
 * Thread 0 is the control thread. It alone adds and removes clients, serves their requests, and
 * uses the neighbour table, the agent for extensions and the port's own protocols. It writes what
 * all threads read (QPNs, groups, addresses, limits) while it holds the locks of all other
 * threads, each of which holds its own lock for a pass. So a thread reads these tables without
 * further locks. With one thread no lock is taken.
 */
#ifndef ROCADE_SWITCH_SW_THREAD_H
#define ROCADE_SWITCH_SW_THREAD_H

#include <sys/queue.h>

#include "base/ticket_lock.h"
#include "wire/pkt.h"

#define SW_THREADS_MAX ENGINES_MAX
#define SW_HOPS 256 /* next hops that a thread remembers */

struct handover;
struct port_io;
struct port_stats;
struct sw;
struct sw_client;
struct sw_wait;

TAILQ_HEAD(sw_clients, sw_client);

struct sw_thread_stats {
#define SW_THREAD_STAT(name, text) uint64_t name;
#include "switch/sw_stats.def"
};

#define SW_THREAD_STAT_COUNT (sizeof(struct sw_thread_stats) / sizeof(uint64_t))

/* A next hop, valid for this generation of the neighbour table. */
struct sw_hop {
	uint8_t dgid[16];
	uint8_t mac[6];
	bool known;
	uint32_t generation;
};

struct sw_thread {
	struct sw *sw;
	uint32_t index;
	rte_ticketlock_t lock; /* not of thread 0 */
	/* Gets new clients. Set by the thread, read by thread 0. */
	bool running;
	uint32_t client_count;
	struct sw_clients clients; /* those that it serves; the first one first */
	struct sw_clients dirty;
	struct sw_clients lagging;
	struct sw_clients holding; /* those that block senders of other threads */
	/* number of the last sleep (base/asleep.h), for all its clients and the other threads */
	uint32_t sleep;
	uint32_t
		woken[SW_THREADS_MAX]; /* sleep of each other thread that it ended last */
	/* counts multicast packets; each client gets one copy of a packet */
	uint32_t stamp;
	uint64_t lagging_check_ns;
	uint64_t now; /* of this pass */
	/* a client is being flushed: its packets are not offered again */
	bool final_flush;
	struct port_io *io; /* on its queue of the port; NULL: there is none */
	struct port_stats *port_stats;
	/* To each other thread. A bit in unpublished: it has packets that are not shown yet. */
	struct handover *to[SW_THREADS_MAX];
	uint32_t unpublished;
	struct sw_wait *wait; /* packets of its clients that wait (sw_wait.h) */
	struct sw_thread_stats stats;
	struct sw_hop hops[SW_HOPS]; /* not of thread 0 */
	/* It sleeps, and is to be woken for what is handed over (base/asleep.h). Written by the
	 * thread, read by the others. */
	uint32_t asleep LINE_ALIGNED;
} LINE_ALIGNED;

static inline void
sw_thread_lock(struct sw_thread *t)
{
	if (t->index != 0)
		ticket_lock(&t->lock);
}

static inline void
sw_thread_unlock(struct sw_thread *t)
{
	if (t->index != 0)
		rte_ticketlock_unlock(&t->lock);
}

/* Creates the threads of sw, and the rings between them; buf_size: of the longest packet. Returns
 * 0 or -ENOMEM; on failure the caller calls sw_threads_destroy(). */
int sw_threads_create(struct sw *sw, uint32_t count, uint32_t buf_size);
void sw_threads_destroy(struct sw *sw);

/* For thread 0: stops the others before their next pass. Calls may be nested. */
void sw_lock(struct sw *sw);
void sw_unlock(struct sw *sw);

/* Returns the running thread with the fewest clients. */
struct sw_thread *sw_thread_choose(const struct sw *sw);

#endif
