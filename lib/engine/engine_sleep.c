/* SPDX-License-Identifier: BSD-3-Clause */
/* Control path. */
#include <errno.h>
#include <linux/membarrier.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "engine/engine_sleep.h"
#include "engine/engine_wake.h"

/* Where the port does not announce packets, the engine looks for them this often. */
#define POLL_NS NS_PER_MS
/* No sleep is longer: the link is polled in between. */
#define LONGEST_NS (100 * NS_PER_MS)

static long
membarrier(int command)
{
	return syscall(SYS_membarrier, command, 0, 0);
}

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
	s->has_rx = rx_fd >= 0;
	rc = sleep_fd_add(s->epoll_fd - 1, s->wake_fd - 1);
	if (rc == 0)
		rc = sleep_fd_add(s->epoll_fd - 1, s->timer_fd - 1);
	if (rc == 0 && s->has_rx)
		rc = sleep_fd_add(s->epoll_fd - 1, rx_fd);
	return rc;
}

int
engine_sleep_open(struct engine *e, int *fd)
{
	struct engine_sleep *s = &e->sleep;
	int rc;

	if (s->epoll_fd == 0) {
		if (membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) != 0)
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

static void
rx_arm(struct engine *e, bool on)
{
	const struct port_queue *q = &e->io.queue;

	if (e->sleep.has_rx && q->ops->rx_arm != NULL)
		q->ops->rx_arm(q->queue, on);
}

/* The control engine resolves neighbours for the others and sends on QP 1 for them, and they
 * learn of it in a pass. Engines do not wake each other for that. */
static bool
waits_for_others(const struct engine *e)
{
	return (e->is_control && e->dev->engine_count > 1) ||
	       !TAILQ_EMPTY(&e->unresolved) || !TAILQ_EMPTY(&e->peers.asking);
}

/* 0: no time to sleep. */
static uint64_t
sleep_ns(struct engine *e, uint64_t now)
{
	uint64_t until = engine_deadline(e);
	uint64_t most = e->sleep.has_rx && !waits_for_others(e) ? LONGEST_NS : POLL_NS;

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
	/* Pairs with the compiler's fence in engine_wake_if_asleep(). */
	(void)membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
	rx_arm(e, true);
	/* For what came before others could see that the engine sleeps. */
	if (engine_poll(e) == 0)
		ns = sleep_ns(e, engine_clock());
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
	__atomic_store_n(&e->doorbells.asleep, 0, __ATOMIC_RELAXED);
	rx_arm(e, false);
	timer_set(&e->sleep, 0);
	sleep_fd_drain(e->sleep.timer_fd - 1);
	sleep_fd_drain(e->sleep.wake_fd - 1);
}
