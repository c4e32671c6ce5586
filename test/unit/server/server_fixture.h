/* SPDX-License-Identifier: BSD-3-Clause */
/* A daemon and its clients in one thread: the test calls what the daemon's loop would
 * call. Proves at the end that no descriptor and no mapping is left. */
#ifndef ROCADE_TEST_SERVER_FIXTURE_H
#define ROCADE_TEST_SERVER_FIXTURE_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rocade/daemon.h>
#include <rocade/rocade.h>

#include "case.h"
#include "server/server_conn.h"
#include "server/server_query.h"
#include "server/server_rdmacm.h"
#include "server/server_share.h"

#include "await.h"

struct server_fixture {
	char dir[32];
	char path[64];
	struct rocade_daemon *d;
	unsigned fds;
	unsigned maps;
	bool closers_wait; /* a close waits for what the test does later */
};

static inline unsigned
entries_count(const char *path)
{
	DIR *dir = opendir(path);
	unsigned n = 0;

	assert_non_null(dir);
	while (readdir(dir) != NULL)
		n++;
	closedir(dir);
	return n;
}

static inline unsigned
fds_count(void)
{
	return entries_count("/proc/self/fd");
}

static inline unsigned
conns_count(const struct rocade_daemon *d)
{
	const struct conn *conn;
	unsigned n = 0;

	TAILQ_FOREACH (conn, &d->conns, link)
		n++;
	return n;
}

/* Number of mapped client memories. */
static inline unsigned
maps_count(void)
{
	FILE *file = fopen("/proc/self/maps", "r");
	char line[512];
	unsigned n = 0;

	assert_non_null(file);
	while (fgets(line, sizeof(line), file) != NULL)
		n += strstr(line, "memfd:rocade") != NULL;
	fclose(file);
	return n;
}

/* conf: all but the socket. */
static inline void
fixture_open(struct server_fixture *b, struct rocade_daemon_conf conf)
{
	memset(b, 0, sizeof(*b));
	b->fds = fds_count();
	b->maps = maps_count();
	strcpy(b->dir, "/tmp/rocade-test-XXXXXX");
	assert_non_null(mkdtemp(b->dir));
	snprintf(b->path, sizeof(b->path), "%s/socket", b->dir);
	conf.size = sizeof(conf);
	conf.socket = b->path;
	if (conf.addresses == NULL)
		conf.addresses = "192.0.2.1/24";
	if (conf.client_ring == 0)
		conf.client_ring = 64;
	assert_int_equal(rocade_daemon_create(&conf, &b->d), 0);
}

/* Returns whether all descriptors of clients (server/passed_fds.h) are closed, and the threads for that
 * ended. */
static inline bool
fixture_fds_are_closed(struct server_fixture *b)
{
	passed_fds_collect(&b->d->passed);
	passed_fds_look(&b->d->passed);
	return passed_fds_pending(&b->d->passed) == 0 &&
	       TAILQ_EMPTY(&b->d->passed.closers);
}

static inline bool
fixture_closers_await(struct server_fixture *b)
{
	return awaited(fixture_fds_are_closed(b));
}

/* The daemon has ended. Threads of it may still close descriptors (server/passed_fds.h). */
static inline void
fds_await(const struct server_fixture *b)
{
	await(fds_count() == b->fds);
}

static inline void
fixture_close(struct server_fixture *b)
{
	rocade_daemon_destroy(b->d);
	assert_int_equal(access(b->path, F_OK), -1);
	assert_int_equal(rmdir(b->dir), 0);
	fds_await(b);
	assert_int_equal(maps_count(), b->maps);
}

static inline int
client_socket(void)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	return fd;
}

static inline void
client_connect_fd(struct server_fixture *b, int fd)
{
	assert_int_equal(
		connect(fd, (struct sockaddr *)&b->d->addr, sizeof(b->d->addr)), 0);
	conn_accept(b->d);
}

static inline int
client_connect(struct server_fixture *b)
{
	int fd = client_socket();

	client_connect_fd(b, fd);
	return fd;
}

/* The daemon handles all its connections, and unmaps the memory of those that have ended. The
 * descriptors that it no longer needs are closed then, unless closers_wait. */
static inline void
daemon_handle_all(struct server_fixture *b)
{
	struct conn *conn, *next;

	for (conn = TAILQ_FIRST(&b->d->conns); conn != NULL; conn = next) {
		next = TAILQ_NEXT(conn, link);
		conn_ready(conn);
	}
	conn_reap(b->d);
	ended_memory_free(&b->d->ended_memory);
	if (!b->closers_wait)
		assert_true(fixture_closers_await(b));
}

/* Receives a reply. Returns false if the daemon has disconnected. fds: room for
 * SW_ATTACH_FDS descriptors, or NULL if none may come. */
static inline bool
client_recv(int fd, struct sw_reply *reply, int *fds)
{
	char control[CMSG_SPACE(8 * sizeof(int))] __attribute__((aligned(8)));
	struct iovec to = {.iov_base = reply, .iov_len = sizeof(*reply)};
	struct msghdr msg = {.msg_iov = &to,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control)};
	ssize_t len = recvmsg(fd, &msg, MSG_DONTWAIT);
	struct cmsghdr *c;

	if (len == 0 || (len < 0 && errno == ECONNRESET))
		return false;
	assert_int_equal(len, sizeof(*reply));
	c = CMSG_FIRSTHDR(&msg);
	if (fds != NULL) {
		memset(fds, -1, SW_ATTACH_FDS * sizeof(int));
		if (c != NULL)
			memcpy(fds, CMSG_DATA(c), c->cmsg_len - CMSG_LEN(0));
	} else {
		assert_null(c);
	}
	return true;
}

static inline bool
client_call(struct server_fixture *b, int fd, struct sw_request *req,
	struct sw_reply *reply, int *fds)
{
	req->magic = SW_PROTO_MAGIC;
	req->version = SW_PROTO_VERSION;
	assert_int_equal(send(fd, req, sizeof(*req), MSG_NOSIGNAL), sizeof(*req));
	daemon_handle_all(b);
	return client_recv(fd, reply, fds);
}

/* A request that is answered by data. Returns the error of the reply. */
static inline int
client_fetch(struct server_fixture *b, int fd, struct sw_request *req,
	struct sw_data_reply *reply)
{
	ssize_t len;

	req->magic = SW_PROTO_MAGIC;
	req->version = SW_PROTO_VERSION;
	assert_int_equal(send(fd, req, sizeof(*req), MSG_NOSIGNAL), sizeof(*req));
	daemon_handle_all(b);
	len = recv(fd, reply, sizeof(*reply), MSG_DONTWAIT);
	assert_true(len >= (ssize_t)offsetof(struct sw_data_reply, bytes));
	assert_int_equal(len, offsetof(struct sw_data_reply, bytes) + reply->len);
	assert_int_equal(reply->magic, SW_PROTO_MAGIC);
	assert_int_equal(reply->type, req->type);
	return reply->error;
}

/* The key that the next connection shows with SW_ATTACH or SW_CM_OPEN: that of its process. */
static uint8_t fixture_key[SW_PROCESS_KEY];

/* The next connections are of the process with this number; 0: they show no key. */
static inline void
fixture_process(uint8_t number)
{
	memset(fixture_key, 0, sizeof(fixture_key));
	fixture_key[SW_PROCESS_KEY - 1] = number;
}

/* A client's end. */
struct fixture_client {
	int fd;
	int fds[SW_ATTACH_FDS];
	struct sw_reply reply;
	struct region region;
};

static inline void *
memory_map(int fd, size_t size, int prot)
{
	void *mem = mmap(NULL, size, prot, MAP_SHARED, fd, 0);

	assert_ptr_not_equal(mem, MAP_FAILED);
	return mem;
}

/* Allocates the pages of both parts, but for client_less and daemon_less bytes at their
 * ends. */
static inline void
memory_fill(const int fds[SW_ATTACH_FDS], const struct region_geom *geom,
	off_t client_less, off_t daemon_less)
{
	assert_int_equal(fallocate(fds[SW_FD_CLIENT_MEM], 0, 0,
				 (off_t)region_client_size(geom) - client_less),
		0);
	assert_int_equal(fallocate(fds[SW_FD_DAEMON_MEM], 0, 0,
				 (off_t)region_daemon_size(geom) - daemon_less),
		0);
}

/* The client has mapped its part. */
static inline void
memory_seal(int fd)
{
	assert_int_equal(fcntl(fd, F_ADD_SEALS, REGION_WRITER_SEALS), 0);
}

/* start: the request when it has allocated the pages. */
static inline int
client_attach_as(
	struct server_fixture *b, struct fixture_client *c, struct sw_request start)
{
	struct sw_request req = {.type = SW_ATTACH};
	struct region_geom geom;

	memset(c, 0, sizeof(*c));
	memcpy(req.sgid, fixture_key, sizeof(req.sgid));
	c->fd = client_connect(b);
	assert_true(client_call(b, c->fd, &req, &c->reply, c->fds));
	if (c->reply.error != 0)
		return c->reply.error;
	geom = c->reply.geom;
	memory_fill(c->fds, &geom, 0, 0);
	region_init(&c->region,
		memory_map(c->fds[SW_FD_CLIENT_MEM], region_client_size(&geom),
			PROT_READ | PROT_WRITE),
		memory_map(
			c->fds[SW_FD_DAEMON_MEM], region_daemon_size(&geom), PROT_READ),
		&geom);
	memory_seal(c->fds[SW_FD_CLIENT_MEM]);
	start.type = SW_START;
	assert_true(client_call(b, c->fd, &start, &c->reply, NULL));
	return c->reply.error;
}

static inline int
client_attach(struct server_fixture *b, struct fixture_client *c)
{
	return client_attach_as(b, c, (struct sw_request){.qpn = 0});
}

static inline void
client_unmap(struct fixture_client *c)
{
	if (c->region.client == NULL)
		return;
	munmap(c->region.client, region_client_size(&c->region.geom));
	munmap(c->region.daemon, region_daemon_size(&c->region.geom));
}

/* The client ends, and the daemon notices. */
static inline void
client_detach(struct server_fixture *b, struct fixture_client *c)
{
	client_unmap(c);
	for (unsigned i = 0; i < SW_ATTACH_FDS; i++) {
		if (c->fds[i] >= 0)
			close(c->fds[i]);
	}
	close(c->fd);
	daemon_handle_all(b);
}

#endif
