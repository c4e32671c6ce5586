/* SPDX-License-Identifier: BSD-3-Clause */
/* Descriptors of RDMA-CM event channels. */
#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "case.h"
#include "rdmacm_fixture.h"

/* The old channel is not readable behind rdma_migrate_id(), and each event is an edge. */
TEST(events_go_with_their_id)
{
	struct epoll_event wanted = {.events = EPOLLIN | EPOLLET}, got;
	struct rdma_event_channel *first, *second;
	struct pollfd p = {.events = POLLIN | POLLOUT};
	struct rdma_cm_id *ids[2];
	int set = epoll_create1(EPOLL_CLOEXEC);

	ports_open();
	first = channel_new();
	second = channel_new();
	p.fd = first->fd;
	assert_int_equal(epoll_ctl(set, EPOLL_CTL_ADD, first->fd, &wanted), 0);
	for (unsigned i = 0; i < 2; i++) {
		ids[i] = id_new(first, RDMA_PS_TCP);
		assert_int_equal(rdma_resolve_addr(ids[i], NULL,
					 (struct sockaddr *)addr_of(ADDR_A, 1), 2000),
			0);
		assert_int_equal(epoll_wait(set, &got, 1, -1), 1);
		assert_int_equal(epoll_wait(set, &got, 1, 0), 0);
	}
	assert_int_equal(rdma_migrate_id(ids[0], second), 0);
	assert_int_equal(poll(&p, 1, 0), 1);
	assert_int_equal(p.revents, POLLIN);
	assert_int_equal(rdma_migrate_id(ids[1], second), 0);
	assert_int_equal(poll(&p, 1, 0), 0);
	for (unsigned i = 0; i < 2; i++)
		assert_ptr_equal(event_take(second, RDMA_CM_EVENT_ADDR_RESOLVED), ids[i]);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(rdma_destroy_id(ids[i]), 0);
	rdma_destroy_event_channel(first);
	rdma_destroy_event_channel(second);
	close(set);
	ports_close();
}
