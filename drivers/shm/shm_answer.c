/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/* Whether the answers to what a QP has sent may still be on their way: by a pair, or by the daemon, which is
 * asked. */
#include "shm/pair_slots.h"
#include "shm/shm_answer.h"
#include "shm/shm_tx_ring.h"
#include "switch/sw_ask.h"

/* Puts the question into the ring behind the packets of the QP. Without room it is asked the next
 * time. */
static void
daemon_ask(struct shm *shm, struct pair_qp *q, uint64_t now)
{
	uint32_t buf;

	if (ring_room(&shm->tx) == 0 || shm->free_count == 0)
		shm_tx_reclaim(shm);
	if (shm->dead || ring_room(&shm->tx) == 0 || shm->free_count == 0)
		return;
	/* Each slot of the ring has a buffer. */
	buf = shm->free[--shm->free_count];
	shm->slot_buf[shm->tx.prod & shm->tx.mask] = buf;
	q->ask_number++;
	q->ask_replied = false;
	q->ask_again_ns = now + RTE_MAX(now - q->ask_since_ns, NS_PER_MS);
	ring_put(&shm->tx, &(struct ring_desc){.buf = buf,
				   .qpn = q->qpn,
				   .len = (uint16_t)(q->ask_number << SW_ASK_STEP_BITS |
						     q->ask_step),
				   .flags = RING_ASK,
				   .mark = q->ask_mark});
	shm_tx_show(shm);
}

/* A daemon that runs leaves packets in the ring for that long only where limits of packets a second say so: for one
 * receiver that takes nothing it waits for SW_BACKPRESSURE_NS. */
#define STANDSTILL_NS (5 * SW_BACKPRESSURE_NS)

/* While a program makes no request, nothing else finds that the daemon is stopped. Whether it is, a request
 * shows. */
static void
standstill_look(struct shm *shm, uint64_t now)
{
	struct standstill *s = &shm->standstill;
	uint32_t taken = __atomic_load_n(shm->tx.cons_shown, __ATOMIC_RELAXED);

	if (taken == shm->tx.published) {
		s->since_ns = 0;
	} else if (s->since_ns == 0 || taken != s->taken) {
		s->taken = taken;
		s->since_ns = now;
	} else if (now - s->since_ns >= STANDSTILL_NS) {
		s->since_ns = now;
		__atomic_store_n(&s->is_due, true, __ATOMIC_RELAXED);
		if (shm->engine_thread.wake != NULL)
			shm->engine_thread.wake(shm->engine_thread.arg);
	}
}

static bool
daemon_waits(
	struct shm *shm, struct pair_qp *q, const struct answer_wait *wait, uint64_t now)
{
	if (wait->since_ns != q->ask_since_ns) {
		q->ask_since_ns = wait->since_ns;
		q->ask_step = SW_ASK_BEGIN;
		q->ask_replied = true;
	}
	if (q->ask_step == SW_ASK_DONE) {
		q->ask_since_ns = 0;
		return false;
	}
	standstill_look(shm, now);
	if (q->ask_replied || now >= q->ask_again_ns)
		daemon_ask(shm, q, now);
	return true;
}

/* Of a QP with a pair. Each end begins to send by the pair when its own earlier packets are through at the
 * daemon, so a packet may go one way and its answer the other. The partner answers what came by the pair,
 * perhaps by the daemon; it answers what came by the daemon, perhaps by the pair. */
enum {
	STEP_PAIR_ANSWERED, /* answer_wait.step, which begins at 0 */
	STEP_DAEMON_DONE,
	STEP_PAIR_TAKEN,
};

static void
step_end(struct answer_wait *wait)
{
	wait->step++;
	wait->marked = false;
}

bool
shm_tx_waits(void *queue, uint32_t qpn, struct answer_wait *wait, uint64_t now)
{
	struct shm *shm = queue;
	struct pair_qp *q = pair_qp_of(&shm->pairs, qpn);
	struct shm_pair *pair;

	if (q == NULL || shm->dead)
		return false;
	pair = q->pair != 0 ? &shm->pairs.all[q->pair - 1] : NULL;
	if (wait->step == STEP_PAIR_ANSWERED) {
		if (pair != NULL && pair_is_unanswered(shm, pair, q, wait))
			return true;
		step_end(wait);
	}
	if (wait->step == STEP_DAEMON_DONE) {
		if (daemon_waits(shm, q, wait, now))
			return true;
		step_end(wait);
	}
	return pair != NULL && pair_answer_is_shown(shm, pair, wait);
}

static void
rx_answered_show(struct shm *shm)
{
	/* Pairs with the acquire in ask_look() of the daemon: the answers are in the ring. */
	__atomic_store_n(
		&shm->region.client->rx_answered, shm->rx_next, __ATOMIC_RELEASE);
}

void
shm_ask_replied(struct shm *shm, const struct ring_desc *reply)
{
	struct pair_qp *q = pair_qp_of(&shm->pairs, reply->qpn);

	/* The engine does not get the reply, and so does not answer it. */
	if (shm->region.client->rx_answered == shm->rx_next - 1)
		rx_answered_show(shm);
	if (q == NULL || q->ask_replied ||
		reply->len >> SW_ASK_STEP_BITS !=
			(uint16_t)(q->ask_number << SW_ASK_STEP_BITS) >> SW_ASK_STEP_BITS)
		return; /* to an earlier question */
	q->ask_step = (uint8_t)SW_ASK_STEP(reply->len);
	q->ask_mark = reply->mark;
	q->ask_replied = true;
}

void
shm_rx_answered(void *queue)
{
	struct shm *shm = queue;

	if (unlikely(shm->dead))
		return;
	rx_answered_show(shm);
	pairs_rx_answered(&shm->pairs);
}
