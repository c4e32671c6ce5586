/* SPDX-License-Identifier: BSD-3-Clause */
/* A client's end. The test plays the daemon: its replies are sent before the requests. */
#ifndef ROCADE_TEST_SHM_FIXTURE_H
#define ROCADE_TEST_SHM_FIXTURE_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "case.h"
#include "engine/dev.h"
#include "engine/engine_lock.h"
#include "engine/engine_state.h"
#include "shm/process_key.h"
#include "shm/shm.h"

static inline unsigned
fds_count(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned n = 0;

	assert_non_null(dir);
	while (readdir(dir) != NULL)
		n++;
	closedir(dir);
	return n;
}

/* Connects a session; returns the daemon's end. */
static inline int
session_pair(struct session *s)
{
	int ends[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	session_adopt(s, ends[0]);
	return ends[1];
}

/* Sends len bytes of the reply and n descriptors from the daemon's end. */
static inline void
reply_send(int end, const void *reply, size_t len, const int *fds, unsigned n)
{
	char control[CMSG_SPACE(8 * sizeof(int))] __attribute__((aligned(8))) = {0};
	struct iovec from = {.iov_base = (void *)reply, .iov_len = len};
	struct msghdr msg = {.msg_iov = &from, .msg_iovlen = 1};

	if (n != 0) {
		struct cmsghdr *c;

		msg.msg_control = control;
		msg.msg_controllen = CMSG_SPACE(n * sizeof(int));
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(n * sizeof(int));
		memcpy(CMSG_DATA(c), fds, n * sizeof(int));
	}
	assert_int_equal(sendmsg(end, &msg, 0), len);
}

static inline struct sw_request
request_recv(int end)
{
	struct sw_request req;

	assert_int_equal(recv(end, &req, sizeof(req), MSG_DONTWAIT), sizeof(req));
	assert_int_equal(req.magic, SW_PROTO_MAGIC);
	assert_int_equal(req.version, SW_PROTO_VERSION);
	return req;
}

/* The request shows the process key. */
static inline void
request_recv_with_key(int end, uint32_t type)
{
	struct sw_request req = request_recv(end);
	uint8_t key[SW_PROCESS_KEY];

	assert_int_equal(req.type, type);
	assert_int_equal(process_key_get(key), 0);
	assert_memory_equal(req.sgid, key, sizeof(key));
}

static uint32_t fixture_rx_slots = 8, fixture_buf_size = 256;

static inline struct sw_reply
reply_valid(void)
{
	struct sw_reply reply = {.magic = SW_PROTO_MAGIC,
		.version = SW_PROTO_VERSION,
		.geom = {.tx_slots = 8,
			.rx_slots = fixture_rx_slots,
			.tx_bufs = 12,
			.buf_size = fixture_buf_size}};

	reply.device.qpn_count = 64;
	reply.device.index = SW_DEVICE_INDEX | 7;
	strcpy(reply.device.name, "rocade0");
	memcpy(reply.device.net.mac, "\x02\x00\x00\x00\x00\x07", 6);
	return reply;
}

/* The daemon's end of an attachment. */
struct daemon_end {
	int fd;
	int daemon_wake_fd;
	int wake;
	int fds[SW_ATTACH_FDS]; /* to pass to the client */
	struct region region;
	struct ring_cons tx;
	struct ring_prod rx;
};

#define WRITER_SEALS (F_SEAL_FUTURE_WRITE | F_SEAL_SEAL)

/* Memory of a fixed size; mapped for writing, and then sealed further. */
static inline int
memory_create(size_t size, int seals, void **mem)
{
	int fd = memfd_create("rocade", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_int_equal(ftruncate(fd, (off_t)size), 0);
	*mem = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(*mem, MAP_FAILED);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | seals), 0);
	return fd;
}

static inline void
daemon_open(struct daemon_end *d, struct session *s)
{
	struct region_geom geom = reply_valid().geom;
	void *client, *daemon;
	int ends[2];

	d->fd = session_pair(s);
	d->fds[SW_FD_CLIENT_MEM] = memory_create(region_client_size(&geom), 0, &client);
	d->fds[SW_FD_DAEMON_MEM] =
		memory_create(region_daemon_size(&geom), WRITER_SEALS, &daemon);
	region_init(&d->region, client, daemon, &geom);
	region_daemon_rings(&d->region, &d->tx, &d->rx);
	d->daemon_wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	d->fds[SW_FD_DAEMON_WAKE] = dup(d->daemon_wake_fd);
	assert_int_equal(
		socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends),
		0);
	d->wake = ends[0];
	d->fds[SW_FD_CLIENT_WAKE] = ends[1];
}

/* Closes the daemon's copies of the descriptors passed to the client. */
static inline void
daemon_close_passed(struct daemon_end *d)
{
	for (unsigned i = 0; i < SW_ATTACH_FDS; i++)
		close(d->fds[i]);
}

/* A device whose engine has a lock, and runs no passes. */
static inline struct dev *
lock_device_make(void)
{
	struct dev *dev = aligned_alloc(LINE_SIZE, sizeof(*dev));

	assert_non_null(dev);
	memset(dev, 0, sizeof(*dev));
	dev->engines[0] = aligned_alloc(
		LINE_SIZE, RTE_ALIGN_CEIL(sizeof(struct engine), (size_t)LINE_SIZE));
	assert_non_null(dev->engines[0]);
	memset(dev->engines[0], 0, sizeof(struct engine));
	dev->engines[0]->dev = dev;
	engine_lock_init(dev->engines[0], false);
	return dev;
}

static inline void
lock_device_free(struct dev *dev)
{
	free(dev->engines[0]);
	free(dev);
}

static inline void
daemon_close(struct daemon_end *d)
{
	munmap(d->region.client, region_client_size(&d->region.geom));
	munmap(d->region.daemon, region_daemon_size(&d->region.geom));
	close(d->fd);
	close(d->daemon_wake_fd);
	close(d->wake);
}

#endif
