/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/* Packets that are sent by the pairs. */
#include <string.h>
#include <sys/socket.h>

#include "base/no_cancel.h"
#include "engine/clock.h"
#include "shm/line_time.h"
#include "shm/pair_slots.h"
#include "shm/shm.h"

#define PREFETCH_SLOTS 2 /* how far ahead of the slot that is filled */
#define PREFETCH_LEN 256 /* longest packet for which lines are requested */

/* The partner's index is invalid. The progress thread tells the daemon, which ends the pair: until then
 * packets to the partner are lost. */
static void
pair_spoil(struct shm *shm, struct shm_pair *pair)
{
	if (pair->spoiled)
		return;
	pair->spoiled = true;
	__atomic_store_n(&shm->pairs.spoiled, true, __ATOMIC_RELAXED);
	if (shm->engine_thread.wake != NULL)
		shm->engine_thread.wake(shm->engine_thread.arg);
}

/* cons: what the partner says that it has taken. */
static void
taken_note(struct shm *shm, struct shm_pair *pair, uint32_t cons)
{
	if (unlikely(cons - pair->cons_seen > pair->shown - pair->cons_seen)) {
		pair_spoil(shm, pair);
		return;
	}
	if (cons == pair->cons_seen)
		return;
	pair->cons_seen = cons;
	pair->taken_ns = *shm->now;
	pair->lag_told = false;
}

/* Reads which packets the partner has taken. */
static void
taken_refresh(struct shm *shm, struct shm_pair *pair)
{
	/* Pairs with the release in taken_show(): the slots before it are free. */
	taken_note(shm, pair, __atomic_load_n(&pair->peer->cons, __ATOMIC_ACQUIRE));
}

/* The same, now and then: if it has changed, its cache line has come from the partner's core. */
static void
taken_refresh_timed(struct shm *shm, struct shm_pair *pair)
{
	uint64_t took_ns;
	uint32_t cons = clock_timed_load(&pair->peer->cons, &took_ns);

	if (cons != pair->cons_seen)
		pair->line_ns = line_time_mean(pair->line_ns, took_ns);
	taken_note(shm, pair, cons);
}

static uint32_t
pair_room(const struct shm_pairs *p, const struct shm_pair *pair)
{
	return p->geom.slots - (pair->prod - pair->cons_seen);
}

/* The ring was full. Returns whether half of it is free. */
static bool
has_room_again(struct shm *shm, struct shm_pair *pair)
{
	taken_refresh(shm, pair);
	return pair_room(&shm->pairs, pair) >= shm->pairs.geom.slots / 2;
}

/* Requests the lines of a slot that is filled soon, if those of the partner are far: then a post of one
 * short packet does not wait for them. */
static void
slot_prefetch(const struct shm_pairs *p, const struct shm_pair *pair, uint32_t len)
{
	const struct pair_slot *slot =
		pair_slot_at(p, pair->own, pair->prod + PREFETCH_SLOTS);

	if (likely(!line_time_is_far(pair->line_ns)) || len > PREFETCH_LEN ||
		pair_room(p, pair) <= PREFETCH_SLOTS)
		return;
	for (uint32_t at = 0; at < sizeof(*slot) + len; at += LINE_SIZE)
		line_prefetch_write((const uint8_t *)slot + at);
}

static void
slot_fill_done(struct shm *shm, struct shm_pair *pair)
{
	if (pair->prod == pair->cons_seen)
		pair->taken_ns = *shm->now;
	pair->prod++;
}

/* Shows the packets since the last call. The partner looks at the first stamp first, so it sees all of
 * them at once: an acknowledgement and the answer behind it are taken in one pass. */
static void
pair_show(struct shm *shm, struct shm_pair *pair)
{
	for (uint32_t i = pair->prod; i != pair->shown; i--)
		/* Pairs with the acquire in pairs_peek(). */
		__atomic_store_n(&pair_slot_at(&shm->pairs, pair->own, i - 1)->stamp, i,
			__ATOMIC_RELEASE);
	pair->shown = pair->prod;
}

/* The ring is full. Returns whether the packet has to wait; if not, it is lost. */
static bool
has_to_wait(struct shm *shm, struct shm_pair *pair)
{
	/* Not since it took a packet: it could take one now and then. */
	if (pair->cons_seen - pair->full_cons >= shm->pairs.geom.slots / 2) {
		pair->full_cons = pair->cons_seen;
		pair->full_ns = *shm->now;
	}
	if (!pair->full && *shm->now - pair->full_ns < PAIR_FULL_NS)
		return true;
	pair->full = true;
	shm->dev_stats->pair_full++;
	return false;
}

unsigned
pairs_tx_place(void *queue, uint32_t qpn, struct pkt *pkts, unsigned n)
{
	struct shm *shm = queue;
	const struct pair_qp *q = pair_qp_of(&shm->pairs, qpn);
	struct shm_pair *pair;

	if (likely(q == NULL || !q->long_packets || q->state != PAIR_QP_DIRECT))
		return 0;
	pair = &shm->pairs.all[q->pair - 1];
	if (pair_room(&shm->pairs, pair) < n)
		taken_refresh(shm, pair);
	if (unlikely(pair->spoiled || pair->full))
		return 0;
	if (line_time_is_far(pair->line_ns)) {
		shm->dev_stats->pair_tx_far += n;
		return 0;
	}
	n = RTE_MIN(n, pair_room(&shm->pairs, pair));
	for (unsigned i = 0; i < n; i++)
		pkts[i].data =
			pair_slot_at(&shm->pairs, pair->own, pair->prod + i)->bytes;
	return n;
}

void
pairs_tx_unplace(void *queue, struct pkt *pkts, unsigned n)
{
	const struct shm *shm = queue;

	for (unsigned i = 0; i < n; i++) {
		uint8_t *own =
			region_tx_buf(&shm->region, (uint32_t)(uintptr_t)pkts[i].owner);

		if (pkts[i].data != own)
			memcpy(own, pkts[i].data, pkts[i].len);
		pkts[i].data = own;
	}
}

bool
pair_tx(struct shm *shm, struct shm_pair *pair, uint32_t qpn, const struct pkt *pkt)
{
	struct shm_pairs *p = &shm->pairs;
	struct pair_qp *q = &p->qps[qpn & p->mask];
	struct pair_slot *slot;

	if (unlikely(pair_room(p, pair) == 0))
		taken_refresh(shm, pair);
	if (unlikely(pair_room(p, pair) == 0 || pair->spoiled))
		return pair->spoiled || !has_to_wait(shm, pair);
	if (unlikely(pair->full) && !has_room_again(shm, pair)) {
		shm->dev_stats->pair_full++;
		return true;
	}
	pair->full = false;
	slot = pair_slot_at(p, pair->own, pair->prod);
	slot->len = pkt->len;
	slot->kind = PAIR_PACKET;
	if (pkt->data != slot->bytes)
		memcpy(slot->bytes, pkt->data, pkt->len);
	else
		shm->dev_stats->pair_tx_placed++;
	slot_prefetch(p, pair, pkt->len);
	slot_fill_done(shm, pair);
	shm->dev_stats->pair_tx++;
	q->last_pair_tx = pair->prod;
	q->long_packets = pkt->len >= PAIR_LONG && !p->place_off;
	/* The partner can copy a long one while the next one is filled in. */
	if (pkt->len >= PAIR_LONG)
		pair_show(shm, pair);
	return true;
}

/* If the connection is full, the partner has not read others of these yet. */
static void RARE
wake_write(const struct shm_pair *pair, enum pair_wake why)
{
	uint8_t byte = (uint8_t)why;
	ssize_t sent = no_cancel_send(
		pair->wake_fd, &byte, sizeof(byte), MSG_DONTWAIT | MSG_NOSIGNAL);

	(void)sent;
}

static void RARE
partner_wake(struct shm *shm, struct shm_pair *pair)
{
	uint32_t *wakes = &pair->own->wakes;

	shm->dev_stats->pair_wakeups++;
	if (!asleep_by_futex(pair->woken)) {
		wake_write(pair, PAIR_WAKE);
		return;
	}
	__atomic_store_n(wakes, *wakes + 1, __ATOMIC_RELEASE);
	futex_wake(wakes, true);
}

void
pair_tx_done(struct shm *shm, struct shm_pair *pair)
{
	pair_show(shm, pair);
	if (unlikely(asleep_wake_wanted(&pair->peer->asleep, &pair->woken)))
		partner_wake(shm, pair);
}

/* While a client dumps its packets, the QP sends by the daemon: from the time on at which its partner
 * has taken all that came by the pair. */
static struct shm_pair *
route_back(struct shm *shm, struct pair_qp *q, struct shm_pair *pair)
{
	taken_refresh(shm, pair);
	if (pair->cons_seen != pair->prod && !pair->spoiled)
		return pair;
	q->state = PAIR_QP_ACCEPTED;
	return NULL;
}

/* Has the QP send by the pair, if the partner takes packets from there, and if what the QP has sent by the
 * daemon is in the ring of the receiver: the daemon takes packets out of its ring only then (sw_tx.c). */
static struct shm_pair *
route_change(struct shm *shm, struct pair_qp *q, struct shm_pair *pair)
{
	/* Pairs with the release in ring_release(). */
	uint32_t taken = __atomic_load_n(shm->tx.cons_shown, __ATOMIC_ACQUIRE);

	if ((int32_t)(taken - q->last_tx) < 0 ||
		__atomic_load_n(&pair->peer->reads, __ATOMIC_RELAXED) == 0)
		return NULL;
	q->state = PAIR_QP_DIRECT;
	return pair;
}

struct shm_pair *
pairs_route(struct shm *shm, uint32_t qpn)
{
	struct pair_qp *q = pair_qp_of(&shm->pairs, qpn);
	bool off = __atomic_load_n(&shm->region.daemon->pairs_off, __ATOMIC_RELAXED) != 0;
	struct shm_pair *pair;

	if (q == NULL || q->pair == 0 || q->state == PAIR_QP_DAEMON)
		return NULL;
	pair = &shm->pairs.all[q->pair - 1];
	if (unlikely(pair->spoiled))
		return NULL;
	if (unlikely(off))
		return q->state == PAIR_QP_DIRECT ? route_back(shm, q, pair) : NULL;
	return likely(q->state == PAIR_QP_DIRECT) ? pair : route_change(shm, q, pair);
}

void
pairs_note_daemon_tx(struct shm *shm, uint32_t qpn, uint32_t index)
{
	struct pair_qp *q = pair_qp_of(&shm->pairs, qpn);

	if (q != NULL)
		q->last_tx = index;
}

/* Puts no packet into the ring, which has room, but that the QP accepts its peer's packets. */
static void
connected_put(struct shm *shm, struct shm_pair *pair, const struct pair_qp *q)
{
	struct pair_slot *slot = pair_slot_at(&shm->pairs, pair->own, pair->prod);

	slot->len = 0;
	slot->kind = PAIR_CONNECTED;
	slot->qpn = q->peer_qpn;
	slot_fill_done(shm, pair);
	pair_tx_done(shm, pair);
}

bool
pair_is_unanswered(struct shm *shm, struct shm_pair *pair, const struct pair_qp *q,
	struct answer_wait *wait)
{
	taken_refresh(shm, pair);
	if (pair->spoiled)
		return false;
	/* Of a pair before this one, if it is beyond what was sent. */
	if (!wait->marked || (int32_t)(wait->mark - q->last_pair_tx) > 0)
		wait->mark = q->last_pair_tx;
	wait->marked = true;
	/* Pairs with the release in answered_show(): the answers are shown. */
	return (int32_t)(wait->mark -
			 __atomic_load_n(&pair->peer->answered, __ATOMIC_ACQUIRE)) > 0;
}

bool
pair_answer_is_shown(
	const struct shm *shm, const struct shm_pair *pair, struct answer_wait *wait)
{
	const struct pair_slot *slot = pair_slot_at(&shm->pairs, pair->peer, pair->cons);

	if (!wait->marked) {
		wait->mark = pair->cons + shm->pairs.geom.slots;
		wait->marked = true;
	}
	return !pair->spoiled &&
	       __atomic_load_n(&slot->stamp, __ATOMIC_RELAXED) == pair->cons + 1 &&
	       (int32_t)(wait->mark - pair->cons) > 0;
}

/* ---- In each pass ---- */

void
pair_qp_announce(struct shm *shm, struct pair_qp *q)
{
	struct shm_pair *pair = &shm->pairs.all[q->pair - 1];

	if (pair_room(&shm->pairs, pair) == 0)
		taken_refresh(shm, pair);
	if (pair_room(&shm->pairs, pair) == 0) {
		pair->announce_waits = true;
		return;
	}
	q->announce = false;
	connected_put(shm, pair, q);
}

/* A pair has come, or its ring has room again. */
static void RARE
qps_announce(struct shm *shm)
{
	struct shm_pairs *p = &shm->pairs;

	p->announce_due = false;
	for (uint32_t i = 0; i <= p->mask; i++)
		if (p->qps[i].announce && p->qps[i].pair != 0)
			pair_qp_announce(shm, &p->qps[i]);
}

/* Returns how long the partner may take nothing before it is woken. If the threads of this core take
 * turns, so may those of the partner's: its application polls, but not now, and its progress thread
 * would only take the core from a third one. */
static uint64_t
lag_limit(const struct shm *shm, const struct shm_pair *pair)
{
	return engine_runs_in_turns(shm->dev->engines[0]) ? PAIR_LAG_LAST_NS
							  : pair->lag_ns;
}

/* The partner may not have taken all packets. */
static void
lag_check(struct shm *shm, struct shm_pair *pair)
{
	uint64_t now = *shm->now;
	uint32_t cons = pair->cons_seen;

	if (now - pair->checked_ns < PAIR_LAG_NS)
		return;
	pair->checked_ns = now;
	taken_refresh_timed(shm, pair);
	if (pair->cons_seen != cons)
		pair->lag_ns -= (pair->lag_ns - PAIR_LAG_NS) / PAIR_LAG_DECAY;
	if (pair->prod == pair->cons_seen ||
		now - pair->taken_ns < lag_limit(shm, pair) || pair->lag_told)
		return;
	pair->lag_told = true;
	pair->lag_ns = RTE_MIN(2 * pair->lag_ns, PAIR_LAG_LAST_NS);
	shm->dev_stats->pair_lags++;
	wake_write(pair, PAIR_LAGS);
}

void
pairs_check(struct shm *shm)
{
	struct shm_pairs *p = &shm->pairs;

	if (unlikely(p->announce_due))
		qps_announce(shm);
	for (uint32_t i = 0; i < p->count; i++) {
		struct shm_pair *pair = &p->all[i];

		if (pair->prod != pair->cons_seen && likely(!pair->spoiled))
			lag_check(shm, pair);
		/* Not in each pass, because all QPs are looked at. */
		if (unlikely(pair->announce_waits) && has_room_again(shm, pair)) {
			pair->announce_waits = false;
			p->announce_due = true;
		}
	}
}

uint64_t
pairs_deadline(const struct shm *shm)
{
	const struct shm_pairs *p = &shm->pairs;
	uint64_t until = TIME_NEVER;

	for (uint32_t i = 0; i < p->count; i++) {
		const struct shm_pair *pair = &p->all[i];

		if (pair->prod != pair->cons_seen && !pair->lag_told && !pair->spoiled)
			until = RTE_MIN(until, pair->taken_ns + lag_limit(shm, pair));
	}
	return until;
}
