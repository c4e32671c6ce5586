/* SPDX-License-Identifier: BSD-3-Clause */
/* The pairs of a client: they come and go as the daemon says, and QPs change their peers. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/base_alloc.h"
#include "base/base_log.h"
#include "base/off.h"
#include "shm/attach.h"
#include "shm/shm.h"

#define PAIR_FDS 2 /* descriptors of an event, at most */

/* ---- The set ---- */

void
pairs_init(struct shm_pairs *p)
{
	p->off = is_off(OFF_PAIRS);
	p->place_off = is_off(OFF_PAIR_PLACE);
	pthread_mutex_init(&p->serve_lock, NULL);
	pthread_mutex_init(&p->sleep_lock, NULL);
}

int
pairs_start(struct shm_pairs *p, const struct region_geom *geom, uint32_t qpns)
{
	if (!rte_is_power_of_2(qpns))
		return -EPROTO;
	p->mask = qpns - 1;
	p->geom = pair_geom_of(geom);
	p->slot_size = pair_slot_size(&p->geom);
	p->qps = alloc_get(&alloc_demand, "pair QPs", (size_t)qpns * sizeof(p->qps[0]));
	p->buffers = alloc_get(&alloc_demand, "pair buffers",
		(size_t)PAIR_RX_BUFFERS * p->geom.buf_size);
	if (p->qps == NULL || p->buffers == NULL)
		return -ENOMEM;
	for (unsigned i = 0; i < PAIR_RX_BUFFERS; i++)
		p->free[p->free_count++] = (uint8_t)i;
	return 0;
}

static int
pair_wake_fd(const struct shm_pair *pair)
{
	return pair->own != NULL ? pair->wake_fd : -1;
}

static void
pair_unmap(const struct shm_pairs *p, const struct shm_pair *pair)
{
	size_t size = pair_part_size(&p->geom);

	if (pair_wake_fd(pair) >= 0)
		close(pair->wake_fd);
	if (pair->own != NULL)
		munmap(pair->own, size);
	if (pair->peer != NULL)
		munmap((void *)(uintptr_t)pair->peer, size);
}

void
pairs_fini(struct shm_pairs *p)
{
	for (uint32_t i = 0; i < p->count; i++)
		pair_unmap(p, &p->all[i]);
	p->count = 0;
	alloc_put(&alloc_demand, p->qps, ((size_t)p->mask + 1) * sizeof(p->qps[0]));
	alloc_put(&alloc_demand, p->buffers, (size_t)PAIR_RX_BUFFERS * p->geom.buf_size);
	pthread_mutex_destroy(&p->serve_lock);
	pthread_mutex_destroy(&p->sleep_lock);
}

void
pairs_unshare(struct shm_pairs *p, void (*unshare)(void *mem, size_t size))
{
	size_t size = pair_part_size(&p->geom);

	for (uint32_t i = 0; i < p->count; i++) {
		if (pair_wake_fd(&p->all[i]) >= 0)
			close(p->all[i].wake_fd);
		if (p->all[i].own != NULL)
			unshare(p->all[i].own, size);
		if (p->all[i].peer != NULL)
			unshare((void *)(uintptr_t)p->all[i].peer, size);
	}
	p->count = 0;
}

/* ---- QPs ---- */

/* Returns the index of the partner's usable pair + 1, or 0. */
static uint8_t
pair_index(const struct shm_pairs *p, uint32_t partner)
{
	for (uint32_t i = 0; partner != 0 && i < p->count; i++)
		if (p->all[i].peer != NULL && p->all[i].partner == partner)
			return (uint8_t)(i + 1);
	return 0;
}

void
pairs_register_begin(struct shm *shm, uint32_t qpn)
{
	struct engine *e = shm->dev->engines[0];

	engine_lock(e);
	shm->pairs.qps[qpn & shm->pairs.mask] =
		(struct pair_qp){.qpn = qpn, .registering = true};
	engine_unlock(e);
}

void
pairs_register_end(
	struct shm *shm, uint32_t qpn, uint32_t peer_qpn, uint32_t partner, bool accepted)
{
	struct shm_pairs *p = &shm->pairs;
	struct pair_qp *q = &p->qps[qpn & p->mask];
	struct engine *e = shm->dev->engines[0];

	engine_lock(e);
	*q = (struct pair_qp){.qpn = qpn,
		.partner = partner,
		.peer_qpn = peer_qpn,
		.last_tx = shm->tx.prod,
		.pair = pair_index(p, partner),
		.state = accepted ? PAIR_QP_ACCEPTED : PAIR_QP_DAEMON,
		.announce = accepted};
	if (q->announce && q->pair != 0)
		pair_qp_announce(shm, q);
	engine_unlock(e);
}

void
pairs_unregister(struct shm *shm, uint32_t qpn)
{
	struct engine *e = shm->dev->engines[0];

	engine_lock(e);
	shm->pairs.qps[qpn & shm->pairs.mask] = (struct pair_qp){.qpn = 0};
	engine_unlock(e);
}

/* The pair at this index has come, or goes: its QPs change. */
static void
qps_change(struct shm *shm, uint32_t partner, uint8_t pair)
{
	struct shm_pairs *p = &shm->pairs;

	for (uint32_t i = 0; i <= p->mask; i++) {
		struct pair_qp *q = &p->qps[i];

		if (q->partner != partner)
			continue;
		q->pair = pair;
		/* Without any pair it was not noted what the QP sends by the daemon. */
		q->last_tx = shm->tx.prod;
		/* Indices of the pair before. Those of a new one begin at 0. */
		q->last_pair_tx = 0;
		if (q->state == PAIR_QP_DIRECT)
			q->state = PAIR_QP_ACCEPTED;
		p->announce_due |= q->announce && pair != 0;
	}
}

/* ---- Sleeping ---- */

void
pairs_show_asleep(struct shm *shm)
{
	struct shm_pairs *p = &shm->pairs;
	const uint32_t *asleep = &shm->region.client->rx_asleep;

	if (__atomic_load_n(&p->count, __ATOMIC_RELAXED) == 0)
		return;
	pthread_mutex_lock(&p->sleep_lock);
	for (uint32_t i = 0; i < p->count; i++)
		if (p->all[i].peer != NULL)
			__atomic_store_n(&p->all[i].own->asleep,
				__atomic_load_n(asleep, __ATOMIC_RELAXED),
				__ATOMIC_RELAXED);
	pthread_mutex_unlock(&p->sleep_lock);
	/* Pairs with the fence in asleep_wake_wanted() of the partners. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

unsigned
pairs_futex_words(struct shm *shm, struct futex_word *words, unsigned max)
{
	struct shm_pairs *p = &shm->pairs;
	unsigned n = 0;

	/* Pairs with the release in pairs_changed(): it shows which pairs there are, or changes
	 * after this. */
	words[n++] = futex_word(
		&p->changes, __atomic_load_n(&p->changes, __ATOMIC_ACQUIRE), false);
	if (__atomic_load_n(&p->count, __ATOMIC_RELAXED) == 0)
		return n;
	pthread_mutex_lock(&p->sleep_lock);
	for (uint32_t i = 0; i < p->count && n < max; i++) {
		const struct pair_part *peer = p->all[i].peer;

		if (peer != NULL)
			words[n++] = futex_word(&peer->wakes,
				__atomic_load_n(&peer->wakes, __ATOMIC_RELAXED), true);
	}
	pthread_mutex_unlock(&p->sleep_lock);
	return n;
}

/* Wakes a thread that sleeps on the words of the pairs that there were. */
static void
pairs_changed(struct shm_pairs *p)
{
	/* Pairs with the acquire in pairs_futex_words(). */
	__atomic_fetch_add(&p->changes, 1, __ATOMIC_RELEASE);
	futex_wake(&p->changes, false);
}

/* ---- Being woken ---- */

unsigned
pairs_poll_fds(const struct shm *shm, struct pollfd *fds)
{
	const struct shm_pairs *p = &shm->pairs;

	for (uint32_t i = 0; i < p->count; i++)
		fds[i] =
			(struct pollfd){.fd = pair_wake_fd(&p->all[i]), .events = POLLIN};
	return p->count;
}

/* Returns whether the partner says that its packets are not taken. */
static bool
wakes_read(struct shm *shm, struct shm_pair *pair)
{
	struct engine *e = shm->dev->engines[0];
	uint8_t bytes[256];
	int fd = pair->wake_fd;
	ssize_t got = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);

	if (got > 0)
		return memchr(bytes, PAIR_LAGS, (size_t)got) != NULL;
	if (got < 0 && errno == EAGAIN)
		return false;
	/* The partner has ended. Another thread may be about to wake it. */
	engine_lock(e);
	pair->wake_fd = -1;
	engine_unlock(e);
	/* Without the lock: it may wait for a descriptor that the partner has sent. */
	close(fd);
	return false;
}

bool
pairs_wakes_read(struct shm *shm, const struct pollfd *fds, unsigned count)
{
	bool lags = false;

	for (unsigned i = 0; i < count; i++)
		if (fds[i].revents != 0)
			lags |= wakes_read(shm, &shm->pairs.all[i]);
	return lags;
}

/* ---- Events of the daemon ---- */

/* Returns the partner's pair, or NULL. */
static struct shm_pair *
pair_find(struct shm_pairs *p, uint32_t partner)
{
	for (uint32_t i = 0; i < p->count; i++)
		if (p->all[i].own != NULL && p->all[i].partner == partner)
			return &p->all[i];
	return NULL;
}

static struct shm_pair *
pair_free_slot(struct shm_pairs *p)
{
	for (uint32_t i = 0; i < PAIRS_MAX; i++)
		if (p->all[i].own == NULL)
			return &p->all[i];
	return NULL;
}

/* Maps the own part, and keeps the connection with the partner. Returns whether that was possible. */
static bool
pair_own(struct shm *shm, const struct sw_reply *reply, int *fds)
{
	struct shm_pairs *p = &shm->pairs;
	struct shm_pair *pair = pair_free_slot(p);
	struct engine *e = shm->dev->engines[0];
	void *own;

	if (pair == NULL || reply->client_id == 0 ||
		pair_find(p, reply->client_id) != NULL ||
		memcmp(&reply->pair, &p->geom, sizeof(p->geom)) != 0 || fds[1] < 0 ||
		pair_part_map(fds[0], &p->geom, true, &own) != 0)
		return false;
	engine_lock(e);
	*pair = (struct shm_pair){.own = own,
		.wake_fd = fds[1],
		.lag_ns = PAIR_LAG_NS,
		.partner = reply->client_id,
		.full_cons = 0u - p->geom.slots / 2};
	if (p->count < (uint32_t)(pair - p->all) + 1)
		__atomic_store_n(
			&p->count, (uint32_t)(pair - p->all) + 1, __ATOMIC_RELAXED);
	engine_unlock(e);
	fds[1] = -1;
	return true;
}

/* Maps the partner's part: the pair can be used. */
static bool
pair_begin(struct shm *shm, const struct sw_reply *reply, int fd)
{
	struct shm_pairs *p = &shm->pairs;
	struct shm_pair *pair = pair_find(p, reply->client_id);
	struct engine *e = shm->dev->engines[0];
	void *peer;

	if (pair == NULL || pair->peer != NULL ||
		pair_part_map(fd, &p->geom, false, &peer) != 0)
		return false;
	engine_lock(e);
	pair->taken_ns = *shm->now;
	pthread_mutex_lock(&p->sleep_lock);
	pair->peer = peer;
	pthread_mutex_unlock(&p->sleep_lock);
	__atomic_store_n(&pair->own->reads, 1, __ATOMIC_RELAXED);
	qps_change(shm, pair->partner, (uint8_t)(pair - p->all + 1));
	engine_unlock(e);
	/* The application's threads may sleep, and do not know of this pair. */
	pairs_show_asleep(shm);
	pairs_changed(p);
	(void)engine_request_pass(e);
	return true;
}

/* Returns whether there are packets of the pair that can be taken. Another thread may be in the middle
 * of a pass: the engine lock is waited for. */
static bool
pair_drain_goes_on(struct shm *shm, const struct shm_pair *pair, uint32_t *cons)
{
	struct engine *e = shm->dev->engines[0];
	bool taken, shown;

	engine_lock(e);
	taken = pair->cons != *cons;
	*cons = pair->cons;
	pairs_peek(shm);
	shown = pair->ready != 0;
	engine_unlock(e);
	return taken && shown;
}

/* Takes the packets that the partner has shown before its end. */
static void
pair_drain(struct shm *shm, const struct shm_pair *pair)
{
	uint32_t cons =
		pair->cons - 1; /* the first time there is nothing to compare with */

	for (uint32_t i = 0; i < shm->pairs.geom.slots; i++) {
		if (!pair_drain_goes_on(shm, pair, &cons))
			break;
		(void)engine_request_pass(shm->dev->engines[0]);
	}
}

static void
pair_leave(struct shm *shm, uint32_t partner)
{
	struct shm_pairs *p = &shm->pairs;
	struct shm_pair *pair = pair_find(p, partner), old;
	struct engine *e = shm->dev->engines[0];

	if (pair == NULL)
		return;
	if (pair->peer != NULL)
		pair_drain(shm, pair);
	engine_lock(e);
	assert(pair->lent == 0); /* each pass releases what it has taken */
	old = *pair;
	pthread_mutex_lock(&p->sleep_lock);
	*pair = (struct shm_pair){.own = NULL};
	while (p->count != 0 && p->all[p->count - 1].own == NULL)
		__atomic_store_n(&p->count, p->count - 1, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&p->sleep_lock);
	qps_change(shm, partner, 0);
	engine_unlock(e);
	pairs_changed(p);
	pair_unmap(p, &old);
}

/* Does what the event asks for. Returns the event to acknowledge. The caller closes the descriptors that
 * are left. */
static uint32_t
pair_event_handle(struct shm *shm, const struct sw_reply *reply, int fds[PAIR_FDS])
{
	bool done = true;

	switch (reply->qpn) {
	case SW_PAIR_OWN:
		done = pair_own(shm, reply, fds);
		break;
	case SW_PAIR_PEER:
		done = pair_begin(shm, reply, fds[0]);
		break;
	case SW_PAIR_END:
		pair_leave(shm, reply->client_id);
		break;
	default:
		done = false;
		break;
	}
	return done ? reply->qpn : SW_PAIR_FAILED;
}

/* Returns the partner of a pair whose index is invalid, 0: there is none. */
static uint32_t
spoiled_take(struct shm *shm)
{
	struct shm_pairs *p = &shm->pairs;
	struct engine *e = shm->dev->engines[0];
	uint32_t partner = 0;

	engine_lock(e);
	for (uint32_t i = 0; i < p->count && partner == 0; i++) {
		struct shm_pair *pair = &p->all[i];

		if (pair->spoiled && !pair->spoiled_told) {
			pair->spoiled_told = true;
			partner = pair->partner;
		}
	}
	p->spoiled = partner != 0;
	engine_unlock(e);
	return partner;
}

/* Asks for an event, and does what it asks for. Returns false if the session has ended. req: acknowledges the
 * event before; for the next call, this one. */
static bool
event_serve(struct shm *shm, struct sw_request *req)
{
	struct sw_reply reply = {.qpn = SW_PAIR_NONE};
	int fds[PAIR_FDS];

	if (session_call(&shm->session, req, &reply, fds, PAIR_FDS) != 0)
		return false;
	req->qpn = reply.client_id;
	req->dest_qpn = reply.qpn == SW_PAIR_NONE ? SW_PAIR_NONE
						  : pair_event_handle(shm, &reply, fds);
	for (unsigned i = 0; i < PAIR_FDS; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	return true;
}

void
pairs_serve(struct shm *shm)
{
	struct sw_request req = {.type = SW_PAIR};
	bool served;

	do {
		if (req.dest_qpn == SW_PAIR_NONE) {
			req.qpn = spoiled_take(shm);
			req.dest_qpn = req.qpn != 0 ? SW_PAIR_FAILED : SW_PAIR_NONE;
		}
		pthread_mutex_lock(&shm->pairs.serve_lock);
		served = event_serve(shm, &req);
		pthread_mutex_unlock(&shm->pairs.serve_lock);
	} while (served &&
		 (req.dest_qpn != SW_PAIR_NONE ||
			 __atomic_load_n(&shm->pairs.spoiled, __ATOMIC_RELAXED)));
}
