/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "server/fd_source.h"

int
fd_source_add(int epoll, struct fd_source *source, int fd, enum fd_source_kind kind,
	struct conn *conn)
{
	struct epoll_event ev = {.events = EPOLLIN | EPOLLRDHUP, .data.ptr = source};

	if (kind == FD_SOURCE_WAKE)
		ev.events = EPOLLIN | EPOLLET;
	*source = (struct fd_source){.kind = kind, .conn = conn, .fd = fd};
	if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &ev) == 0)
		return 0;
	source->fd = -1;
	return -errno;
}

void
fd_source_close(int epoll, struct fd_source *source)
{
	if (source->fd < 0)
		return;
	/* Explicitly: other processes may hold the same open file, which would keep it in
	 * the set. */
	(void)epoll_ctl(epoll, EPOLL_CTL_DEL, source->fd, NULL);
	close(source->fd);
	source->fd = -1;
}
