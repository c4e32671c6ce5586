/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
#include <errno.h>
#include <string.h>

#include "qp/peer.h"
#include "qp/req_time.h"

#define BUCKETS_MIN 64u

static struct peer_bucket *
bucket_of(const struct peers *peers, const uint8_t gid[16])
{
	uint64_t half[2], hash;

	memcpy(half, gid, sizeof(half));
	/* Addresses often differ in their last byte alone, which is the highest here. A
	 * product depends on it in its highest byte only, so that is folded down. */
	hash = half[0] ^ half[1] * UINT64_C(0x9E3779B97F4A7C15);
	hash = (hash ^ hash >> 32) * UINT64_C(0xD6E8FEB86659FD93);
	return &peers->buckets[(hash >> 32) & peers->mask];
}

/* Control path. */

static struct peer_bucket *
buckets_get(const struct peers *peers, uint32_t n)
{
	return alloc_get(peers->mem, "peers", n * sizeof(struct peer_bucket));
}

static void
buckets_put(const struct peers *peers, struct peer_bucket *buckets, uint32_t n)
{
	alloc_put(peers->mem, buckets, n * sizeof(*buckets));
}

/* Data path. */

int
peers_init(struct peers *peers, const struct alloc *mem, uint32_t cap,
	const struct cc_conf *cc)
{
	*peers = (struct peers){
		.mem = mem, .mask = BUCKETS_MIN - 1, .cap = cap, .cc = *cc};
	TAILQ_INIT(&peers->blocked);
	TAILQ_INIT(&peers->asking);
	peers->buckets = buckets_get(peers, BUCKETS_MIN);
	return peers->buckets != NULL ? 0 : -ENOMEM;
}

void
peers_fini(struct peers *peers)
{
	assert(peers->count == 0 && TAILQ_EMPTY(&peers->blocked));
	buckets_put(peers, peers->buckets, peers->mask + 1);
}

/* Doubles the number of buckets. Without memory for that, the buckets get longer. */
static void
buckets_grow(struct peers *peers)
{
	uint32_t before = peers->mask + 1;
	struct peer_bucket *old = peers->buckets,
			   *buckets = buckets_get(peers, 2 * before);
	struct peer *peer;

	if (buckets == NULL)
		return;
	peers->buckets = buckets;
	peers->mask = 2 * before - 1;
	for (uint32_t i = 0; i < before; i++) {
		while ((peer = LIST_FIRST(&old[i])) != NULL) {
			LIST_REMOVE(peer, link);
			LIST_INSERT_HEAD(bucket_of(peers, peer->gid), peer, link);
		}
	}
	buckets_put(peers, old, before);
}

/* Control path. */

static void
window_init(struct peer_window *w, struct cc *cc, const struct cc_conf *conf)
{
	cc_init(cc, conf, w->cap);
	w->cc = cc;
	w->window = w->cap;
	TAILQ_INIT(&w->blocked);
	peer_window_set(w, 0);
}

void
peer_windows_init(struct peer *peer, uint32_t cap, const struct cc_conf *cc)
{
	peer->send.cap = peer->read.cap = cap;
	window_init(&peer->send, &peer->send_cc, cc);
	window_init(&peer->read, &peer->read_cc, cc);
}

static struct peer *
peer_create(struct peers *peers, const uint8_t gid[16], bool local)
{
	static const struct cc_conf off = {0};
	struct peer *peer = alloc_get(peers->mem, "peer", sizeof(*peer));

	if (peer == NULL)
		return NULL;
	if (peers->count > peers->mask)
		buckets_grow(peers);
	memcpy(peer->gid, gid, 16);
	peer->ext_state = local ? PEER_EXT_LOCAL : PEER_EXT_UNKNOWN;
	peer->lossless = local && peers->lossless;
	peer_windows_init(peer, peers->cap, local ? &off : &peers->cc);
	LIST_INSERT_HEAD(bucket_of(peers, gid), peer, link);
	peers->count++;
	return peer;
}

/* Data path. */

struct peer *
peer_get(struct peers *peers, const uint8_t gid[16], bool local)
{
	struct peer *peer;

	LIST_FOREACH(peer, bucket_of(peers, gid), link)
	{
		if (memcmp(peer->gid, gid, 16) == 0)
			break;
	}
	if (peer == NULL)
		peer = peer_create(peers, gid, local);
	if (peer != NULL)
		peer->qps++;
	return peer;
}

void
peer_ext_ask(struct peers *peers, struct peer *peer, const uint8_t sgid[16])
{
	bool again = peer->ext_state == PEER_EXT_NONE;

	if (peers->ext_off || (peer->ext_state != PEER_EXT_UNKNOWN && !again))
		return;
	memcpy(peer->ext_sgid, sgid, 16);
	peer->ext_state = PEER_EXT_ASK;
	/* The answer from before is cached (port/ext_query.h): there is no hurry. */
	peer->ext_asked = again;
	if (again)
		TAILQ_INSERT_TAIL(&peers->asking, peer, ext_link);
	else
		TAILQ_INSERT_HEAD(&peers->asking, peer, ext_link);
}

void
peer_ext_unlink(struct peers *peers, struct peer *peer)
{
	if (peer->ext_state != PEER_EXT_ASK)
		return;
	TAILQ_REMOVE(&peers->asking, peer, ext_link);
	peer->ext_state = PEER_EXT_UNKNOWN;
}

/* Control path. */

void
peer_put(struct peers *peers, struct peer *peer)
{
	if (--peer->qps != 0)
		return;
	assert(peer->send.inflight == 0 && TAILQ_EMPTY(&peer->send.blocked));
	assert(peer->read.inflight == 0 && TAILQ_EMPTY(&peer->read.blocked));
	peer_ext_unlink(peers, peer);
	LIST_REMOVE(peer, link);
	peers->count--;
	alloc_put(peers->mem, peer, sizeof(*peer));
}

/* Data path. */

void
peer_block(struct peers *peers, struct qp *qp, struct peer_window *w)
{
	uint8_t on = w == &qp->peer->read ? BLOCKED_READ : BLOCKED_SEND;

	req_time_blocked(qp);
	if (qp->sched.on_blocked == on)
		return;
	peer_unblock(peers, qp);
	if (TAILQ_EMPTY(&w->blocked))
		TAILQ_INSERT_TAIL(&peers->blocked, w, blocked_link);
	TAILQ_INSERT_TAIL(&w->blocked, qp, blocked_link);
	w->qps_blocked++;
	qp->sched.on_blocked = on;
}

void
peer_unblock(struct peers *peers, struct qp *qp)
{
	struct peer_window *w;

	if (qp->sched.on_blocked == BLOCKED_NOT)
		return;
	w = qp->sched.on_blocked == BLOCKED_READ ? &qp->peer->read : &qp->peer->send;
	TAILQ_REMOVE(&w->blocked, qp, blocked_link);
	w->qps_blocked--;
	if (TAILQ_EMPTY(&w->blocked))
		TAILQ_REMOVE(&peers->blocked, w, blocked_link);
	qp->sched.on_blocked = BLOCKED_NOT;
	req_time_over(qp, SLOW_window);
}
