/* SPDX-License-Identifier: BSD-3-Clause */
/* RDMA-CM over the daemon's socket: commands of a client. */
#ifndef ROCADE_TEST_SERVER_RDMACM_FIXTURE_H
#define ROCADE_TEST_SERVER_RDMACM_FIXTURE_H

#include <sys/epoll.h>

#include "server_fixture.h"
#include "ucm/ucm.h"

/* The daemon handles its channels. */
static inline void
channels_serve(struct server_fixture *b)
{
	struct epoll_event events[16];
	int n = epoll_wait(b->d->sets[0].serve, events, 16, 0);

	for (int i = 0; i < n; i++) {
		const struct fd_source *source = events[i].data.ptr;

		if (source->kind == FD_SOURCE_CM_CHANNEL)
			rdmacm_channel(source);
	}
	rdmacm_reap(b->d);
}

static inline uint32_t
channel_open(struct server_fixture *b, int fd, int *channel)
{
	struct sw_request req = {.type = SW_CM_OPEN};
	int fds[SW_ATTACH_FDS] = {-1, -1, -1, -1};
	struct sw_reply reply;

	memcpy(req.sgid, fixture_key, sizeof(req.sgid));
	assert_true(client_call(b, fd, &req, &reply, fds));
	assert_int_equal(reply.error, 0);
	assert_true(fds[0] >= 0);
	*channel = fds[0];
	return reply.qpn;
}

/* Returns false if the daemon has disconnected. */
static inline bool
cm_command(struct server_fixture *b, int fd, uint32_t channel, uint32_t cmd,
	const void *in, uint32_t len, struct sw_cm_reply *reply)
{
	struct sw_cm_request req = {.magic = SW_PROTO_MAGIC,
		.version = SW_PROTO_VERSION,
		.type = SW_CM_COMMAND,
		.channel = channel,
		.cmd = cmd,
		.len = len};

	memcpy(req.bytes, in, RTE_MIN((size_t)len, sizeof(req.bytes)));
	assert_int_equal(send(fd, &req, sizeof(req), 0), sizeof(req));
	daemon_handle_all(b);
	return recv(fd, reply, sizeof(*reply), MSG_DONTWAIT) == sizeof(*reply);
}

static inline uint32_t
id_make(struct server_fixture *b, int fd, uint32_t channel)
{
	struct rdma_ucm_create_id cmd = {.uid = 1, .ps = RDMA_PS_TCP};
	struct rdma_ucm_create_id_resp resp;
	struct sw_cm_reply reply;

	assert_true(cm_command(
		b, fd, channel, RDMA_USER_CM_CMD_CREATE_ID, &cmd, sizeof(cmd), &reply));
	assert_int_equal(reply.error, 0);
	assert_int_equal(reply.len, sizeof(resp));
	memcpy(&resp, reply.bytes, sizeof(resp));
	return resp.id;
}

static inline int
resolve_loopback(struct server_fixture *b, int fd, uint32_t channel, uint32_t id,
	struct sw_cm_reply *reply)
{
	struct rdma_ucm_resolve_ip cmd = {.id = id};
	struct sockaddr_in *to = (struct sockaddr_in *)&cmd.dst_addr;

	to->sin_family = AF_INET;
	to->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	to->sin_port = htons(7471);
	assert_true(cm_command(
		b, fd, channel, RDMA_USER_CM_CMD_RESOLVE_IP, &cmd, sizeof(cmd), reply));
	return reply->error;
}

static inline int
bind_any(struct server_fixture *b, int fd, uint32_t channel, uint32_t id, uint16_t port)
{
	struct rdma_ucm_bind_ip cmd = {.id = id};
	struct sockaddr_in *addr = (struct sockaddr_in *)&cmd.addr;
	struct sw_cm_reply reply;

	addr->sin_family = AF_INET;
	addr->sin_port = htons(port);
	assert_true(cm_command(
		b, fd, channel, RDMA_USER_CM_CMD_BIND_IP, &cmd, sizeof(cmd), &reply));
	return reply.error;
}

#endif
