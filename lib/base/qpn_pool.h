/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Free QPNs. They are assigned upwards from a base and reused oldest first. So a delayed
 * packet, or a connection that a peer keeps in time wait, is not soon mistaken for one of
 * another QP.
 */
#ifndef ROCADE_BASE_QPN_POOL_H
#define ROCADE_BASE_QPN_POOL_H

#include "base/common.h"

struct qpn_pool {
	uint32_t *free; /* FIFO of free indices */
	uint32_t free_head, free_tail;
	uint32_t base;
	uint32_t mask; /* number of QPNs - 1 */
};

/* count: a power of two; base..base+count-1 lies in 2..0xFFFFFE. Returns 0, -EINVAL or
 * -ENOMEM. */
int qpn_pool_init(struct qpn_pool *p, uint32_t base, uint32_t count);
void qpn_pool_fini(struct qpn_pool *p);

/* Chooses a base for count QPNs from a random number: a peer may still hold state of QPs
 * that had this address before. */
uint32_t qpn_pool_base(uint64_t random, uint32_t count);

/* Takes the QPN that has been free longest. Returns 0 or -ENOSPC. */
int qpn_pool_take(struct qpn_pool *p, uint32_t *qpn);
void qpn_pool_give(struct qpn_pool *p, uint32_t qpn);
/* As qpn_pool_give(), but the next qpn_pool_take() takes it. */
void qpn_pool_give_first(struct qpn_pool *p, uint32_t qpn);

static inline uint32_t
qpn_pool_free_count(const struct qpn_pool *p)
{
	return p->free_tail - p->free_head;
}

#endif
