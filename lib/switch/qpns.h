/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The QPNs of a daemon: who owns each, and to whom it may send. Handed out upwards from a
 * base that differs from start to start, and reused oldest first, so that neither a
 * packet nor a peer's time-wait of an earlier life soon meets another QP.
 */
#ifndef ROCADE_SWITCH_QPNS_H
#define ROCADE_SWITCH_QPNS_H

#include "base/common.h"

struct sw_client;

struct sw_qp {
	struct sw_client *owner; /* NULL: free */
	uint8_t sgid[16];        /* of the registered peer: where from, where to */
	uint8_t dgid[16];
	uint32_t dest_qpn;
	bool peer;       /* a peer is registered */
	bool peer_local; /* and its address is ours */
	/* The next hop that it used last: valid for this generation of the neighbours. */
	bool hop_known;
	uint8_t hop_mac[6];
	uint8_t hop_dgid[16];
	uint32_t hop_generation;
};

struct qpns {
	struct sw_qp *qps; /* by QPN - base */
	uint32_t *free;    /* FIFO of free indices */
	uint32_t free_head, free_tail;
	uint32_t base;
	uint32_t mask;
};

/* count: a power of two; base..base+count-1 lies in 2..0xFFFFFE. -EINVAL, -ENOMEM. */
int
qpns_init(struct qpns *t, uint32_t base, uint32_t count);
void
qpns_fini(struct qpns *t);

/* A base for count QPNs, from a random number. */
uint32_t
qpns_base(uint64_t seed, uint32_t count);

/* The one that is free the longest; -ENOSPC. */
int
qpns_take(struct qpns *t, struct sw_client *owner, uint32_t *qpn);
void
qpns_give(struct qpns *t, uint32_t qpn);

/* NULL: outside of the table, or nobody's. */
static inline struct sw_qp *
qpns_find(const struct qpns *t, uint32_t qpn)
{
	uint32_t index = qpn - t->base;

	return index <= t->mask && t->qps[index].owner != NULL ? &t->qps[index] : NULL;
}

#endif
