/* SPDX-License-Identifier: BSD-3-Clause */
/* Descriptors of RDMA-CM whose server the test plays. */
#ifndef ROCADE_TEST_PRELOAD_CHANNEL_FIXTURE_H
#define ROCADE_TEST_PRELOAD_CHANNEL_FIXTURE_H

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/own_thread.h"
#include "case.h"
#include "preload/preload_channel.h"
#include "preload/served.h"
#include "preload/sysfs_session.h"
#include "ucm/backend.h"

__thread unsigned sysfs_depth;

/* The server: its last command, and its answer. */
static struct {
	int far; /* its end of the last channel */
	uint32_t opened, commands, cmd;
	struct ucm_token token;
	uint8_t in[UCM_MAX];
	size_t in_len;
	uint8_t out[UCM_MAX];
	size_t out_len;
	int rc;
	unsigned empty; /* number of GET_EVENT commands that find no event */
	int closed;     /* descriptor to close meanwhile, 0: none */
	/* The channel whose descriptor was to signal no events that it has no more. */
	uint32_t settled;
	int settled_fd;
} server;

static int
backend_open(struct ucm_token *token, int *fd)
{
	int ends[2];

	if (server.rc != 0)
		return server.rc;
	assert_int_equal(ucm_sockets_create(ends), 0);
	server.far = ends[0];
	*fd = ends[1];
	*token = (struct ucm_token){.number = ++server.opened, .generation = 7};
	return 0;
}

static int
backend_command(const struct ucm_token *token, int fd, uint32_t cmd, const void *in,
	size_t in_len, void *out, size_t *out_len)
{
	if (cmd == RDMA_USER_CM_CMD_QUERY) {
		server.settled = token->number;
		server.settled_fd = fd;
		return -ENOENT;
	}
	server.commands++;
	errno = EAGAIN; /* must not reach the caller */
	server.token = *token;
	server.cmd = cmd;
	memcpy(server.in, in, in_len);
	server.in_len = in_len;
	if (cmd == RDMA_USER_CM_CMD_GET_EVENT && server.empty > 0) {
		if (server.closed != 0) {
			close(server.closed);
			server.closed = 0;
		}
		/* An event comes while the program sleeps. */
		server.empty--;
		assert_int_equal(send(server.far, "0123", 4, 0), 4);
		return -EAGAIN;
	}
	memcpy(out, server.out, server.out_len);
	*out_len = server.out_len;
	return server.rc;
}

const struct served served_by = {
	.backend = ucm_backend_get, .main_only = own_threads_and_main_only};

static const struct ucm_backend backend = {
	.open = backend_open, .command = backend_command};

static int
setup(void **state)
{
	memset(&server, 0, sizeof(server));
	server.far = -1;
	ucm_backend_set(&backend);
	return 0;
}

static int
teardown(void **state)
{
	if (server.far >= 0)
		close(server.far);
	ucm_backend_set(NULL);
	return 0;
}

static inline ssize_t
command(int fd, uint32_t cmd, const void *in, size_t in_len, uint16_t out)
{
	uint8_t bytes[UCM_MAX + sizeof(struct rdma_ucm_cmd_hdr)];
	struct rdma_ucm_cmd_hdr hdr = {.cmd = cmd, .in = (uint16_t)in_len, .out = out};

	memcpy(bytes, &hdr, sizeof(hdr));
	memcpy(bytes + sizeof(hdr), in, in_len);
	return channel_write(fd, bytes, sizeof(hdr) + in_len);
}

#endif
