/* SPDX-License-Identifier: BSD-3-Clause */
/* The progress thread: its sleep, its answers to the daemon, and the daemon's end. It
 * runs in real time: each wait is for a condition, not for a duration. */
#include <signal.h>

#include "thread_fixture.h"
#include "../../lib/cancelled.h"
#include "ucm/backend.h"

TEST(sleeping_thread_sets_the_flag)
{
	uint32_t woken = 0;
	struct thread_fixture k;

	fixture_open(&k);
	wait_until_asleep(&k.region.client->rx_asleep, &woken);
	/* The daemon wakes the thread, which sleeps again. */
	assert_int_equal(send(k.wake, "", 1, 0), 1);
	wait_until_asleep(&k.region.client->rx_asleep, &woken);
	progress_thread_wake(&k.shm.progress_thread);
	fixture_close(&k);
}

/* Of a thread that pthread_cancel(3) is about to end. It may hold an engine lock. */
TEST(waking_is_no_cancellation_point)
{
	struct thread_fixture k;
	struct cancelled c = {.fn = progress_thread_wake, .arg = &k.shm.progress_thread};
	uint32_t woken = 0;
	pthread_t thread;

	fixture_open(&k);
	wait_until_asleep(&k.region.client->rx_asleep, &woken);
	assert_int_equal(pthread_create(&thread, NULL, cancelled_main, &c), 0);
	assert_true(cancelled_after_return(thread, &c));
	wait_until_asleep(&k.region.client->rx_asleep, &woken);
	fixture_close(&k);
}

/* A thread of the application sleeps for packets: the progress thread, which wakes for other
 * things, does not take them over. */
TEST(waiting_thread_keeps_the_flag)
{
	uint32_t woken = 0, *asleep, number;
	struct thread_fixture k;

	fixture_open(&k);
	asleep = &k.region.client->rx_asleep;
	wait_until_asleep(asleep, &woken);
	asleep_set_how(asleep, ASLEEP_FUTEX);
	number = __atomic_load_n(asleep, __ATOMIC_RELAXED);
	/* Each answer comes after the sleep that followed the last one. */
	for (uint32_t n = 1; n < 20; n++) {
		__atomic_store_n(&k.region.daemon->report_requested, n, __ATOMIC_RELAXED);
		assert_int_equal(send(k.wake, "", 1, 0), 1);
		wait_until_set(&k.region.report->written_gen, n);
		assert_int_equal(__atomic_load_n(asleep, __ATOMIC_RELAXED), number);
	}
	asleep_set(asleep); /* it leaves */
	assert_true(asleep_wake_wanted(asleep, &woken));
	assert_int_equal(send(k.wake, "", 1, 0), 1);
	wait_until_asleep(asleep, &woken);
	assert_false(asleep_by_futex(woken));
	fixture_close(&k);
}

TEST(stats_request_is_answered)
{
	struct report *report;
	struct thread_fixture k;

	fixture_open(&k);
	report = k.region.report;
	for (uint32_t n = 1; n < 20; n++) {
		__atomic_store_n(&k.region.daemon->report_requested, n, __ATOMIC_RELAXED);
		assert_int_equal(send(k.wake, "", 1, 0), 1);
		wait_until_set(&report->written_gen, n);
	}
	assert_int_equal(report->qp_count, 1);
	assert_int_equal(report->qps[0].qpn, a.qp->qpn);
	assert_int_equal(report->srq_count, 1);
	assert_int_equal(report->srqs[0].size, 256);
	fixture_close(&k);
}

TEST(request_for_a_record_is_answered)
{
	struct report_flight *flight;
	struct thread_fixture k;

	fixture_open(&k);
	flight = &k.region.report->flight;
	for (uint32_t n = 1; n < 20; n++) {
		__atomic_store_n(&k.region.daemon->flight_qpn,
			n % 2 ? a.qp->qpn : a.qp->qpn + 1, __ATOMIC_RELAXED);
		__atomic_store_n(&k.region.daemon->flight_requested, n, __ATOMIC_RELEASE);
		assert_int_equal(send(k.wake, "", 1, 0), 1);
		wait_until_set(&flight->written_gen, n);
		assert_int_equal(
			flight->state, n % 2 ? REPORT_FLIGHT_OFF : REPORT_FLIGHT_NO_QP);
	}
	/* It asked for no statistics. */
	assert_int_equal(k.region.report->written_gen, 0);
	fixture_close(&k);
}

/* The daemon holds an event: it learns that the packets are taken when they are. */
TEST(packets_are_taken_before_the_answer)
{
	struct thread_fixture k;
	uint32_t before = takes;

	fixture_open(&k);
	for (uint32_t n = 1; n < 20; n++) {
		__atomic_store_n(&k.region.daemon->take_requested, n, __ATOMIC_RELEASE);
		assert_int_equal(send(k.wake, "", 1, 0), 1);
		wait_until_set(&answer, n);
		assert_int_equal(takes_answered, before + n);
	}
	fixture_close(&k);
}

TEST(device_change_is_reread)
{
	struct thread_fixture k;

	refreshed = 0;
	fixture_open(&k);
	for (uint32_t n = 1; n < 5; n++) {
		__atomic_store_n(&k.region.daemon->changes, n, __ATOMIC_RELEASE);
		assert_int_equal(send(k.wake, "", 1, 0), 1);
		wait_until_set(&refreshed, n);
	}
	fixture_close(&k);
	assert_int_equal(refreshed, 4); /* once per change */
}

/* A request shows whether the daemon is stopped. */
TEST(daemon_that_takes_nothing_is_asked)
{
	struct thread_fixture k;

	refreshed = 0;
	fixture_open(&k);
	for (uint32_t n = 1; n < 5; n++) {
		__atomic_store_n(&k.shm.standstill.is_due, true, __ATOMIC_RELAXED);
		progress_thread_wake(&k.shm.progress_thread);
		wait_until_set(&refreshed, n);
	}
	fixture_close(&k);
	assert_int_equal(refreshed, 4); /* once each time */
	assert_false(k.shm.standstill.is_due);
}

TEST(changed_addresses_are_taken_over)
{
	struct event_record event;
	struct dev_listener listener;
	struct thread_fixture k;
	struct net_conf *net = &described.net;

	fixture_open(&k);
	dev_listen(fixture.a.dev, &listener, &fixture.a.events);
	*net = fixture.a.dev->conf.net;
	net->vlan = 7; /* the daemon's matter */
	net->addr[net->addr_count].prefix_len = 24;
	memcpy(net->addr[net->addr_count++].gid,
		"\0\0\0\0\0\0\0\0\0\0\xff\xff\xc6\x33\x64\x07", 16);
	__atomic_store_n(&k.region.daemon->changes, 1, __ATOMIC_RELEASE);
	assert_int_equal(send(k.wake, "", 1, 0), 1);
	await(event_next(&fixture.a.events, &event) == 0);
	assert_int_equal(event.type, IBV_EVENT_GID_CHANGE);
	dev_unlisten(fixture.a.dev, &listener);
	fixture_close(&k);
	memset(&described, 0, sizeof(described));
}

TEST(signals_are_blocked)
{
	sigset_t usr1, before, pending;
	struct thread_fixture k;

	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	fixture_open(&k);
	pthread_sigmask(SIG_BLOCK, &usr1, &before);
	/* A thread that does not block the signal would take it, and the process would
	 * end. */
	assert_int_equal(kill(getpid(), SIGUSR1), 0);
	__atomic_store_n(&k.region.daemon->report_requested, 1, __ATOMIC_RELAXED);
	assert_int_equal(send(k.wake, "", 1, 0), 1);
	wait_until_set(&k.region.report->written_gen, 1);
	sigpending(&pending);
	assert_true(sigismember(&pending, SIGUSR1));
	signal(SIGUSR1, SIG_IGN); /* discards the pending signal */
	signal(SIGUSR1, SIG_DFL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	fixture_close(&k);
}

/* Closes the daemon's end of the session or, if not session, of the wake-up. */
static void
check_daemon_end(bool session)
{
	struct dev_listener listener;
	struct event_record event;
	struct cqe cqe;
	struct thread_fixture k;

	fixture_open(&k);
	dev_listen(fixture.a.dev, &listener, &fixture.a.events);
	assert_int_equal(link_qp_recv(&a, 7, 0, 64), 0);
	close(session ? k.session : k.wake);
	*(session ? &k.session : &k.wake) = -1;
	await(event_next(&fixture.a.events, &event) == 0);
	assert_int_equal(event.type, IBV_EVENT_DEVICE_FATAL);
	assert_int_equal(a.qp->state, IBV_QPS_ERR);
	await(link_qp_poll_recv(&a, &cqe));
	assert_int_equal(cqe.wr_id, 7);
	assert_int_equal(cqe.status, IBV_WC_WR_FLUSH_ERR);
	dev_unlisten(fixture.a.dev, &listener);
	fixture_close(&k);
}

TEST(daemon_end_is_fatal_to_the_device)
{
	check_daemon_end(true);
	check_daemon_end(false);
}

static uint32_t lost_index;

static void
lost_note(uint32_t index)
{
	__atomic_store_n(&lost_index, index, __ATOMIC_RELEASE);
}

/* The daemon may be stopped: RDMA-CM, which has a connection of its own, learns it. */
TEST(late_daemon_is_lost_for_rdmacm)
{
	static const struct ucm_backend backend = {.lost = lost_note};
	struct thread_fixture k;

	ucm_backend_set(&backend);
	fixture_open(&k);
	close(k.session);
	k.session = -1;
	await(qp_state(a.qp) == IBV_QPS_ERR);
	fixture_close(&k);
	assert_int_equal(lost_index, 0); /* it has ended, and closes all connections */
	fixture_open(&k);
	__atomic_store_n(&k.shm.session.timed_out, true, __ATOMIC_RELAXED);
	shutdown(k.shm.progress_thread.session_fd, SHUT_RDWR);
	wait_until_set(&lost_index, DAEMON_INDEX);
	assert_int_equal(qp_state(a.qp), IBV_QPS_ERR);
	fixture_close(&k);
	ucm_backend_set(NULL);
}

static bool
lock_is_waited_for(const rte_ticketlock_t *lock)
{
	rte_ticketlock_t now;

	now.tickets = __atomic_load_n(&lock->tickets, __ATOMIC_RELAXED);
	return (uint16_t)(now.s.next - now.s.current) > 1;
}

/* The progress thread, which waits for the engine lock, does not exist in the child. */
TEST(forked_child_can_take_the_engine_lock)
{
	struct engine *e;
	struct thread_fixture k;
	pid_t pid;

	fixture_open(&k);
	e = fixture.a.dev->engines[0];
	engine_lock(e);
	progress_thread_wake(&k.shm.progress_thread);
	await(lock_is_waited_for(&e->lock));
	pid = fork();
	if (pid == 0) {
		engine_set_progress_thread(e, NULL);
		engine_unlock_forked(e);
		engine_lock(e);
		_exit(0);
	}
	engine_unlock(e);
	assert_int_equal(await_child(pid), 0);
	fixture_close(&k);
}
