/* SPDX-License-Identifier: BSD-3-Clause */
/* Control path. */
#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/process_barrier.h"
#include "engine/engine_lock.h"
#include "engine/engine_sleep.h"
#include "engine/engine_wake.h"

/* Where the port does not announce packets, the engine looks for them this often: first, and after
 * a number of sleeps without any. */
#define POLL_NS NS_PER_MS
#define POLL_IDLE_NS (4 * NS_PER_MS)
#define IDLE_SLEEPS 64
/* No sleep is longer: the link is polled in between. */
#define LONGEST_NS (100 * NS_PER_MS)

static int
sleep_fd_add(int epoll_fd, int fd)
{
	struct epoll_event event = {.events = EPOLLIN};

	return epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0 ? 0 : -errno;
}

/* Descriptors are kept plus 1: 0 means none. */
static int
fds_create(struct engine_sleep *s, int rx_fd)
{
	int rc;

	s->epoll_fd = epoll_create1(EPOLL_CLOEXEC) + 1;
	s->wake_fd = s->epoll_fd != 0 ? eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC) + 1 : 0;
	s->timer_fd =
		s->wake_fd != 0
			? timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC) + 1
			: 0;
	if (s->timer_fd == 0)
		return -errno;
	s->rx_fd = rx_fd + 1;
	rc = sleep_fd_add(s->epoll_fd - 1, s->wake_fd - 1);
	if (rc == 0)
		rc = sleep_fd_add(s->epoll_fd - 1, s->timer_fd - 1);
	if (rc == 0 && rx_fd >= 0)
		rc = sleep_fd_add(s->epoll_fd - 1, rx_fd);
	return rc;
}

int
engine_sleep_open(struct engine *e, int *fd)
{
	struct engine_sleep *s = &e->sleep;
	int rc;

	if (s->epoll_fd == 0) {
		if (!process_barrier_register())
			return -EOPNOTSUPP;
		rc = fds_create(s, e->io.queue.ops->wait_fd(e->io.queue.queue));
		if (rc != 0) {
			engine_wake_close(e);
			return rc;
		}
	}
	*fd = s->epoll_fd - 1;
	return 0;
}

bool
engine_sleep_is_open(const struct engine *e)
{
	return e->sleep.epoll_fd != 0;
}

static void
sleep_fd_drain(int fd)
{
	uint64_t count;
	ssize_t got = read(fd, &count, sizeof(count));

	(void)got;
}

/* For the queue of the port: those that wrap it (port/impair.h, drivers/dump) can end while the
 * engine sleeps. */
static void
port_rx_arm(const struct engine *e, bool on)
{
	const struct port *port = &e->dev->port;

	if (port->ops->rx_arm != NULL)
		port->ops->rx_arm(port->queues[engine_index(e)], on);
}

/* The queue may have been wrapped since the descriptor was created. */
static void
rx_arm(struct engine *e)
{
	struct engine_sleep *s = &e->sleep;

	engine_lock(e);
	s->armed = s->rx_fd != 0 &&
		   e->io.queue.ops->wait_fd(e->io.queue.queue) + 1 == s->rx_fd;
	engine_lock_release(e);
	if (s->armed)
		port_rx_arm(e, true);
}

static void
rx_disarm(struct engine *e)
{
	if (e->sleep.armed)
		port_rx_arm(e, false);
	e->sleep.armed = false;
}

/* The control engine resolves neighbours for the others and sends on QP 1 for them, and they
 * learn of it in a pass. Engines do not wake each other for that. */
static bool
serves_others(const struct engine *e)
{
	return e->is_control && e->dev->engine_count > 1;
}

static bool
waits_for_others(const struct engine *e)
{
	return !TAILQ_EMPTY(&e->unresolved) || !TAILQ_EMPTY(&e->peers.asking);
}

static uint64_t
poll_interval_ns(struct engine *e)
{
	struct engine_sleep *s = &e->sleep;
	uint64_t packets = e->stats.rx_packets + e->stats.tx_packets;

	s->idle = packets != s->packets ? 0 : s->idle + (s->idle < IDLE_SLEEPS);
	s->packets = packets;
	return s->idle < IDLE_SLEEPS ? POLL_NS : POLL_IDLE_NS;
}

/* 0: no time to sleep. */
static uint64_t
sleep_ns(struct engine *e, uint64_t now)
{
	uint64_t until = engine_deadline(e);
	uint64_t most = poll_interval_ns(e);

	if (waits_for_others(e))
		most = POLL_NS;
	else if (e->sleep.armed && !serves_others(e))
		most = LONGEST_NS;
	return until <= now ? 0 : RTE_MIN(until - now, most);
}

static void
timer_set(const struct engine_sleep *s, uint64_t ns)
{
	struct itimerspec when = {.it_value = {.tv_sec = (time_t)(ns / NS_PER_SEC),
					  .tv_nsec = (long)(ns % NS_PER_SEC)}};

	(void)timerfd_settime(s->timer_fd - 1, 0, &when, NULL);
}

bool
engine_sleep_begin(struct engine *e)
{
	uint32_t *asleep = &e->doorbells.asleep;
	uint64_t ns = 0;

	__atomic_store_n(asleep, 1, __ATOMIC_RELAXED);
	rx_arm(e);
	/* Pairs with the compiler's fence in engine_wake_if_asleep(). The engine looks for work
	 * once more, for what came before others could see that it sleeps. */
	if (process_barrier() && engine_poll(e) == 0)
		ns = sleep_ns(e, engine_clock());
	/* Posts of this thread, too, are announced from here on. */
	__atomic_store_n(&e->tx_thread, 0, __ATOMIC_RELAXED);
	if (ns == 0) {
		engine_sleep_end(e);
		return false;
	}
	timer_set(&e->sleep, ns);
	return true;
}

void
engine_sleep_end(struct engine *e)
{
	if (e->sleep.armed)
		engine_woke(e);
	__atomic_store_n(&e->doorbells.asleep, 0, __ATOMIC_RELAXED);
	rx_disarm(e);
	timer_set(&e->sleep, 0);
	sleep_fd_drain(e->sleep.timer_fd - 1);
	sleep_fd_drain(e->sleep.wake_fd - 1);
}
