/* SPDX-License-Identifier: BSD-3-Clause */
/* The progress thread of a client with pairs: it looks whether the application still polls, and after
 * partners. */
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "shm/watch.h"
#include "thread_fixture.h"

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
