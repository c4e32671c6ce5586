/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads of the switch: which one gets a client, and that control calls exclude their passes. */
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include "await.h"
#include "uplink_fixture.h"
#include "base/futex.h"
#include "../../lib/emulated.h"

#define ROUNDS 2000 /* of control calls, while packets move */

TEST(clients_are_spread)
{
	static const uint32_t one_user[CLIENTS] = {0};
	struct switch_fixture b;

	fixture_open_threads(&b, one_user, 3);
	for (unsigned i = 0; i < CLIENTS; i++) {
		assert_int_equal(b.c[i].client->thread->index, i);
		assert_int_equal(b.sw->threads[i]->client_count, 1);
	}
	client_detach(&b.c[1]);
	client_attach(&b, &b.c[1]);
	assert_int_equal(b.c[1].client->thread->index, 1);
	/* A thread that does not run gets none. */
	client_detach(&b.c[1]);
	client_detach(&b.c[2]);
	b.sw->threads[1]->running = false;
	client_attach(&b, &b.c[1]);
	client_attach(&b, &b.c[2]);
	assert_int_equal(b.c[1].client->thread->index, 2);
	assert_int_equal(b.c[2].client->thread->index, 0);
	fixture_close(&b);
}

TEST(number_of_threads_is_limited)
{
	struct switch_fixture b;
	struct sw_conf conf;
	struct sw *sw;

	fixture_open(&b);
	conf = b.sw->conf;
	assert_int_equal(b.sw->thread_count, 1);
	conf.threads = SW_THREADS_MAX + 1;
	assert_int_equal(sw_create(&conf, client_wake, &sw), -EINVAL);
	conf.threads = SW_THREADS_MAX;
	assert_int_equal(sw_create(&conf, client_wake, &sw), 0);
	assert_int_equal(sw->thread_count, SW_THREADS_MAX);
	sw_destroy(sw);
	fixture_close(&b);
}

TEST(port_needs_a_queue_for_each_thread)
{
	struct uplink_fixture u;
	struct uplink *up;

	up_open_threads(&u, 0, 2);
	u.port.port.queue_count = 1;
	assert_int_equal(
		uplink_create(u.b.sw, &u.port.port, &u.b.sw->conf.net, PORT_MTU, &up),
		-EINVAL);
	up_close(&u);
}

static struct uplink_fixture shared;
static bool stopping;

static bool
is_stopping(void)
{
	return __atomic_load_n(&stopping, __ATOMIC_RELAXED);
}

static void *
thread_main(void *arg)
{
	for (uint64_t now = NS_PER_SEC; !is_stopping(); now += NS_PER_US) {
		if (sw_thread_run(arg, now) == 0)
			sched_yield();
	}
	return NULL;
}

#define IP_END 34 /* of a frame: from here on it arrives as it was sent */

struct exchange {
	struct fixture_client *c;
	const struct frame_spec *f, *want; /* that it sends, and gets */
	uint32_t sent, received, wrong;
};

/* Sends, and takes what comes, as a client does. */
static void *
client_main(void *arg)
{
	struct exchange *x = arg;
	uint8_t want[CLIENT_BUF_SIZE];
	uint16_t len = frame_spec_build(want, x->want);

	while (!is_stopping()) {
		struct ring_desc desc = {.buf = x->sent % CLIENT_BUFS, .qpn = x->c->qpn};

		if (ring_prod_refresh(&x->c->tx) && ring_room(&x->c->tx) != 0) {
			desc.len = frame_spec_build(
				region_tx_buf(&x->c->region, desc.buf), x->f);
			ring_put(&x->c->tx, &desc);
			ring_publish(&x->c->tx);
			x->sent++;
		}
		while (ring_cons_refresh(&x->c->rx) && ring_count(&x->c->rx) != 0) {
			desc = ring_peek(&x->c->rx, 0);
			x->received++;
			x->wrong += desc.len != len ||
				    memcmp(region_rx_buf(&x->c->region,
						   x->c->rx.cons & x->c->rx.mask) +
						    IP_END,
					    want + IP_END, len - IP_END) != 0;
			ring_release(&x->c->rx, 1);
		}
		sched_yield();
	}
	return NULL;
}

/* Control calls that change what the threads read, and read what they write. */
static void
control_calls(struct switch_fixture *b)
{
	struct sw_stats stats;
	struct sw_thread_stats thread;
	struct port_stats port;
	uint32_t qpn = client_take_qpn(b, &b->c[2]);
	struct sw_request req = {.type = SW_QPN_GIVE, .qpn = qpn};
	struct sw_reply reply;

	assert_int_equal(client_set_peer(b, &b->c[2], qpn, b->addr, b->c[0].qpn), 0);
	/* Both ends of the connection that carries packets register their peer anew. */
	assert_int_equal(
		client_set_peer(b, &b->c[0], b->c[0].qpn, b->addr, b->c[1].qpn), 0);
	assert_int_equal(
		client_set_peer(b, &b->c[1], b->c[1].qpn, b->addr, b->c[0].qpn), 0);
	client_request(b, &b->c[2], &req, &reply);
	assert_int_equal(reply.error, 0);
	sw_client_stats_read(b->c[1].client, &stats);
	sw_thread_stats_read(b->sw->threads[1], &thread);
	uplink_stats_read(b->sw->up, &port);
	(void)sw_client_rx_waiting(b->c[1].client);
	assert_false(sw_client_is_corrupt(b->c[1].client));
	sw_set_net(b->sw, &b->sw->conf.net);
	sw_changed(b->sw, true);
	/* A client of thread 1 comes and goes. */
	client_detach(&b->c[2]);
	client_attach(b, &b->c[2]);
}

TEST(control_calls_beside_two_threads)
{
	struct switch_fixture *b = &shared.b;
	struct frame_spec there, back;
	struct exchange x[2] = {{.c = &b->c[0], .f = &there, .want = &back},
		{.c = &b->c[1], .f = &back, .want = &there}};
	pthread_t threads[3];
	struct sw_stats stats;

	up_open_threads(&shared, 0, 2);
	there = back = frame_spec_valid(b);
	back.dest_qpn = b->c[0].qpn;
	/* So that the client that comes and goes is thread 1's. */
	b->sw->threads[0]->client_count += CLIENTS;
	__atomic_store_n(&stopping, false, __ATOMIC_RELAXED);
	assert_int_equal(
		pthread_create(&threads[0], NULL, thread_main, b->sw->threads[1]), 0);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(
			pthread_create(&threads[i + 1], NULL, client_main, &x[i]), 0);
	for (unsigned i = 0; i < ROUNDS; i++) {
		up_pass(&shared);
		if (i % 16 == 0)
			control_calls(b);
		b->now += NS_PER_US;
		sched_yield();
	}
	/* Until packets have gone both ways. */
	do {
		up_pass(&shared);
		b->now += NS_PER_US;
		sched_yield();
		sw_client_stats_read(b->c[1].client, &stats);
	} while (stats.rx_packets < 100 || b->c[0].client->stats.rx_packets < 100);
	__atomic_store_n(&stopping, true, __ATOMIC_RELAXED);
	for (unsigned i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	b->sw->threads[0]->client_count -= CLIENTS;
	for (unsigned i = 0; i < 2; i++) {
		assert_int_not_equal(x[i].received, 0);
		assert_int_equal(x[i].wrong, 0);
	}
	/* No packet was checked while a peer was being registered. */
	sw_client_stats_read(b->c[1].client, &stats);
	assert_int_equal(stats.drop_peer, 0);
	assert_int_equal(stats.drop_not_connected, 0);
	assert_int_equal(b->c[2].client->thread->index, 1);
	assert_int_equal(b->sw->corrupt_count, 0);
	up_close(&shared);
}

/* Client 1 of thread 1 sends to client 0, whose QP loses and gets its peer meanwhile. */
TEST(packets_wait_beside_two_threads)
{
	struct switch_fixture *b = &shared.b;
	struct frame_spec there, back;
	struct exchange x = {.c = &b->c[1], .f = &back, .want = &there};
	struct sw_request clear = {.type = SW_PEER_CLEAR};
	struct sw_stats stats = {0};
	struct sw_reply reply;
	uint32_t received = 0;
	pthread_t threads[2];

	up_open_threads(&shared, 0, 2);
	there = back = frame_spec_valid(b);
	clear.qpn = back.dest_qpn = b->c[0].qpn;
	__atomic_store_n(&stopping, false, __ATOMIC_RELAXED);
	assert_int_equal(
		pthread_create(&threads[0], NULL, thread_main, b->sw->threads[1]), 0);
	assert_int_equal(pthread_create(&threads[1], NULL, client_main, &x), 0);
	for (unsigned i = 0; i < 1000 * ROUNDS && (stats.waited < 10 || received < 10);
		i++) {
		up_pass(&shared);
		if (i % 16 == 0)
			client_request(b, &b->c[0], &clear, &reply);
		if (i % 16 == 8)
			assert_int_equal(client_set_peer(b, &b->c[0], b->c[0].qpn,
						 b->addr, b->c[1].qpn),
				0);
		while (client_received(&b->c[0], &back))
			received++;
		b->now += NS_PER_US;
		sw_client_stats_read(b->c[1].client, &stats);
		sched_yield();
	}
	__atomic_store_n(&stopping, true, __ATOMIC_RELAXED);
	for (unsigned i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	assert_true(stats.waited >= 10 && received >= 10);
	assert_int_equal(stats.drop_not_connected + stats.drop_peer, 0);
	up_close(&shared);
}

static void
post(struct fixture_client *c, const struct frame_spec *f)
{
	uint32_t buf = c->tx.prod % CLIENT_BUFS;

	client_post(c, buf, c->qpn, frame_spec_build(region_tx_buf(&c->region, buf), f));
}

static unsigned woken[2];

static void
wake_count(void *arg, uint32_t index)
{
	assert_ptr_equal(arg, &shared);
	woken[index]++;
}

/* A thread that sleeps is woken once, when something is shown to it, and does not go to sleep while
 * there is something to take. */
TEST(sleeping_thread_is_woken)
{
	struct switch_fixture *b = &shared.b;
	struct frame_spec there, back;

	up_open_threads(&shared, 0, 2);
	b->sw->wake_thread_arg = &shared;
	b->sw->wake_thread = wake_count;
	woken[0] = woken[1] = 0;
	there = back = frame_spec_valid(b);
	back.dest_qpn = b->c[0].qpn;
	/* One that is awake is not woken. */
	post(&b->c[0], &there);
	up_pass(&shared);
	assert_int_equal(woken[1], 0);
	assert_false(sw_thread_sleep(b->sw->threads[1]));
	assert_int_equal(sw_thread_run(b->sw->threads[1], b->now), 1);
	assert_true(client_received(&b->c[1], &there));
	for (unsigned i = 1; i <= 3; i++) {
		while (!sw_thread_sleep(b->sw->threads[1]))
			b->now += NS_PER_MS, sw_thread_run(b->sw->threads[1], b->now);
		for (unsigned k = 0; k < 2; k++) {
			post(&b->c[0], &there);
			up_pass(&shared);
			assert_int_equal(woken[1], i);
		}
		sw_thread_awake(b->sw->threads[1]);
		assert_int_equal(sw_thread_run(b->sw->threads[1], b->now), 2);
		for (unsigned k = 0; k < 2; k++)
			assert_true(client_received(&b->c[1], &there));
	}
	assert_int_equal(b->sw->threads[0]->stats.thread_wakeups, 3);
	/* The control thread, too. */
	while (!sw_sleep(b->sw))
		b->now += NS_PER_MS, up_pass(&shared);
	post(&b->c[1], &back);
	sw_thread_run(b->sw->threads[1], b->now);
	assert_int_equal(woken[0], 1);
	sw_awake(b->sw);
	assert_false(sw_sleep(b->sw));
	up_pass(&shared);
	assert_true(client_received(&b->c[0], &back));
	post(&b->c[1], &back);
	sw_thread_run(b->sw->threads[1], b->now);
	assert_int_equal(woken[0], 1);
	up_close(&shared);
}

/* ---- A thread of a client sleeps until the index of its ring changes ---- */

struct waiter {
	const uint32_t *index;
	pid_t tid;
};

static void *
waiter_main(void *arg)
{
	struct waiter *w = arg;
	struct futex_word word = futex_word(w->index, 0, true);

	__atomic_store_n(&w->tid, gettid(), __ATOMIC_RELEASE);
	while (__atomic_load_n(w->index, __ATOMIC_ACQUIRE) == 0) {
		if (futex_wait_any(&word, 1) != 0)
			return (void *)1;
	}
	return NULL;
}

TEST(waiting_thread_of_a_client_is_woken)
{
	struct switch_fixture b;
	struct frame_spec f;
	struct waiter w = {0};
	pthread_t thread;
	void *failed;

	SKIP_IF_EMULATED();
	fixture_open(&b);
	f = frame_spec_valid(&b);
	w.index = &b.c[1].region.daemon->rx_prod;
	assert_int_equal(pthread_create(&thread, NULL, waiter_main, &w), 0);
	await(thread_sleeps(__atomic_load_n(&w.tid, __ATOMIC_ACQUIRE)));
	asleep_set_how(&b.c[1].region.client->rx_asleep, ASLEEP_FUTEX);
	client_send(&b, &b.c[0], b.c[0].qpn, &f);
	await(pthread_tryjoin_np(thread, &failed) == 0);
	assert_null(failed);
	assert_int_equal(b.c[1].woken, 0);
	while (client_received(&b.c[1], NULL))
		;
	fixture_close(&b);
}
