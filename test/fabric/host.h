/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A host: a device with one engine over a port, and the loop that polls it. Virtual time
 * passes only between two turns of that loop. In a turn the application runs, and then the
 * engine, until nothing is left to do.
 */
#ifndef ROCADE_FABRIC_HOST_H
#define ROCADE_FABRIC_HOST_H

#include "engine/engine.h"
#include "nic.h"

#define HOST_PD 1
#define HOST_MEM_BYTES (8u << 20) /* the longest message */

struct turns {
	uint64_t min, max; /* picoseconds from one turn to the next, at random */
	uint64_t stall,
		stall_every; /* the loop does not run for this part of that time */
};

struct host {
	unsigned index;
	struct nic nic;
	struct dev *dev;
	struct event_queue events;
	struct cq send_cq, recv_cq;
	uint32_t key; /* of the memory, for local and remote access */
	uint32_t cqe_room;
	struct turns turns;
	struct event turn;
	uint64_t next_turn; /* the loop's next turn, whether it finds work or not */
	uint64_t turn_count;
	/* The application: reads CQEs, posts. NULL: none. */
	void (*app)(struct host *host);
};

struct host_conf {
	struct outq_conf link; /* to its switch */
	struct turns turns;
	uint32_t max_qp;
	struct cc_conf cc;
	bool no_sack;
	unsigned paths;
};

void host_init(struct host *h, unsigned index, const struct host_conf *conf);
/* Its QPs are destroyed. */
void host_fini(struct host *h);

/* The host has something to do: the loop finds it in its next turn. */
void host_wake(struct host *h);

/* Resolves the other's MAC ahead of the first packet. */
void host_resolve(struct host *h, const struct host *other);

#endif
