/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "case.h"
#include "loop/loop.h"
#include "port/rounds.h"
#include "../rand.h"

#define RING 64

/* Counts the allocations, and fails number fail_at. */
struct counting_alloc {
	size_t bytes;
	unsigned blocks;
	unsigned gets;
	unsigned fail_at;
};

static void *
counting_get(void *ctx, const char *name, size_t len)
{
	struct counting_alloc *counting_alloc = ctx;
	void *mem;

	if (++counting_alloc->gets == counting_alloc->fail_at)
		return NULL;
	mem = alloc_plain.get(NULL, name, len);
	counting_alloc->blocks += mem != NULL;
	counting_alloc->bytes += mem != NULL ? len : 0;
	return mem;
}

static void
counting_put(void *ctx, void *mem, size_t len)
{
	struct counting_alloc *counting_alloc = ctx;

	counting_alloc->blocks--;
	counting_alloc->bytes -= len;
	alloc_plain.put(NULL, mem, len);
}

struct pair {
	struct counting_alloc counting_alloc;
	struct port port[2];
};

static void
pair_open(struct pair *pair, unsigned queues)
{
	struct alloc mem = {counting_get, counting_put, &pair->counting_alloc};

	memset(pair, 0, sizeof(*pair));
	assert_int_equal(
		loop_open(queues, 2048, RING, &mem, &pair->port[0], &pair->port[1]), 0);
}

static void
pair_close(struct pair *pair)
{
	pair->port[0].ops->close(pair->port[0].drv);
	/* the other end may still use the memory */
	assert_true(pair->counting_alloc.blocks > 0);
	pair->port[1].ops->close(pair->port[1].drv);
	assert_int_equal(pair->counting_alloc.blocks, 0);
	assert_int_equal(pair->counting_alloc.bytes, 0);
}

static unsigned
frames_send(struct port *port, unsigned queue, uint64_t first, unsigned n)
{
	struct pkt pkts[PKT_BURST];
	unsigned got = port->ops->tx_alloc(port->queues[queue], pkts, n), sent;

	for (unsigned i = 0; i < got; i++) {
		uint64_t number = first + i;

		assert_int_equal(pkts[i].len, 0);
		assert_int_equal(pkts[i].room, 2048);
		pkts[i].len = (uint16_t)(64 + number % (2048 - 64 + 1));
		memset(pkts[i].data, (int)number, pkts[i].len);
		memcpy(pkts[i].data, &number, sizeof(number));
		pkts[i].flags = PKT_TX_IPV4_CKSUM;
	}
	sent = port->ops->tx_burst(port->queues[queue], pkts, got);
	port->ops->tx_release(port->queues[queue], pkts + sent, got - sent);
	return sent;
}

static unsigned
frames_receive(struct port *port, unsigned queue, uint64_t first, unsigned n)
{
	struct pkt pkts[PKT_BURST];
	unsigned got = port->ops->rx_burst(port->queues[queue], pkts, n);

	for (unsigned i = 0; i < got; i++) {
		uint64_t number;

		memcpy(&number, pkts[i].data, sizeof(number));
		assert_int_equal(number, first + i);
		assert_int_equal(pkts[i].len, 64 + number % (2048 - 64 + 1));
		for (unsigned at = sizeof(number); at < pkts[i].len; at++)
			if (pkts[i].data[at] != (uint8_t)number)
				fail_msg("frame %lu byte %u", number, at);
		assert_int_equal(pkts[i].flags, 0);
	}
	port->ops->rx_release(port->queues[queue], pkts, got);
	return got;
}

TEST(port_capabilities)
{
	struct pair pair, other;

	pair_open(&pair, 3);
	pair_open(&other, 1);
	for (unsigned side = 0; side < 2; side++) {
		const struct port *port = &pair.port[side];

		assert_int_equal(port->queue_count, 3);
		assert_int_equal(port->caps.max_frame, 2048);
		assert_int_equal(port->caps.rx_ring, RING);
		assert_false(port->caps.tx_ipv4_cksum);
		assert_int_equal(port->mac[0], 0x02);
		assert_int_equal(port->ops->wait_fd(port->queues[0]), -1);
		assert_true(port->ops->link_up(port->drv));
		for (unsigned j = 0; j < 2; j++)
			assert_memory_not_equal(port->mac, other.port[j].mac, 6);
	}
	assert_memory_not_equal(pair.port[0].mac, pair.port[1].mac, 6);
	pair_close(&pair);
	pair_close(&other);
}

TEST(wrong_arguments_are_refused)
{
	struct port a, b;

	assert_int_equal(loop_open(0, 2048, 64, &alloc_plain, &a, &b), -EINVAL);
	assert_int_equal(loop_open(1, 63, 64, &alloc_plain, &a, &b), -EINVAL);
	assert_int_equal(loop_open(1, 65536, 64, &alloc_plain, &a, &b), -EINVAL);
	assert_int_equal(loop_open(1, 2048, 0, &alloc_plain, &a, &b), -EINVAL);
	assert_int_equal(loop_open(1, 2048, 63, &alloc_plain, &a, &b), -EINVAL);
	assert_int_equal(loop_open(100000, 2048, 64, &alloc_plain, &a, &b), -EINVAL);
}

TEST(failed_allocation_leaks_nothing)
{
	for (unsigned at = 1;; at++) {
		struct counting_alloc counting_alloc = {.fail_at = at};
		struct alloc mem = {counting_get, counting_put, &counting_alloc};
		struct port a, b;
		int ret = loop_open(2, 2048, RING, &mem, &a, &b);

		if (ret == 0) {
			assert_true(at > 2);
			a.ops->close(a.drv);
			b.ops->close(b.drv);
		} else {
			assert_int_equal(ret, -ENOMEM);
		}
		assert_int_equal(counting_alloc.blocks, 0);
		assert_int_equal(counting_alloc.bytes, 0);
		if (ret == 0)
			break;
	}
}

/* From queue i to queue i, both ways, in order and whole. */
TEST(frames_arrive_whole)
{
	struct pair pair;

	pair_open(&pair, 2);
	for (unsigned round = 0; round < 200; round++)
		for (unsigned side = 0; side < 2; side++)
			for (unsigned queue = 0; queue < 2; queue++) {
				uint64_t first =
					1000000 * side + 10000000 * queue + round * 17;

				assert_int_equal(
					frames_send(&pair.port[side], queue, first, 17),
					17);
				assert_int_equal(frames_receive(&pair.port[1 - side],
							 queue, first, PKT_BURST),
					17);
				assert_int_equal(
					frames_receive(&pair.port[side], queue, 0, 1), 0);
			}
	pair_close(&pair);
}

TEST(full_ring_refuses_and_loses_nothing)
{
	struct pair pair;
	uint64_t sent = 0, got = 0;

	pair_open(&pair, 1);
	for (unsigned round = 0; round < 10; round++) {
		unsigned n;

		while ((n = frames_send(&pair.port[0], 0, sent, PKT_BURST)) > 0)
			sent += n;
		assert_int_equal(sent - got, RING);
		while ((n = frames_receive(&pair.port[1], 0, got, 7)) > 0)
			got += n;
		assert_int_equal(sent, got);
	}
	pair_close(&pair);
}

/* The pool is finite. Buffers can be released in any way and order, and allocated
 * again. */
TEST(released_buffers_can_be_allocated)
{
	struct pair pair;
	struct pkt all[1024], mixed[PKT_BURST];
	unsigned n, total = 0;

	pair_open(&pair, 2);
	while ((n = pair.port[0].ops->tx_alloc(
			pair.port[0].queues[0], all + total, PKT_BURST)) > 0)
		total += n;
	assert_true(total > RING && total < RTE_DIM(all) - PKT_BURST);
	for (unsigned i = 0; i < total; i++)
		for (unsigned j = 0; j < i; j++)
			assert_ptr_not_equal(all[i].data, all[j].data);
	/* Buffers of two queues alternate, and are released at another queue. */
	assert_int_equal(
		pair.port[0].ops->tx_alloc(pair.port[0].queues[1], mixed, PKT_BURST / 2),
		PKT_BURST / 2);
	for (unsigned i = PKT_BURST; i-- > 0;)
		mixed[i] = i % 2 == 0 ? mixed[i / 2] : all[i / 2];
	pair.port[1].ops->rx_release(pair.port[1].queues[1], mixed, PKT_BURST);
	pair.port[0].ops->tx_release(
		pair.port[0].queues[1], all + PKT_BURST / 2, total - PKT_BURST / 2);
	n = 0;
	while (pair.port[0].ops->tx_alloc(pair.port[0].queues[0], all, 1) == 1)
		n++;
	assert_int_equal(n, total);
	pair_close(&pair);
}

TEST(closed_end_discards_frames)
{
	struct pair pair;

	pair_open(&pair, 1);
	pair.port[1].ops->close(pair.port[1].drv);
	assert_false(pair.port[0].ops->link_up(pair.port[0].drv));
	for (unsigned i = 0; i < 100; i++) /* without end: no ring fills */
		assert_int_equal(frames_send(&pair.port[0], 0, i, PKT_BURST), PKT_BURST);
	pair.port[0].ops->close(pair.port[0].drv);
	assert_int_equal(pair.counting_alloc.blocks, 0);
}

#define FRAMES UINT64_C(30000)

struct runner {
	struct port *port;
	uint64_t seed;
};

/* One end: sends and receives numbered frames in bursts of random size until all have
 * arrived. */
static void *
run_end(void *arg)
{
	struct runner *runner = arg;
	uint64_t sent = 0, got = 0, rand = runner->seed;

	while (sent < FRAMES || got < FRAMES) {
		unsigned want = 1 + rand_below(&rand, PKT_BURST), moved;

		moved = frames_receive(runner->port, 0, got, want);
		got += moved;
		want = RTE_MIN(want, FRAMES - sent);
		if (want > 0) {
			unsigned n = frames_send(runner->port, 0, sent, want);

			sent += n;
			moved += n;
		}
		if (moved == 0)
			sched_yield();
	}
	return NULL;
}

/* Both ends at once, also for the thread sanitizer. */
TEST(both_ends_in_two_threads)
{
	struct pair pair;
	struct runner runners[2];
	pthread_t thread;

	pair_open(&pair, 1);
	for (unsigned i = 0; i < 2; i++)
		runners[i] = (struct runner){.port = &pair.port[i], .seed = i + 1};
	assert_int_equal(pthread_create(&thread, NULL, run_end, &runners[0]), 0);
	run_end(&runners[1]);
	pthread_join(thread, NULL);
	pair_close(&pair);
}

struct helper {
	struct port *port;
	struct pkt pkts[PKT_BURST];
	unsigned n; /* packets to release, 0: none; release/acquire */
	bool stop;
};

static void *
run_releaser(void *arg)
{
	struct helper *helper = arg;

	while (!__atomic_load_n(&helper->stop, __ATOMIC_ACQUIRE)) {
		unsigned n = __atomic_load_n(&helper->n, __ATOMIC_ACQUIRE);

		if (n == 0) {
			sched_yield();
			continue;
		}
		helper->port->ops->rx_release(helper->port->queues[1], helper->pkts, n);
		__atomic_store_n(&helper->n, 0, __ATOMIC_RELEASE);
	}
	return NULL;
}

/* Packets handed to another thread are released there while the sender allocates. */
TEST(another_thread_releases)
{
	struct helper helper = {0};
	struct pair pair;
	pthread_t thread;
	uint64_t done = 0;

	pair_open(&pair, 2);
	helper.port = &pair.port[1];
	assert_int_equal(pthread_create(&thread, NULL, run_releaser, &helper), 0);
	while (done < FRAMES) {
		unsigned n = frames_send(&pair.port[0], 0, done, 8);

		assert_int_equal(n, 8);
		if (__atomic_load_n(&helper.n, __ATOMIC_ACQUIRE) != 0) {
			assert_int_equal(frames_receive(&pair.port[1], 0, done, n), n);
		} else {
			n = pair.port[1].ops->rx_burst(
				pair.port[1].queues[0], helper.pkts, PKT_BURST);
			assert_int_equal(n, 8);
			__atomic_store_n(&helper.n, n, __ATOMIC_RELEASE);
		}
		done += n;
	}
	__atomic_store_n(&helper.stop, true, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	pair_close(&pair);
}

/* The engines of both sides. Those of a side that is closed make no passes any more. */
TEST(engines_share_rounds)
{
	struct pair pair;
	struct rounds *rounds = NULL;

	pair_open(&pair, 2);
	for (unsigned i = 0; i < 4; i++) {
		struct port *port = &pair.port[i / 2];
		uint32_t index;
		struct rounds *r = port->ops->rounds(port->queues[i % 2], &index);

		assert_true(rounds == NULL || rounds == r);
		assert_int_equal(index, i);
		rounds = r;
	}
	assert_int_equal(rounds->count, 4);
	for (unsigned i = 0; i < 2; i++)
		rounds->engines[2 + i].done = 1;
	assert_false(rounds_has_ended(rounds, 1));
	pair.port[0].ops->close(pair.port[0].drv);
	assert_true(rounds_has_ended(rounds, 1));
	pair.port[1].ops->close(pair.port[1].drv);
}
