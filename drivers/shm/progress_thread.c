/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The progress thread of a client: it runs the engine when the application does not, so
 * that READs and WRITEs of peers are answered, timers fire, and an application asleep on
 * a completion channel is woken. It sleeps in poll(2) when there is nothing to do.
 */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/no_cancel.h"
#include "base/usdt.h"
#include "shm/shm.h"
#include "shm/watch.h"
#include "ucm/backend.h"

#define IDLE_PASSES 2             /* passes without a packet before it sleeps */
#define CHECK_NS (50 * NS_PER_US) /* check interval while the application polls */
#define OWN_FDS 3                 /* that it sleeps on, besides those of the pairs */

/* Discards what can be read. The descriptors are non-blocking. */
static void
fd_drain(int fd)
{
	char bytes[256];
	ssize_t got = read(fd, bytes, sizeof(bytes));

	(void)got;
}

/* The daemon has not replied in time. RDMA-CM has a connection of its own, which a daemon that is stopped
 * does not close. */
static void
rdmacm_tell(const struct shm *shm)
{
	const struct ucm_backend *rdmacm = ucm_backend_get();

	if (rdmacm != NULL && rdmacm->lost != NULL)
		rdmacm->lost(shm->daemon_index);
}

/* Returns whether packets wake a thread: the flag is set, and the wake-ups for its number are not read yet. */
static bool
packets_wake(const struct progress_thread *t)
{
	uint32_t number = __atomic_load_n(t->asleep, __ATOMIC_RELAXED);

	return (number & 1) != 0 &&
	       ((number & ASLEEP_FUTEX) != 0 || number != t->drained);
}

/* Sleeps until woken or until ns have passed. Returns false if the thread must end. */
static bool
progress_thread_sleep(struct progress_thread *t, uint64_t ns)
{
	struct shm *shm = container_of(t, struct shm, progress_thread);
	struct pollfd fds[OWN_FDS + PAIRS_MAX] = {
		{.fd = t->self_wake_fd, .events = POLLIN},
		{.fd = t->lost ? -1 : t->wake_fd, .events = POLLIN},
		{.fd = t->lost ? -1 : t->session_fd, .events = POLLRDHUP}};
	unsigned pairs = pairs_poll_fds(shm, fds + OWN_FDS);
	struct timespec until = {
		.tv_sec = (time_t)(ns / NS_PER_SEC), .tv_nsec = (long)(ns % NS_PER_SEC)};
	int n = ppoll(fds, OWN_FDS + pairs, ns == TIME_NEVER ? NULL : &until, NULL);

	USDT(wake_up, 0u, n > 0 ? (uint32_t)n : 0u);
	t->looks = !packets_wake(t);
	t->told = n > 0 && fds[1].revents != 0;
	t->lags = n > 0 && pairs_wakes_read(shm, fds + OWN_FDS, pairs);
	if (n > 0 && asleep_is_set(t->asleep))
		engine_woke(t->engine);
	for (unsigned i = 0; n > 0 && i < 2; i++) {
		if (fds[i].revents & POLLIN)
			fd_drain(fds[i].fd);
	}
	/* The wake-ups for this number may have been read. Pairs with the release in asleep_set_how(): if it is
	 * that of an arming, the thread sees the arming after this. */
	if (n > 0)
		t->drained = __atomic_load_n(t->asleep, __ATOMIC_ACQUIRE);
	/* The daemon has closed one of its sockets. */
	if (n > 0 && (fds[2].revents != 0 || fds[1].revents & ~POLLIN)) {
		__atomic_store_n(&t->lost, true, __ATOMIC_RELAXED);
		dev_fail(engine_dev(t->engine));
		if (__atomic_load_n(&shm->session.timed_out, __ATOMIC_RELAXED))
			rdmacm_tell(shm);
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

/* Returns whether the daemon leaves packets in the ring, as one that is stopped. */
static bool
standstill_is_due(const struct progress_thread *t)
{
	const struct shm *shm = container_of(t, struct shm, progress_thread);

	return unlikely(__atomic_load_n(&shm->standstill.is_due, __ATOMIC_RELAXED));
}

/* Returns whether the daemon has events of pairs, or is to be told of a spoiled one. */
static bool
pairs_are_due(const struct progress_thread *t)
{
	const struct shm *shm = container_of(t, struct shm, progress_thread);

	/* Pairs with the release in sw_pair.c. */
	return unlikely(__atomic_load_n(t->pair_events, __ATOMIC_ACQUIRE) !=
				t->pair_events_seen ||
			__atomic_load_n(&shm->pairs.spoiled, __ATOMIC_RELAXED));
}

/* Returns whether the daemon waits until the packets are taken that came before an event of RDMA-CM. */
static bool
packets_are_due(const struct progress_thread *t)
{
	return unlikely(
		__atomic_load_n(t->take_requested, __ATOMIC_RELAXED) != t->take_seen);
}

/* Whatever runs the passes, completions and their events are there before the daemon learns that they
 * are. */
static void
packets_answer(struct progress_thread *t)
{
	struct shm *shm = container_of(t, struct shm, progress_thread);
	struct sw_request req = {.type = SW_TAKEN};
	struct sw_reply reply;

	/* Pairs with the release in rdmacm_qp_ended(). */
	req.qpn = t->take_seen = __atomic_load_n(t->take_requested, __ATOMIC_ACQUIRE);
	shm_take_received(shm);
	(void)session_call(&shm->session, &req, &reply, NULL, 0);
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

/* A request that has no reply ends the session, as one of the program. */
static void
standstill_ask(struct progress_thread *t)
{
	struct shm *shm = container_of(t, struct shm, progress_thread);

	__atomic_store_n(&shm->standstill.is_due, false, __ATOMIC_RELAXED);
	if (!t->lost)
		device_refresh(t);
}

/* Offers the core to other threads. Returns for how long they had it. */
static uint64_t
core_yield(uint64_t now)
{
	sched_yield();
	return engine_clock() - now;
}

/* The last passes found nothing. Returns whether the thread is to run another one. */
static bool
passes_go_on(struct progress_thread *t, unsigned idle)
{
	uint64_t now;

	if (idle < IDLE_PASSES)
		return true;
	now = engine_clock();
	if (engine_ack_is_delayed(t->engine)) {
		(void)core_yield(now); /* to the application, to answer or poll */
		return true;
	}
	if (!busy_poll_goes_on(&t->busy, now))
		return false;
	return !busy_poll_offers(&t->busy, idle) ||
	       busy_poll_offered(&t->busy, now, core_yield(now));
}

/* first: after the sleep, when what it was woken for must not be missed by a thread that runs a
 * pass. */
static unsigned
pass_run(struct progress_thread *t, bool first)
{
	uint32_t events = 0;
	unsigned moved = !first     ? engine_try_pass(t->engine)
			 : t->looks ? engine_look(t->engine, &events)
				    : engine_request_pass(t->engine);
	uint64_t now;

	/* If the application arms the CQ meanwhile, it sets the flag before it sleeps. */
	if (unlikely(events != 0) && !engine_is_arming(t->engine) && !packets_wake(t))
		engine_events_late(t->engine, events);
	if (moved == 0)
		return 0;
	now = engine_clock();
	busy_poll_moved(&t->busy, now);
	engine_thread_moved(t->engine);
	if (t->looks && t->lags && !t->moved)
		engine_keep_delegated(t->engine, now);
	t->moved = true;
	return moved;
}

/* Runs the engine until it is idle. Returns true if the application polls meanwhile. */
static bool
progress_thread_run(struct progress_thread *t)
{
	uint32_t polls = engine_progress_calls(t->engine);
	bool first = true;
	unsigned idle = 0;

	while (passes_go_on(t, idle)) {
		idle = pass_run(t, first) != 0 ? 0 : idle + 1;
		first = false;
		if (report_is_requested(t))
			report_write(engine_dev(t->engine),
				__atomic_load_n(t->report_requested, __ATOMIC_RELAXED),
				t->report);
		flight_answer(t);
		if (engine_progress_calls(t->engine) != polls)
			return true;
		if (__atomic_load_n(&t->stop, __ATOMIC_RELAXED) || device_changed(t) ||
			pairs_are_due(t) || packets_are_due(t) || standstill_is_due(t))
			return false;
	}
	return false;
}

/* Does what the daemon has announced. */
static void
announced_handle(struct progress_thread *t)
{
	if (device_changed(t)) {
		t->changes_seen = __atomic_load_n(t->changes, __ATOMIC_ACQUIRE);
		device_refresh(t);
	}
	if (pairs_are_due(t)) {
		t->pair_events_seen = __atomic_load_n(t->pair_events, __ATOMIC_ACQUIRE);
		pairs_serve(container_of(t, struct shm, progress_thread));
	}
	if (packets_are_due(t))
		packets_answer(t);
	if (standstill_is_due(t))
		standstill_ask(t);
}

/* Returns whether the application polls, so that this thread need not be woken for packets, and the rest of the
 * engine's work may wait for the next poll. With pairs it does if it has polled since the thread last looked, which
 * is often enough then (watch_until()), and takes all packets. If a CQ is armed, it may sleep until it has the event,
 * although it has polled. */
static bool
application_polls(struct progress_thread *t, bool polls_now)
{
	const struct shm *shm = container_of(t, struct shm, progress_thread);
	uint32_t polls = engine_progress_calls(t->engine);
	bool awaited = engine_event_is_awaited(t->engine);
	bool polled = polls != t->polls_seen && !awaited;

	t->polls_seen = polls;
	t->polled = polled;
	if (awaited || engine_is_delegated(t->engine, engine_clock()))
		return false;
	if (__atomic_load_n(&shm->pairs.count, __ATOMIC_RELAXED) == 0)
		return polls_now;
	return polls_now || (polled && !t->moved);
}

/* Returns whether the application polls, and no other process says that it leaves packets. */
static bool
application_takes_packets(const struct progress_thread *t)
{
	return t->looks && !t->told && !t->lags &&
	       engine_progress_calls(t->engine) != t->polls_seen;
}

/* With pairs. Returns until when the thread may sleep, however long the engine may. Acknowledgements may
 * wait only if it looks in time whether the application still polls. */
static uint64_t
watch_until(struct progress_thread *t, const struct shm *shm, bool polled, uint64_t now)
{
	bool delays = engine_delays_acks(t->engine);
	bool looks = polled || (t->polled && delays);
	uint64_t until;

	t->watch_ns = watch_next(t->watch_ns, polled, delays);
	engine_allow_delayed_acks(t->engine, looks);
	if (polled)
		return now + t->watch_ns;
	engine_lock(t->engine);
	until = pairs_deadline(shm);
	engine_unlock(t->engine);
	return looks ? RTE_MIN(until, now + WATCH_ACKS_NS) : until;
}

/* Returns until when the thread may sleep. With pairs, an application that polls does the engine's work:
 * the thread does not ask for it then, because it would wait for the lock of a pass that it may itself
 * have preempted. */
static uint64_t
thread_sleep_until(
	struct progress_thread *t, const struct shm *shm, bool polled, uint64_t now)
{
	uint64_t until;

	if (__atomic_load_n(&shm->pairs.count, __ATOMIC_RELAXED) == 0) {
		engine_allow_delayed_acks(t->engine, false);
		return engine_sleep_until(t->engine);
	}
	until = watch_until(t, shm, polled, now);
	return polled ? until : RTE_MIN(until, engine_sleep_until(t->engine));
}

/* Sleeps until woken, or until that time. Returns false if the thread must end. */
static bool
sleep_and_note(
	struct progress_thread *t, const struct shm *shm, uint64_t until, uint64_t now)
{
	bool go = progress_thread_sleep(t, until == TIME_NEVER ? until : until - now);

	engine_allow_delayed_acks(
		t->engine, __atomic_load_n(&shm->pairs.count, __ATOMIC_RELAXED) != 0);
	return go;
}

static void *
progress_thread_main(void *arg)
{
	struct progress_thread *t = arg;
	const struct shm *shm = container_of(t, struct shm, progress_thread);
	uint32_t number = 0; /* that it has set last */
	bool go = true;

	while (go) {
		bool polled, works;
		uint64_t until, now;

		t->moved = false;
		polled = application_polls(
			t, application_takes_packets(t) || progress_thread_run(t));
		announced_handle(t);
		now = engine_clock();
		until = thread_sleep_until(t, shm, polled, now);
		works = until <= now;
		if (works && !polled)
			continue;
		if (works) /* the application does the work, because it polls */
			until = now + CHECK_NS;
		/* A flag that another thread has set will do, or that of a sleep that this thread has not begun:
		 * with one more number the partners would send one more wake-up. */
		if (!polled && !packets_wake(t)) {
			number = engine_asleep_set(&shm->engine_thread, 0);
			/* For packets published before the daemon could see the flag. */
			if (engine_request_pass(t->engine) != 0)
				continue;
		}
		if (!works)
			busy_poll_sleeps(&t->busy, now);
		go = sleep_and_note(t, shm, until, now);
		engine_asleep_leave(&shm->engine_thread, number);
	}
	return NULL;
}

void
progress_thread_wake(void *arg)
{
	const struct progress_thread *t = arg;
	const uint64_t one = 1;
	ssize_t written = no_cancel_write(t->self_wake_fd, &one, sizeof(one));

	(void)written;
}

int
progress_thread_start(struct progress_thread *t, struct engine *engine, int session_fd,
	const struct region *region)
{
	int err;

	t->engine = engine;
	t->session_fd = session_fd;
	t->asleep = &region->client->rx_asleep;
	t->changes = &region->daemon->changes;
	t->pair_events = &region->daemon->pair_events;
	t->take_requested = &region->daemon->take_requested;
	t->report_requested = &region->daemon->report_requested;
	t->flight_requested = &region->daemon->flight_requested;
	t->flight_qpn = &region->daemon->flight_qpn;
	t->report = region->report;
	/* If faults were blocked, one in this thread would kill the process before any handler
	 * ran. */
	t->thread = (struct own_thread){.name = "rocade",
		.main = progress_thread_main,
		.arg = t,
		.takes_faults = true};
	err = own_thread_start(&t->thread);
	if (err != 0)
		return -err;
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
	pthread_join(t->thread.id, NULL);
	t->running = false;
}
