/* SPDX-License-Identifier: BSD-3-Clause */
/* The progress thread of a client with pairs: it looks whether the application still polls, and after
 * partners. */
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engine/delayed_ack.h"
#include "shm/watch.h"
#include "thread_fixture.h"

#define MANY_POLLS 100

TEST(events_of_pairs_are_served)
{
	struct thread_fixture k;

	pairs_served = 0;
	fixture_open(&k);
	for (uint32_t n = 1; n < 5; n++) {
		__atomic_store_n(&k.region.daemon->pair_events, n, __ATOMIC_RELEASE);
		assert_int_equal(send(k.wake, "", 1, 0), 1);
		wait_until_set(&pairs_served, n);
	}
	__atomic_store_n(&k.shm.pairs.spoiled, true, __ATOMIC_RELAXED);
	progress_thread_wake(&k.shm.progress_thread);
	wait_until_set(&pairs_served, 5);
	/* Woken for something else, it serves none. */
	refreshed = 0;
	__atomic_store_n(&k.region.daemon->changes, 1, __ATOMIC_RELEASE);
	assert_int_equal(send(k.wake, "", 1, 0), 1);
	wait_until_set(&refreshed, 1);
	fixture_close(&k);
	assert_int_equal(pairs_served, 5); /* once each */
	assert_int_equal(deadline_asked, 0);
}

/* With pairs, the thread notices that the application polls no more, and says that it sleeps. No
 * other process wakes it for that. */
TEST(end_of_polling_is_noticed)
{
	uint32_t woken = 0, *asleep;
	struct thread_fixture k;

	fixture_open(&k);
	__atomic_store_n(&k.shm.pairs.count, 1, __ATOMIC_RELAXED);
	asleep = &k.region.client->rx_asleep;
	for (unsigned round = 0; round < 20; round++) {
		unsigned polls = 0;

		wait_until_asleep(asleep, &woken);
		while (asleep_is_set(asleep)) {
			assert_true(polls++ < 1000000);
			engine_progress(fixture.a.dev->engines[0]);
		}
	}
	wait_until_asleep(asleep, &woken);
	fixture_close(&k);
	assert_true(deadline_asked != 0);
	deadline_asked = 0;
}

static bool hold, held; /* atomic */

/* Replaces libc's ppoll(), which only the progress thread calls. While `hold` is set a sleep has no end of
 * its own. */
__attribute__((visibility("default"))) int
ppoll(struct pollfd *fds, nfds_t count, const struct timespec *timeout,
	const sigset_t *mask)
{
	bool holds = __atomic_load_n(&hold, __ATOMIC_ACQUIRE);
	struct timespec left = timeout != NULL ? *timeout : (struct timespec){0};
	int n;

	__atomic_store_n(&held, holds, __ATOMIC_RELEASE);
	n = (int)syscall(SYS_ppoll, fds, count, timeout == NULL || holds ? NULL : &left,
		mask, _NSIG / 8);
	__atomic_store_n(&held, false, __ATOMIC_RELEASE);
	return n;
}

static bool
is_delegated(void)
{
	return fixture.a.dev->engines[0]->delegation.ns != 0;
}

/* The thread sleeps, for as long as it is to look again while the application polls. A thread that has been
 * woken runs, or is about to. */
static bool
sleeps_until_woken(const uint32_t *asleep)
{
	return __atomic_load_n(&held, __ATOMIC_ACQUIRE) && !asleep_is_set(asleep) &&
	       threads_asleep();
}

/* The thread sleeps. The application polls until the thread has seen that and sleeps again. Then a packet
 * comes that the application does not take, and a partner writes this byte. */
static void
packet_left(const struct thread_fixture *k, int partner, uint8_t why, uint32_t *woken)
{
	struct engine *e = fixture.a.dev->engines[0], *eb = fixture.b.dev->engines[0];
	const uint32_t *asleep = &k->region.client->rx_asleep;
	struct cqe cqe;

	link_qp_message(&b, &a, *woken);
	engine_run(eb, engine_clock());
	__atomic_store_n(&hold, true, __ATOMIC_RELEASE);
	await_by(engine_progress(e), sleeps_until_woken(asleep));
	engine_lock(e);
	engine_link_deliver(&fixture);
	engine_lock_release(e); /* runs no pass */
	/* Not before: the thread does not wait for the lock. */
	__atomic_store_n(&hold, false, __ATOMIC_RELEASE);
	assert_int_equal(write(partner, &why, 1), 1);
	wait_until_asleep(asleep, woken);
	engine_run(eb, engine_clock());
	engine_lock(e);
	engine_link_deliver(&fixture);
	engine_lock_release(e);
	while (link_qp_poll_send(&b, &cqe) || link_qp_poll_recv(&a, &cqe))
		;
}

/* From then on packets wake the thread. */
TEST(lag_has_packets_wake_the_thread)
{
	struct thread_fixture k;
	uint32_t woken = 0;
	int ends[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	partner_fd = ends[0];
	fixture_open(&k);
	__atomic_store_n(&k.shm.pairs.count, 1, __ATOMIC_RELAXED);
	wait_until_asleep(&k.region.client->rx_asleep, &woken);
	for (unsigned i = 0; i < 20; i++)
		packet_left(&k, ends[1], PAIR_WAKE, &woken);
	assert_false(is_delegated());
	packet_left(&k, ends[1], PAIR_LAGS, &woken);
	assert_true(is_delegated());
	fixture_close(&k);
	partner_fd = -1;
	close(ends[0]);
	close(ends[1]);
}

/* The application has a CQ armed, and an event of that CQ is awaited, as its arming counts it. */
static void
armed_set(uint32_t armed)
{
	__atomic_store_n(&fixture.a.dev->cq_moderator.armed, armed, __ATOMIC_RELAXED);
}

/* The thread sleeps, with the flag set or not. */
static bool
sleeps_with(const uint32_t *asleep, bool set)
{
	return __atomic_load_n(&held, __ATOMIC_ACQUIRE) && asleep_is_set(asleep) == set &&
	       threads_asleep();
}

/* The thread sleeps with a flag of its own. The application polls; polls: how often it may, with its CQ armed, until
 * it counts as awake. */
static void
polled_begin(struct thread_fixture *k, uint32_t *woken, uint32_t armed, uint32_t polls)
{
	struct engine *e;

	fixture_open(k);
	e = fixture.a.dev->engines[0];
	__atomic_store_n(&k->shm.pairs.count, 1, __ATOMIC_RELAXED);
	__atomic_store_n(&hold, true, __ATOMIC_RELEASE);
	progress_thread_wake(&k->shm.progress_thread);
	await(sleeps_with(&k->region.client->rx_asleep, true));
	(void)asleep_wake_wanted(&k->region.client->rx_asleep, woken);
	armed_set(armed);
	__atomic_store_n(&e->delegated_polls, polls, __ATOMIC_RELAXED);
	engine_progress(e);
}

static void
polled_end(struct thread_fixture *k)
{
	armed_set(0);
	serve_arms = NULL;
	__atomic_store_n(&hold, false, __ATOMIC_RELEASE);
	fixture_close(k);
}

/* It may sleep until the event: a packet has to wake the thread, and no look may be needed for it. */
TEST(thread_sets_the_flag_for_an_armed_cq)
{
	struct thread_fixture k;
	uint32_t woken = 0;

	polled_begin(&k, &woken, 1, MANY_POLLS);
	progress_thread_wake(&k.shm.progress_thread);
	wait_until_asleep(&k.region.client->rx_asleep, &woken);
	polled_end(&k);
	/* Without one it takes the packets when it polls. */
	polled_begin(&k, &woken, 0, MANY_POLLS);
	progress_thread_wake(&k.shm.progress_thread);
	await(sleeps_with(&k.region.client->rx_asleep, false));
	polled_end(&k);
	/* It goes on polling: the last poll clears the flag and wakes the thread, which leaves the packets to it. */
	polled_begin(&k, &woken, 1, 0);
	await(sleeps_with(&k.region.client->rx_asleep, false));
	polled_end(&k);
}

/* Whatever the last poll leaves is for the thread: it sleeps until the deadlines of the engine and of the partners, and
 * acknowledgements do not wait. */
TEST(work_of_an_application_that_awaits_an_event_does_not_wait)
{
	struct thread_fixture k;
	uint32_t woken = 0;
	struct engine *e;

	polled_begin(&k, &woken, 1, MANY_POLLS);
	e = fixture.a.dev->engines[0];
	__atomic_store_n(&e->delayed_ack.answers, DELAYED_ACK_ANSWERS, __ATOMIC_RELAXED);
	engine_lock(e);
	e->sleep_until_ns = 0; /* a poll that wakes the thread says that it is awake */
	engine_lock_release(e);
	__atomic_store_n(&deadline_asked, 0, __ATOMIC_RELAXED);
	progress_thread_wake(&k.shm.progress_thread);
	wait_until_asleep(&k.region.client->rx_asleep, &woken);
	await(sleeps_with(&k.region.client->rx_asleep, true));
	engine_lock(e);
	assert_true(e->sleep_until_ns != 0);
	engine_lock_release(e);
	assert_int_equal(__atomic_load_n(&deadline_asked, __ATOMIC_RELAXED), 1);
	assert_true(engine_delays_acks(e));
	assert_false(__atomic_load_n(&e->delayed_ack.manual, __ATOMIC_RELAXED));
	polled_end(&k);
	deadline_asked = 0;
}

/* Packets came when the thread had set its flag: it sleeps with the same number later, and clears that, too. */
TEST(thread_that_runs_has_no_flag)
{
	struct thread_fixture k;
	uint32_t woken = 0;

	fixture_open(&k);
	__atomic_store_n(&k.shm.pairs.count, 1, __ATOMIC_RELAXED);
	__atomic_store_n(&hold, true, __ATOMIC_RELEASE);
	progress_thread_wake(&k.shm.progress_thread);
	await(sleeps_with(&k.region.client->rx_asleep, true));
	link_qp_message(&b, &a, 1);
	engine_run(fixture.b.dev->engines[0], engine_clock());
	__atomic_store_n(&sleep_delivers, true, __ATOMIC_RELEASE);
	(void)asleep_wake_wanted(&k.region.client->rx_asleep, &woken);
	progress_thread_wake(&k.shm.progress_thread);
	wait_until_asleep(&k.region.client->rx_asleep, &woken);
	await(sleeps_with(&k.region.client->rx_asleep, true));
	assert_false(__atomic_load_n(&sleep_delivers, __ATOMIC_ACQUIRE));
	assert_int_equal(k.region.client->rx_asleep, woken); /* not one more */
	pairs_served = 0;
	served_asleep = true;
	serve_flag = &k.region.client->rx_asleep;
	__atomic_store_n(&k.shm.pairs.spoiled, true, __ATOMIC_RELAXED);
	progress_thread_wake(&k.shm.progress_thread);
	wait_until_set(&pairs_served, 1);
	assert_false(served_asleep);
	__atomic_store_n(&hold, false, __ATOMIC_RELEASE);
	fixture_close(&k);
	serve_flag = NULL;
	pairs_served = deadline_asked = 0;
}

/* The thread wakes up for something else. */
TEST(thread_leaves_the_flag_of_an_arming)
{
	struct thread_fixture k;
	uint32_t woken = 0, number, *asleep;

	polled_begin(&k, &woken, 0, MANY_POLLS);
	asleep = &k.region.client->rx_asleep;
	asleep_set(asleep);
	number = __atomic_load_n(asleep, __ATOMIC_RELAXED);
	refreshed = 0;
	__atomic_store_n(&k.region.daemon->changes, 1, __ATOMIC_RELEASE);
	progress_thread_wake(&k.shm.progress_thread);
	wait_until_set(&refreshed, 1);
	await(sleeps_with(asleep, true));
	assert_int_equal(__atomic_load_n(asleep, __ATOMIC_RELAXED), number);
	polled_end(&k);
}

/* With another number each partner would send another wake-up. But the thread may have read that of the number
 * before. */
TEST(flag_gets_another_number_only_if_wake_ups_are_read)
{
	struct thread_fixture k;
	uint32_t woken = 0, number, *asleep;

	polled_begin(&k, &woken, 0, MANY_POLLS);
	asleep = &k.region.client->rx_asleep;
	armed_set(1);
	pairs_served = 0;
	serve_arms = asleep;
	__atomic_store_n(&k.shm.pairs.spoiled, true, __ATOMIC_RELAXED);
	progress_thread_wake(&k.shm.progress_thread);
	wait_until_set(&pairs_served, 1);
	await(sleeps_with(asleep, true));
	number = __atomic_load_n(asleep, __ATOMIC_RELAXED);
	assert_int_equal(number, armed_number);
	engine_progress(fixture.a.dev->engines[0]);
	assert_true(asleep_wake_wanted(asleep, &woken));
	progress_thread_wake(&k.shm.progress_thread);
	wait_until_asleep(asleep, &woken);
	polled_end(&k);
	pairs_served = deadline_asked = 0;
}

static void
events_left(const struct thread_fixture *k, int partner, uint32_t *woken)
{
	struct cq *cq = a.qp->recv_cq;

	for (unsigned i = 0; i < 20; i++) {
		cq->moderator = NULL; /* the arming is not to count */
		cq_arm(cq, false);
		cq->moderator = &fixture.a.dev->cq_moderator;
		packet_left(k, partner, PAIR_WAKE, woken);
	}
}

/* No wake-up announces the packets of an application that polls: it has armed a CQ all the same, so that events come
 * late, which are counted. */
TEST(events_of_a_look_are_counted)
{
	const struct port_stats *stats;
	struct event_queue channel;
	struct thread_fixture k;
	uint32_t woken = 0;
	struct cq *cq;
	int ends[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	assert_int_equal(event_queue_init(&channel), 0);
	partner_fd = ends[0];
	fixture_open(&k);
	stats = &fixture.a.dev->engines[0]->stats;
	cq = a.qp->recv_cq;
	cq_set_channel(cq, &channel, cq);
	__atomic_store_n(&k.shm.pairs.count, 1, __ATOMIC_RELAXED);
	wait_until_asleep(&k.region.client->rx_asleep, &woken);
	for (unsigned i = 0; i < 20; i++)
		packet_left(&k, ends[1], PAIR_WAKE, &woken);
	assert_int_equal(stats->events_late, 0);
	/* The flag is about to be set. */
	engine_arm_begin(fixture.a.dev->engines[0]);
	events_left(&k, ends[1], &woken);
	assert_int_equal(stats->events_late, 0);
	engine_arm_end(fixture.a.dev->engines[0]);
	events_left(&k, ends[1], &woken);
	assert_in_range(stats->events_late, 10, 20);
	event_purge(&cq->comp_event);
	fixture_close(&k);
	event_queue_fini(&channel);
	partner_fd = -1;
	close(ends[0]);
	close(ends[1]);
	deadline_asked = 0;
}

/* Acknowledgements may wait only while the thread looks after an application that polls. */
TEST(acknowledgements_wait_while_the_application_polls)
{
	uint32_t woken = 0, *asleep;
	struct thread_fixture k;
	struct engine *e;
	bool *manual;

	fixture_open(&k);
	e = fixture.a.dev->engines[0];
	manual = &e->delayed_ack.manual;
	asleep = &k.region.client->rx_asleep;
	wait_until_asleep(asleep, &woken);
	assert_false(__atomic_load_n(manual, __ATOMIC_RELAXED));
	__atomic_store_n(&k.shm.pairs.count, 1, __ATOMIC_RELAXED);
	for (unsigned round = 0; round < 10; round++) {
		struct await polling = {.pauses = 0};

		while (!__atomic_load_n(manual, __ATOMIC_RELAXED) ||
			asleep_is_set(asleep)) {
			assert_true(await_goes_on(&polling));
			engine_progress(e);
		}
		wait_until_asleep(asleep, &woken);
		await(!__atomic_load_n(manual, __ATOMIC_RELAXED));
	}
	fixture_close(&k);
	deadline_asked = 0;
}

/* A partner may not have taken packets: the thread looks again in time. */
TEST(partners_are_looked_after)
{
	struct thread_fixture k;

	deadline = NS_PER_MS;
	fixture_open(&k);
	__atomic_store_n(&k.shm.pairs.count, 1, __ATOMIC_RELAXED);
	progress_thread_wake(&k.shm.progress_thread);
	await(__atomic_load_n(&deadline_asked, __ATOMIC_RELAXED) >= 20);
	fixture_close(&k);
	deadline = deadline_asked = 0;
}

/* The sleeps between two looks. */
TEST(looks_become_rare_while_the_application_polls)
{
	uint64_t ns = watch_next(0, false, false);

	ns = watch_next(ns, true, false);
	assert_int_equal(ns, WATCH_FIRST_NS);
	ns = watch_next(ns, true, false);
	assert_int_equal(ns, 2 * WATCH_FIRST_NS);
	for (unsigned i = 0; i < 10; i++)
		ns = watch_next(ns, true, false);
	assert_int_equal(ns, WATCH_LAST_NS);
	/* An acknowledgement waits no longer than that. */
	ns = watch_next(ns, true, true);
	assert_int_equal(ns, WATCH_ACKS_NS);
	assert_int_equal(watch_next(ns, true, true), WATCH_ACKS_NS);
	ns = watch_next(ns, false, true);
	assert_int_equal(watch_next(ns, true, true), WATCH_FIRST_NS);
}
