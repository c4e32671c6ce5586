/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory windows (IBA 10.6.7): a key of its own for a part of a region, with rights of
 * its own, given and taken by work requests. Type 1 is good for every QP of its PD and is
 * bound anew as often as one likes; type 2 (the IBA's 2B) is good for the QP that bound
 * it alone, and is bound only while it is not.
 *
 * Binding and invalidating run inside one engine's gate, while other engines may be
 * looking the key up. What is bound is therefore written between two stores of the
 * entry's key, 0 and the new one, and who reads it looks at the key before and after: it
 * either gets what belongs to its key or is refused. So one store of 0 invalidates. A
 * copy that another engine began before may still end after it, as a packet that came
 * earlier would have; the memory under it stays, for deregistration passes all gates.
 */
#ifndef ROCADE_MEM_WINDOW_H
#define ROCADE_MEM_WINDOW_H

#include <sys/queue.h>

#include "mem/key.h"

struct window {
	LIST_ENTRY(window)
	link; /* type 2, bound: of its QP, whose engine owns the link */
	uint32_t pd;
	uint32_t rkey; /* the last it had, bound or not */
	bool type2;
	uint8_t busy; /* an engine binds or invalidates it */
	/* Bound. */
	uint32_t parent; /* the region's key; 0: not bound */
	uint32_t qpn;    /* type 2 */
	uint32_t access;
	uint64_t va;
	uint64_t len;
	uint8_t *host;
};
LIST_HEAD(window_list, window);

struct window_bind {
	uint32_t rkey;   /* from now on; its index says which window */
	uint32_t parent; /* the region's key */
	uint64_t va;     /* the first byte, as the region numbers them */
	uint64_t len;    /* type 1: 0 unbinds */
	unsigned access; /* IBV_ACCESS_* */
};

/* Not bound. -ENOMEM. */
int
window_create(struct key_table *t, uint32_t pd, bool type2, struct window **out);
/* Bound or not. The caller holds every gate. */
void
window_destroy(struct key_table *t, struct window *w);

/* For QP qpn of PD pd, whose type 2 windows are in list. -EINVAL and nothing has changed.
 */
int
window_bind(struct key_table *t, uint32_t pd, uint32_t qpn, struct window_list *list,
	const struct window_bind *bind);

/* Whether this QP may invalidate rkey: a type 2 window that it has bound. */
bool
window_valid(const struct key_table *t, uint32_t qpn, uint32_t rkey);
/* -EINVAL when it may not. */
int
window_invalidate(struct key_table *t, uint32_t qpn, uint32_t rkey);
/* All of a QP's. */
void
window_invalidate_all(struct key_table *t, struct window_list *list);

#endif
