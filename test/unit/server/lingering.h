/* SPDX-License-Identifier: BSD-3-Clause */
/* Descriptors whose last close waits, for clients to send to the daemon. */
#ifndef LINGERING_H
#define LINGERING_H

#include <arpa/inet.h>
#include <netinet/in.h>

#include "server_fixture.h"
#include "../../lib/fd_send.h"

#define LINGER_S 20 /* so long a daemon would wait that closes such a socket itself */

/* A TCP socket with unread data: its last close waits until `end` is closed. */
struct lingering {
	int fd, end;
};

static inline void
lingering_open(struct lingering *l)
{
	struct sockaddr_in addr = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	const struct linger on = {.l_onoff = 1, .l_linger = LINGER_S};
	static const char data[65536];
	socklen_t len = sizeof(addr);
	int listener = socket(AF_INET, SOCK_STREAM, 0);

	assert_int_equal(bind(listener, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&addr, &len), 0);
	l->fd = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(connect(l->fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	l->end = accept(listener, NULL, NULL);
	assert_true(l->end >= 0);
	while (send(l->fd, data, sizeof(data), MSG_DONTWAIT) > 0)
		continue;
	assert_int_equal(setsockopt(l->fd, SOL_SOCKET, SO_LINGER, &on, sizeof(on)), 0);
	close(listener);
}

/* Sends a message with the descriptor, and gives up the own one. Returns as sendmsg(). */
static inline ssize_t
lingering_send(struct lingering *l, int to, const void *bytes, size_t len)
{
	const struct linger off = {.l_onoff = 0};
	ssize_t sent = fd_send(to, l->fd, bytes, len);
	int err = errno;

	if (sent < 0) /* the own close is the last one */
		(void)setsockopt(l->fd, SOL_SOCKET, SO_LINGER, &off, sizeof(off));
	close(l->fd);
	errno = err;
	return sent;
}

/* Its close no longer waits. */
static inline void
lingering_end(struct server_fixture *b, struct lingering *l)
{
	close(l->end);
	assert_true(fixture_closers_await(b));
}

#endif
