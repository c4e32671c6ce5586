/* SPDX-License-Identifier: BSD-3-Clause */
/* The rdma_cm backend of the process. */
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ucm_fixture.h"
#include "ucm/backend.h"

TEST_WITH(backend_is_set_and_cleared, ucm_setup, ucm_teardown)
{
	static const struct ucm_backend backend;

	assert_null(ucm_backend_get());
	ucm_backend_set(&backend);
	assert_ptr_equal(ucm_backend_get(), &backend);
	ucm_backend_set(NULL);
	assert_null(ucm_backend_get());
}

static int
polled(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN | POLLOUT | POLLPRI | POLLRDHUP};

	return poll(&p, 1, 0) == 1 ? p.revents : 0;
}

/* As with the kernel's rdma_cm. */
TEST(channel_is_never_writable)
{
	int ends[2];

	assert_int_equal(ucm_sockets_create(ends), 0);
	assert_int_equal(polled(ends[1]), 0);
	ucm_wake_send(ends[0], 1);
	assert_int_equal(polled(ends[1]), POLLIN);
	ucm_wakes_take(ends[1], 1, false);
	assert_int_equal(polled(ends[1]), 0);
	/* Nothing is sent to the server's end any more: it reports the last close only. */
	assert_int_equal(shutdown(ends[0], SHUT_RD), 0);
	assert_int_equal(polled(ends[1]), 0);
	close(ends[0]);
	assert_true((polled(ends[1]) & POLLHUP) != 0);
	close(ends[1]);
}

TEST(each_wake_is_an_edge)
{
	struct epoll_event event = {.events = EPOLLIN | EPOLLET};
	int set = epoll_create1(EPOLL_CLOEXEC), ends[2];

	assert_int_equal(ucm_sockets_create(ends), 0);
	assert_int_equal(epoll_ctl(set, EPOLL_CTL_ADD, ends[1], &event), 0);
	for (uint32_t i = 1; i <= 3; i++) {
		ucm_wake_send(ends[0], i);
		assert_int_equal(epoll_wait(set, &event, 1, 0), 1);
		assert_int_equal(epoll_wait(set, &event, 1, 0), 0);
	}
	close(ends[0]);
	close(ends[1]);
	close(set);
}

static unsigned
wakes_left(int fd)
{
	uint32_t numbers[8];

	return (unsigned)recv(fd, numbers, sizeof(numbers), MSG_PEEK | MSG_DONTWAIT) /
	       sizeof(numbers[0]);
}

TEST(wakes_are_taken_by_number)
{
	int ends[2];

	assert_int_equal(ucm_sockets_create(ends), 0);
	/* The numbers wrap around. */
	for (uint32_t i = UINT32_MAX - 1; i != 4; i++)
		ucm_wake_send(ends[0], i);
	assert_int_equal(wakes_left(ends[1]), 6);
	ucm_wakes_take(ends[1], UINT32_MAX, true);
	assert_int_equal(wakes_left(ends[1]), 4);
	ucm_wakes_take(ends[1], 1, false);
	assert_int_equal(wakes_left(ends[1]), 2);
	ucm_wakes_take(ends[1], 1, false);
	assert_int_equal(wakes_left(ends[1]), 2);
	/* That of the unread event found no room: the channel stays readable. */
	ucm_wakes_take(ends[1], 9, true);
	assert_int_equal(wakes_left(ends[1]), 1);
	ucm_wakes_take(ends[1], 9, false);
	assert_int_equal(polled(ends[1]), 0);
	close(ends[0]);
	close(ends[1]);
}

/* More events than the socket has room for. */
TEST(full_socket_stays_readable)
{
	uint32_t last = 5000;
	int ends[2];

	assert_int_equal(ucm_sockets_create(ends), 0);
	for (uint32_t i = 1; i <= last; i++)
		ucm_wake_send(ends[0], i);
	for (uint32_t i = 1; i < last; i++) {
		ucm_wakes_take(ends[1], i, true);
		assert_int_equal(polled(ends[1]), POLLIN);
	}
	ucm_wakes_take(ends[1], last, false);
	assert_int_equal(polled(ends[1]), 0);
	close(ends[0]);
	close(ends[1]);
}
