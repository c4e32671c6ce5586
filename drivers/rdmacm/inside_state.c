/* SPDX-License-Identifier: BSD-3-Clause */
/* Start and end of the server, its lock, closed channels. */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/base_alloc.h"
#include "base/no_cancel.h"
#include "port/net_addr.h"
#include "rdmacm/inside.h"
#include "ucm/backend.h"

#define MAX_CHANNELS 4096
#define SWEEP_NS (100 * NS_PER_MS)
#define SWEEP_BATCH 16

struct inside inside = {
	.setup = PTHREAD_MUTEX_INITIALIZER,
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.epoll = -1,
	.sweep_ns = TIME_NEVER,
	.ports = TAILQ_HEAD_INITIALIZER(inside.ports),
	.channels = TAILQ_HEAD_INITIALIZER(inside.channels),
};

int
inside_lock(void)
{
	int state = no_cancel_begin();

	pthread_mutex_lock(&inside.lock);
	return state;
}

/* Tells the engines when they are to call next: at once if a message waits, else for timers,
 * which the engine of any port runs. */
static void
inside_due_update(void)
{
	uint64_t timers = TIME_NEVER;
	struct inside_port *p;

	if (inside.ucm != NULL)
		timers = RTE_MIN(ucm_deadline(inside.ucm), inside.sweep_ns);
	TAILQ_FOREACH (p, &inside.ports, link) {
		uint64_t due = p->out_head != p->out_tail ? 0 : timers, before = p->due;

		if (p->device == NULL || before == due)
			continue;
		__atomic_store_n(&p->due, due, __ATOMIC_RELAXED);
		dev_gsi_due(p->port->dev);
		if (due < before)
			dev_control_wake(p->port->dev);
	}
}

void
inside_unlock(int cancel_state)
{
	inside_due_update();
	pthread_mutex_unlock(&inside.lock);
	no_cancel_end(cancel_state);
}

/* ---- Callbacks of lib/ucm ---- */

/* The program can name only QPs of its own. */
static bool
inside_owns_qpn(void *owner, uint32_t qpn)
{
	(void)owner;
	(void)qpn;
	return true;
}

static void
inside_wake(void *channel_owner, uint32_t number)
{
	const struct inside_channel *channel = channel_owner;

	ucm_wake_send(channel->fd, number);
}

static bool
inside_send(void *arg, const struct mad *mad, const struct cm_path *path)
{
	struct inside_port *p;
	struct gsi_msg *msg;

	(void)arg;
	TAILQ_FOREACH (p, &inside.ports, link) {
		if (p->device != NULL && net_is_ours(&p->net, path->sgid))
			break;
	}
	/* A message that is lost is repeated. */
	if (p == NULL || p->out_tail - p->out_head == INSIDE_OUT)
		return false;
	msg = &p->out[p->out_tail++ % INSIDE_OUT];
	memcpy(msg->sgid, path->sgid, 16);
	memcpy(msg->dgid, path->dgid, 16);
	static_assert(sizeof(*mad) == GSI_LEN, "a MAD fills one datagram");
	memcpy(msg->bytes, mad, GSI_LEN);
	msg->answer = !mad_opens(mad);
	return true;
}

/* ---- Closed channels ---- */

static void
inside_channel_end(struct inside_channel *channel, uint64_t now)
{
	ucm_channel_close(channel->ucm, now);
	TAILQ_REMOVE(&inside.channels, channel, link);
	/* close() alone leaves the socket in the epoll set while a child process has a copy. */
	(void)epoll_ctl(inside.epoll, EPOLL_CTL_DEL, channel->fd, NULL);
	close(channel->fd);
	alloc_put(&alloc_plain, channel, sizeof(*channel));
}

void
inside_sweep(uint64_t now)
{
	struct epoll_event events[SWEEP_BATCH];
	int n = epoll_wait(inside.epoll, events, SWEEP_BATCH, 0);

	for (int i = 0; i < n; i++)
		inside_channel_end(events[i].data.ptr, now);
	if (TAILQ_EMPTY(&inside.channels))
		inside.sweep_ns = TIME_NEVER;
	else
		inside.sweep_ns = n == SWEEP_BATCH ? now : now + SWEEP_NS;
}

/* ---- Start and end ---- */

/* Returns how many connections there may be: as many as the port with the most peers has. */
static uint32_t
connections_max(void)
{
	const struct inside_port *p;
	uint32_t most = 0;

	TAILQ_FOREACH (p, &inside.ports, link)
		most = RTE_MAX(most, net_neighs(p->port->dev->net));
	return most;
}

int
inside_start(uint64_t now)
{
	struct ucm_conf conf = {
		.limits = {.ids = INSIDE_IDS, .channels = MAX_CHANNELS},
		.ops = {.owns_qpn = inside_owns_qpn,
			.wake = inside_wake,
			.send = inside_send},
	};
	int rc;

	cm_conf_default(&conf.cm);
	conf.cm.max_conns = RTE_MAX(conf.cm.max_conns, connections_max());
	rc = random_key_draw(&conf.cm.random);
	if (rc != 0)
		return rc;
	inside.epoll = epoll_create1(EPOLL_CLOEXEC);
	if (inside.epoll < 0)
		return -errno;
	rc = ucm_create(&conf, now, &inside.ucm);
	if (rc == 0) {
		rc = ucm_session_create(inside.ucm, NULL, &inside.session);
		if (rc != 0)
			ucm_destroy(inside.ucm);
	}
	if (rc != 0) {
		inside.ucm = NULL;
		close(inside.epoll);
		inside.epoll = -1;
		return rc;
	}
	/* The ports below 1024 are those of Rocade's addresses, which are the program's. */
	ucm_session_set_user(inside.session, getuid(), true);
	return 0;
}

void
inside_end(uint64_t now)
{
	ucm_session_destroy(inside.session, now);
	while (ucm_deadline(inside.ucm) == 0)
		ucm_run(inside.ucm, now);
	ucm_destroy(inside.ucm);
	close(inside.epoll);
	inside.epoll = -1;
	inside.ucm = NULL;
	inside.session = NULL;
	inside.sweep_ns = TIME_NEVER;
}

/* ---- fork(): the child has no ports, and channels that do nothing ---- */

static void
inside_fork_prepare(void)
{
	pthread_mutex_lock(&inside.setup);
	pthread_mutex_lock(&inside.lock);
}

static void
inside_fork_parent(void)
{
	pthread_mutex_unlock(&inside.lock);
	pthread_mutex_unlock(&inside.setup);
}

/* Without the copies of these descriptors, the parent is the only one that uses them. The child
 * opens others with these numbers. */
static void
inside_fork_child(void)
{
	struct inside_channel *channel;
	int state = no_cancel_begin();

	inside.forked = true;
	TAILQ_FOREACH (channel, &inside.channels, link) {
		close(channel->fd);
		channel->fd = -1;
	}
	if (inside.epoll >= 0)
		close(inside.epoll);
	inside.epoll = -1;
	inside_fork_parent();
	no_cancel_end(state);
}

int
inside_fork_register(void)
{
	static bool registered;

	if (!registered)
		registered = pthread_atfork(inside_fork_prepare, inside_fork_parent,
				     inside_fork_child) == 0;
	return registered ? 0 : -ENOMEM;
}
