/* SPDX-License-Identifier: BSD-3-Clause */
/* rocade_daemon_*(): making, running, ending. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <rocade/daemon.h>

#include "base/alloc.h"
#include "base/log.h"
#include "engine/clock.h"
#include "server/server.h"
#include "verbs/port.h"

#define MTU_DEFAULT 4180 /* carries a path MTU of 4096 */
#define MTU_MIN 576
#define MTU_MAX 9000
#define QPN_COUNT 65536
#define RING_DEFAULT 1024
#define L2_MAX (14 + 4)
#define SPARE_BUFS 128 /* that a client's engine holds beside those in its ring */
#define EVENTS 64
#define SPIN_NS (20 * NS_PER_US) /* without a packet, before the daemon sleeps */
#define LISTEN_TURNS 64          /* between two looks at the sockets while packets move */

int
watch_add(struct rocade_daemon *d, struct watch *watch, int fd, enum watch_kind kind,
	struct conn *conn)
{
	struct epoll_event ev = {.events = EPOLLIN | EPOLLRDHUP, .data.ptr = watch};

	if (kind == WATCH_BELL)
		ev.events = EPOLLIN | EPOLLET;
	*watch = (struct watch){.kind = kind, .conn = conn, .fd = fd};
	if (epoll_ctl(d->epoll, EPOLL_CTL_ADD, fd, &ev) == 0)
		return 0;
	watch->fd = -1;
	return -errno;
}

void
watch_close(struct rocade_daemon *d, struct watch *watch)
{
	if (watch->fd < 0)
		return;
	/* By hand: others may hold the same open file, and it would stay in the set. */
	(void)epoll_ctl(d->epoll, EPOLL_CTL_DEL, watch->fd, NULL);
	close(watch->fd);
	watch->fd = -1;
}

/* A socket file that nobody listens to is a dead daemon's. */
static int
stale_remove(const struct sockaddr_un *addr)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	int rc = 0;

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
listen_start(struct rocade_daemon *d, uint32_t mode)
{
	int fd, err = stale_remove(&d->addr);
	mode_t mask;

	if (err != 0)
		return rocade_fail(err, "socket: %s: %s", d->addr.sun_path,
			err == EADDRINUSE ? "another daemon answers there"
					  : strerror(err));
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return rocade_fail(errno, "socket: %s", strerror(errno));
	/* Never open to more than it is to be, not even for a moment. */
	mask = umask(0777 & ~(mode_t)mode);
	err = bind(fd, (struct sockaddr *)&d->addr, sizeof(d->addr)) != 0 ? errno : 0;
	umask(mask);
	d->bound = err == 0;
	if (err == 0 && listen(fd, SOMAXCONN) != 0)
		err = errno;
	if (err == 0)
		err = -watch_add(d, &d->listen, fd, WATCH_LISTEN, NULL);
	if (err != 0) {
		close(fd);
		return rocade_fail(
			err, "socket: %s: %s", d->addr.sun_path, strerror(err));
	}
	return 0;
}

static int
numbers_check(const struct rocade_daemon_conf *conf)
{
	if (conf->size != sizeof(*conf))
		return rocade_fail(EINVAL,
			"size: %zu is not sizeof(struct rocade_daemon_conf), %zu",
			conf->size, sizeof(*conf));
	if (conf->mtu != 0 && (conf->mtu < MTU_MIN || conf->mtu > MTU_MAX))
		return rocade_fail(
			EINVAL, "mtu: %u is not in %d..%d", conf->mtu, MTU_MIN, MTU_MAX);
	if (conf->client_ring != 0 &&
		(conf->client_ring < 64 || conf->client_ring > REGION_MAX_SLOTS ||
			!rte_is_power_of_2(conf->client_ring)))
		return rocade_fail(EINVAL, "ring: %u is not a power of two in 64..%d",
			conf->client_ring, REGION_MAX_SLOTS);
	if (conf->client_qps > QPN_COUNT)
		return rocade_fail(
			EINVAL, "qps: %u is not in 1..%d", conf->client_qps, QPN_COUNT);
	if (conf->name != NULL &&
		(conf->name[0] == '\0' || strlen(conf->name) >= SW_NAME_MAX))
		return rocade_fail(EINVAL, "name: 1 to %d characters", SW_NAME_MAX - 1);
	return 0;
}

/* Locally administered, another one at each start. */
static void
mac_make(uint8_t mac[6], uint64_t seed)
{
	seed *= UINT64_C(0x9E3779B97F4A7C15);
	mac[0] = 0x02;
	for (unsigned i = 1; i < 6; i++)
		mac[i] = (uint8_t)(seed >> (8 * i));
}

static uint32_t
or_default(uint32_t value, uint32_t fallback)
{
	return value != 0 ? value : fallback;
}

static int
sw_make(struct rocade_daemon *d, const struct rocade_daemon_conf *conf)
{
	uint64_t seed = clock_wall() ^ (uint64_t)getpid() << 40;
	uint32_t ring = or_default(conf->client_ring, RING_DEFAULT);
	struct sw_conf sw = {.mtu = or_default(conf->mtu, MTU_DEFAULT),
		.qpn_count = QPN_COUNT,
		.qpn_base = or_default(conf->qpn_base, qpns_base(seed, QPN_COUNT)),
		.max_clients = or_default(conf->max_clients, 256),
		.limits = {.qps = or_default(conf->client_qps, 16384),
			.packets_per_s = conf->client_packets_per_s}};
	struct sw_device *device = &d->device;
	struct net_conf net = {.addr_count = 0};
	int err = port_net_read(
		conf->addresses != NULL ? conf->addresses : "", NULL, NULL, &net);

	if (err != 0)
		return err;
	mac_make(net.mac, seed);
	snprintf(device->name, sizeof(device->name), "%s",
		conf->name != NULL ? conf->name : "rocade0");
	device->net = net;
	device->mtu = sw.mtu;
	device->qpn_base = sw.qpn_base;
	device->qpn_count = sw.qpn_count;
	device->max_qp = sw.limits.qps;
	device->link_up = device->local = 1;
	sw.net = net;
	gid_link_local(net.mac, sw.net.addr[sw.net.addr_count].gid);
	sw.net.addr[sw.net.addr_count++].prefix_len = 64;
	sw.limits.geom = (struct region_geom){.tx_slots = ring,
		.rx_slots = ring,
		.tx_bufs = ring + SPARE_BUFS,
		.buf_size = RTE_ALIGN_CEIL(sw.mtu + L2_MAX, (uint32_t)LINE_SIZE)};
	err = -sw_create(&sw, conn_wake, &d->sw);
	return err == 0 ? 0
			: rocade_fail(err, "no switch can be made: %s", strerror(err));
}

EXPORT int
rocade_daemon_create(const struct rocade_daemon_conf *conf, struct rocade_daemon **out)
{
	struct rocade_daemon *d;
	int err = numbers_check(conf);

	if (err != 0)
		return err;
	d = alloc_get(&alloc_plain, "daemon", sizeof(*d));
	if (d == NULL)
		return rocade_fail(ENOMEM, "no memory");
	TAILQ_INIT(&d->conns);
	TAILQ_INIT(&d->closing);
	d->listen.fd = d->stop.fd = -1;
	d->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	clock_init();
	d->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (d->epoll < 0)
		err = rocade_fail(errno, "epoll: %s", strerror(errno));
	if (err == 0 && watch_add(d, &d->stop, eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
				WATCH_STOP, NULL) != 0)
		err = rocade_fail(EMFILE, "no descriptor for an eventfd");
	if (err == 0 && sw_socket_path(conf->socket, false, &d->addr) != 0)
		err = rocade_fail(EINVAL,
			"socket: none given, and XDG_RUNTIME_DIR is not set; or its "
			"path is too long");
	if (err == 0)
		err = sw_make(d, conf);
	if (err == 0)
		err = listen_start(d, or_default(conf->socket_mode, 0600));
	if (err != 0) {
		rocade_daemon_destroy(d);
		return err;
	}
	*out = d;
	return 0;
}

EXPORT void
rocade_daemon_destroy(struct rocade_daemon *d)
{
	struct conn *conn;

	while ((conn = TAILQ_FIRST(&d->conns)) != NULL)
		conn_close(conn);
	conn_reap(d);
	if (d->bound)
		(void)unlink(d->addr.sun_path);
	watch_close(d, &d->listen);
	watch_close(d, &d->stop);
	if (d->epoll >= 0)
		close(d->epoll);
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

static void
watch_serve(struct rocade_daemon *d, const struct watch *watch)
{
	switch (watch->kind) {
	case WATCH_LISTEN:
		conn_accept(d);
		break;
	case WATCH_STOP:
		d->stopping = true;
		break;
	case WATCH_CLIENT:
		conn_ready(watch->conn);
		break;
	case WATCH_PROCESS:
		conn_close(watch->conn);
		break;
	case WATCH_BELL: /* its ringing was the news */
		break;
	}
}

/* timeout_ms: -1 sleeps until somebody comes. */
static void
events_serve(struct rocade_daemon *d, int timeout_ms)
{
	struct epoll_event events[EVENTS];
	int n = epoll_wait(d->epoll, events, EVENTS, timeout_ms);

	for (int i = 0; i < n; i++)
		watch_serve(d, events[i].data.ptr);
	conn_reap(d);
}

EXPORT int
rocade_daemon_run(struct rocade_daemon *d)
{
	uint64_t now = clock_now(), last = now;
	unsigned turns = 0;

	while (!d->stopping) {
		now = clock_now();
		if (unlikely(d->sw->corrupt_count != d->corrupt_seen))
			conn_close_corrupt(d);
		if (sw_run(d->sw, now) != 0)
			last = now;
		else if (now - last < SPIN_NS || !sw_sleep(d->sw))
			sched_yield();
		else {
			events_serve(d, -1);
			sw_awake(d->sw);
			turns = 0;
			last = clock_now();
		}
		if (++turns >= LISTEN_TURNS) {
			turns = 0;
			events_serve(d, 0);
		}
	}
	return 0;
}
