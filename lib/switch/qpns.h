/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The QPNs of a daemon: the owner of each, and its registered peer.
 *
 * As many QPNs as there are entries are in use at a time. The low bits of a QPN are the
 * index of its entry. The high bits differ each time that the entry is used, so that in
 * the end all QPNs of 24 bits are used. When the high bits of an entry begin again, the
 * entry waits for QPN_WAIT_NS first. So this is the time after which a QPN gets another
 * owner at the earliest. Free entries hardly ever run out because of the wait.
 */
#ifndef ROCADE_SWITCH_QPNS_H
#define ROCADE_SWITCH_QPNS_H

#include <sys/queue.h>

#include "base/common.h"
#include "base/random.h"

#define QPN_WAIT_NS (60 * NS_PER_SEC)

struct sw_client;
struct sw_pair;
struct sw_remote;

struct sw_qp {
	/* Members read when the QP receives. */
	struct sw_client *owner; /* NULL: free */
	/* A number that no other QP, earlier or later, has. */
	uint64_t serial;
	/* of the registered peer, if that is a QP of the daemon; 0: no QP */
	uint64_t dest_serial;
	uint32_t qpn;      /* if free: the last one; 0: none yet */
	uint32_t dest_qpn; /* of the registered peer */
	bool peer;         /* a peer is registered */
	bool peer_local;   /* and the peer's address is one of the daemon's */
	/* It has packets in its queue of sw->wait_queues. Written by its owner's thread. */
	bool waiting;
	/* Packets wait for it, or have waited. Written by any thread. */
	bool awaited;
	/* The last next hop used: valid for this generation of the neighbour table. */
	bool hop_known;
	uint8_t hop_mac[6];
	uint32_t hop_generation;
	uint8_t dgid[16]; /* of the registered peer */

	uint8_t sgid[16]; /* own GID, registered together with the peer */
	uint8_t hop_dgid[16];
	LIST_ENTRY(sw_qp) link; /* in the owner's list */
	uint64_t waits_ns;      /* free: since when; counts in qpns.waiting */
	union {
		struct sw_remote
			*remote; /* the registered peer is a QP of another host */
		/* peer_local: what the owner and the peer's owner have; NULL: none */
		struct sw_pair *pair;
	};
} LINE_ALIGNED;
static_assert(sizeof(struct sw_qp) == 2 * LINE_SIZE, "the first line for receiving");

LIST_HEAD(sw_qp_list, sw_qp);

struct qpn_fifo { /* of indices */
	uint32_t *at;
	uint32_t head, tail;
};

struct qpns {
	struct sw_qp *qps; /* by QPN & mask */
	void *mem;         /* of qps */
	struct qpn_fifo free;
	struct qpn_fifo waiting; /* entries that wait for QPN_WAIT_NS; oldest first */
	struct random_numbers random;
	uint64_t serial; /* of the QP created last */
	uint32_t base;   /* 0: random QPNs; else the first one: they are used in order */
	uint32_t mask;   /* number of entries - 1 */
};

/* count: a power of two. With a base, base..base+count-1 lies in 2..0xFFFFFE. random:
 * secret key, not used with a base. Returns 0, -EINVAL or -ENOMEM. */
int qpns_init(
	struct qpns *t, uint32_t base, uint32_t count, const struct random_key *random);
void qpns_fini(struct qpns *t);

/* Takes a QPN for a QP of the owner, and adds it to the owner's list. Returns 0 or
 * -ENOSPC. */
int qpns_take(struct qpns *t, struct sw_client *owner, struct sw_qp_list *list,
	uint64_t now, uint32_t *qpn);
void qpns_give(struct qpns *t, struct sw_qp *qp, uint64_t now);

/* Returns how many QPNs can be taken, now or in QPN_WAIT_NS. */
static inline uint32_t
qpns_free_count(const struct qpns *t)
{
	return t->free.tail - t->free.head + t->waiting.tail - t->waiting.head;
}

/* Returns NULL if the QPN is not in use. */
static inline struct sw_qp *
qpns_find(const struct qpns *t, uint32_t qpn)
{
	struct sw_qp *qp = &t->qps[qpn & t->mask];

	return qp->qpn == qpn && qp->owner != NULL ? qp : NULL;
}

#endif
