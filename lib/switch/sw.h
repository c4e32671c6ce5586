/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The switch: moves packets between the clients of a daemon, by destination QPN, and
 * checks what they send. Pure logic: it maps no memory, reads no clock and wakes nobody
 * by itself, so that a simulator can run it. One thread.
 *
 * A client's memory is hostile. The headers of a packet are copied before they are looked
 * at and the copy is what is sent; the Ethernet header is written here; the payload is
 * copied as it is, for it is nobody's but the receiver's to judge (its ICRC covers all of
 * it).
 */
#ifndef ROCADE_SWITCH_SW_H
#define ROCADE_SWITCH_SW_H

#include <sys/queue.h>

#include "port/neigh.h"
#include "switch/qpns.h"
#include "switch/region.h"
#include "wire/parse.h"

#define SW_BURST 32
#define SW_GROUPS 256        /* multicast groups of all clients together */
#define SW_GROUP_MEMBERS 256 /* QPs in one of them */
#define SW_SILENT_NS (50 * NS_PER_US)
#define SW_HOLD_NS (200 * NS_PER_MS) /* less than ENGINE_STALL_NS of who waits */

struct sw_stats {
#define SW_STAT(name, text) uint64_t name;
#define SW_DROP(name, text) uint64_t drop_##name;
#include "switch/sw_stats.def"
};

struct sw_stat_row {
	const char *name;
	const char *text;
};

#define SW_STAT_COUNT (sizeof(struct sw_stats) / sizeof(uint64_t))
extern const struct sw_stat_row sw_stat_rows[SW_STAT_COUNT];

struct sw_limits { /* for each client */
	uint32_t qps;
	uint32_t packets_per_s; /* 0: none */
	struct region_geom geom;
};

struct sw_conf {
	struct net_conf net; /* MAC and addresses; the link-local one among them */
	uint32_t mtu;        /* IP */
	uint32_t qpn_base;
	uint32_t qpn_count; /* a power of two */
	uint32_t max_clients;
	struct sw_limits limits;
};

struct sw;
struct uplink;

/* What becomes of a packet. */
enum sw_sent {
	SW_SENT,
	SW_LATER, /* the port takes no more now: it stays in its client's ring */
	SW_DROPPED,
};

/* A packet of a client: our copy of its headers, and where the rest of it is. What is
 * checked is what is sent. */
struct sw_packet {
	struct sw_client *from;
	uint8_t head[PARSE_HEADERS];
	uint32_t head_len;
	const uint8_t *rest;
	uint32_t len;
	struct pkt_view view;
	uint8_t sgid[16];
	uint8_t dgid[16];
};

struct sw_client {
	TAILQ_ENTRY(sw_client) link;
	TAILQ_ENTRY(sw_client) dirty_link;  /* has packets that were not published */
	TAILQ_ENTRY(sw_client) behind_link; /* has packets that it has not taken */
	struct sw *sw;
	struct region region;
	struct ring_cons tx;
	struct ring_prod rx;
	void *owner; /* whose it is: passed to wake */
	uint32_t id;
	uint32_t qps;
	bool dirty, behind;
	bool woken;         /* since it last took something */
	bool corrupt;       /* a ring of it makes no sense: it is served no more */
	uint32_t changes;   /* of the device, that it was told */
	uint32_t stamp;     /* of the last group packet that it got */
	uint32_t seen_cons; /* where it was at seen_ns */
	uint64_t seen_ns;
	uint64_t tokens_ns; /* packet rate: the time up to which it has used its share */
	uint32_t full_cons; /* where it was when its ring was found full, at full_ns */
	uint64_t full_ns;
	struct sw_stats stats;
};

TAILQ_HEAD(sw_clients, sw_client);

struct sw_group {
	uint8_t gid[16];
	uint32_t count; /* 0: free */
	uint32_t *qpns; /* SW_GROUP_MEMBERS of them, once used */
};

struct sw {
	struct sw_conf conf;
	struct qpns qpns;
	struct sw_clients clients;
	struct sw_clients dirty;
	struct sw_clients behind;
	uint32_t client_count;
	uint32_t next_id;
	uint32_t stamp; /* of the last group packet */
	uint64_t behind_check_ns;
	uint64_t now;    /* of this turn */
	bool last_words; /* what is forwarded now cannot wait */
	/* Wakes a client that sleeps, or that does not take its packets. */
	void (*wake)(void *owner);
	uint32_t corrupt_count; /* clients found corrupt so far: the owner hangs up */
	struct uplink *up;      /* the port; NULL: there is none */
	struct sw_stats gone; /* of clients that have left */
	struct sw_group groups[SW_GROUPS];
};

/* -EINVAL, -ENOMEM. */
int
sw_create(const struct sw_conf *conf, void (*wake)(void *owner), struct sw **out);
/* No client left (asserted). */
void
sw_destroy(struct sw *sw);

bool
sw_is_ours(const struct sw *sw, const uint8_t gid[16]);

/* mem: region_size(&geom) bytes that are zero. -ENOSPC: max_clients; -EINVAL: the
 * geometry; -ENOMEM. */
int
sw_client_add(struct sw *sw, const struct region_geom *geom, void *mem, void *owner,
	struct sw_client **out);
/* All that it had is free again; its memory is the caller's. */
void
sw_client_remove(struct sw_client *client);

/* Forwards all that the client has published, beyond its rate if need be: it waits for
 * that afterwards, and is not flushed again until then. Before a QP of it goes, or all of
 * it: a peer may wait for its last acknowledgement. */
void
sw_client_flush(struct sw_client *client);

/* One turn over all clients; returns the packets taken from them. */
unsigned
sw_run(struct sw *sw, uint64_t now);

/* Before sleeping: clients will say when they have something. False: they have already,
 * or somebody has to be looked after in less than SW_SILENT_NS, or was found corrupt. */
bool
sw_sleep(struct sw *sw);
void
sw_awake(struct sw *sw);

/* group.c: 0, -ENOSPC, -EINVAL (no group address, or not joined). Joining twice is fine.
 */
int
sw_group_join(struct sw *sw, uint32_t qpn, const uint8_t gid[16]);
int
sw_group_leave(struct sw *sw, uint32_t qpn, const uint8_t gid[16]);
void
sw_group_forget(struct sw *sw, uint32_t qpn);
/* All QPs of the client, in one go: groups and QPs are many. */
void
sw_group_forget_all(struct sw *sw, const struct sw_client *client);
const struct sw_group *
sw_group_find(const struct sw *sw, const uint8_t gid[16]);

/* Tells the clients that the link, or the device as SW_HELLO shows it, has changed. */
void
sw_changed(struct sw *sw, bool link_up);
/* Other addresses from now on: peers that were registered with one that is gone are not
 * any more. */
void
sw_set_net(struct sw *sw, const struct net_conf *net);

/* route.c: false: not now, it is to be offered again. */
bool
sw_forward(struct sw_client *from, const struct ring_desc *desc);
/* A copy to each client that has members of the group, except skip; false: nobody has. */
bool
sw_group_deliver(struct sw *sw, const uint8_t gid[16], struct sw_client *skip,
	const uint8_t *head, uint32_t head_len, const uint8_t *rest, uint32_t len);

/* sw.c: a copy into a client's ring; flags: RING_*. */
void
sw_client_put(struct sw_client *to, const uint8_t *head, uint32_t head_len,
	const uint8_t *rest, uint32_t len, unsigned flags);

/* Whether a packet for the client, whose ring looks full, is to wait. */
bool
sw_client_hold(struct sw_client *to);

#endif
