/* SPDX-License-Identifier: BSD-3-Clause */
/* Peers: lookup by GID, the accounting of the window, and the list of peers that have
 * blocked QPs. */
#include <errno.h>
#include <string.h>

#include "case.h"
#include "qp/qp.h"

#include "../rand.h"

#define WINDOW 100

static struct peers peers;
static size_t mem_used;
static unsigned gets_left; /* grants of memory before it is refused */

static void *
counted_get(void *ctx, const char *name, size_t len)
{
	(void)ctx;
	if (gets_left == 0)
		return NULL;
	gets_left--;
	mem_used += len;
	return alloc_get(&alloc_plain, name, len);
}

static void
counted_put(void *ctx, void *mem, size_t len)
{
	(void)ctx;
	mem_used -= len;
	alloc_put(&alloc_plain, mem, len);
}

static const struct alloc counted = {.get = counted_get, .put = counted_put};

static int
setup(void **state)
{
	gets_left = UINT32_MAX;
	return peers_init(&peers, &counted, WINDOW, &(struct cc_conf){0});
}

static int
teardown(void **state)
{
	peers_fini(&peers);
	assert_int_equal(mem_used, 0);
	return 0;
}

struct gid {
	uint8_t raw[16];
};

/* ::ffff:10.x.y.z */
static struct gid
gid_ipv4(uint32_t host)
{
	return (struct gid){{[10] = 0xff,
		[11] = 0xff,
		[12] = 10,
		[13] = (uint8_t)(host >> 16),
		[14] = (uint8_t)(host >> 8),
		[15] = (uint8_t)host}};
}

static struct peer *
get(struct gid gid)
{
	return peer_get(&peers, gid.raw, false);
}

static unsigned
chain_len(uint32_t bucket)
{
	const struct peer *peer;
	unsigned n = 0;

	LIST_FOREACH(peer, &peers.buckets[bucket], link)
	{
		n++;
	}
	return n;
}

/* ---- Lookup ---- */

/* QPs with the same destination get one peer, which lives as long as one of them. */
TEST_WITH(one_peer_for_each_gid, setup, teardown)
{
	struct peer *peer = get(gid_ipv4(1)), *other;

	assert_int_equal(peer->qps, 1);
	assert_int_equal(peer->send.window, WINDOW);
	assert_ptr_equal(get(gid_ipv4(1)), peer);
	assert_int_equal(peer->qps, 2);
	other = get(gid_ipv4(2));
	assert_ptr_not_equal(other, peer);
	assert_int_equal(peers.count, 2);
	peer_put(&peers, peer);
	assert_ptr_equal(get(gid_ipv4(1)), peer);
	peer_put(&peers, peer);
	peer_put(&peers, peer);
	assert_int_equal(peers.count, 1);
	peer_put(&peers, other);
}

/* Behind the daemon, local peers are lossless, and only those. */
TEST_WITH(local_peers_of_a_client_are_lossless, setup, teardown)
{
	for (unsigned i = 0; i < 4; i++) {
		bool client = i & 1, local = i >> 1;
		struct peer *peer;

		peers.lossless = client;
		peer = peer_get(&peers, gid_ipv4(1).raw, local);
		assert_int_equal(peer->lossless, client && local);
		peer_put(&peers, peer);
	}
}

/* Two GIDs that differ in any one bit are two peers. */
TEST_WITH(every_bit_of_the_gid_counts, setup, teardown)
{
	struct peer *peer = get(gid_ipv4(5));

	for (unsigned bit = 0; bit < 128; bit++) {
		struct gid gid = gid_ipv4(5);
		struct peer *other;

		gid.raw[bit / 8] ^= (uint8_t)(1 << bit % 8);
		other = get(gid);
		assert_ptr_not_equal(other, peer);
		assert_memory_equal(other->gid, gid.raw, 16);
		peer_put(&peers, other);
	}
	assert_ptr_equal(get(gid_ipv4(5)), peer);
	peer_put(&peers, peer);
	peer_put(&peers, peer);
}

/* Peers of one bucket are found, and leave it from its start, its middle and its end. */
TEST_WITH(peers_of_one_bucket, setup, teardown)
{
	enum { N = 40 };
	struct peer *peer[N];
	struct gid gid[N];
	unsigned n = 0;

	for (uint32_t host = 0; n < N; host++) {
		peer[n] = get(gid_ipv4(host));
		gid[n] = gid_ipv4(host);
		if (LIST_FIRST(&peers.buckets[0]) == peer[n])
			n++;
		else
			peer_put(&peers, peer[n]);
	}
	assert_int_equal(chain_len(0), N);
	for (unsigned i = 0; i < N; i++) {
		unsigned gone = i * 7 % N;

		peer_put(&peers, peer[gone]);
		peer[gone] = NULL;
		for (unsigned k = 0; k < N; k++) {
			if (peer[k] == NULL)
				continue;
			assert_ptr_equal(get(gid[k]), peer[k]);
			peer_put(&peers, peer[k]);
		}
	}
}

/* The table grows with its peers: buckets stay short, and every peer is found. */
TEST_WITH(ten_thousand_peers, setup, teardown)
{
	enum { N = 10000 };
	static struct peer *peer[N];
	uint64_t rand = 17;

	for (unsigned i = 0; i < N; i++)
		peer[i] = get(gid_ipv4(i));
	assert_int_equal(peers.count, N);
	for (uint32_t i = 0; i <= peers.mask; i++)
		assert_in_range(chain_len(i), 0, 12);
	for (unsigned i = 0; i < N; i++) {
		assert_ptr_equal(get(gid_ipv4(i)), peer[i]);
		assert_int_equal(peer[i]->qps, 2);
		peer_put(&peers, peer[i]);
	}
	for (unsigned left = N; left != 0; left--) {
		unsigned i = (unsigned)rand_below(&rand, left);

		peer_put(&peers, peer[i]);
		peer[i] = peer[left - 1];
	}
	assert_int_equal(peers.count, 0);
}

/* Without memory there is no new peer. Without memory for more buckets there is. */
TEST_WITH(no_memory, setup, teardown)
{
	enum { N = 200 };
	struct peer *peer[N];
	uint32_t mask = peers.mask;
	struct peers other;

	gets_left = 0;
	assert_int_equal(peers_init(&other, &counted, 1, &(struct cc_conf){0}), -ENOMEM);
	peers_fini(&other);
	assert_null(get(gid_ipv4(1)));
	assert_int_equal(peers.count, 0);
	for (unsigned i = 0; i < N; i++) {
		gets_left = 1;
		peer[i] = get(gid_ipv4(i));
		assert_non_null(peer[i]);
	}
	assert_int_equal(peers.mask, mask);
	gets_left = 2;
	peer_put(&peers, get(gid_ipv4(N)));
	assert_int_equal(peers.mask, 2 * mask + 1);
	for (unsigned i = 0; i < N; i++) {
		assert_ptr_equal(get(gid_ipv4(i)), peer[i]);
		peer_put(&peers, peer[i]);
		peer_put(&peers, peer[i]);
	}
}

/* ---- The window ---- */

TEST_WITH(charges_fill_the_window, setup, teardown)
{
	struct peer *peer = get(gid_ipv4(1));
	struct peer_window *w = &peer->send;

	assert_int_equal(peer_room(w), WINDOW);
	peer_charge(w, 0, 60);
	peer_charge(w, 0, 39); /* another QP */
	assert_int_equal(peer_room(w), 1);
	assert_false(peer_full(w));
	peer_charge(w, 60, 61);
	assert_true(peer_full(w));
	assert_int_equal(peer_room(w), 0);
	/* The other window is not concerned. A READ exceeds it. */
	assert_int_equal(peer_room(&peer->read), WINDOW);
	peer_charge(&peer->read, 0, WINDOW + 50);
	assert_int_equal(peer_room(&peer->read), 0);
	peer_charge(&peer->read, WINDOW + 50, 0);
	peer_charge(w, 61, 0);
	assert_int_equal(peer_room(w), WINDOW - 39);
	peer_charge(w, 39, 0);
	assert_int_equal(w->inflight, 0);
	peer_put(&peers, peer);
}

/* ---- Blocked QPs ---- */

/* Windows are listed while they have blocked QPs, in the order in which they got the first;
 * QPs of a window in the order in which they were blocked. */
TEST_WITH(blocked_in_order, setup, teardown)
{
	static struct qp qp[4];
	struct peer *one = get(gid_ipv4(1)), *two = get(gid_ipv4(2));
	struct peer_window *a = &one->send, *b = &two->send;

	for (unsigned i = 0; i < 4; i++)
		qp[i] = (struct qp){.peer = i == 1 ? two : one, .untimed = 1};
	for (unsigned i = 0; i < 4; i++)
		peer_block(&peers, &qp[i], &qp[i].peer->send);
	peer_block(&peers, &qp[0], a); /* it stays in place */
	assert_ptr_equal(TAILQ_FIRST(&peers.blocked), a);
	assert_ptr_equal(TAILQ_NEXT(a, blocked_link), b);
	assert_null(TAILQ_NEXT(b, blocked_link));
	assert_ptr_equal(TAILQ_FIRST(&a->blocked), &qp[0]);
	assert_ptr_equal(TAILQ_NEXT(&qp[0], blocked_link), &qp[2]);
	assert_ptr_equal(TAILQ_NEXT(&qp[2], blocked_link), &qp[3]);
	assert_null(TAILQ_NEXT(&qp[3], blocked_link));

	peer_unblock(&peers, &qp[2]);
	assert_false(qp[2].sched.on_blocked);
	peer_unblock(&peers, &qp[2]); /* nothing happens */
	peer_unblock(&peers, &qp[0]);
	assert_ptr_equal(TAILQ_FIRST(&peers.blocked), a);
	assert_ptr_equal(TAILQ_FIRST(&a->blocked), &qp[3]);
	peer_unblock(&peers, &qp[3]);
	assert_ptr_equal(TAILQ_FIRST(&peers.blocked), b);
	assert_null(TAILQ_NEXT(b, blocked_link));
	peer_block(&peers, &qp[0], a);
	assert_ptr_equal(TAILQ_NEXT(b, blocked_link), a);
	peer_unblock(&peers, &qp[1]);
	peer_unblock(&peers, &qp[0]);
	assert_true(TAILQ_EMPTY(&peers.blocked));
	peer_put(&peers, one);
	peer_put(&peers, two);
}

/* A QP is blocked on one window at a time. */
TEST_WITH(blocked_on_the_other_window, setup, teardown)
{
	struct peer *peer = get(gid_ipv4(1));
	static struct qp qp[2];

	for (unsigned i = 0; i < 2; i++) {
		qp[i] = (struct qp){.peer = peer, .untimed = 1};
		peer_block(&peers, &qp[i], &peer->send);
	}
	assert_int_equal(peer->send.qps_blocked, 2);
	peer_block(&peers, &qp[0], &peer->read);
	assert_int_equal(qp[0].sched.on_blocked, BLOCKED_READ);
	assert_int_equal(peer->send.qps_blocked, 1);
	assert_int_equal(peer->read.qps_blocked, 1);
	assert_ptr_equal(TAILQ_FIRST(&peer->read.blocked), &qp[0]);
	assert_ptr_equal(TAILQ_FIRST(&peer->send.blocked), &qp[1]);
	assert_ptr_equal(TAILQ_FIRST(&peers.blocked), &peer->send);
	assert_ptr_equal(TAILQ_NEXT(&peer->send, blocked_link), &peer->read);
	peer_unblock(&peers, &qp[1]);
	assert_ptr_equal(TAILQ_FIRST(&peers.blocked), &peer->read);
	peer_unblock(&peers, &qp[0]);
	assert_true(TAILQ_EMPTY(&peers.blocked));
	peer_put(&peers, peer);
}
