/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/common.h"
#include "server/fd_source.h"

int
fd_source_add(int epoll, struct fd_source *source, int fd, enum fd_source_kind kind,
	struct conn *conn)
{
	struct epoll_event ev = {.events = EPOLLIN | EPOLLRDHUP, .data.ptr = source};

	if (kind == FD_SOURCE_WAKE || kind == FD_SOURCE_WAKES)
		ev.events = EPOLLIN | EPOLLET;
	else if (kind == FD_SOURCE_CM_CHANNEL)
		ev.events = 0; /* only the client's close, EPOLLHUP */
	*source = (struct fd_source){.kind = kind, .conn = conn, .fd = fd};
	if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &ev) == 0)
		return 0;
	source->fd = -1;
	return -errno;
}

void
fd_source_pause(int epoll, struct fd_source *source, bool pause)
{
	struct epoll_event ev = {
		.events = pause ? 0 : EPOLLIN | EPOLLRDHUP, .data.ptr = source};

	(void)epoll_ctl(epoll, EPOLL_CTL_MOD, source->fd, &ev);
}

int
fd_source_wait(int epoll, struct epoll_event *events, int max, uint64_t timeout_ns)
{
	struct timespec until = {.tv_sec = (time_t)(timeout_ns / NS_PER_SEC),
		.tv_nsec = (long)(timeout_ns % NS_PER_SEC)};
	int n;

	if (timeout_ns == 0 || timeout_ns == TIME_NEVER)
		return epoll_wait(epoll, events, max, timeout_ns == 0 ? 0 : -1);
	n = epoll_pwait2(epoll, events, max, &until, NULL);
	/* epoll_pwait2() is new in Linux 5.11, and the filters of old container runtimes refuse it
	 * with EPERM. Then: in milliseconds, rounded up. */
	if (n < 0 && (errno == ENOSYS || errno == EPERM))
		n = epoll_wait(epoll, events, max, (int)(timeout_ns / NS_PER_MS) + 1);
	return n;
}

int
fd_source_remove(int epoll, struct fd_source *source)
{
	int fd = source->fd;

	/* Explicitly: other processes may hold the same open file, which would keep it in
	 * the set. */
	if (fd >= 0)
		(void)epoll_ctl(epoll, EPOLL_CTL_DEL, fd, NULL);
	source->fd = -1;
	return fd;
}

void
fd_source_close(int epoll, struct fd_source *source)
{
	int fd = fd_source_remove(epoll, source);

	if (fd >= 0)
		close(fd);
}
