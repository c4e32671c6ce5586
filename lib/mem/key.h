/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/*
 * The key table: maps an lkey or rkey (one value serves as both) to the memory that it
 * grants, the protection domain and the access rights (IBA 10.6). A key is index << 8 |
 * variant. The variant changes on every registration of an index, so a stale key does not
 * match. Indices and variants are in secret orders: a peer that was given one key cannot
 * compute the others.
 *
 * Registration and deregistration are control path, serialised by the table's lock. The
 * data path reads without a lock: a new entry is published by storing its key with
 * release. An entry that is freed or changed is first withdrawn: no lookup finds it any more.
 * Then key_free() waits for the readers that have found it (key_readers), without the table's
 * lock, before the entry or its memory is used again.
 */
#ifndef ROCADE_MEM_KEY_H
#define ROCADE_MEM_KEY_H

#include <infiniband/verbs.h>
#include <rte_spinlock.h>

#include "base/common.h"
#include "base/random.h"

#define KEY_CHUNK_BITS 10
#define KEY_CHUNK (1u << KEY_CHUNK_BITS)
#define KEY_CHUNKS 1024
#define KEY_BITS 20
#define KEY_MAX (1u << KEY_BITS) /* index 0 is never allocated */
static_assert(KEY_CHUNK * KEY_CHUNKS == KEY_MAX, "chunks for all indices");
/* Indices are taken in a random order from a group of this size, then from another group.
 * So few keys do not need all chunks. */
#define KEY_GROUP_BITS 16

struct key_entry {
	/* first address, as in work requests (iova); free entry: the next free index */
	uint64_t va;
	uint64_t len; /* bytes; 0: a valid, empty region; free entry: its last turn */
	/* process address of that first byte; memory window: its struct mw */
	uint8_t *host;
	/* 0: a free entry, or a memory window that is not bound; or KEY_WITHDRAWN */
	uint32_t key;
	uint32_t rights; /* PD << 8 | KEY_ACCESS_* */
};
static_assert(sizeof(struct key_entry) == 32, "two per cache line");
#define KEY_CHUNK_BYTES (KEY_CHUNK * (sizeof(struct key_entry) + sizeof(uint32_t)))

/* Access bits as in ibv_access_flags (IBV_ACCESS_LOCAL_WRITE to IBV_ACCESS_ZERO_BASED),
 * except FLUSH_GLOBAL and ON_DEMAND, which are remapped to bits 6 and 7. */
#define KEY_ACCESS_KEPT 0x3Fu
#define KEY_ACCESS_FLUSH_GLOBAL 0x40u
#define KEY_ACCESS_ON_DEMAND 0x80u
#define KEY_ACCESS_WRITES                                                                \
	((unsigned)(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |                   \
		    IBV_ACCESS_REMOTE_ATOMIC))
/* IBV_ACCESS_FLUSH_GLOBAL of newer headers. IBV_ACCESS_FLUSH_PERSISTENT is not
 * supported. */
#define ACCESS_FLUSH_GLOBAL (1u << 8)

/* Special values of the PD field, which no QP's PD equals. KEY_PD_MW: a memory window. */
#define KEY_PD_MW 0xFFFFFFu
/* a region whose memory is gone, see key_invalidate_at() */
#define KEY_PD_INVALIDATED 0xFFFFFEu
/* A bit of the PD field of on-demand regions: to the checks of accesses they belong to
 * another PD. So other regions are checked for nothing more. */
#define KEY_PD_ON_DEMAND 0x800000u
#define KEY_PD_MAX (KEY_PD_ON_DEMAND - 1)

/* Waits until each reader that may have looked a key up before the call has stopped using what it
 * found. Without await there are no readers in other threads. */
struct key_readers {
	void (*await)(void *arg);
	void *arg;
};

/* The key of an entry that is withdrawn while its readers are waited for: no lookup finds it, because it has
 * index 0. Its region is still accessed. */
#define KEY_WITHDRAWN 1u

/* A bit of the count of memory windows: the region is being freed or changed. No window is bound to
 * it meanwhile. */
#define KEY_LEAVING (1u << 31)

struct key_table {
	/* Allocated on demand, never moved. KEY_CHUNK entries, then KEY_CHUNK counts
	 * (uint32_t) of the memory windows bound to each: KEY_CHUNK_BYTES. */
	struct key_entry *chunks[KEY_CHUNKS];
	rte_spinlock_t lock;
	uint32_t used;        /* keys in use */
	uint32_t regions;     /* keys in use by regions */
	uint32_t regions_max; /* upper limit of regions */
	uint32_t fresh;       /* next place in the order of indices never used */
	uint32_t free_head; /* freed indices, oldest first, linked through va; 0: none */
	uint32_t free_tail;
	uint32_t free_count;
	/* Of the orders of indices and variants. Others at each start, so that keys of an
	 * earlier process do not match. */
	struct random_key index_key, variant_key;
	struct key_readers readers; /* set before the first key_free() */
};

void key_table_init(struct key_table *t, const struct random_key *key);
/* All keys must have been freed (asserted). */
void key_table_fini(struct key_table *t);

/* Returns whether a region can have these IBV_ACCESS_*. */
bool key_access_valid(unsigned access);

/*
 * Registers a region and returns its key in *key. access: IBV_ACCESS_*; optional bits
 * (IBV_ACCESS_OPTIONAL_RANGE) are ignored. Returns 0; -ENOMEM, also if regions_max
 * regions exist; or -EINVAL: if the region exceeds 2^64 (it may end there), if access
 * asks for remote write or atomic without local write (ibv_reg_mr(3)) or has a bit that
 * an entry cannot hold, if pd exceeds KEY_PD_MAX, or if host is NULL and len is not 0: except
 * IBV_ACCESS_ON_DEMAND with va 0 and len UINT64_MAX, for all memory of the process.
 *
 * Freed indices are reused in FIFO order. While never-used indices remain, a freed index
 * waits until KEY_CHUNK indices are free. A stale key therefore matches again after about
 * KEY_CHUNK * 256 registrations at the earliest.
 */
int key_alloc(struct key_table *t, uint32_t pd, uint64_t va, void *host, uint64_t len,
	unsigned access, uint32_t *key);

/* Deregisters a region. -EINVAL if key is not that of a region, -EBUSY while memory
 * windows are bound to it. When it returns no reader uses the region's memory. The caller holds no
 * lock that a reader may wait for. */
int key_free(struct key_table *t, uint32_t key);

/*
 * key_change() changes a region (ibv_rereg_mr(3)). flags: IBV_REREG_MR_*; only the fields
 * that flags select are read. A new PD or translation changes the variant: *key is then
 * the new key, and the old one is refused. Returns the errors of key_alloc() and
 * key_free(), or -EFAULT after key_invalidate_at(); on error nothing has changed. When it
 * returns no reader uses the memory, the PD or the rights of before. The caller holds no lock that a
 * reader may wait for.
 */
struct key_change {
	uint32_t pd;
	unsigned access;
	uint64_t va;
	void *host;
	uint64_t len;
};
int key_change(
	struct key_table *t, uint32_t *key, int flags, const struct key_change *to);

/* Returns the memory of a region of this PD. -ENOENT: there is none with this key. */
int key_memory(struct key_table *t, uint32_t key, uint32_t pd, const uint8_t **host,
	uint64_t *len);

/* Checks a range of an on-demand region for ibv_advise_mr(3), and returns its memory in *host.
 * write: the region must permit writes. -ENOENT: there is no on-demand region with this key;
 * -EINVAL: a memory window; -EPERM: a region of another PD, or without local write; -EFAULT: the
 * range is not within the region. */
int key_on_demand(struct key_table *t, uint32_t key, uint32_t pd, uint64_t va,
	uint64_t len, bool write, uintptr_t *host);

/* The memory at host is no longer mapped: invalidates every region that contains this
 * byte, but on-demand ones. Returns whether there was one. Async-signal-safe: takes no lock and
 * stores one word per region. */
bool key_invalidate_at(struct key_table *t, const void *host);

/* ---- For memory windows, which share the index space ---- */

/* Reserves an index whose entry refers to object and has no key yet. -ENOMEM. */
int key_reserve(struct key_table *t, void *object, uint32_t *key);
/* Frees a reserved index. key: the last key of that index. The caller holds all engine
 * locks. */
void key_release(struct key_table *t, uint32_t key);
/* Returns the object passed to key_reserve() for this index, or NULL if the index is not
 * that of a memory window. */
void *key_object(const struct key_table *t, uint32_t key);
/* Returns the entry of a key's index, whichever key it has now. NULL: no such index. */
struct key_entry *key_entry(const struct key_table *t, uint32_t key);
/* Returns the count of memory windows bound to a region, and KEY_LEAVING. Access it atomically:
 * several engines bind. */
uint32_t *key_mw_count(const struct key_table *t, uint32_t key);

/* Returns the live entry of a key, else NULL. */
static inline const struct key_entry *
key_find(const struct key_table *t, uint32_t key)
{
	uint32_t index = key >> 8;
	const struct key_entry *chunk;

	/* Index 0 wraps around and is rejected too: key 0 would match a free entry. */
	if (unlikely(index - 1 >= KEY_MAX - 1))
		return NULL;
	/* Pairs with the release in chunk_present() of key_index.c. */
	chunk = __atomic_load_n(&t->chunks[index >> KEY_CHUNK_BITS], __ATOMIC_ACQUIRE);
	if (unlikely(chunk == NULL))
		return NULL;
	chunk += index & (KEY_CHUNK - 1);
	/* Pairs with the releases in key_alloc(), entry_replace() and mw_bind_to(). */
	return likely(__atomic_load_n(&chunk->key, __ATOMIC_ACQUIRE) == key) ? chunk
									     : NULL;
}

/* The rights of an entry whose key was looked up may change: a check loads them once. */
static inline uint32_t
key_rights(const struct key_entry *e)
{
	return __atomic_load_n(&e->rights, __ATOMIC_RELAXED);
}

/* Returns the PD of a region with these rights. */
static inline uint32_t
key_pd(uint32_t rights)
{
	uint32_t pd = rights >> 8;

	return rights & KEY_ACCESS_ON_DEMAND ? pd & ~KEY_PD_ON_DEMAND : pd;
}

static inline bool
key_entry_holds(const struct key_entry *e, uint64_t va, uint64_t len)
{
	uint64_t offset = va - e->va;

	return va >= e->va && offset <= e->len && len <= e->len - offset;
}

/* The check of an access for an entry that is not plainly of the PD: an on-demand region of it may
 * pass. Touches that many bytes from va on (on_demand.h). e may be NULL. */
uint8_t *key_on_demand_check(const struct key_entry *e, uint32_t pd, uint64_t va,
	uint64_t len, uint64_t touch, unsigned need);

static inline uint8_t *
key_entry_check(const struct key_entry *e, uint32_t rights, uint64_t va, uint64_t len,
	unsigned need)
{
	if (unlikely((rights & need) != need || !key_entry_holds(e, va, len)))
		return NULL;
	return e->host + (va - e->va);
}

/*
 * Checks a local access. The key must be live and of this PD, must grant all of need
 * (KEY_ACCESS_* bits; 0 asks for local read), and [va, va + len) must lie inside the
 * region without wrapping (C10-56). Returns the host address, or NULL if a check fails.
 * len 0 passes anywhere inside or at the end of the region. Memory windows never pass. The
 * first bytes of an on-demand region, as many as touch says, must be there.
 */
static inline uint8_t *
key_check_part(const struct key_table *t, uint32_t key, uint32_t pd, uint64_t va,
	uint64_t len, uint64_t touch, unsigned need)
{
	const struct key_entry *e = key_find(t, key);
	uint32_t rights = likely(e != NULL) ? key_rights(e) : 0;

	if (unlikely(e == NULL || rights >> 8 != pd))
		return key_on_demand_check(e, pd, va, len, touch, need);
	return key_entry_check(e, rights, va, len, need);
}

/* For an access to all the bytes at once. */
static inline uint8_t *
key_check(const struct key_table *t, uint32_t key, uint32_t pd, uint64_t va, uint64_t len,
	unsigned need)
{
	return key_check_part(t, key, pd, va, len, len, need);
}

/* Returns whether key belongs to a region of this PD that grants all of need. */
static inline bool
key_grants(const struct key_table *t, uint32_t key, uint32_t pd, unsigned need)
{
	const struct key_entry *e = key_find(t, key);
	uint32_t rights = e != NULL ? key_rights(e) : 0;

	return e != NULL && key_pd(rights) == pd && (rights & need) == need;
}

#endif
