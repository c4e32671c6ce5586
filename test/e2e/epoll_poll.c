/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * For programs that use epoll(7) over rsockets: LD_PRELOAD=epoll_poll.so:librspreload.so. librspreload
 * replaces poll(2), accept(2) and fcntl(2), but neither epoll nor accept4(2), and not the fcntl() of
 * programs with 64-bit file offsets. These functions are made of those that it replaces. A set may be
 * used by one thread only, and cannot itself be polled.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

enum { SETS = 64, SET_FDS = 4096 };

_Static_assert(EPOLLIN == POLLIN && EPOLLOUT == POLLOUT && EPOLLERR == POLLERR &&
		       EPOLLHUP == POLLHUP,
	"epoll and poll have different events");

static struct set {
	int fd; /* as the program knows the set */
	int n;
	struct pollfd polled[SET_FDS];
	epoll_data_t data[SET_FDS];
} * sets[SETS];

static struct set *
find_set(int fd)
{
	for (int i = 0; i < SETS; i++)
		if (sets[i] != NULL && sets[i]->fd == fd)
			return sets[i];
	errno = EBADF;
	return NULL;
}

static int
find_fd(const struct set *set, int fd)
{
	for (int i = 0; i < set->n; i++)
		if (set->polled[i].fd == fd)
			return i;
	return -1;
}

#pragma GCC visibility push(default)

int
epoll_create1(int flags)
{
	for (int i = 0; i < SETS; i++) {
		struct set *set = sets[i];

		if (set != NULL)
			continue;
		set = calloc(1, sizeof(*set));
		if (set == NULL)
			return -1;
		set->fd = eventfd(0, flags & EPOLL_CLOEXEC ? EFD_CLOEXEC : 0);
		if (set->fd < 0) {
			free(set);
			return -1;
		}
		sets[i] = set;
		return set->fd;
	}
	errno = EMFILE;
	return -1;
}

int
epoll_create(int size)
{
	(void)size;
	return epoll_create1(0);
}

/* EPOLL_CTL_ADD of a descriptor that is in the set replaces it: it was closed since. */
int
epoll_ctl(int epfd, int op, int fd, struct epoll_event *event)
{
	struct set *set = find_set(epfd);
	int at;

	if (set == NULL)
		return -1;
	at = find_fd(set, fd);
	if (at < 0 && (op != EPOLL_CTL_ADD || set->n == SET_FDS)) {
		errno = op != EPOLL_CTL_ADD ? ENOENT : ENOSPC;
		return -1;
	}
	if (op == EPOLL_CTL_DEL) {
		set->n--;
		set->polled[at] = set->polled[set->n];
		set->data[at] = set->data[set->n];
		return 0;
	}
	if (at < 0)
		at = set->n++;
	set->polled[at] = (struct pollfd){.fd = fd, .events = (short)event->events};
	set->data[at] = event->data;
	return 0;
}

int
epoll_wait(int epfd, struct epoll_event *events, int max, int timeout_ms)
{
	struct set *set = find_set(epfd);
	int n = 0;

	if (set == NULL || poll(set->polled, (nfds_t)set->n, timeout_ms) < 0)
		return -1;
	for (int i = 0; i < set->n && n < max; i++)
		if (set->polled[i].revents != 0)
			events[n++] = (struct epoll_event){
				.events = (uint32_t)set->polled[i].revents,
				.data = set->data[i]};
	return n;
}

int
accept4(int fd, struct sockaddr *address, socklen_t *size, int flags)
{
	int got = accept(fd, address, size);

	if (got >= 0 && flags & SOCK_NONBLOCK)
		fcntl(got, F_SETFL, fcntl(got, F_GETFL) | O_NONBLOCK);
	return got;
}

int
fcntl64(int fd, int command, ...)
{
	va_list list;
	void *argument; /* an int or a pointer, as the command has it */

	va_start(list, command);
	argument = va_arg(list, void *);
	va_end(list);
	return fcntl(fd, command, argument);
}

#pragma GCC visibility pop
