/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The progress thread of a client: it runs the engine when the application does not, so
 * that READs and WRITEs of peers are answered, timers fire, and an application asleep on
 * a completion channel is woken. It sleeps in poll(2) when there is nothing to do.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "shm/shm.h"

#define IDLE_PASSES 2             /* passes without a packet before it sleeps */
#define CHECK_NS (50 * NS_PER_US) /* check interval while the application polls */

/* Discards what can be read. The descriptors are non-blocking. */
static void
fd_drain(int fd)
{
	char bytes[256];
	ssize_t got = read(fd, bytes, sizeof(bytes));

	(void)got;
}

/* Sleeps until woken or until ns have passed. Returns false if the thread must end. */
static bool
progress_thread_sleep(struct progress_thread *t, uint64_t ns)
{
	struct pollfd fds[] = {{.fd = t->self_wake_fd, .events = POLLIN},
		{.fd = t->lost ? -1 : t->wake_fd, .events = POLLIN},
		{.fd = t->lost ? -1 : t->session_fd, .events = POLLRDHUP}};
	struct timespec until = {
		.tv_sec = (time_t)(ns / NS_PER_SEC), .tv_nsec = (long)(ns % NS_PER_SEC)};
	int n = ppoll(fds, RTE_DIM(fds), ns == TIME_NEVER ? NULL : &until, NULL);

	for (unsigned i = 0; n > 0 && i < 2; i++) {
		if (fds[i].revents & POLLIN)
			fd_drain(fds[i].fd);
	}
	/* The daemon has closed one of its sockets. */
	if (n > 0 && (fds[2].revents != 0 || fds[1].revents & ~POLLIN)) {
		__atomic_store_n(&t->lost, true, __ATOMIC_RELAXED);
		dev_fail(engine_dev(t->engine));
	}
	return !__atomic_load_n(&t->stop, __ATOMIC_ACQUIRE);
}

/* Returns whether the daemon has requested statistics that are not written yet. */
static bool
report_is_requested(const struct progress_thread *t)
{
	return unlikely(__atomic_load_n(t->report_requested, __ATOMIC_RELAXED) !=
			__atomic_load_n(&t->report->written_gen, __ATOMIC_RELAXED));
}

static void
flight_answer(struct progress_thread *t)
{
	/* Pairs with the release in flight_request(). */
	uint32_t gen = __atomic_load_n(t->flight_requested, __ATOMIC_ACQUIRE);

	if (unlikely(gen !=
		     __atomic_load_n(&t->report->flight.written_gen, __ATOMIC_RELAXED)))
		report_flight_write(engine_dev(t->engine),
			__atomic_load_n(t->flight_qpn, __ATOMIC_RELAXED), gen,
			&t->report->flight);
}

static bool
device_changed(const struct progress_thread *t)
{
	/* Pairs with the release in sw_changed(). */
	return unlikely(__atomic_load_n(t->changes, __ATOMIC_ACQUIRE) != t->changes_seen);
}

/* Updates link and addresses from the daemon. */
static void
device_refresh(struct progress_thread *t)
{
	struct shm *shm = container_of(t, struct shm, progress_thread);
	struct sw_device device;

	if (session_device(&shm->session, &device) == 0) {
		device.net.vlan = 0; /* as when the device was created */
		if (memcmp(&device.net, &shm->dev->conf.net, sizeof(device.net)) != 0)
			(void)dev_set_net(shm->dev, &device.net);
	}
	(void)dev_link_up(shm->dev);
}

/* Runs the engine until it is idle. Returns true if the application polls meanwhile. */
static bool
progress_thread_run(struct progress_thread *t)
{
	uint32_t polls = engine_progress_calls(t->engine);
	unsigned idle = 0;

	while (idle < IDLE_PASSES) {
		idle = engine_try_pass(t->engine) != 0 ? 0 : idle + 1;
		if (report_is_requested(t))
			report_write(engine_dev(t->engine),
				__atomic_load_n(t->report_requested, __ATOMIC_RELAXED),
				t->report);
		flight_answer(t);
		if (engine_progress_calls(t->engine) != polls)
			return true;
		if (__atomic_load_n(&t->stop, __ATOMIC_RELAXED) || device_changed(t))
			return false;
	}
	return false;
}

static void *
progress_thread_main(void *arg)
{
	struct progress_thread *t = arg;
	bool go = true;

	while (go) {
		bool polled = progress_thread_run(t);
		uint64_t until, now;

		if (device_changed(t)) {
			t->changes_seen = __atomic_load_n(t->changes, __ATOMIC_ACQUIRE);
			device_refresh(t);
		}
		until = engine_sleep_until(t->engine);
		now = engine_clock();
		if (until <= now) {
			/* There is work, but the application polls: it does the work. */
			go = !polled || progress_thread_sleep(t, CHECK_NS);
			continue;
		}
		/* A thread that waits for an event is woken by packets, and does the same
		 * before it leaves. */
		if (!polled && !asleep_is_set_by_futex(t->asleep)) {
			asleep_set(t->asleep);
			/* For packets published before the daemon could see the flag. */
			if (engine_request_pass(t->engine) != 0)
				continue;
		}
		go = progress_thread_sleep(t, until == TIME_NEVER ? until : until - now);
		if (!polled && !asleep_is_set_by_futex(t->asleep))
			asleep_clear(t->asleep);
	}
	return NULL;
}

void
progress_thread_wake(void *arg)
{
	const struct progress_thread *t = arg;
	const uint64_t one = 1;
	ssize_t written = write(t->self_wake_fd, &one, sizeof(one));

	(void)written;
}

int
progress_thread_start(struct progress_thread *t, struct engine *engine, int session_fd,
	const struct region *region)
{
	sigset_t all, old;
	int err;

	t->engine = engine;
	t->session_fd = session_fd;
	t->asleep = &region->client->rx_asleep;
	t->changes = &region->daemon->changes;
	t->report_requested = &region->daemon->report_requested;
	t->flight_requested = &region->daemon->flight_requested;
	t->flight_qpn = &region->daemon->flight_qpn;
	t->report = region->report;
	/* Signals are left to the application's threads. */
	sigfillset(&all);
	/* If these were blocked, a fault in this thread would kill the process before any
	 * handler ran. */
	sigdelset(&all, SIGSEGV);
	sigdelset(&all, SIGBUS);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&t->thread, NULL, progress_thread_main, t);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (err != 0)
		return -err;
	pthread_setname_np(t->thread, "rocade");
	t->running = true;
	return 0;
}

void
progress_thread_stop(struct progress_thread *t)
{
	if (!t->running)
		return;
	__atomic_store_n(&t->stop, true, __ATOMIC_RELEASE);
	progress_thread_wake(t);
	pthread_join(t->thread, NULL);
	t->running = false;
}
