/* SPDX-License-Identifier: BSD-3-Clause */
/* rocade_daemon_*(): creation, main loop, destruction. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <rocade/daemon.h>

#include "base/base_alloc.h"
#include "base/base_log.h"
#include "engine/clock.h"
#include "server/peer_process.h"
#include "server/server_control.h"
#include "server/server_conf.h"
#include "server/server_conn.h"
#include "server/server_events.h"
#include "server/server_idle.h"
#include "server/server_impair.h"
#include "server/server_own.h"
#include "server/server_queue.h"
#include "server/server_rdmacm.h"
#include "switch/sw_client.h"
#include "verbs/verbs_port.h"

/* While packets move, the sockets are polled after this many passes or this time. */
#define SOCKET_POLL_PASSES 64
#define SOCKET_POLL_NS NS_PER_MS
/* how long to forward what clients have published when the daemon ends */
#define DRAIN_NS (100 * NS_PER_MS)
/* The backlog of the socket: at most this many connections of others are accepted before
 * that of a client. Further ones wait in connect(), which blocks a thread for each. */
#define CONNECTIONS_WAITING 16
/* Longest table of descriptors that is made at the start, 8 bytes each. With the default
 * limits the clients' descriptors fit. */
#define DESCRIPTOR_TABLE_MAX 65536u

/* Removes a socket file without a listener, which a dead daemon has left. */
static int
stale_remove(const struct sockaddr_un *addr)
{
	struct stat st;
	int fd, rc = 0;

	/* connect() to a file that is no socket is refused too. */
	if (lstat(addr->sun_path, &st) == 0 && !S_ISSOCK(st.st_mode))
		return ENOTSOCK;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return errno;
	if (connect(fd, (const struct sockaddr *)addr, sizeof(*addr)) == 0)
		rc = EADDRINUSE;
	else if (errno == ECONNREFUSED)
		rc = unlink(addr->sun_path) != 0 ? errno : 0;
	close(fd);
	return rc;
}

static int
listen_start(struct rocade_daemon *d, const struct rocade_daemon_conf *conf)
{
	uint32_t mode = conf->socket_mode != 0 ? conf->socket_mode : 0600;
	mode_t mask;
	int fd, err;

	if (sw_socket_path(conf->socket, false, &d->addr) != 0)
		return rocade_fail(EINVAL, "socket: path too long, or no path given and "
					   "XDG_RUNTIME_DIR not set");
	err = stale_remove(&d->addr);
	if (err != 0)
		return rocade_fail(err, "socket: %s: %s", d->addr.sun_path,
			err == EADDRINUSE ? "another daemon is listening there"
					  : strerror(err));
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return rocade_fail(errno, "socket: %s", strerror(errno));
	passed_fds_listen(&d->passed, fd);
	/* The umask keeps the permissions from ever being wider than asked for. */
	mask = umask(0777 & ~(mode_t)mode);
	err = bind(fd, (struct sockaddr *)&d->addr, sizeof(d->addr)) != 0 ? errno : 0;
	umask(mask);
	d->bound = err == 0;
	if (err == 0 && listen(fd, CONNECTIONS_WAITING) != 0)
		err = errno;
	if (err == 0)
		err = -fd_source_add(&d->sets[0], &d->listen, fd, FD_SOURCE_LISTEN, NULL);
	if (err != 0) {
		close(fd);
		return rocade_fail(
			err, "socket: %s: %s", d->addr.sun_path, strerror(err));
	}
	return 0;
}

/* Serves a socket that a service manager has made. listen() is not called again: clients
 * see the process that called it last as their peer (unix(7), SO_PEERCRED). */
static int
listen_adopt(struct rocade_daemon *d, int fd)
{
	int type = 0, listens = 0, flags = fcntl(fd, F_GETFL);
	socklen_t size = sizeof(type), len = sizeof(d->addr);

	if (flags < 0 || getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) != 0 ||
		getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0 ||
		getsockname(fd, (struct sockaddr *)&d->addr, &len) != 0 ||
		d->addr.sun_family != AF_UNIX || len >= sizeof(d->addr) ||
		type != SOCK_SEQPACKET || !listens)
		return rocade_fail(EINVAL,
			"listen_fd: %d is no listening AF_UNIX socket of type "
			"SOCK_SEQPACKET",
			fd);
	if (fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0 ||
		fcntl(fd, F_SETFD, FD_CLOEXEC) != 0 ||
		fd_source_add(&d->sets[0], &d->listen, fd, FD_SOURCE_LISTEN, NULL) != 0)
		return rocade_fail(errno, "listen_fd: %s", strerror(errno));
	passed_fds_listen(&d->passed, fd);
	/* Clients that connected before this may have sent descriptors. */
	d->passed.refused = false;
	return 0;
}

/* Returns whether users other than the socket's owner may connect: then each user gets a
 * part of everything. */
static bool
others_may_connect(const struct sockaddr_un *addr)
{
	struct stat st;

	return stat(addr->sun_path, &st) != 0 || (st.st_mode & 077) != 0;
}

/* Creates the sets, the eventfd of rocade_daemon_stop(), the pipe of
 * rocade_daemon_connect(). */
static int
events_open(struct rocade_daemon *d)
{
	int rc = fd_sets_open(&d->sets[0], true);

	if (rc != 0)
		return rocade_fail(-rc, "epoll: %s", strerror(-rc));
	if (fd_source_add(&d->sets[0], &d->stop, eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
		    FD_SOURCE_STOP, NULL) != 0)
		return rocade_fail(EMFILE, "no free file descriptor for an eventfd");
	if (own_open(d) != 0)
		return rocade_fail(EMFILE, "no free file descriptor for a pipe");
	return 0;
}

/* Has the kernel make the process's table of descriptors as long as it will ever be.
 * Later the kernel would make it longer when descriptors are added. In a process with
 * threads it waits for all cores each time (synchronize_rcu()), more than 10 ms. */
static void
descriptor_table_grow(const struct rocade_daemon *d)
{
	int fd = fcntl(d->spare_fd, F_DUPFD_CLOEXEC,
		(int)RTE_MIN(d->descriptors, DESCRIPTOR_TABLE_MAX));

	if (fd >= 0)
		close(fd);
}

EXPORT int
rocade_daemon_create(const struct rocade_daemon_conf *conf, struct rocade_daemon **out)
{
	struct rocade_daemon *d;
	int err = rocade_daemon_check(conf);

	if (err != 0)
		return err;
	d = alloc_get(&alloc_plain, "daemon", sizeof(*d));
	if (d == NULL)
		return rocade_fail(ENOMEM, "no memory");
	accounts_init(&d->accounts);
	control_init(d);
	TAILQ_INIT(&d->conns);
	TAILQ_INIT(&d->closing);
	passed_fds_init(&d->passed);
	ended_memory_init(&d->ended_memory, &d->passed);
	d->listen.fd = d->own.fd = d->stop.fd = -1;
	for (unsigned i = 0; i < SW_THREADS_MAX; i++)
		d->sets[i] = (struct fd_sets){.sleep = -1, .serve = -1};
	d->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	clock_init();
	d->shared_uid =
		peer_shared_uid("/proc/self/uid_map", "/proc/sys/kernel/overflowuid");
	err = events_open(d);
	if (err == 0)
		err = switch_create(d, conf);
	if (err == 0)
		err = server_impair_open(d, conf);
	if (err == 0 && subuids_read(&d->subuids, SUBUIDS_PATH) != 0)
		err = rocade_fail(ENOMEM, "no memory for the ranges of " SUBUIDS_PATH);
	if (err == 0)
		err = queues_open(d);
	if (err == 0 && rdmacm_create(d) != 0)
		err = rocade_fail(ENOMEM, "no memory for RDMA-CM");
	if (err == 0 && conf->listen_fd != 0)
		err = listen_adopt(d, conf->listen_fd);
	else if (err == 0)
		err = listen_start(d, conf);
	if (err == 0) {
		descriptor_table_grow(d);
		d->others = others_may_connect(&d->addr);
		account_limits_set(d);
	}
	/* Last, because it takes ownership of the port. */
	if (err == 0 && conf->port != NULL)
		err = port_attach(d, conf->port);
	if (err != 0) {
		rocade_daemon_destroy(d);
		return err;
	}
	*out = d;
	return 0;
}

/* Sends what clients have published. Bounded by DRAIN_NS: a client may keep sending. */
static void
drain(struct rocade_daemon *d)
{
	uint64_t now = clock_now(), until = now + DRAIN_NS;
	bool more = true;

	for (; more && now < until; now = clock_now()) {
		more = sw_run(d->sw, now) != 0;
		more |= queues_drain(d, now) != 0;
		if (d->up != NULL)
			more |= !uplink_tx(d->up, now);
	}
}

EXPORT void
rocade_daemon_destroy(struct rocade_daemon *d)
{
	struct conn *conn;

	if (d->sw != NULL)
		drain(d);
	while ((conn = TAILQ_FIRST(&d->conns)) != NULL)
		conn_close(conn);
	conn_reap(d);
	if (d->sw != NULL)
		sw_ended_free(d->sw);
	ended_memory_free(&d->ended_memory);
	rdmacm_destroy(d);
	if (d->up != NULL) {
		/* The last packets of clients, and the IGMP or MLD reports that leave
		 * their groups. */
		(void)uplink_tx(d->up, clock_now());
		server_impair_end(d);
		uplink_destroy(d->up);
	}
	server_impair_end(d); /* the port is the caller's */
	if (d->bound)
		(void)unlink(d->addr.sun_path);
	conn_listen_end(d);
	own_close(d);
	queues_close(d);
	fd_source_close(&d->stop);
	passed_fds_fini(&d->passed);
	accounts_fini(&d->accounts);
	subuids_free(&d->subuids);
	fd_sets_close(&d->sets[0]);
	if (d->spare_fd >= 0)
		close(d->spare_fd);
	if (d->sw != NULL)
		sw_destroy(d->sw);
	alloc_put(&alloc_plain, d, sizeof(*d));
}

EXPORT const char *
rocade_daemon_socket(const struct rocade_daemon *d)
{
	return d->addr.sun_path;
}

EXPORT void
rocade_daemon_stop(struct rocade_daemon *d)
{
	const uint64_t one = 1;
	int err = errno;
	ssize_t written = write(d->stop.fd, &one, sizeof(one));

	(void)written;
	errno = err;
}

static unsigned
daemon_pass(struct rocade_daemon *d, uint64_t now)
{
	unsigned moved = 0;

	if (d->up != NULL)
		moved = uplink_rx(d->up, now);
	moved += sw_run(d->sw, now);
	ended_memory_run(&d->ended_memory, now);
	if (d->up != NULL)
		(void)uplink_tx(d->up, now);
	return moved;
}

/* As idle_sleep_most(). Without a port nothing but the daemon's events ends the sleep. */
static uint64_t
daemon_sleep_most(const struct rocade_daemon *d, uint64_t idle_ns)
{
	if (d->up != NULL)
		return idle_sleep_most(&d->cores[0], d->sleep_us * NS_PER_US, idle_ns);
	return idle_ns < SPIN_NS && core_taken_ns(&d->cores[0]) == 0 ? 0 : TIME_NEVER;
}

/* Returns how long the daemon may sleep when idle for idle_ns; 0: it must not sleep. */
static uint64_t
idle_sleep_ns(struct rocade_daemon *d, uint64_t idle_ns, uint64_t now)
{
	uint64_t max_ns = daemon_sleep_most(d, idle_ns), until;

	if (max_ns == 0 || !control_is_due(d, now))
		return 0;
	until = ended_memory_deadline(&d->ended_memory);
	if (d->up != NULL)
		until = RTE_MIN(until, uplink_deadline(d->up));
	if (until <= now)
		return 0;
	max_ns = RTE_MIN(max_ns, control_sleep_ns(d));
	return until == TIME_NEVER ? max_ns : RTE_MIN(max_ns, until - now);
}

EXPORT int
rocade_daemon_run(struct rocade_daemon *d)
{
	uint64_t now, last, listened, sleep_for;
	unsigned passes = 0;

	d->stopping = false;
	idle_open(&d->cores[0]);
	last = listened = clock_now();
	while (!d->stopping) {
		now = clock_now();
		core_taken_pass(&d->cores[0], now);
		if (unlikely(sw_corrupt_count(d->sw) != d->corrupt_seen))
			conn_close_corrupt(d);
		if (daemon_pass(d, now) != 0) {
			last = now;
			control_packets_moved(d, now);
		} else if ((sleep_for = idle_sleep_ns(d, now - last, now)) == 0) {
			idle_leave(&d->cores[0]);
		} else if (!sw_sleep(d->sw)) {
			idle_yield(&d->cores[0]);
		} else {
			events_serve(d, sleep_for);
			sw_awake(d->sw);
			core_taken_slept(&d->cores[0]);
			passes = 0;
			listened = now = clock_now();
			if (sleep_for == TIME_NEVER)
				last = listened;
		}
		/* A pass is short, but the scheduler may have taken the core away
		 * meanwhile. */
		if ((++passes >= SOCKET_POLL_PASSES ||
			    now - listened >= SOCKET_POLL_NS) &&
			control_is_due(d, now)) {
			passes = 0;
			listened = now;
			/* The yield alone, without the requests. */
			core_taken_pass(&d->cores[0], clock_now());
			events_serve(d, 0);
		}
	}
	return 0;
}
