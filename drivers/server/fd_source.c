/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/common.h"
#include "server/fd_source.h"

#define SLEEP_EVENTS 8 /* fetched at a time: to have come is all that they say */

int
fd_sets_open(struct fd_sets *sets, bool serves)
{
	*sets = (struct fd_sets){.sleep = epoll_create1(EPOLL_CLOEXEC), .serve = -1};
	if (serves && sets->sleep >= 0)
		sets->serve = epoll_create1(EPOLL_CLOEXEC);
	return sets->sleep < 0 || (serves && sets->serve < 0) ? -errno : 0;
}

void
fd_sets_close(struct fd_sets *sets)
{
	if (sets->serve >= 0)
		close(sets->serve);
	if (sets->sleep >= 0)
		close(sets->sleep);
	sets->serve = sets->sleep = -1;
}

/* As epoll_wait(), but timeout_ns is in nanoseconds; TIME_NEVER: until there are events. */
static int
events_wait(int epoll, struct epoll_event *events, int max, uint64_t timeout_ns)
{
	struct timespec until = {.tv_sec = (time_t)(timeout_ns / NS_PER_SEC),
		.tv_nsec = (long)(timeout_ns % NS_PER_SEC)};
	int n;

	if (timeout_ns == TIME_NEVER)
		return epoll_wait(epoll, events, max, -1);
	n = epoll_pwait2(epoll, events, max, &until, NULL);
	/* epoll_pwait2() is new in Linux 5.11, and the filters of old container runtimes refuse it
	 * with EPERM. Then: in milliseconds, rounded up. */
	if (n < 0 && (errno == ENOSYS || errno == EPERM))
		n = epoll_wait(epoll, events, max, (int)(timeout_ns / NS_PER_MS) + 1);
	return n;
}

bool
fd_sets_wait(struct fd_sets *sets, uint64_t timeout_ns)
{
	struct epoll_event events[SLEEP_EVENTS];
	int n;

	if (sets->left || timeout_ns == 0)
		return true;
	n = events_wait(sets->sleep, events, SLEEP_EVENTS, timeout_ns);
	/* Only wake-ups. The daemon's thread may be freeing the connection that one is of. */
	if (sets->serve < 0)
		return false;
	for (int i = 0; i < n; i++)
		if (((const struct fd_source *)events[i].data.ptr)->kind !=
			FD_SOURCE_WAKE)
			return true;
	/* When all the room is wake-ups, other sources may be behind them. */
	return n == SLEEP_EVENTS;
}

/* Events are fetched one at a time: epoll moves each fetched event to the end of its list. Of several
 * that were fetched, those that are not handled in time would be moved there, too, and lose their
 * turn. */
struct fd_source *
fd_sets_next(struct fd_sets *sets)
{
	struct epoll_event event;

	sets->left = epoll_wait(sets->serve, &event, 1, 0) > 0;
	return sets->left ? event.data.ptr : NULL;
}

/* Which events of the set for serving are wanted. */
static uint32_t
served_events(const struct fd_source *source, bool pause)
{
	/* EPOLLHUP is always reported. With EPOLLONESHOT that is the last event. */
	if (pause)
		return EPOLLONESHOT;
	/* Of a channel only the client's close is wanted: EPOLLHUP. */
	return source->kind == FD_SOURCE_CM_CHANNEL ? 0 : EPOLLIN | EPOLLRDHUP;
}

int
fd_source_add(struct fd_sets *sets, struct fd_source *source, int fd,
	enum fd_source_kind kind, struct conn *conn)
{
	struct fd_source add = {.kind = kind, .conn = conn, .fd = fd, .sets = sets};
	uint32_t events = served_events(&add, false);
	struct epoll_event sleep = {.events = events | EPOLLET, .data.ptr = source};
	struct epoll_event serve = {.events = events, .data.ptr = source};
	int rc;

	*source = add;
	source->fd = -1;
	if (epoll_ctl(sets->sleep, EPOLL_CTL_ADD, fd, &sleep) != 0)
		return -errno;
	if (kind != FD_SOURCE_WAKE &&
		epoll_ctl(sets->serve, EPOLL_CTL_ADD, fd, &serve) != 0) {
		rc = -errno;
		(void)epoll_ctl(sets->sleep, EPOLL_CTL_DEL, fd, NULL);
		return rc;
	}
	source->fd = fd;
	return 0;
}

void
fd_source_pause(struct fd_source *source, bool pause)
{
	struct epoll_event ev = {
		.events = served_events(source, pause), .data.ptr = source};

	(void)epoll_ctl(source->sets->serve, EPOLL_CTL_MOD, source->fd, &ev);
	/* The set for sleeping has told of messages that came during the pause. */
	source->sets->left |= !pause;
}

int
fd_source_remove(struct fd_source *source)
{
	int fd = source->fd;

	if (fd < 0)
		return fd;
	/* Explicitly: other processes may hold the same open file, which would keep it in
	 * the sets. */
	(void)epoll_ctl(source->sets->sleep, EPOLL_CTL_DEL, fd, NULL);
	if (source->kind != FD_SOURCE_WAKE)
		(void)epoll_ctl(source->sets->serve, EPOLL_CTL_DEL, fd, NULL);
	source->fd = -1;
	return fd;
}

void
fd_source_close(struct fd_source *source)
{
	int fd = fd_source_remove(source);

	if (fd >= 0)
		close(fd);
}
