/* SPDX-License-Identifier: BSD-3-Clause */
/* The descriptor of an event queue: what programs see of it, and a pipe that is full. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "case.h"
#include "queue/event_queue.h"

#include "event_pipe.h"

static struct event_queue queue;
static struct async_event events[3];
static int objects[3];

static int
queue_setup(void **state)
{
	assert_int_equal(event_queue_init(&queue), 0);
	for (unsigned i = 0; i < 3; i++)
		async_event_init(&events[i], &queue, &objects[i]);
	return 0;
}

static int
queue_teardown(void **state)
{
	for (unsigned i = 0; i < 3; i++)
		event_purge(&events[i]);
	event_queue_fini(&queue);
	return 0;
}

static void
raise_event(unsigned i)
{
	event_raise(&events[i], IBV_EVENT_CQ_ERR);
}

static void
expect_next(unsigned i)
{
	struct event_record record;

	assert_int_equal(event_next(&queue, &record), 0);
	assert_ptr_equal(record.object, &objects[i]);
}

TEST_WITH(descriptors_are_close_on_exec, queue_setup, queue_teardown)
{
	assert_true(fcntl(queue.fd, F_GETFD) & FD_CLOEXEC);
	assert_true(fcntl(queue.own_fd, F_GETFD) & FD_CLOEXEC);
}

TEST_WITH(descriptor_is_never_writable, queue_setup, queue_teardown)
{
	struct pollfd p = {
		.fd = queue.fd, .events = POLLIN | POLLOUT | POLLPRI | POLLRDHUP};

	assert_int_equal(poll(&p, 1, 0), 0);
	raise_event(0);
	assert_int_equal(poll(&p, 1, 0), 1);
	assert_int_equal(p.revents, POLLIN);
	expect_next(0);
	assert_int_equal(poll(&p, 1, 0), 0);
}

TEST_WITH(each_event_is_an_edge, queue_setup, queue_teardown)
{
	struct epoll_event event = {.events = EPOLLIN | EPOLLET};
	int set = epoll_create1(EPOLL_CLOEXEC);

	assert_int_equal(epoll_ctl(set, EPOLL_CTL_ADD, queue.fd, &event), 0);
	assert_int_equal(epoll_wait(set, &event, 1, 0), 0);
	for (unsigned i = 0; i < 3; i++) { /* also with unread ones */
		raise_event(i);
		assert_int_equal(epoll_wait(set, &event, 1, 0), 1);
		assert_int_equal(epoll_wait(set, &event, 1, 0), 0);
	}
	expect_next(0);
	raise_event(0);
	assert_int_equal(epoll_wait(set, &event, 1, 0), 1);
	close(set);
}

static void
expect_sigio(const sigset_t *set)
{
	const struct timespec none = {0};

	assert_int_equal(sigtimedwait(set, NULL, &none), SIGIO);
	assert_int_equal(sigtimedwait(set, NULL, &none), -1);
}

TEST_WITH(event_raises_sigio, queue_setup, queue_teardown)
{
	struct event_taker taker = {0};
	sigset_t set, old;

	sigemptyset(&set);
	sigaddset(&set, SIGIO);
	assert_int_equal(sigprocmask(SIG_BLOCK, &set, &old), 0);
	assert_int_equal(fcntl(queue.fd, F_SETOWN, getpid()), 0);
	assert_int_equal(fcntl(queue.fd, F_SETFL, O_ASYNC), 0);
	/* A thread that waits would take the event without the descriptor. */
	assert_false(event_take_begin(&queue, &taker));
	raise_event(0);
	expect_sigio(&set);
	raise_event(1);
	expect_sigio(&set);
	assert_int_equal(sigprocmask(SIG_SETMASK, &old, NULL), 0);
}

/* The program has closed the descriptor; it destroys the channel later. */
TEST_WITH(event_behind_a_closed_descriptor_is_no_sigpipe, queue_setup, queue_teardown)
{
	int fd = queue.fd;

	close(fd);
	raise_event(0);
	assert_int_equal(event_purge(&events[0]), 0);
	/* For the teardown. */
	assert_int_equal(dup2(queue.own_fd, fd), fd);
}

/* Further events than the pipe has room for are counted, too. */
TEST_WITH(events_behind_a_full_pipe_are_read, queue_setup, queue_teardown)
{
	struct event_record record;
	unsigned filled = pipe_fill(&queue);

	assert_int_equal(fcntl(queue.fd, F_SETFL, O_NONBLOCK), 0);
	for (unsigned i = 0; i < 3; i++)
		raise_event(i);
	assert_int_equal(queue.unwritten, 3);
	assert_int_equal(event_purge(&events[1]), 0);
	assert_int_equal(queue.unwritten, 2);
	bytes_take(&queue, filled - 1);
	/* The last of the old bytes is read for the first event, and gives the others room. */
	expect_next(0);
	assert_int_equal(queue.unwritten, 0);
	expect_next(2);
	/* One byte is that of the event that was destroyed. */
	assert_int_equal(event_next(&queue, &record), -EAGAIN);
	assert_int_equal(read(queue.own_fd, &record, sizeof(record)), -1);
}
