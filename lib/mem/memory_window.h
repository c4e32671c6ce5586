/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/*
 * Memory windows (IBA 10.6.7). A memory window grants access to a part of a region by a
 * key and rights of its own, which work requests set and revoke. Type 1 serves every QP
 * of its PD and may be rebound at any time. Type 2 (IBA type 2B) serves only the QP that
 * bound it and must be invalidated before it is bound again.
 *
 * Bind and invalidate run under the lock of one engine while other engines may look the
 * key up. The binding is therefore written between two stores of the entry's key: 0, then
 * the new key. A reader checks the key before and after it reads the binding. It gets the
 * binding of its key, or is refused. A single store of 0 invalidates. A copy that another
 * engine began before that store may finish after it, like a packet that arrived earlier.
 * The region's memory stays valid meanwhile, because deregistration waits for the passes of
 * all engines.
 */
#ifndef ROCADE_MEM_MEMORY_WINDOW_H
#define ROCADE_MEM_MEMORY_WINDOW_H

#include <sys/queue.h>

#include "mem/key.h"

struct mw {
	/* type 2, bound: in the QP's list, protected by the lock of the QP's engine */
	LIST_ENTRY(mw) link;
	uint32_t pd;
	uint32_t rkey; /* last key, bound or not */
	uint32_t *
		shown; /* the key that the application sees, which a post sets; or NULL */
	bool type2;
	uint8_t busy; /* set while an engine binds */
	/* The binding. */
	uint32_t parent; /* the region's key; 0: not bound */
	uint32_t qpn;    /* type 2 */
	uint32_t access;
	uint64_t va;
	uint64_t len;
	uint8_t *host;
};
LIST_HEAD(mw_list, mw);

struct mw_bind {
	uint32_t rkey;   /* the new key; its index selects the memory window */
	uint32_t parent; /* the region's key */
	uint64_t va;     /* first byte, as an address of the region */
	uint64_t len;    /* bytes; type 1: 0 unbinds */
	unsigned access; /* IBV_ACCESS_* */
};

/* Creates an unbound memory window. -ENOMEM. */
int mw_create(struct key_table *t, uint32_t pd, bool type2, struct mw **out);
/* Unbinds first if necessary. The caller holds all engine locks. */
void mw_destroy(struct key_table *t, struct mw *mw);

/* Binds for QP qpn of PD pd. list: the QP's bound windows of type 2. On -EINVAL nothing
 * has changed. */
int mw_bind(struct key_table *t, uint32_t pd, uint32_t qpn, struct mw_list *list,
	const struct mw_bind *bind);

/* Returns whether this QP may invalidate rkey: a type 2 memory window that it has
 * bound. */
bool mw_may_invalidate(const struct key_table *t, uint32_t qpn, uint32_t rkey);
/* Invalidates rkey. -EINVAL if the QP may not. */
int mw_invalidate(struct key_table *t, uint32_t qpn, uint32_t rkey);
/* Invalidates all type 2 memory windows that a QP has bound. */
void mw_invalidate_all(struct key_table *t, struct mw_list *list);

/* An access that a peer requests. */
struct mw_use {
	uint64_t va, len;
	uint64_t touch; /* how many of the bytes are accessed at once */
	uint32_t key;
	uint32_t pd, qpn; /* of the QP that got the request */
	unsigned need;    /* KEY_ACCESS_* */
};

/* The part of key_check_remote() for a bound memory window. */
uint8_t *mw_check(
	const struct key_table *t, const struct key_entry *e, struct mw_use use);

/* As key_check(), for the request of a peer to QP qpn. A bound memory window passes too,
 * one of type 2 only through the QP that bound it. touch: how many of the bytes the caller is
 * going to access at once. */
static inline uint8_t *
key_check_remote(const struct key_table *t, uint32_t key, uint32_t pd, uint32_t qpn,
	uint64_t va, uint64_t len, uint64_t touch, unsigned need)
{
	const struct key_entry *e = key_find(t, key);
	uint32_t rights;

	if (unlikely(e == NULL))
		return NULL;
	rights = key_rights(e);
	if (unlikely(rights >> 8 != pd)) {
		if (rights >> 8 != KEY_PD_MW)
			return key_on_demand_check(e, pd, va, len, touch, need);
		return mw_check(
			t, e, (struct mw_use){va, len, touch, key, pd, qpn, need});
	}
	return key_entry_check(e, rights, va, len, need);
}

#endif
