/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The QPNs of a daemon: the owner of each, and its registered peer. Their base differs at
 * each start.
 */
#ifndef ROCADE_SWITCH_QPNS_H
#define ROCADE_SWITCH_QPNS_H

#include "base/qpn_pool.h"

struct sw_client;

struct sw_qp {
	struct sw_client *owner; /* NULL: free */
	uint8_t sgid[16];        /* own GID, registered together with the peer */
	uint8_t dgid[16];        /* of the registered peer */
	uint32_t dest_qpn;       /* of the registered peer */
	bool peer;               /* a peer is registered */
	bool peer_local;         /* and the peer's address is one of the daemon's */
	/* The last next hop used: valid for this generation of the neighbour table. */
	bool hop_known;
	uint8_t hop_mac[6];
	uint8_t hop_dgid[16];
	uint32_t hop_generation;
};

struct qpns {
	struct sw_qp *qps; /* by QPN - pool.base */
	struct qpn_pool pool;
};

/* As qpn_pool_init(). */
int qpns_init(struct qpns *t, uint32_t base, uint32_t count);
void qpns_fini(struct qpns *t);

/* Takes the QPN that has been free longest. Returns 0 or -ENOSPC. */
int qpns_take(struct qpns *t, struct sw_client *owner, uint32_t *qpn);
void qpns_give(struct qpns *t, uint32_t qpn);

/* Returns NULL if the QPN is not in the table or is free. */
static inline struct sw_qp *
qpns_find(const struct qpns *t, uint32_t qpn)
{
	uint32_t index = qpn - t->pool.base;

	return index <= t->pool.mask && t->qps[index].owner != NULL ? &t->qps[index]
								    : NULL;
}

#endif
