/* SPDX-License-Identifier: BSD-3-Clause */
/* Control path. */
/* A device: one port with its addresses, keys, QPs and engines. lib/verbs presents it as
 * an ibv_device. All calls here are control path, and take the engine locks that they
 * need. */
#ifndef ROCADE_ENGINE_DEV_H
#define ROCADE_ENGINE_DEV_H

#include <pthread.h>

#include "base/slowest.h"
#include "base/slab.h"
#include "mem/key.h"
#include "port/net.h"
#include "port/port.h"
#include "qp/peer_info.h"
#include "qp/qp.h"
#include "qp/qp_table.h"

#define DEV_MAX_ENGINES ENGINES_MAX
#define DEV_GIDS 16
#define DEV_NAME_MAX 64
#define DEV_MAX_GROUPS 1024    /* multicast groups with a QP attached */
#define DEV_MAX_MEMBERS 1024   /* QPs of one group */
#define DEV_MAX_ATTACHED 65536 /* QPs of all groups together */
#define DEV_GROUP_BUCKETS 256

struct engine;
struct flight_copy;
struct gsi;

/* A UD QP that is attached to a group. */
struct mcast_member {
	LIST_ENTRY(mcast_member) link;
	struct qp *qp;
};

struct mcast_group {
	LIST_ENTRY(mcast_group) link; /* in its bucket */
	LIST_HEAD(, mcast_member) members;
	uint32_t count;
	uint8_t gid[16];
};
LIST_HEAD(group_list, mcast_group);

/* Callbacks for a port behind the daemon. The daemon assigns QPNs, is told of connections
 * and groups, and resolves neighbours. Control path, without engine locks. Return 0 or
 * -errno. */
struct dev_hooks {
	int (*qpn_take)(void *arg, uint32_t *qpn);
	void (*qpn_give)(void *arg, uint32_t qpn);
	int (*peer_set)(void *arg, uint32_t qpn, const uint8_t sgid[16],
		const uint8_t dgid[16], uint32_t dest_qpn);
	void (*peer_clear)(void *arg, uint32_t qpn); /* the QP was reset */
	int (*group)(void *arg, uint32_t qpn, const uint8_t gid[16], bool join);
};

struct dev_conf {
	/* NULL: the port is not behind the daemon. No two QPNs that the hooks assign are
	 * the same modulo max_qp. */
	const struct dev_hooks *hooks;
	void *hooks_arg;
	char name[DEV_NAME_MAX];
	/* the MAC is ignored (the port's is taken); the link-local address is added */
	struct net_conf net;
	uint32_t mtu;      /* IP MTU, 576..9000 */
	uint32_t qpn_base; /* first QPN, 2..0xFFFFFE; 0: random */
	/* of keys, QPNs and SRQ numbers; NULL: the kernel's. Tests set it. */
	const struct random_key *random;
	uint32_t max_qp;      /* 1..2^17 */
	uint32_t neighs;      /* as for net_create_sized() */
	uint32_t peer_window; /* packets; 0: half of the port's receive ring */
	bool lossy;           /* with hooks: packets to local peers are lost on purpose */
	bool no_cnp;          /* send no CNPs for packets with CE */
	bool no_sack;         /* ask no host for extensions, and announce none */
	uint8_t paths; /* of each QP, up to PATHS_MAX; 0 and 1: one, see multipath.h */
	struct cc_conf cc;     /* congestion control */
	bool mr_fault_handler; /* contexts of the device install it, see mr_fault.h */
	bool flight_recorder;  /* QPs keep their last events, see qp/flight.h */
	/* Limits set by the owner of the port; 0: none. The hooks enforce them, except that of
	 * MRs. */
	uint32_t qps_granted;
	uint32_t mrs_granted;
	uint32_t groups_granted;
	uint32_t group_members_granted; /* of one group */
	uint32_t memberships_granted;
	bool privileged; /* QPs may have controlled Q_Keys; of a port with hooks */
};

/* Receives device events: one per verbs context. */
struct dev_listener {
	LIST_ENTRY(dev_listener) link;
	struct async_event events;
};

struct dev {
	struct dev_conf conf;
	struct port port;
	struct net *net;
	struct key_table keys; /* its readers are the engines */
	struct qp_table qps;
	struct srq_table srqs;     /* XRC SRQs */
	LIST_HEAD(, srq) srq_list; /* all SRQs */
	uint32_t next_xrcd;
	uint64_t next_srqn; /* of a basic SRQ; used modulo 2^24 */
	struct slab slab;
	struct alloc mem; /* allocates from slab: QPs and rings */
	unsigned engine_count;
	struct engine *engines[DEV_MAX_ENGINES];
	struct rounds *rounds;           /* of these engines, see port/rounds.h */
	uint64_t answer_wait_ns;         /* see base/answer_wait.h */
	struct answer_wait *answer_wait; /* by QPN & mask of qps */
	uint32_t next_engine;            /* for the next QP */
	uint64_t guid;                   /* EUI-64 of the MAC, host order */
	enum ibv_mtu active_mtu;
	uint8_t gids[DEV_GIDS][16]; /* all zero: empty slot */
	uint32_t next_pd;
	struct gsi *gsi; /* QP 1 */
	struct cq_moderator cq_moderator;
	struct flight_printer *flight; /* NULL: without conf.flight_recorder */
	/* Changed with all engine locks held, read with one. */
	struct group_list groups[DEV_GROUP_BUCKETS];
	uint32_t group_count;
	uint32_t attached_count;
	/* held by control calls that change QPs, SRQs, CQs, attachments or addresses */
	pthread_mutex_t lock;
	/* guards listeners and link_up; taken after all other locks except that of net */
	pthread_mutex_t link_lock;
	LIST_HEAD(, dev_listener) listeners;
	bool link_up;  /* as last polled */
	bool link_cut; /* dev_link_cut() */
};

/* Takes the port over (dev_destroy() closes it). Creates one engine for each of its
 * queues. mem: for QPs and rings. Returns 0, -EINVAL or -ENOMEM. */
int dev_create(const struct dev_conf *conf, const struct port *port,
	const struct alloc *mem, struct dev **out);
/* No QP, group or user of QP 1 may be left (asserted), and no thread may poll its
 * engines. */
void dev_destroy(struct dev *dev);

/* Take and release the locks of all engines, in order. The caller excludes every engine
 * in between. Taking them once is also the grace period after which no engine uses what
 * was unpublished before. */
void dev_engines_lock(struct dev *dev);
void dev_engines_unlock(struct dev *dev);
/* The same for some engines, a bit each. For those that use an object the caller holds dev->lock, by which
 * they stay the same. */
void dev_engines_lock_of(struct dev *dev, uint32_t engines);
void dev_engines_unlock_of(struct dev *dev, uint32_t engines);

/* Initialises a QP in memory of the caller. engine: index, or -1 for round robin. Attaches
 * the QP to its CQs and SRQ. Its asynchronous events go to events, and name object.
 * Returns 0, -EINVAL, -ENOMEM (also: no QPN is free), or an error of qp_init(). */
int dev_qp_init(struct dev *dev, struct qp *qp, const struct qp_conf *conf, int engine,
	struct event_queue *events, void *object);
int dev_qp_modify(struct dev *dev, struct qp *qp, const struct qp_attr *attr, int mask);
/* Takes the lock of the QP's engine, and returns that engine, for engine_unlock(). Until RTR a QP
 * may change its engine. */
struct engine *dev_qp_lock(struct qp *qp);
void dev_qp_query(struct qp *qp, struct qp_attr *attr);
/* Copies the record of the QP's events. Returns false without conf.flight_recorder. */
bool dev_qp_events(struct qp *qp, struct flight_copy *copy);
/* Returns the extensions (EXT_*) that the QP has agreed on with its peer by ECE; before
 * dev_qp_agree(), also after RESET, those that it can use. Only RC and XRC QPs have
 * extensions: -EOPNOTSUPP. */
int dev_qp_extensions(struct qp *qp);
/* Sets those that the peer can use, too, in any state. Unknown ones are ignored. They are
 * in use from the next modification with IBV_QP_AV on, and until RESET. Returns 0 or
 * -EOPNOTSUPP. */
int dev_qp_agree(struct qp *qp, uint32_t extensions);
/* qp_count_by(), with the lock of the QP's engine. */
struct comp_cntr;
int dev_qp_count(struct qp *qp, struct comp_cntr *cntr, uint32_t ops);
/* Sends what the QP has posted, as far as a few passes of its engine can, removes it
 * from the engine and cleans its CQEs. It keeps its QPN and memory until dev_qp_fini(),
 * so that the caller can wait for its events. */
void dev_qp_stop(struct dev *dev, struct qp *qp, uint64_t now);
void dev_qp_fini(struct dev *dev, struct qp *qp);

/* Attaches the QP to the group; a second attachment has no effect. -EINVAL: not a UD QP,
 * or not a multicast GID; -ENOMEM: also above DEV_MAX_GROUPS, _MEMBERS, _ATTACHED, or above
 * a limit of the daemon. */
int dev_qp_attach(struct dev *dev, struct qp *qp, const uint8_t gid[16]);
/* -EINVAL: it is not attached. */
int dev_qp_detach(struct dev *dev, struct qp *qp, const uint8_t gid[16]);
/* Returns whether the QP is attached to any group. */
bool dev_qp_attached(struct dev *dev, const struct qp *qp);

/* XRC target QPs have several handles. Opens another handle of the QP with this number.
 * -EINVAL unless it is a target of this domain. */
int dev_qp_share(struct dev *dev, uint32_t qpn, uint32_t xrcd,
	struct qp_listener *listener, struct qp **out);
/* Closes a handle. Returns true if it was the last, and the QP is now stopped. */
bool dev_qp_unshare(
	struct dev *dev, struct qp *qp, struct qp_listener *listener, uint64_t now);
/* Adds a listener for the QP's events. dev_qp_unlisten() removes it, and so does stopping
 * the QP. */
void dev_qp_listen(struct qp *qp, struct qp_listener *listener);
void dev_qp_unlisten(struct dev *dev, struct qp_listener *listener);

/* Returns a number for a new XRC domain. */
uint32_t dev_xrcd_number(struct dev *dev);
/* Gives an XRC SRQ, whose pd, xrcd and cq are set, its number. From now on QPs of every
 * engine use it and its CQ. Returns 0 or -ENOMEM. */
int dev_srq_publish(struct dev *dev, struct srq *srq);
/* Undoes dev_srq_publish(). */
void dev_srq_withdraw(struct dev *dev, struct srq *srq);

/* Returns a number for a basic SRQ: of 24 bits, that no SRQ of the device has, and none by
 * which packets name an XRC SRQ. */
uint32_t dev_srq_number(struct dev *dev);
/* Add a complete SRQ to the device's list, and remove it. */
void dev_srq_add(struct dev *dev, struct srq *srq);
void dev_srq_remove(struct dev *dev, struct srq *srq);

int dev_srq_modify(struct dev *dev, struct srq *srq, struct srq_attr *attr, int mask);
/* srq_set_mbufs(). Engines show QPs their bursts from then on. */
int dev_srq_set_mbufs(struct dev *dev, struct srq *srq, const struct srq_mbufs *mbufs);

/* As key_free() and key_change(), one call at a time: a child of fork() finds none begun. */
int dev_key_free(struct dev *dev, uint32_t key);
int dev_key_change(
	struct dev *dev, uint32_t *key, int flags, const struct key_change *to);

/* As cq_replace(), with the locks of the CQ's engines held. A smaller CQ has to have room for the
 * completions of what was posted to UD and UC QPs before. */
int dev_cq_resize(struct dev *dev, struct cq *cq, uint32_t cqe, uint64_t now);

/* As cq_moderate(). */
void dev_cq_moderate(struct dev *dev, struct cq *cq, uint16_t count, uint16_t period_us);

/* The CQ is in error: moves its QPs to the error state, also those with nothing to
 * complete. */
void dev_cq_fail(struct dev *dev, struct cq *cq);

/* Local work queue catastrophic error (IBA 11.6.3): raises IBV_EVENT_QP_FATAL, and moves the QP to ERR. Not a QP
 * in RESET. */
void dev_qp_fail(struct dev *dev, struct qp *qp);

/* Makes the GID table. net: with the link-local address. */
void dev_gids_fill(const struct net_conf *net, uint8_t gids[DEV_GIDS][16]);
/* Sums the engines' counters. */
void dev_stats(struct dev *dev, struct port_stats *out);
/* Sums the engines' histograms. */
void dev_latencies(struct dev *dev, struct latencies *out);
/* Before the slowest requests are read: notes for each engine how its clock is related to
 * that of the wall now. Returns the latter. Any thread. */
uint64_t dev_slowest_begin(struct dev *dev);
/* As slowest_copy(), of an engine. */
unsigned dev_slowest(const struct dev *dev, unsigned engine, enum latency_type type,
	enum latency_op op, uint64_t wall_ns, struct slow_request copy[SLOWEST_KEPT]);
/* Calls fn for peers of all engines, at most max of them, with the lock of their engine
 * held. Returns how many there are. */
typedef void (*dev_peer_fn)(const struct peer_info *peer, void *arg);
unsigned dev_peers_each(struct dev *dev, unsigned max, dev_peer_fn fn, void *arg);

void dev_listen(
	struct dev *dev, struct dev_listener *listener, struct event_queue *events);
/* Removes the listener, and discards its events that were not read. */
void dev_unlisten(struct dev *dev, struct dev_listener *listener);
/* Notifies every listener. */
void dev_event(struct dev *dev, enum ibv_event_type event);

/* Polls the port's link, and notifies the listeners if it has changed. Returns whether it
 * is up. */
bool dev_link_up(struct dev *dev);
/* Has the link appear down from now on, or no longer, whatever the port says. */
void dev_link_cut(struct dev *dev, bool cut);
/* To be called after a thread has given the control engine something to send: for QP 1, ARP or
 * ND. Wakes it if it sleeps. */
void dev_control_wake(struct dev *dev);
/* As dev_link_up(), for an engine: never blocks. */
void dev_link_poll(struct dev *dev);

/* The device's port is gone for good: moves its QPs to the error state, which flushes all
 * that was posted, and raises IBV_EVENT_DEVICE_FATAL. */
void dev_fail(struct dev *dev);

/* Changes addresses and gateways while running. Returns 0 or -EINVAL. */
int dev_set_net(struct dev *dev, const struct net_conf *net);

#endif
