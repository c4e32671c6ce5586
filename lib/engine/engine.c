/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/* Doorbells, polls, release of the engine lock, creation. */
#include <pthread.h>
#include <string.h>

#include "base/off.h"
#include "base/base_log.h"
#include "engine/clock.h"
#include "engine/delayed_ack.h"
#include "engine/dev_control.h"
#include "engine/dev_flight.h"
#include "engine/engine_lock.h"
#include "engine/engine_wake.h"
#include "engine/manual_progress.h"
#include "engine/mr_fault.h"
#include "engine/pass.h"
#include "qp/mbuf_receive.h"

/* True for the first post of a thread after a pass that it has run. Only one: what else is posted
 * before the next pass leaves in one burst. */
static inline bool
tx_thread_take(struct engine *e)
{
	if (__atomic_load_n(&e->tx_thread, __ATOMIC_RELAXED) != engine_thread())
		return false;
	__atomic_store_n(&e->tx_thread, 0, __ATOMIC_RELAXED);
	return true;
}

/* With the engine lock held: sends at once. False: the next pass has to send. */
static bool
tx_from_post(struct engine *e, struct qp *qp)
{
	uint64_t pass_ns;
	bool sent;

	/* The QP may have moved since engine_doorbell() looked. One request may be in flight: if
	 * the peer delays its acknowledgement (delayed_ack.h), the application gets the peer's
	 * answer, and posts the next request, before that acknowledgement has come. */
	if (e->progress_thread != NULL || unlikely(qp_engine_now(qp) != e) ||
		qp->req.next_idx - qp->req.una_idx > 1) {
		e->stats.tx_from_post_missed++;
		return false;
	}
	mr_fault_enter(&e->dev->keys);
	pass_ns = e->shared.now;
	e->shared.now = e->times.before_ns = clock_now();
	sent = engine_tx_qp(e, qp, e->shared.now);
	if (sent) {
		e->stats.tx_from_post++;
		delayed_ack_answered(e, qp, e->shared.now - pass_ns);
	} else {
		e->stats.tx_from_post_missed++;
	}
	mr_fault_leave();
	return sent;
}

/* The owner is inside. It needs no doorbell. */
static void
owner_posted(struct engine *e, struct qp *qp, uint32_t owner)
{
	bool moved = qp_engine_now(qp) != e;
	bool sent = tx_thread_take(e) && tx_from_post(e, qp);

	if (!sent && likely(!moved))
		engine_posted_add(e, qp);
	engine_owner_leave(e, owner);
	if (sent)
		return;
	if (unlikely(moved))
		doorbells_ring(&e->doorbells, qp->sq.doorbell);
	engine_wake_if_asleep(e);
}

void
engine_doorbell(struct qp *qp)
{
	struct engine *e = qp_engine_now(qp);
	uint32_t index = qp->sq.doorbell;
	uint32_t owner = engine_owner_enter(e);

	if (owner != 0) {
		owner_posted(e, qp, owner);
		return;
	}
	if (tx_thread_take(e) && engine_trylock(e)) {
		bool sent = tx_from_post(e, qp);

		engine_lock_release(e);
		if (sent)
			return;
	}
	if (e->progress_thread != NULL && engine_try_tx(e, qp))
		return;
	doorbells_ring(&e->doorbells, index);
	if (e->progress_thread != NULL) {
		/* Pairs with the fence in pass_end(). */
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		engine_try_pass(e);
	} else {
		engine_wake_if_asleep(e);
	}
}

unsigned
engine_poll(struct engine *e)
{
	unsigned moved = engine_run(e, clock_now());

	if (likely(e->tx_from_post))
		__atomic_store_n(&e->tx_thread, engine_thread(), __ATOMIC_RELAXED);
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

uint64_t
engine_clock_wall_of(struct wall_time *w, uint64_t stamp)
{
	if (wall_time_is_due(w, stamp))
		wall_time_read(w, clock_now(), clock_wall());
	return wall_time_of(w, stamp);
}

void
engine_unlock(struct engine *e)
{
	bool manual = e->progress_thread != NULL;

	engine_lock_release(e);
	/* In manual progress, no other thread may poll soon: send, or flush, what the
	 * call made ready. */
	if (manual)
		engine_try_pass(e);
	else
		engine_wake_if_asleep(e);
}

void
engine_unlock_forked(struct engine *e)
{
	engine_lock_forked(e);
}

const uint64_t *
engine_pass_time(const struct engine *e)
{
	return &e->shared.now;
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
	e->tells_answers = queue->ops->rx_answered != NULL;
}

void
engine_frame_held(void *engine)
{
	struct engine *e = engine;

	e->earliest_ns = 0;
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

void
engine_set_latencies(struct engine *e, struct latencies *to, struct slowest *slowest)
{
	e->times.latencies = to;
	e->times.slowest = slowest;
}

void
engine_woke(struct engine *e)
{
	__atomic_store_n(&e->times.woke_ns, clock_now(), __ATOMIC_RELAXED);
}

/* Control path. */

static void
mbufs_init(struct engine *e)
{
	const struct port *port = &e->dev->port;

	e->shared.mbuf = (struct mbuf_state){.ops = port->mbufs,
		.frame_pool = port->frame_pool,
		.copies = {.pool = port->tx_pool},
		.reserve = MBUF_RESERVE * port->queue_count,
		.copies_all = is_off(OFF_MBUF_HANDOVER)};
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
	e->gsi = index == 0 ? dev->gsi : NULL;
	if (!idle_polls_init(&e->idle, getenv(CORES_ENV)))
		log_err("%s: invalid value '%s': expected auto, short or plenty",
			CORES_ENV, getenv(CORES_ENV));
	e->event_wait_off = is_off(OFF_EVENT_WAIT);
	e->claim.off = is_off(OFF_SRQ_CLAIM);
	e->ack_coalesce.off = is_off(OFF_ACK_COALESCE);
	e->ack_coalesce.stream.needed = STREAM_NEEDED_FIRST;
	e->tx_from_post = !is_off(OFF_TX_FROM_POST); /* else posts only ring */
	e->shared = (struct qp_shared){.keys = &dev->keys,
		.srqs = &dev->srqs,
		.gids = dev->gids,
		.gid_count = DEV_GIDS,
		.stats = &e->stats,
		.claim = &e->claim,
		.burst = {.wanted = dev->port.queue_count > 1},
		.direct_place_off = is_off(OFF_DIRECT_PLACE),
		.tlp_off = is_off(OFF_TLP),
		.cnp_off = dev->conf.no_cnp || is_off(OFF_CNP)};
	mbufs_init(e);
	engine_answers_init(e);
	if (dev->flight != NULL) {
		e->shared.flight_on = true;
		e->shared.flight = flight_printer_log(dev->flight);
	}
	TAILQ_INIT(&e->ready);
	TAILQ_INIT(&e->unresolved);
	/* With hooks a progress thread runs passes, and the application's threads. */
	engine_lock_init(e, dev->conf.hooks == NULL);
	clock_init();
	wheel_init(&e->wheel, 0);
	if (!is_off(OFF_HOLD))
		e->shared.hold = &e->hold;
	e->shared.txmaps = &e->txmaps;
	e->shared.read_gap_off = is_off(OFF_READ_GAP);
	e->shared.peers = &e->peers;
	e->shared.times = &e->times;
	e->times.latencies = &e->times.own;
	e->times.slowest = &e->times.own_slowest;
	e->times.port_full_ns = &e->io.full_ns;
	if (dev->conf.paths > 1)
		e->shared.multipaths = &e->multipaths;
	if (hold_arena_init(&e->hold) != 0 || txmaps_init(&e->txmaps) != 0 ||
		(dev->conf.paths > 1 &&
			multipaths_init(&e->multipaths, dev->conf.paths) != 0) ||
		peers_init(&e->peers, &alloc_plain, dev->conf.peer_window,
			&dev->conf.cc) != 0 ||
		handoff_create(e) != 0 ||
		doorbells_init(&e->doorbells, dev->qps.pool.mask + 1) != 0) {
		engine_destroy(e);
		return NULL;
	}
	e->peers.ext_off = ext_query_own(dev->gsi->ext) == 0;
	e->peers.lossless = dev->conf.hooks != NULL && !dev->conf.lossy;
	return e;
}

void
engine_destroy(struct engine *e)
{
	assert(TAILQ_EMPTY(&e->ready) && TAILQ_EMPTY(&e->unresolved));
	assert(e->wheel.count == 0);
	assert(req_times_idle(&e->times));
	hold_arena_fini(&e->hold);
	txmaps_fini(&e->txmaps);
	multipaths_fini(&e->multipaths);
	peers_fini(&e->peers);
	handoff_destroy(e);
	doorbells_fini(&e->doorbells);
	engine_wake_close(e);
	engine_rx_fini(e);
	port_io_fini(&e->io);
	alloc_put(&alloc_plain, e, sizeof(*e));
}
