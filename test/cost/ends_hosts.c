/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two hosts: a daemon each, as rocaded has it, and a client of each, as librocade-verbs is one. The
 * daemons' ports are joined by a loop. One thread runs everything in turn, so that counts are the same in
 * each run. In place of what needs threads:
 *
 * - a client has no progress thread: the program polls its CQs all the time (progress_thread_start());
 * - a daemon serves its sockets when a client has sent a request, before it waits for the reply
 *   (send()).
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/base_alloc.h"
#include "clock_cost.h"
#include "ends.h"
#include "engine/clock.h"
#include "loop/loop.h"
#include "server/server_control.h"
#include "server/server_events.h"
#include "shm/shm.h"
#include "verbs/objects.h"

#define MTU 4184 /* path MTU 4096 */
#define FRAME_MAX (MTU + 18)
#define RING 1024
#define SERVE_TURNS 100 /* within which a daemon accepts a connection and answers */

static struct host {
	struct rocade_daemon *daemon;
	char path[64];
	struct ibv_context *context; /* keeps the client's port open */
	struct rocade_port *port;
} hosts[2];
static char dir[] = "/tmp/rocade-cost-XXXXXX";

int __wrap_progress_thread_start(struct progress_thread *t, struct engine *engine,
	int session_fd, const struct region *region);
ssize_t __wrap_send(int fd, const void *bytes, size_t len, int flags);
ssize_t __real_send(int fd, const void *bytes, size_t len, int flags);

int
__wrap_progress_thread_start(struct progress_thread *t, struct engine *engine,
	int session_fd, const struct region *region)
{
	(void)t;
	(void)engine;
	(void)session_fd;
	(void)region;
	return 0;
}

/* Of a connection to a daemon: a daemon's own end of one is connected to no path. */
static bool
fd_is_client(int fd)
{
	struct sockaddr_un peer = {.sun_family = AF_UNSPEC};
	socklen_t len = sizeof(peer);

	if (getpeername(fd, (struct sockaddr *)&peer, &len) != 0 ||
		peer.sun_family != AF_UNIX || peer.sun_path[0] == '\0')
		return false;
	return strcmp(peer.sun_path, hosts[0].path) == 0 ||
	       strcmp(peer.sun_path, hosts[1].path) == 0;
}

/* A client sends its requests so (shm/session.c). */
ssize_t
__wrap_send(int fd, const void *bytes, size_t len, int flags)
{
	ssize_t sent = __real_send(fd, bytes, len, flags);
	struct pollfd reply = {.fd = fd, .events = POLLIN};

	if (!fd_is_client(fd))
		return sent;
	for (unsigned i = 0; i < SERVE_TURNS && poll(&reply, 1, 0) == 0; i++) {
		clock_step(NS_PER_MS);
		for (unsigned h = 0; h < 2; h++) {
			if (hosts[h].daemon != NULL)
				events_serve(hosts[h].daemon, 0);
		}
	}
	return sent;
}

static void
host_open(struct host *h, const struct rocade_port_conf *conf, const struct port *port)
{
	struct rocade_daemon_conf daemon = {.size = sizeof(daemon),
		.socket = h->path,
		.addresses = conf->addresses,
		.qpn_base = conf->qpn_base,
		.mtu = MTU};

	snprintf(h->path, sizeof(h->path), "%s/%s", dir, conf->addresses);
	*strchr(h->path + sizeof(dir), '/') = '\0';
	daemon.port = alloc_get(&alloc_plain, "port", sizeof(*daemon.port));
	must(daemon.port != NULL, "memory of a port");
	*daemon.port = (struct rocade_daemon_port){.port = *port, .mtu = MTU};
	must(rocade_daemon_create(&daemon, &h->daemon) == 0, rocade_error());
}

/* The daemon's device is that of the list. */
static void
client_open(struct host *h)
{
	struct ibv_device **list;
	int n;

	must(setenv("ROCADE_SOCKET", h->path, 1) == 0, "setenv");
	list = ibv_get_device_list(&n);
	must(list != NULL && n == 1, "the list of devices");
	h->context = ibv_open_device(list[0]);
	must(h->context != NULL, "ibv_open_device");
	h->port = to_ctx(h->context)->port;
	ibv_free_device_list(list);
}

/* Also when must() ends the program. */
static void
dir_remove(void)
{
	for (unsigned i = 0; i < 2; i++) {
		if (hosts[i].path[0] != '\0')
			(void)unlink(hosts[i].path);
	}
	(void)rmdir(dir);
}

void
ends_ports_open(struct rocade_port_conf conf[2], struct rocade_port *port[2])
{
	struct port loop[2];

	must(mkdtemp(dir) != NULL, "mkdtemp");
	must(atexit(dir_remove) == 0, "atexit");
	must(loop_open(1, FRAME_MAX, RING, &alloc_plain, &loop[0], &loop[1]) == 0,
		"loop_open");
	for (unsigned i = 0; i < 2; i++)
		host_open(&hosts[i], &conf[i], &loop[i]);
	for (unsigned i = 0; i < 2; i++) {
		client_open(&hosts[i]);
		port[i] = hosts[i].port;
	}
}

static struct host *
host_of(const struct rocade_port *port)
{
	return &hosts[hosts[1].port == port];
}

void
ends_port_close(struct rocade_port *port)
{
	struct host *h = host_of(port);

	must(ibv_close_device(h->context) == 0, "ibv_close_device");
	rocade_daemon_destroy(h->daemon);
	h->daemon = NULL;
	if (hosts[0].daemon == NULL && hosts[1].daemon == NULL)
		must(rmdir(dir) == 0, "rmdir");
}

/* As rocade_daemon_run(), without a look at its sockets. */
void
ends_pass(struct end *end)
{
	struct rocade_daemon *d = host_of(end->port)->daemon;
	uint64_t now = clock_now();
	unsigned moved = uplink_rx(d->up, now);

	moved += sw_run(d->sw, now);
	ended_memory_run(&d->ended_memory, now);
	(void)uplink_tx(d->up, now);
	if (moved != 0)
		control_packets_moved(d, now);
}

void
ends_srq_prepare(struct end *end)
{
	must(!end->mbufs, "mbufs of a client");
}
