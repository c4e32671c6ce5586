/* SPDX-License-Identifier: BSD-3-Clause */
/* A thread that waits for the end of a connection, and is the only one of its program. */
#include <pthread.h>

#include "preload_channel_fixture.h"

/* Returns what the server gets in place of the event's address. */
static uint64_t
event_waits_as(int fd)
{
	struct rdma_ucm_event_resp resp = {.id = 0};
	struct rdma_ucm_get_event cmd = {.response = (uintptr_t)&resp};

	memset(server.out, 0x11, sizeof(resp));
	server.out_len = sizeof(resp);
	assert_true(command(fd, RDMA_USER_CM_CMD_GET_EVENT, &cmd, sizeof(cmd),
			    sizeof(resp)) > 0);
	assert_int_equal(resp.id, 0x11111111);
	memcpy(&cmd, server.in, sizeof(cmd));
	return cmd.response;
}

static int ends[2]; /* a thread of the program runs until this is closed */

static void *
other_thread(void *unused)
{
	char byte;

	return read(ends[0], &byte, 1) == 0 ? unused : &ends;
}

/* The server is told that no other thread of the program can disconnect the other end. */
TEST_WITH(only_thread_that_waits_for_the_end_says_so, setup, teardown)
{
	struct rdma_ucm_disconnect end = {.id = 1};
	struct rdma_ucm_listen listen = {.id = 1};
	int fd = channel_open(O_RDWR);
	pthread_t thread;
	void *failed;

	assert_int_equal(event_waits_as(fd), 0);
	assert_true(command(fd, RDMA_USER_CM_CMD_DISCONNECT, &end, sizeof(end), 0) > 0);
	assert_int_equal(event_waits_as(fd), UCM_GET_ALONE);
	/* It does not wait. */
	assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
	assert_int_equal(event_waits_as(fd), 0);
	assert_int_equal(fcntl(fd, F_SETFL, 0), 0);
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(pthread_create(&thread, NULL, other_thread, NULL), 0);
	assert_int_equal(event_waits_as(fd), 0);
	close(ends[1]);
	assert_int_equal(pthread_join(thread, &failed), 0);
	assert_null(failed);
	close(ends[0]);
	assert_int_equal(event_waits_as(fd), UCM_GET_ALONE);
	/* It waits for something else. */
	assert_true(command(fd, RDMA_USER_CM_CMD_LISTEN, &listen, sizeof(listen), 0) > 0);
	assert_int_equal(event_waits_as(fd), 0);
	close(fd);
}
