/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A device: one port with its addresses, keys, QPs and engines. What lib/verbs shows as
 * an ibv_device. All calls here are control path; they take the gates they need
 * themselves.
 */
#ifndef ROCADE_ENGINE_DEV_H
#define ROCADE_ENGINE_DEV_H

#include <pthread.h>

#include "base/slab.h"
#include "mem/key.h"
#include "port/neigh.h"
#include "port/port.h"
#include "qp/qp.h"
#include "qp/qp_table.h"

#define DEV_MAX_ENGINES 16
#define DEV_GIDS 16
#define DEV_NAME_MAX 64
#define DEV_MAX_GROUPS 1024	 /* multicast groups with a QP attached */
#define DEV_MAX_MEMBERS 1024	 /* QPs of one group */
#define DEV_MAX_ATTACHED 65536 /* QPs of all groups together */
#define DEV_GROUP_BUCKETS 256

struct engine;
struct gsi;

/* A UD QP that is attached to a group. */
struct member {
	LIST_ENTRY(member) link;
	struct qp *qp;
};

struct group {
	LIST_ENTRY(group) link; /* of its bucket */
	LIST_HEAD(, member) members;
	uint32_t count;
	uint8_t gid[16];
};
LIST_HEAD(group_list, group);

/*
 * For a device whose port is somebody's who wants to know of its QPs and resolves neighbours
 * itself: the daemon. Control path, outside of the gates; 0 or -errno.
 */
struct dev_hooks {
	int (*qpn_take)(void *arg, uint32_t *qpn);
	void (*qpn_give)(void *arg, uint32_t qpn);
	int (*peer_set)(void *arg, uint32_t qpn, const uint8_t sgid[16], const uint8_t dgid[16],
		uint32_t dest_qpn);
	int (*group)(void *arg, uint32_t qpn, const uint8_t gid[16], bool join);
};

/* Of so many the acknowledgements of single messages are half of all packets. */
#define QUIET_QPS 128

struct dev_conf {
	const struct dev_hooks *hooks; /* NULL: none. QPNs are qpn_base..+max_qp-1 then too */
	void *hooks_arg;
	char name[DEV_NAME_MAX];
	struct net_conf
		net;       /* without the MAC: the port's is taken; link-local is added */
	uint32_t mtu;      /* IP MTU, 576..9000 */
	uint32_t qpn_base; /* first QPN, 2..0xFFFFFE; 0: random */
	uint32_t max_qp;   /* 1..2^17 */
	uint32_t peer_window; /* packets; 0: half of the port's receive ring */
	uint32_t quiet_qps; /* towards one peer: from so many on not each message is
			       acknowledged; 0: QUIET_QPS */
	/* What its owner grants of them, 0: all. Hooks see to the QPs. */
	uint32_t qps_granted;
	uint32_t mrs_granted;
};

enum dev_event {
	DEV_EVENT_ACTIVE, /* the link came up */
	DEV_EVENT_DOWN,
	DEV_EVENT_GIDS, /* the addresses are others */
	DEV_EVENT_FATAL, /* dev_fail() */
	DEV_EVENT_COUNT
};

/* Somebody who is told of them: a context. */
struct dev_listener {
	LIST_ENTRY(dev_listener) link;
	struct async_event events;
};

struct dev {
	struct dev_conf conf;
	struct port port;
	struct net *net;
	struct key_table keys;
	struct qp_table qps;
	struct srq_table srqs; /* XRC SRQs */
	LIST_HEAD(, srq) srq_list; /* all of them */
	uint32_t next_xrcd;
	struct slab slab;
	struct alloc mem; /* from it: QPs and rings */
	unsigned engine_count;
	struct engine *engines[DEV_MAX_ENGINES];
	uint32_t next_engine; /* for the next QP */
	uint64_t guid;        /* EUI-64 of the MAC, host order */
	enum ibv_mtu active_mtu;
	uint8_t gids[DEV_GIDS][16]; /* all zero: empty slot */
	uint32_t next_pd;
	struct gsi *gsi; /* QP 1, NULL: nobody's. Changed with every gate held */
	/* Changed with every gate held, read with one. */
	struct group_list groups[DEV_GROUP_BUCKETS];
	uint32_t group_count;
	uint32_t attached_count;
	pthread_mutex_t lock; /* control calls that change QPs, attachments, addresses */
	pthread_mutex_t link_lock; /* the two below; the last to be taken but for net's */
	LIST_HEAD(, dev_listener) listeners;
	bool link_up; /* as last looked at */
};

/* Takes the port over (closed by dev_destroy). One engine per queue of it. -EINVAL,
 * -ENOMEM. */
int
dev_create(const struct dev_conf *conf, const struct port *port, const struct alloc *mem,
	struct dev **out);
/* No QP left (asserted); nobody polls its engines any more. */
void
dev_destroy(struct dev *dev);

/* Every engine's gate, in order; what runs in between runs alone. Passing them once is
 * also the grace period after which nothing unpublished is in use any more. */
void
dev_gates_lock(struct dev *dev);
void
dev_gates_unlock(struct dev *dev);

/* engine: index, or -1 for the next in turn. Attaches to CQs and SRQ. */
int
dev_qp_create(struct dev *dev, const struct qp_conf *conf, int engine,
	struct event_queue *events, void *object, struct qp **out);
int
dev_qp_modify(struct dev *dev, struct qp *qp, const struct qp_attr *attr, int mask);
void
dev_qp_query(struct dev *dev, struct qp *qp, struct qp_attr *attr);
/* Gone from the engine and its CQEs purged, but still allocated: events can be awaited.
 */
void
dev_qp_stop(struct dev *dev, struct qp *qp);
void
dev_qp_free(struct dev *dev, struct qp *qp);

/* The QP receives what is sent to the group. Once more is once. -EINVAL: not a UD QP, not
 * a multicast GID; -ENOMEM: also above DEV_MAX_GROUPS, _MEMBERS, _ATTACHED. */
int
dev_qp_attach(struct dev *dev, struct qp *qp, const uint8_t gid[16]);
/* -EINVAL: it is not attached. */
int
dev_qp_detach(struct dev *dev, struct qp *qp, const uint8_t gid[16]);
/* To any group. */
bool
dev_qp_attached(struct dev *dev, const struct qp *qp);

/* XRC targets are shared. Another handle of the QP with this number: -EINVAL unless it is a
 * target of this domain. */
int
dev_qp_share(struct dev *dev, uint32_t qpn, uint32_t xrcd, struct qp_watch *watch,
	struct qp **out);
/* A handle less: true when it was the last, and the QP is stopped. */
bool
dev_qp_unshare(struct dev *dev, struct qp *qp, struct qp_watch *watch);
/* Tells of the QP's events too, as long as it lasts; from its destruction on, or this, no
 * more. */
void
dev_qp_watch(struct dev *dev, struct qp *qp, struct qp_watch *watch);
void
dev_qp_unwatch(struct dev *dev, struct qp_watch *watch);

/* A number for an XRC domain. */
uint32_t
dev_xrcd_number(struct dev *dev);
/* An XRC SRQ, its pd, xrcd and cq set, gets its number, and QPs of every engine use it and
 * its CQ from now on. -ENOMEM. */
int
dev_srq_publish(struct dev *dev, struct srq *srq);
/* No longer. */
void
dev_srq_withdraw(struct dev *dev, struct srq *srq);

/* An SRQ that is complete is the device's, until it goes. */
void
dev_srq_list(struct dev *dev, struct srq *srq);
void
dev_srq_unlist(struct dev *dev, struct srq *srq);

int
dev_srq_modify(struct dev *dev, struct srq *srq, struct srq_attr *attr, int mask);

/* As cq_replace(). */
int
dev_cq_resize(struct dev *dev, struct cq *cq, uint32_t cqe);

/* key_change() behind all gates. */
int
dev_key_change(
	struct dev *dev, uint32_t *key, int flags, const struct key_change *to);

/* The CQ is in error: so are its QPs, those too that have nothing to complete now. */
void
dev_cq_fail(struct dev *dev, struct cq *cq);

/* Deregisters: returns when no engine can touch the region any more. -EINVAL. */
int
dev_key_free(struct dev *dev, uint32_t key);

/* Sums the engines' counters. */
void
dev_stats(struct dev *dev, struct port_stats *out);

void
dev_listen(struct dev *dev, struct dev_listener *listener, struct event_queue *events);
/* Takes back what was not read. */
void
dev_unlisten(struct dev *dev, struct dev_listener *listener);
/* Tells every listener. */
void
dev_event(struct dev *dev, enum dev_event event);

/* Looks at the port, and tells the listeners when its link has changed. */
bool
dev_link_up(struct dev *dev);
/* The same for an engine: never waits. */
void
dev_link_poll(struct dev *dev);

/* Changes addresses and gateways while running. */
int
dev_set_net(struct dev *dev, const struct net_conf *net);

#endif
