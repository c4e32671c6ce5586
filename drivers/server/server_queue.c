/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <rocade/daemon.h>

#include "engine/clock.h"
#include "server/server_idle.h"
#include "server/server_queue.h"
#include "verbs/verbs_port.h"

static void
queue_wake(void *arg, uint32_t index)
{
	struct rocade_daemon *d = arg;
	const uint64_t one = 1;
	ssize_t written = write(d->thread_wakes[index].fd, &one, sizeof(one));

	(void)written;
}

static int
thread_wake_create(struct rocade_daemon *d, uint32_t index)
{
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

	if (fd >= 0 && fd_source_add(&d->sets[index], &d->thread_wakes[index], fd,
			       FD_SOURCE_WAKE, NULL) == 0)
		return 0;
	if (fd >= 0)
		close(fd);
	return rocade_fail(EMFILE, "no free file descriptor for an eventfd");
}

int
queues_open(struct rocade_daemon *d)
{
	int err = 0;

	for (uint32_t i = 0; i < SW_THREADS_MAX; i++)
		d->thread_wakes[i].fd = -1;
	if (d->sw->thread_count == 1)
		return 0;
	for (uint32_t i = 1; i < d->sw->thread_count; i++) {
		err = fd_sets_open(&d->sets[i], false);
		if (err != 0)
			return rocade_fail(
				-err, "no free file descriptor for an epoll set");
	}
	for (uint32_t i = 0; err == 0 && i < d->sw->thread_count; i++)
		err = thread_wake_create(d, i);
	d->sw->wake_thread_arg = d;
	d->sw->wake_thread = queue_wake;
	return err;
}

void
queues_close(struct rocade_daemon *d)
{
	for (unsigned i = 0; i < SW_THREADS_MAX; i++) {
		if (d->thread_wakes[i].fd > 0)
			fd_source_close(&d->thread_wakes[i]);
		if (i != 0)
			fd_sets_close(&d->sets[i]);
	}
}

int
queue_wakes_move(struct conn *conn)
{
	struct rocade_daemon *d = conn->daemon;
	uint32_t index = conn->client->thread->index;
	int fd, rc;

	if (index == 0)
		return 0;
	fd = fd_source_remove(&conn->daemon_wake);
	rc = fd_source_add(&d->sets[index], &conn->daemon_wake, fd, FD_SOURCE_WAKE, conn);
	if (rc != 0)
		passed_fds_close_given(&d->passed, conn->account, fd);
	return rc;
}

unsigned
queues_drain(struct rocade_daemon *d, uint64_t now)
{
	unsigned moved = 0;

	for (uint32_t i = 1; d->up != NULL && i < d->sw->thread_count; i++)
		moved += sw_thread_run(d->sw->threads[i], now);
	return moved;
}

static void
queue_idle(struct rocade_daemon *d, struct sw_thread *t, uint64_t last, uint64_t now)
{
	struct core_taken *core = &d->cores[t->index];
	uint64_t max_ns = __atomic_load_n(&d->sleep_us, __ATOMIC_RELAXED) * NS_PER_US;
	uint64_t ns = idle_sleep_most(core, max_ns, now - last);

	if (ns == 0) {
		idle_leave(core);
	} else if (sw_thread_sleep(t)) {
		(void)fd_sets_wait(&d->sets[t->index], ns);
		sw_thread_awake(t);
		core_taken_slept(core);
	} else {
		idle_yield(core);
	}
}

EXPORT int
rocade_daemon_run_queue(struct rocade_daemon *d, unsigned queue)
{
	struct sw_thread *t;
	struct core_taken *core;
	uint64_t now, last;

	if (queue == 0 || queue >= d->sw->thread_count)
		return rocade_fail(EINVAL,
			"queue: %u is not in 1..%u, the further queues", queue,
			d->sw->thread_count - 1);
	t = d->sw->threads[queue];
	if (__atomic_exchange_n(&t->running, true, __ATOMIC_RELAXED))
		return rocade_fail(EINVAL, "queue: %u runs already", queue);
	core = &d->cores[queue];
	idle_open(core);
	last = clock_now();
	while (!__atomic_load_n(&d->queues_stopping, __ATOMIC_RELAXED)) {
		now = clock_now();
		core_taken_pass(core, now);
		if (sw_thread_run(t, now) != 0)
			last = now;
		else
			queue_idle(d, t, last, now);
	}
	__atomic_store_n(&t->running, false, __ATOMIC_RELAXED);
	return 0;
}

EXPORT void
rocade_daemon_stop_queues(struct rocade_daemon *d)
{
	__atomic_store_n(&d->queues_stopping, true, __ATOMIC_RELAXED);
}
