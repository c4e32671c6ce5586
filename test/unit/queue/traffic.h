/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads that post to a receive ring and take from it. Every WQE carries its number and
 * content derived from it. Each taker must see increasing numbers, and all takers
 * together each number once. */
#ifndef ROCADE_TEST_QUEUE_TRAFFIC_H
#define ROCADE_TEST_QUEUE_TRAFFIC_H

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "queue/recv_ring.h"

#include "../rand.h"
#include "fixture.h"

/* ---- One WQE ---- */

#define NUM_SHIFT 56
#define WQE_NUMBER(wr_id) ((wr_id) & ((UINT64_C(1) << NUM_SHIFT) - 1))

static inline struct sge
wqe_sge(uint64_t number, uint32_t i)
{
	uint64_t state = number * RECV_MAX_SGE + i;

	return (struct sge){.addr = rand_next(&state),
		.len = (uint32_t)rand_next(&state),
		.lkey = (uint32_t)number};
}

static inline void
wqe_fill(struct recv_slot *slot, uint64_t number, uint32_t num_sge)
{
	slot->wr_id = (uint64_t)num_sge << NUM_SHIFT | number;
	slot->num_sge = num_sge;
	for (uint32_t i = 0; i < num_sge; i++)
		slot->sge[i] = wqe_sge(number, i);
}

/* Whether the WQE is what wqe_fill() wrote. */
static inline bool
wqe_right(const struct recv_wqe *wqe)
{
	if (wqe->num_sge != wqe->wr_id >> NUM_SHIFT || wqe->num_sge > RECV_MAX_SGE)
		return false;
	for (uint32_t i = 0; i < wqe->num_sge; i++) {
		struct sge sge = wqe_sge(WQE_NUMBER(wqe->wr_id), i);

		if (memcmp(&wqe->sge[i], &sge, sizeof(sge)) != 0)
			return false;
	}
	return true;
}

/* Posts one WQE; false: the ring is full. */
static inline bool
ring_post(struct recv_ring *r, uint64_t number, uint32_t num_sge)
{
	struct recv_slot *slot;

	recv_ring_lock(r);
	slot = recv_ring_next(r, r->prod);
	if (slot != NULL) {
		wqe_fill(slot, number, num_sge);
		recv_ring_publish(r, r->prod + 1);
	}
	recv_ring_unlock(r);
	return slot != NULL;
}

/* ---- Threads ---- */

#define POSTERS 2
#define TAKERS_MAX ENGINE_LOCKS

struct traffic {
	struct recv_ring *ring;
	int (*take)(void *arg, struct recv_wqe *out);
	void *take_arg;
	unsigned takers;
	bool waves;     /* fill up, then let the ring run empty, and so on */
	uint64_t total; /* posters stop there, or at traffic_stop() */
	bool stop;
	bool draining;
	unsigned posters_left;
	uint64_t posted; /* under the ring's lock */
	struct taker {
		struct traffic *traffic;
		struct ticket_lock *lock;
		pthread_t thread;
		uint64_t count;
		uint64_t hash; /* sum over the numbers */
	} taker[TAKERS_MAX];
	pthread_t poster[POSTERS];
};

static inline uint64_t
number_hash(uint64_t number)
{
	return rand_next(&number);
}

/* Posts a list of up to 8 under one lock. Returns how many fitted. */
static inline unsigned
traffic_post(struct traffic *t, uint64_t *rand)
{
	struct recv_ring *r = t->ring;
	unsigned n = 0, want = 1 + rand_below(rand, 8);
	uint32_t prod;

	recv_ring_lock(r);
	prod = r->prod;
	while (n < want && t->posted < t->total) {
		struct recv_slot *slot = recv_ring_next(r, prod);

		if (slot == NULL)
			break;
		wqe_fill(slot, t->posted, rand_below(rand, r->max_sge + 1));
		__atomic_store_n(&t->posted, t->posted + 1, __ATOMIC_RELAXED);
		prod++;
		n++;
	}
	recv_ring_publish(r, prod);
	recv_ring_unlock(r);
	return n;
}

static inline void *
poster_main(void *arg)
{
	struct traffic *t = arg;
	uint64_t rand = (uintptr_t)pthread_self();

	while (!__atomic_load_n(&t->stop, __ATOMIC_RELAXED) &&
		__atomic_load_n(&t->posted, __ATOMIC_RELAXED) < t->total) {
		bool draining = __atomic_load_n(&t->draining, __ATOMIC_RELAXED);

		if (!draining && traffic_post(t, &rand) != 0)
			continue;
		/* Full, or draining. */
		if (t->waves)
			__atomic_store_n(&t->draining,
				recv_ring_outstanding(t->ring) != 0, __ATOMIC_RELAXED);
		sched_yield();
	}
	/* Pairs with the acquire in taker_main(). */
	__atomic_fetch_sub(&t->posters_left, 1, __ATOMIC_RELEASE);
	return NULL;
}

/* Takes up to 16 WQEs. Returns the number taken. */
static inline unsigned
taker_burst(struct taker *me, uint64_t *last)
{
	struct recv_wqe wqe;
	unsigned n;

	for (n = 0; n < 16; n++) {
		int rc = me->traffic->take(me->traffic->take_arg, &wqe);

		if (rc != 0) {
			THREAD_CHECK(rc == -EAGAIN);
			break;
		}
		THREAD_CHECK(wqe_right(&wqe));
		THREAD_CHECK(WQE_NUMBER(wqe.wr_id) + 1 > *last);
		*last = WQE_NUMBER(wqe.wr_id) + 1;
		me->count++;
		me->hash += number_hash(WQE_NUMBER(wqe.wr_id));
	}
	return n;
}

static inline void *
taker_main(void *arg)
{
	struct taker *me = arg;
	uint64_t last = 0; /* last number + 1 */
	unsigned n;
	bool over;

	do {
		/* Read before the take: after the last post an empty ring stays empty. */
		over = __atomic_load_n(&me->traffic->posters_left, __ATOMIC_ACQUIRE) == 0;
		ticket_lock_take(me->lock);
		n = taker_burst(me, &last);
		ticket_lock_release(me->lock);
		if (n == 0)
			sched_yield();
	} while (n != 0 || !over);
	return NULL;
}

static inline void
traffic_start(struct traffic *t)
{
	thread_failure = NULL;
	t->posters_left = POSTERS;
	for (unsigned i = 0; i < t->takers; i++) {
		t->taker[i].traffic = t;
		t->taker[i].lock = &engine_locks[i];
		pthread_create(&t->taker[i].thread, NULL, taker_main, &t->taker[i]);
	}
	for (unsigned i = 0; i < POSTERS; i++)
		pthread_create(&t->poster[i], NULL, poster_main, t);
}

/* Waits until the takers have emptied the ring. Returns NULL if each WQE was taken once
 * and in order, else what failed. */
static inline const char *
traffic_finish(struct traffic *t)
{
	uint64_t count = 0, hash = 0;

	for (unsigned i = 0; i < POSTERS; i++)
		pthread_join(t->poster[i], NULL);
	for (unsigned i = 0; i < t->takers; i++) {
		pthread_join(t->taker[i].thread, NULL);
		count += t->taker[i].count;
		hash -= t->taker[i].hash;
	}
	for (uint64_t i = 0; i < t->posted; i++)
		hash += number_hash(i);
	if (thread_failure != NULL)
		return thread_failure;
	if (count != t->posted)
		return "the number taken is the number posted";
	return hash == 0 ? NULL : "each was taken once";
}

static inline void
traffic_stop(struct traffic *t)
{
	__atomic_store_n(&t->stop, true, __ATOMIC_RELAXED);
}

#endif
