/* SPDX-License-Identifier: BSD-3-Clause */
/* Channels and their commands: the backend of drivers/preload in librocade-rdmacm. */
#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/base_alloc.h"
#include "base/base_log.h"
#include "base/no_cancel.h"
#include "base/off.h"
#include "rdmacm/inside.h"
#include "verbs/forward.h"
#include "verbs/link_order.h"
#include "verbs/rdmacm_inside.h"

/* ---- Channels ---- */

/* With lock. */
static int
inside_channel_create(uint32_t *number, int *fd)
{
	struct inside_channel *channel =
		alloc_get(&alloc_plain, "rdma_cm channel", sizeof(*channel));
	struct epoll_event event = {.events = EPOLLHUP, .data.ptr = channel};
	int ends[2], rc;

	if (channel == NULL)
		return -ENOMEM;
	rc = ucm_sockets_create(ends);
	if (rc != 0) {
		alloc_put(&alloc_plain, channel, sizeof(*channel));
		return rc;
	}
	channel->fd = ends[0];
	rc = epoll_ctl(inside.epoll, EPOLL_CTL_ADD, ends[0], &event) == 0 ? 0 : -errno;
	if (rc == 0)
		rc = ucm_channel_open(
			inside.session, channel, &channel->ucm, &channel->number);
	if (rc != 0) {
		close(ends[0]);
		close(ends[1]);
		alloc_put(&alloc_plain, channel, sizeof(*channel));
		return rc;
	}
	TAILQ_INSERT_TAIL(&inside.channels, channel, link);
	inside_sweep(engine_clock()); /* and from now on at intervals */
	*fd = ends[1];
	*number = channel->number;
	return 0;
}

/* With setup. */
static int
inside_serve(void)
{
	int rc = 0, state;

	if (inside.forked || TAILQ_EMPTY(&inside.ports))
		return -ENOENT;
	state = inside_lock();
	if (inside.ucm == NULL)
		rc = inside_start(engine_clock());
	inside_unlock(state);
	return rc == 0 ? inside_ports_serve() : rc;
}

static int
inside_open(struct ucm_token *token, int *fd)
{
	uint32_t number = 0;
	int old = no_cancel_begin(), state, rc;

	pthread_mutex_lock(&inside.setup);
	rc = inside_serve();
	if (rc == 0) {
		state = inside_lock();
		rc = inside_channel_create(&number, fd);
		inside_unlock(state);
		*token = (struct ucm_token){.number = number};
	}
	pthread_mutex_unlock(&inside.setup);
	no_cancel_end(old);
	return rc;
}

/* Frees the port numbers of channels that the program has closed. With lock. */
static void
port_numbers_free(uint64_t now)
{
	inside_sweep(now);
	ucm_run(inside.ucm, now);
}

static int
inside_command(const struct ucm_token *token, int fd, uint32_t cmd, const void *in,
	size_t in_len, void *out, size_t *out_len)
{
	struct ucm_result result = {.out_len = 0};
	int state = inside_lock(), rc = -ENODEV;
	uint64_t now = engine_clock();

	/* Without ucm the channel is one of a server that has ended with the last port. */
	if (!inside.forked && inside.ucm != NULL) {
		if (now >= inside.sweep_ns)
			inside_sweep(now);
		rc = ucm_command(inside.session, token->number, cmd, in, in_len, out,
			&result, now);
		if (rc == -EADDRINUSE) {
			port_numbers_free(now);
			rc = ucm_command(inside.session, token->number, cmd, in, in_len,
				out, &result, now);
		}
		if (rc != -EBADF)
			ucm_wakes_take(fd, result.wakes, result.pending);
	}
	inside_unlock(state);
	*out_len = result.out_len;
	return rc;
}

static const struct ucm_backend backend = {
	.open = inside_open, .command = inside_command};

EXPORT const struct ucm_backend *
rocade_rdmacm_backend(void)
{
	return &backend;
}

EXPORT void
rocade_rdmacm_loaded(void)
{
	inside.loaded = true;
}

EXPORT int
rocade_rdmacm_order(bool reached)
{
	if (!reached)
		return rocade_fail(EOPNOTSUPP,
			"librdmacm gets open() from another library: link -lrocade-rdmacm "
			"before the library that replaces open()");
	return link_order_check();
}

EXPORT bool
rocade_rdmacm_device(const char *name)
{
	/* In a child a lock of the parent may be held for ever. */
	if (inside.forked || forward_depth > 0 || is_off(OFF_SYSFS))
		return false;
	return name != NULL ? port_is_open(name) : port_count() != 0;
}

EXPORT bool
rocade_rdmacm_facts(unsigned index, struct device_facts *out)
{
	return !inside.forked && port_facts(index, out);
}

EXPORT void
rocade_rdmacm_warn(const char *line)
{
	log_warn("%s", line);
}
