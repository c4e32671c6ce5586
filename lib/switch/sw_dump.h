/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies of packets for rocade-dump, which is a client without QPs: they come by its ring as
 * packets do, each behind a struct sw_dump_head. A sender never waits for room in that ring: a
 * copy that finds none is lost and counted: rx_full of the client, or dump_lost if it was on its way
 * from another thread. Without a client that dumps, a packet costs a test of sw->dump_count.
 */
#ifndef ROCADE_SWITCH_SW_DUMP_H
#define ROCADE_SWITCH_SW_DUMP_H

#include "switch/handover.h"
#include "switch/sw.h"

#define SW_DUMP_IN 1  /* packets to a client */
#define SW_DUMP_OUT 2 /* packets from a client */
/* In sw_dump_head: the thread that copies does not know the number. */
#define SW_DUMP_LOST_UNKNOWN UINT32_MAX

/* In front of each copy. */
struct sw_dump_head {
	uint64_t
		wall_ns; /* CLOCK_REALTIME, of the pass in which the daemon moved the packet */
	uint32_t client;
	uint32_t qpn;  /* of the client; 0xffffff: multicast */
	uint32_t len;  /* of the packet; the copy may be shorter */
	uint32_t lost; /* copies that were lost so far, as far as this thread knows */
	uint32_t direction; /* SW_DUMP_IN or SW_DUMP_OUT */
	uint32_t reserved;
};
static_assert(sizeof(struct sw_dump_head) == 32, "same size in every build");

/* Starts to copy the packets that filter names for this client, or stops. all: it may see the
 * clients of every user; otherwise those of its own user. wall_ns: CLOCK_REALTIME less the
 * switch's clock. Returns 0; -EINVAL: a direction is unknown, or the client has QPs; -EBUSY: the
 * client dumps already, its user has another client that does, or too many do. With the locks of
 * all threads, as sw_dump_forget(). */
int sw_dump_set(struct sw_client *client, const struct sw_dump_filter *filter, bool all,
	uint64_t wall_ns);
/* Returns how many copies for the client were lost. */
uint32_t sw_dump_lost(const struct sw_client *client);
/* The client ends. */
void sw_dump_forget(struct sw_client *client);

/* In the thread t: copies a packet from or to the client for each client that wants it. */
void sw_dump_copy(struct sw_thread *t, const struct sw_client *client, uint32_t qpn,
	uint32_t direction, const struct handed_bytes *bytes);

static inline void
sw_dump(struct sw_thread *t, const struct sw_client *client, uint32_t qpn,
	uint32_t direction, const struct handed_bytes *bytes)
{
	if (unlikely(t->sw->dump_count != 0))
		sw_dump_copy(t, client, qpn, direction, bytes);
}

#endif
