/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A ring of descriptors between two processes that do not trust each other: one producer,
 * one consumer. Mask, size and own index are private to each side. The peer's index is
 * read from shared memory and bounded each time. A descriptor is copied out once, and the
 * copy is what is checked: the ring's content can change at any moment.
 */
#ifndef ROCADE_SWITCH_RING_H
#define ROCADE_SWITCH_RING_H

#include "base/common.h"

struct ring_desc {
	uint32_t buf; /* index into the buffer pool */
	/* client to daemon: the sending QP; to a client: 0, or the QP that has asked */
	uint32_t qpn;
	uint16_t len;   /* bytes of the frame */
	uint16_t flags; /* RING_* */
	uint32_t mark;  /* RING_ASK */
};
static_assert(sizeof(struct ring_desc) == 16, "4 descriptors per cache line");

#define RING_CKSUM_OK 0x1 /* the IPv4 header checksum has been computed or checked */
#define RING_ASK 0x2      /* no packet: a question of a QP, or the answer (sw_ask.h) */

/*
 * The indices run freely. Each lies in memory that only its writer can write: that of the
 * producer beside the descriptors, that of the consumer in memory of the consumer.
 */
struct ring_prod {
	uint32_t *prod_shown;       /* the index, for the peer */
	const uint32_t *cons_shown; /* the peer's */
	struct ring_desc *desc;
	uint32_t mask;
	uint32_t prod;      /* written, published or not */
	uint32_t published; /* shown to the peer */
	uint32_t cons_seen;
};

struct ring_cons {
	const uint32_t *prod_shown; /* the peer's index */
	uint32_t *cons_shown;       /* the index, for the peer */
	const struct ring_desc *desc;
	uint32_t mask;
	uint32_t cons;
	uint32_t prod_seen;
};

/* slots: a power of two. Both sides start while the indices that are shown are 0. */
static inline void
ring_prod_init(struct ring_prod *r, uint32_t *prod_shown, const uint32_t *cons_shown,
	struct ring_desc *desc, uint32_t slots)
{
	*r = (struct ring_prod){.prod_shown = prod_shown,
		.cons_shown = cons_shown,
		.desc = desc,
		.mask = slots - 1};
}

static inline void
ring_cons_init(struct ring_cons *r, const uint32_t *prod_shown, uint32_t *cons_shown,
	const struct ring_desc *desc, uint32_t slots)
{
	*r = (struct ring_cons){.prod_shown = prod_shown,
		.cons_shown = cons_shown,
		.desc = desc,
		.mask = slots - 1};
}

/* Reads the consumer's index. Returns false if it is invalid: the ring is then
 * unusable. */
static inline bool
ring_prod_refresh(struct ring_prod *r)
{
	/* Pairs with the release in ring_release(): the buffers before it are free. */
	uint32_t cons = __atomic_load_n(r->cons_shown, __ATOMIC_ACQUIRE);

	/* It moves forwards, and not past what was published. */
	if (unlikely(cons - r->cons_seen > r->published - r->cons_seen))
		return false;
	r->cons_seen = cons;
	return true;
}

/* Free slots, as of the last ring_prod_refresh(). */
static inline uint32_t
ring_room(const struct ring_prod *r)
{
	return r->mask + 1 - (r->prod - r->cons_seen);
}

/* The caller has checked that there is room. */
static inline void
ring_put(struct ring_prod *r, const struct ring_desc *desc)
{
	r->desc[r->prod & r->mask] = *desc;
	r->prod++;
}

static inline void
ring_publish(struct ring_prod *r)
{
	/* Pairs with the acquire in ring_cons_refresh(). */
	__atomic_store_n(r->prod_shown, r->prod, __ATOMIC_RELEASE);
	r->published = r->prod;
}

/* Reads the producer's index. Returns false if it is invalid. */
static inline bool
ring_cons_refresh(struct ring_cons *r)
{
	/* Pairs with the release in ring_publish(). */
	uint32_t prod = __atomic_load_n(r->prod_shown, __ATOMIC_ACQUIRE);

	if (unlikely(prod - r->cons > r->mask + 1 ||
		     prod - r->cons < r->prod_seen - r->cons))
		return false;
	r->prod_seen = prod;
	return true;
}

/* Descriptors to be taken, as of the last ring_cons_refresh(). */
static inline uint32_t
ring_count(const struct ring_cons *r)
{
	return r->prod_seen - r->cons;
}

/* Copies the descriptor at this offset from the first one; loads each word once. */
static inline struct ring_desc
ring_peek(const struct ring_cons *r, uint32_t ahead)
{
	const volatile uint64_t *words =
		(const volatile uint64_t *)&r->desc[(r->cons + ahead) & r->mask];
	uint64_t copy[2] = {words[0], words[1]};
	struct ring_desc desc;

	__builtin_memcpy(&desc, copy, sizeof(desc));
	return desc;
}

/* Returns the first n descriptors and their buffers to the producer. */
static inline void
ring_release(struct ring_cons *r, uint32_t n)
{
	r->cons += n;
	/* Pairs with the acquire in ring_prod_refresh(). */
	__atomic_store_n(r->cons_shown, r->cons, __ATOMIC_RELEASE);
}

#endif
