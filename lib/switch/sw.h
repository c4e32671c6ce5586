/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The switch: moves packets between the clients of a daemon by destination QPN, and
 * checks what they send. Pure logic: it maps no memory, reads no clock, and wakes clients
 * only through a callback, so that a simulator can run it. sw_thread.h describes its threads.
 * Unless it says otherwise a call is for thread 0.
 *
 * A client's memory is untrusted. The headers of a packet are copied before they are
 * checked, and the copy is what is sent. The switch writes the Ethernet header. The
 * payload is copied unchecked: the receiver checks it (its ICRC covers all of it).
 */
#ifndef ROCADE_SWITCH_SW_H
#define ROCADE_SWITCH_SW_H

#include <sys/queue.h>

#include "base/account.h"
#include "port/net.h"
#include "switch/qpns.h"
#include "switch/region.h"
#include "switch/sw_thread.h"
#include "switch/sw_user.h"

#define SW_BURST 32
#define SW_GROUPS 256        /* multicast groups of all clients together */
#define SW_GROUP_MEMBERS 256 /* QPs in one group */
/* a client that has taken no packet for this long lags: its progress thread is woken */
#define SW_LAG_NS (50 * NS_PER_US)
/* Limits for blocking the senders to a client whose ring is full: those of the same user,
 * and those of others, for which sw_user_hold() has a further limit. Both are less than
 * ENGINE_STALL_NS, after which a blocked sender's engine drops its backlog. */
#define SW_BACKPRESSURE_NS (200 * NS_PER_MS)
#define SW_BACKPRESSURE_OTHERS_NS (20 * NS_PER_MS)

struct sw_stats {
#define SW_STAT(name, text) uint64_t name;
#define SW_DROP(name, text) uint64_t drop_##name;
#include "switch/sw_stats.def"
};

struct sw_stat_row {
	const char *name;
	const char *text;
	bool error; /* counts losses, refusals or retries */
};

#define SW_STAT_COUNT (sizeof(struct sw_stats) / sizeof(uint64_t))
extern const struct sw_stat_row sw_stat_rows[SW_STAT_COUNT];
extern const struct sw_stat_row sw_thread_stat_rows[SW_THREAD_STAT_COUNT];

struct sw_limits { /* per client */
	uint32_t qps;
	uint32_t packets_per_s; /* 0: no limit */
	uint32_t pairs;         /* with other clients; 0: none */
	struct region_geom geom;
};

struct sw_conf {
	struct net_conf net; /* MAC and addresses, including the link-local one */
	uint32_t mtu;        /* IP */
	/* as for qpns_init() */
	uint32_t qpn_base;
	uint32_t qpn_count;
	struct random_key random;
	bool no_sack;    /* as for ext_query_create() */
	uint32_t neighs; /* as for net_create_sized() */
	uint32_t max_clients;
	uint32_t threads; /* 0: one; at most SW_THREADS_MAX */
	struct sw_limits limits;
};

/* Wakes the client's progress thread, or, if futex is not NULL, its thread that waits for a completion
 * event: it sleeps on this word (engine/event_wait.h). For any thread. */
typedef void sw_wake(void *owner, const uint32_t *futex);

struct ext_query;
struct sw_pair_ops;
struct sw_pair_side;
struct sw_wait_queue;
struct uplink;

/* Clients that get copies of packets (sw_dump.h). */
#define SW_DUMPS 8
struct sw_dump_filter {
	uint32_t
		client; /* id of the one whose packets it wants; 0: all that it may see */
	uint32_t qpn;   /* a QP of such a client; 0: all */
	uint32_t snap;  /* bytes of a packet, at most; 0: all that fit */
	uint32_t directions; /* SW_DUMP_*; 0: it wants no more */
};
static_assert(sizeof(struct sw_dump_filter) == 16, "takes the place of a GID");

struct sw_client {
	TAILQ_ENTRY(sw_client) link;        /* in sw->clients */
	TAILQ_ENTRY(sw_client) served_link; /* in thread->clients */
	TAILQ_ENTRY(sw_client) dirty_link;  /* has packets that are not published */
	/* in thread->lagging: has published packets that it has not taken */
	TAILQ_ENTRY(sw_client) lagging_link;
	TAILQ_ENTRY(sw_client) holding_link; /* in thread->holding */
	struct sw *sw;
	struct sw_thread *thread; /* that serves it */
	struct sw_user *user;     /* that pays for it */
	uint32_t uid;             /* whose rights it has */
	struct region region;
	struct ring_cons tx;
	struct ring_prod rx;
	void *owner; /* passed to wake() */
	/* of its user; NULL: not limited by user. Set before the first request. */
	struct account *account;
	uint32_t id;
	uint32_t qps;
	struct sw_qp_list qp_list;
	uint32_t memberships;             /* of its QPs in groups */
	uint32_t waiting;                 /* packets of its QPs that wait (sw_wait.h) */
	TAILQ_HEAD(, sw_pair_side) pairs; /* in the order of their beginning */
	uint32_t pair_count;
	bool no_pairs;   /* it wants none */
	bool privileged; /* may send controlled Q_Keys */
	/* Processes of several users may have its uid, as the daemon sees them: no other client is of
	 * its user for certain. */
	bool shares_uid;
	/* in sw->ended: index of the group to search next for its QPs */
	uint32_t next_group;
	bool dirty, lagging;
	/* Its ring is half full: senders of other threads wait. Written by its thread. */
	bool holding;
	/* The switch does not touch its rings any more: one has an invalid index (counted
	 * in sw->corrupt_count), or the client has ended. Written by its thread. */
	bool corrupt;
	uint32_t changes; /* device changes that were announced to it */
	uint32_t woken;   /* its sleep that was ended last (base/asleep.h) */
	uint32_t stamp;   /* of the last multicast packet from or to it */
	/* its consumer index at seen_ns: it has taken nothing since */
	uint32_t seen_cons;
	uint64_t seen_ns;
	/* token bucket of the packet rate limit, as a time: each packet that the client
	 * sends moves it on by (1 s / rate); from it to now is the client's credit */
	uint64_t rate_ns;
	uint32_t full_cons; /* its consumer index at full_ns */
	uint32_t held_cons; /* its consumer index at the last sw_user_hold() */
	/* when its full ring began to block senders; set anew once the client has taken
	 * half a ring since */
	uint64_t full_ns;
	struct sw_stats stats;         /* counted by its thread */
	struct sw_stats control_stats; /* by thread 0, if that is another one */
	bool dumps;                    /* it is in sw->dumps */
	bool dumps_all;                /* packets of every user */
	struct sw_dump_filter dump;
	uint64_t dump_lost; /* copies that were lost between threads */
};

struct sw_group {
	uint8_t gid[16];
	uint32_t count; /* 0: free, and in no chain */
	uint16_t chain; /* index + 1 of the next one of its bucket, 0: none */
	struct account_limit members; /* by user */
	uint32_t *qpns; /* SW_GROUP_MEMBERS entries, allocated on first use */
};

struct sw {
	struct sw_conf conf;
	struct qpns qpns;
	struct sw_users users;
	struct sw_clients clients; /* in the order of ids */
	struct sw_clients ended;   /* removed, but not all their QPs are freed yet */
	uint32_t client_count;
	uint32_t next_id;
	struct sw_thread *threads[SW_THREADS_MAX];
	uint32_t thread_count;
	struct sw_wait_queue *wait_queues; /* a queue for each entry of qpns */
	unsigned lock_depth;               /* of sw_lock() */
	/* of this pass; the caller sets it before it serves requests */
	uint64_t now;
	/* Clients that get copies of packets. */
	struct sw_client *dumps[SW_DUMPS];
	uint32_t dump_count;
	uint64_t dump_wall_ns; /* CLOCK_REALTIME less the clock of now */
	sw_wake *wake;
	const struct sw_pair_ops *pair_ops; /* NULL: there are no pairs */
	/* Wakes a thread that sleeps, for what was handed over to it. For any thread. NULL: no thread
	 * sleeps. Set before the first pass. */
	void (*wake_thread)(void *arg, uint32_t index);
	void *wake_thread_arg;
	/* Clients found corrupt so far; the daemon disconnects them. Any thread counts them:
	 * sw_corrupt_count(). */
	uint32_t corrupt_count;
	struct uplink *up;        /* the daemon's port; NULL: there is none */
	struct ext_query *ext;    /* knows the extensions of other hosts */
	struct sw_stats departed; /* totals of departed clients */
	struct latencies departed_latencies;
	struct random_key group_key;       /* of the hash of group_buckets */
	uint16_t group_buckets[SW_GROUPS]; /* index + 1 of the first group, 0: none */
	struct sw_group groups[SW_GROUPS];
};

/* Returns 0, -EINVAL or -ENOMEM. */
int sw_create(const struct sw_conf *conf, sw_wake *wake, struct sw **out);
/* No client may be left (asserted). */
void sw_destroy(struct sw *sw);

/* A client of the user uid. payer: the user to whom it is charged, the same or the owner of uid.
 * region: its memory, of which the switch writes only the
 * daemon's part. Returns 0, -ENOSPC (max_clients reached), -EINVAL (bad geometry) or
 * -ENOMEM. */
int sw_client_add(struct sw *sw, const struct region *region, uint32_t uid,
	uint32_t payer, void *owner, struct sw_client **out);
/* Flushes the client and ends it. Its memory, which the switch does not access any more,
 * stays the caller's. Its group memberships and QPNs are freed, and charged to its user
 * until then: some at once, the others in the next passes. */
void sw_client_remove(struct sw_client *client);
/* Frees what ended clients still have, at once. */
void sw_ended_free(struct sw *sw);

/* Forwards everything that the client has published, even beyond its packet rate, into the rings
 * of the receivers, and shows it to them. The excess is charged to the client: it is not flushed
 * again before its rate has made up for the excess. Called before one of its QPs or the client
 * itself is destroyed: a peer may wait for its last acknowledgement. */
void sw_client_flush(struct sw_client *client);
/* The same before the client's peer learns something that the client said after its packets, such
 * as the end of a connection. The client goes on: its packets from the first one on for which a
 * receiver or the port has no room stay in its ring. */
void sw_client_show_sent(struct sw_client *client);
/* Shows the client what has come for it: what its thread and thread 0 have taken from the port and
 * from other clients. */
void sw_client_show_received(struct sw_client *client);

/* One pass of thread 0 over its clients. Returns the number of packets taken from them, and
 * from other threads. */
unsigned sw_run(struct sw *sw, uint64_t now);
/* One pass of another thread, by that thread: also over its queue of the port. */
unsigned sw_thread_run(struct sw_thread *t, uint64_t now);

/* Copy counters of a client, of all threads together, or of a thread. */
void sw_client_stats_read(struct sw_client *c, struct sw_stats *stats);
void sw_thread_stats_read(struct sw_thread *t, struct sw_thread_stats *stats);
/* Returns how many packets are in the client's ring. */
uint32_t sw_client_rx_waiting(struct sw_client *c);

/* Called before the daemon sleeps: makes clients wake the daemon when they send. Returns
 * false if the daemon must not sleep: a client has packets to forward, has not taken its
 * packets (it must be checked within SW_LAG_NS), or was found corrupt, or one that has
 * ended still has QPs, or another thread has handed packets over, or packets that have waited can
 * be delivered. */
bool sw_sleep(struct sw *sw);
/* Called after the sleep: clients need not wake the daemon any more. */
void sw_awake(struct sw *sw);
/* The same for one thread and its clients, by that thread. */
bool sw_thread_sleep(struct sw_thread *t);
void sw_thread_awake(struct sw_thread *t);

/* Tells the clients that the link, or the device as SW_DEVICE_INFO returns it, has
 * changed. */
void sw_changed(struct sw *sw, bool link_up);
/* Replaces the addresses. A QP has no registered peer any more if its own address is
 * removed, or if its peer's becomes or ceases to be an address of the device. */
void sw_set_net(struct sw *sw, const struct net_conf *net);

#endif
