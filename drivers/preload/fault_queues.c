/* SPDX-License-Identifier: BSD-3-Clause */
/* A hash table by the address of the object. An entry is never freed, because posts look entries up without a lock: when
 * its object is gone it serves the next one of its bucket. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "preload/fault_queues.h"
#include "preload/fault_write.h"

#define BUCKETS 4096 /* a power of two */

static struct {
	pthread_mutex_t lock; /* of changes */
	struct counted_queue *buckets[BUCKETS];
	uint64_t qps, srqs; /* created so far */
	bool counts_packets;
} table = {.lock = PTHREAD_MUTEX_INITIALIZER};

static pthread_once_t forks_once = PTHREAD_ONCE_INIT;

static void
table_lock(void)
{
	pthread_mutex_lock(&table.lock);
}

static void
table_unlock(void)
{
	pthread_mutex_unlock(&table.lock);
}

/* A child has created none: those that it has inherited are its parent's. */
static void
table_forked(void)
{
	for (unsigned i = 0; i < BUCKETS; i++) {
		for (struct counted_queue *q = table.buckets[i]; q != NULL; q = q->next)
			*q = (struct counted_queue){.next = q->next, .recent = q->recent};
	}
	table.qps = table.srqs = 0;
	table_unlock();
}

static void
forks_watch(void)
{
	pthread_atfork(table_lock, table_unlock, table_forked);
}

static struct counted_queue **
queue_bucket(const void *handle)
{
	uint64_t hash = (uintptr_t)handle * UINT64_C(0x9E3779B97F4A7C15);

	return &table.buckets[hash >> 52 & (BUCKETS - 1)];
}

struct counted_queue *
fault_queue_of(const void *handle)
{
	/* Pairs with the release in entry_find(). */
	struct counted_queue *q = __atomic_load_n(queue_bucket(handle), __ATOMIC_ACQUIRE);

	while (q != NULL && __atomic_load_n(&q->handle, __ATOMIC_RELAXED) != handle)
		q = q->next;
	return q;
}

/* Returns an entry of the bucket that is not in use, or a new one, or NULL. With the lock. */
static struct counted_queue *
entry_find(struct counted_queue **bucket)
{
	struct counted_queue *q = *bucket;

	while (q != NULL && (q->handle != NULL || q->leaving))
		q = q->next;
	if (q != NULL)
		return q;
	q = calloc(1, sizeof(*q));
	if (q == NULL)
		return NULL;
	q->next = *bucket;
	/* Pairs with the acquire in fault_queue_of(). */
	__atomic_store_n(bucket, q, __ATOMIC_RELEASE);
	return q;
}

void
fault_packets_begin(void)
{
	table_lock();
	table.counts_packets = true;
	table_unlock();
}

/* Returns false if there is no memory. */
static bool
packets_watch(struct counted_queue *q)
{
	if (q->recent == NULL && table.counts_packets)
		q->recent = calloc(FAULT_WIRE_PSNS, sizeof(*q->recent));
	else if (q->recent != NULL)
		memset(q->recent, 0, FAULT_WIRE_PSNS * sizeof(*q->recent));
	return q->recent != NULL || !table.counts_packets;
}

static void
queue_add(const void *handle, enum fault_object_type type, unsigned of)
{
	struct counted_queue *q;
	bool complete = false;
	uint64_t *made = type == FAULT_QP ? &table.qps : &table.srqs;

	pthread_once(&forks_once, forks_watch);
	table_lock();
	(*made)++;
	/* An object at the same address is gone without fault_queue_leave(): its device was closed, or the program has
	 * called a function that it had looked up before. */
	q = fault_queue_of(handle);
	if (q == NULL)
		q = entry_find(queue_bucket(handle));
	if (q != NULL) {
		q->name = (struct fault_queue){.type = type, .number = *made};
		q->type = of;
		__atomic_store_n(&q->id, NULL, __ATOMIC_RELAXED);
		q->requests = q->receives = q->before = q->packets = 0;
		complete = packets_watch(q);
		/* The thread that posts to it has the object from this one. */
		__atomic_store_n(&q->handle, handle, __ATOMIC_RELAXED);
	}
	table_unlock();
	if (!complete)
		fault_report("no memory to count for a new QP or SRQ: rules miss it");
}

void
fault_qp_made(struct ibv_qp *qp)
{
	queue_add(qp, FAULT_QP,
		qp->qp_type == IBV_QPT_UD   ? FAULT_OF_UD
		: qp->qp_type == IBV_QPT_UC ? FAULT_OF_UC
					    : FAULT_OF_RC);
}

void
fault_srq_made(struct ibv_srq *srq)
{
	queue_add(srq, FAULT_SRQ, FAULT_OF_SRQ);
}

void
fault_qp_was_reset(const void *handle, uint32_t posted)
{
	struct counted_queue *q = fault_queue_of(handle);

	if (q == NULL)
		return;
	/* A QP in RESET sends no packets. The change of state that ends that takes the engine's lock, and is behind this. */
	q->before += posted;
	if (q->recent != NULL)
		memset(q->recent, 0, FAULT_WIRE_PSNS * sizeof(*q->recent));
}

bool
fault_packet_count(struct counted_queue *q, uint32_t idx, uint32_t packet, uint32_t psn,
	struct fault_packet *out)
{
	struct sent_packet *sent;

	if (q->recent == NULL)
		return false;
	sent = &q->recent[psn & (FAULT_WIRE_PSNS - 1)];
	if (sent->copies == 0 || sent->idx != idx || sent->packet != packet) {
		*sent = (struct sent_packet){.idx = idx, .packet = packet};
		q->packets++;
	}
	*out = (struct fault_packet){.request = q->before + idx + 1,
		.packet = packet + 1,
		.copy = ++sent->copies,
		.order = q->packets};
	return true;
}

struct counted_queue *
fault_queue_leave(const void *handle)
{
	struct counted_queue *q;

	table_lock();
	q = fault_queue_of(handle);
	if (q != NULL) {
		__atomic_store_n(&q->handle, NULL, __ATOMIC_RELAXED);
		q->leaving = true;
	}
	table_unlock();
	return q;
}

void
fault_queue_left(struct counted_queue *q, const void *handle, bool gone)
{
	if (q == NULL)
		return;
	table_lock();
	q->leaving = false;
	if (!gone)
		__atomic_store_n(&q->handle, handle, __ATOMIC_RELAXED);
	table_unlock();
}

uint64_t
fault_queues_made(enum fault_object_type type)
{
	uint64_t made;

	table_lock();
	made = type == FAULT_QP ? table.qps : table.srqs;
	table_unlock();
	return made;
}
