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

#define IDLE_PASSES 2               /* passes without a packet before it sleeps */
#define GLANCE_NS (50 * NS_PER_US) /* check interval while the application polls */

/* Both descriptors are non-blocking. */
static void
fd_drain(int fd)
{
	char bytes[256];
	ssize_t got = read(fd, bytes, sizeof(bytes));

	(void)got;
}

/* Sleeps until woken or until ns have passed. Returns false if the thread must end. */
static bool
keeper_sleep(struct keeper *k, uint64_t ns)
{
	struct pollfd fds[] = {{.fd = k->kick_fd, .events = POLLIN},
		{.fd = k->lost ? -1 : k->wake_fd, .events = POLLIN},
		{.fd = k->lost ? -1 : k->session_fd, .events = POLLRDHUP}};
	struct timespec until = {
		.tv_sec = (time_t)(ns / SEC_NS), .tv_nsec = (long)(ns % SEC_NS)};
	int n = ppoll(fds, RTE_DIM(fds), ns == TIME_NEVER ? NULL : &until, NULL);

	for (unsigned i = 0; n > 0 && i < 2; i++) {
		if (fds[i].revents & POLLIN)
			fd_drain(fds[i].fd);
	}
	/* The daemon has closed one of its sockets. */
	if (n > 0 && (fds[2].revents != 0 || fds[1].revents & ~POLLIN)) {
		__atomic_store_n(&k->lost, true, __ATOMIC_RELAXED);
		dev_fail(engine_dev(k->engine));
	}
	return !__atomic_load_n(&k->stop, __ATOMIC_ACQUIRE);
}

/* Whether the daemon has requested statistics. */
static bool
is_asked(const struct keeper *k)
{
	return unlikely(__atomic_load_n(&k->report->asked, __ATOMIC_RELAXED) !=
			__atomic_load_n(&k->report->answered, __ATOMIC_RELAXED));
}

static bool
device_changed(const struct keeper *k)
{
	/* Pairs with the release in sw_changed(). */
	return unlikely(
		__atomic_load_n(k->changes, __ATOMIC_ACQUIRE) != k->changes_seen);
}

/* Runs the engine until it is idle. Returns true if the application polls meanwhile. */
static bool
keeper_run(struct keeper *k)
{
	uint32_t drives = engine_progress_calls(k->engine);
	unsigned idle = 0;

	while (idle < IDLE_PASSES) {
		idle = engine_try(k->engine) != 0 ? 0 : idle + 1;
		if (is_asked(k))
			report_answer(engine_dev(k->engine), k->report);
		if (engine_progress_calls(k->engine) != drives)
			return true;
		if (__atomic_load_n(&k->stop, __ATOMIC_RELAXED) || device_changed(k))
			return false;
	}
	return false;
}

static void *
keeper_main(void *arg)
{
	struct keeper *k = arg;
	bool go = true;

	while (go) {
		bool polled = keeper_run(k);
		uint64_t until, now;

		if (device_changed(k)) {
			k->changes_seen = __atomic_load_n(k->changes, __ATOMIC_ACQUIRE);
			shm_refresh(k);
		}
		until = engine_sleep_until(k->engine);
		now = engine_clock();
		if (until <= now) {
			/* There is work, but the application polls. */
			go = !polled || keeper_sleep(k, GLANCE_NS);
			continue;
		}
		if (!polled) {
			ring_asleep_set(k->asleep);
			/* For packets published before the daemon could see the flag. */
			if (engine_try_again(k->engine) != 0)
				continue;
		}
		go = keeper_sleep(k, until == TIME_NEVER ? until : until - now);
		if (!polled)
			ring_asleep_clear(k->asleep);
	}
	return NULL;
}

void
keeper_kick(void *keeper)
{
	const struct keeper *k = keeper;
	const uint64_t one = 1;
	ssize_t written = write(k->kick_fd, &one, sizeof(one));

	(void)written;
}

int
keeper_start(struct keeper *k, struct engine *engine, int session_fd,
	const struct region *region)
{
	sigset_t all, old;
	int err;

	k->engine = engine;
	k->session_fd = session_fd;
	k->asleep = &region->head->rx_asleep;
	k->changes = &region->head->changes;
	k->report = region->report;
	/* Signals are left to the application's threads. */
	sigfillset(&all);
	/* If these were blocked, a fault in this thread would kill the process before any
	 * handler ran. */
	sigdelset(&all, SIGSEGV);
	sigdelset(&all, SIGBUS);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&k->thread, NULL, keeper_main, k);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (err != 0)
		return -err;
	pthread_setname_np(k->thread, "rocade");
	k->running = true;
	return 0;
}

void
keeper_stop(struct keeper *k)
{
	if (!k->running)
		return;
	__atomic_store_n(&k->stop, true, __ATOMIC_RELEASE);
	keeper_kick(k);
	pthread_join(k->thread, NULL);
	k->running = false;
}
