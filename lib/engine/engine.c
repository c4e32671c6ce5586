/* SPDX-License-Identifier: BSD-3-Clause */
/* A pass of the poll loop, the engine lock, deadlines, creation. */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/ringmem.h"
#include "engine/clock.h"
#include "engine/manual_progress.h"
#include "engine/mr_fault.h"
#include "engine/engine_internal.h"

#define LOCK_SPINS 2000 /* some microseconds: as long as a pass */

/* Takes DPDK's ticket lock. A thread that waits for longer than a pass takes yields its
 * core: the holder, or a thread with an earlier ticket, may be preempted. */
static void
ticket_lock(rte_ticketlock_t *lock)
{
	uint16_t ticket = __atomic_fetch_add(&lock->s.next, 1, __ATOMIC_RELAXED);
	unsigned spins = 0;

	/* Pairs with the release in rte_ticketlock_unlock(). */
	while (__atomic_load_n(&lock->s.current, __ATOMIC_ACQUIRE) != ticket) {
		if (likely(++spins < LOCK_SPINS))
			rte_pause();
		else
			sched_yield();
	}
}

static void
timer_fired(struct wheel_timer *timer, uint64_t now, void *arg)
{
	struct engine *e = arg;
	struct qp *qp = container_of(timer, struct qp, sched.timer);

	/* Each acknowledgement moves the deadline to a later time, but not the timer, so
	 * the timer may fire before the deadline. engine_schedule() sets it again. */
	if (qp_deadline(qp) <= now)
		qp_timeout(qp, now);
	engine_schedule(e, qp);
}

unsigned
engine_pass(struct engine *e, uint64_t now)
{
	unsigned moved;

	mr_fault_enter(&e->dev->keys);
	e->shared.now = now;
	/* Receive first: the responses to what arrived now, and the requests that the
	 * application has posted in reply to what arrived in the last pass, leave in one
	 * burst. */
	moved = engine_rx(e, now);
	wheel_advance(&e->wheel, now, timer_fired, e);
	engine_doorbells_drain(e);
	moved += engine_tx(e, now);
	mr_fault_leave();
	return moved;
}

/* ROCADE_TX_FROM_POST=0 in the environment: posts only ring doorbells. */
static bool
tx_from_post_enabled(void)
{
	const char *env = getenv("ROCADE_TX_FROM_POST");

	return env == NULL || strcmp(env, "0") != 0;
}

/* The first post after a pass, by the thread that ran the pass: sends at once. False: the
 * next pass has to send. */
static bool
tx_from_post(struct engine *e, struct qp *qp)
{
	bool sent;

	/* Only one: what else is posted before the next pass leaves in one burst. */
	__atomic_store_n(&e->tx_thread, 0, __ATOMIC_RELAXED);
	if (!rte_ticketlock_trylock(&e->lock))
		return false;
	mr_fault_enter(&e->dev->keys);
	e->shared.now = clock_now();
	sent = e->progress_thread == NULL && engine_tx_qp(e, qp, e->shared.now);
	if (sent)
		e->stats.tx_from_post++;
	else
		e->stats.tx_from_post_missed++;
	mr_fault_leave();
	rte_ticketlock_unlock(&e->lock);
	return sent;
}

void
engine_doorbell(struct qp *qp)
{
	struct engine *e = qp->sched.engine;
	uint32_t index = qp->qpn - e->dev->qps.pool.base;
	pthread_t thread = __atomic_load_n(&e->tx_thread, __ATOMIC_RELAXED);

	if (unlikely(doorbells_enabled(&e->doorbells) > POST_PREFETCH_MIN_QPS))
		post_prefetch_update(&e->post_prefetch, index, qp);
	if (thread != 0 && thread == pthread_self() && tx_from_post(e, qp))
		return;
	doorbells_ring(&e->doorbells, index);
	if (e->progress_thread != NULL) {
		/* Pairs with the fence in engine_try_pass(). */
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		engine_try_pass(e);
	}
}

unsigned
engine_run(struct engine *e, uint64_t now)
{
	unsigned moved;

	ticket_lock(&e->lock);
	moved = engine_pass(e, now);
	rte_ticketlock_unlock(&e->lock);
	return moved;
}

unsigned
engine_poll(struct engine *e)
{
	unsigned moved = engine_run(e, clock_now());

	if (likely(e->tx_from_post))
		__atomic_store_n(&e->tx_thread, pthread_self(), __ATOMIC_RELAXED);
	return moved;
}

uint64_t
engine_clock(void)
{
	return clock_now();
}

uint64_t
engine_clock_wall(uint64_t stamp)
{
	return stamp + (clock_wall() - clock_now());
}

/* True if QPs are blocked on a peer window that has room: a control call may have ended
 * the requests that filled it. */
static bool
peer_window_opened(const struct engine *e)
{
	const struct peer *peer;

	TAILQ_FOREACH (peer, &e->peers.blocked, blocked_link) {
		if (!peer_full(peer))
			return true;
	}
	return false;
}

/* True if there is work without a deadline, for the next pass. */
static bool
engine_busy(const struct engine *e)
{
	if (!TAILQ_EMPTY(&e->ready) || e->io.backlog_count != 0 ||
		doorbells_pending(&e->doorbells) || peer_window_opened(e))
		return true;
	if (!TAILQ_EMPTY(&e->unresolved) &&
		net_generation(e->dev->net) != e->net_generation)
		return true;
	for (unsigned i = 0; i < e->dev->engine_count; i++) {
		if (e->handoff[i] != NULL && !rte_ring_empty(e->handoff[i]))
			return true;
	}
	return false;
}

uint64_t
engine_deadline(struct engine *e)
{
	uint64_t when, net;

	ticket_lock(&e->lock);
	when = engine_busy(e) ? 0 : wheel_next(&e->wheel);
	if (e->is_control && e->dev->gsi != NULL)
		when = RTE_MIN(when, gsi_due(e->dev->gsi));
	rte_ticketlock_unlock(&e->lock);
	net = e->is_control ? net_deadline(e->dev->net) : TIME_NEVER;
	return RTE_MIN(when, net);
}

void
engine_lock(struct engine *e)
{
	ticket_lock(&e->lock);
}

void
engine_unlock(struct engine *e)
{
	bool manual = e->progress_thread != NULL;

	rte_ticketlock_unlock(&e->lock);
	/* In manual progress, no other thread may poll soon: send, or flush, what the
	 * call made ready. */
	if (manual)
		engine_try_pass(e);
}

void
engine_unlock_forked(struct engine *e)
{
	rte_ticketlock_init(&e->lock);
}

struct port_queue
engine_queue(const struct engine *e)
{
	return e->io.queue;
}

void
engine_set_queue(struct engine *e, const struct port_queue *queue)
{
	e->io.queue = *queue;
}

struct dev *
engine_dev(struct engine *e)
{
	return e->dev;
}

unsigned
engine_index(const struct engine *e)
{
	return e->index;
}

struct port_stats *
engine_stats(struct engine *e)
{
	return &e->stats;
}

static int
handoff_create(struct engine *e)
{
	for (unsigned i = 0; i < e->dev->port.queue_count; i++) {
		struct rte_ring *ring;

		if (i == e->index)
			continue;
		ring = alloc_get(&alloc_plain, "handoff",
			ringmem_size(ENGINE_HANDOFF, sizeof(struct pkt)));
		if (ring == NULL)
			return -1;
		ringmem_init(ring, ENGINE_HANDOFF, false, false);
		e->handoff[i] = ring;
	}
	return 0;
}

struct engine *
engine_create(struct dev *dev, unsigned index)
{
	struct engine *e = alloc_get(&alloc_plain, "engine", sizeof(*e));

	if (e == NULL)
		return NULL;
	e->dev = dev;
	e->index = (uint8_t)index;
	port_io_init(&e->io, &(struct port_queue){dev->port.ops, dev->port.queues[index]},
		dev->net, &e->stats, &dev->link_up, ENGINE_STALL_NS);
	e->vlan = dev->conf.net.vlan;
	/* With hooks the daemon does what a control engine does. */
	e->is_control = index == 0 && dev->conf.hooks == NULL;
	e->tx_from_post = tx_from_post_enabled();
	e->shared = (struct qp_shared){.keys = &dev->keys,
		.srqs = &dev->srqs,
		.gids = dev->gids,
		.gid_count = DEV_GIDS,
		.stats = &e->stats};
	TAILQ_INIT(&e->ready);
	TAILQ_INIT(&e->unresolved);
	rte_ticketlock_init(&e->lock);
	clock_init();
	wheel_init(&e->wheel, 0);
	if (peers_init(&e->peers, &alloc_plain, dev->conf.peer_window,
		    dev->conf.many_qps) != 0 ||
		handoff_create(e) != 0 ||
		doorbells_init(&e->doorbells, dev->qps.pool.mask + 1) != 0 ||
		post_prefetch_init(&e->post_prefetch, dev->qps.pool.mask + 1) != 0) {
		engine_destroy(e);
		return NULL;
	}
	return e;
}

static void
handoff_destroy(struct engine *e)
{
	for (unsigned i = 0; i < DEV_MAX_ENGINES; i++) {
		struct pkt pkt;

		if (e->handoff[i] == NULL)
			continue;
		while (rte_ring_sc_dequeue_elem(e->handoff[i], &pkt, sizeof(pkt)) == 0)
			e->io.queue.ops->rx_release(e->io.queue.queue, &pkt, 1);
		alloc_put(&alloc_plain, e->handoff[i],
			ringmem_size(ENGINE_HANDOFF, sizeof(struct pkt)));
	}
}

void
engine_destroy(struct engine *e)
{
	assert(TAILQ_EMPTY(&e->ready) && TAILQ_EMPTY(&e->unresolved));
	assert(e->wheel.count == 0);
	peers_fini(&e->peers);
	handoff_destroy(e);
	doorbells_fini(&e->doorbells);
	post_prefetch_fini(&e->post_prefetch);
	engine_rx_fini(e);
	port_io_fini(&e->io);
	alloc_put(&alloc_plain, e, sizeof(*e));
}
