/* SPDX-License-Identifier: BSD-3-Clause */
/* Out-of-band messages between the two ends, over TCP. */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "await.h"
#include "matrix.h"

static struct addrinfo *
address_resolve(const char *address, unsigned port)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found = NULL;
	char text[16];

	snprintf(text, sizeof(text), "%u", port);
	return getaddrinfo(address, text, &hints, &found) == 0 ? found : NULL;
}

static int
socket_tune(int fd)
{
	int on = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	return fd;
}

int
oob_listen(const char *address, unsigned port)
{
	struct addrinfo *at = address_resolve(address, port);
	int on = 1, fd, got = -1;

	if (at == NULL)
		return -1;
	fd = socket(at->ai_family, SOCK_STREAM, 0);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (fd >= 0 && bind(fd, at->ai_addr, at->ai_addrlen) == 0 && listen(fd, 1) == 0 &&
		await_readable(fd))
		got = accept(fd, NULL, NULL);
	close(fd);
	freeaddrinfo(at);
	return got < 0 ? -1 : socket_tune(got);
}

static int
connection_try(const struct addrinfo *at)
{
	int fd = socket(at->ai_family, SOCK_STREAM, 0);

	if (connect(fd, at->ai_addr, at->ai_addrlen) == 0)
		return fd;
	close(fd);
	return -1;
}

int
oob_connect(const char *address, unsigned port)
{
	struct addrinfo *at = address_resolve(address, port);
	int fd = -1;

	if (at != NULL && !awaited((fd = connection_try(at)) >= 0))
		fd = -1;
	if (at != NULL)
		freeaddrinfo(at);
	return fd < 0 ? -1 : socket_tune(fd);
}

/* The other end may itself wait to the limit before it sends. */
static bool
socket_ready(int fd)
{
	return await_readable(fd) || await_readable(fd);
}

/* All frames have one size, so that GAVE_UP is understood in any state of the other
 * end. */
enum { GOES_ON = 'g', GAVE_UP = 'f', ENDED = 'e' };

struct frame {
	uint8_t kind;
	uint8_t data[OOB_MAX];
};

static bool
read_all(int fd, void *to, size_t len)
{
	for (size_t at = 0; at < len;) {
		ssize_t got =
			socket_ready(fd) ? recv(fd, (uint8_t *)to + at, len - at, 0) : 0;

		if (got == 0 || (got < 0 && errno != EINTR))
			return false;
		at += got > 0 ? (size_t)got : 0;
	}
	return true;
}

static bool
write_all(int fd, const void *from, size_t len)
{
	for (size_t at = 0; at < len;) {
		ssize_t put =
			send(fd, (const uint8_t *)from + at, len - at, MSG_NOSIGNAL);

		if (put < 0 && errno != EINTR)
			return false;
		at += put > 0 ? (size_t)put : 0;
	}
	return true;
}

/* The two ends are out of step without it, so the run ends. */
static const char *
connection_lost(struct matrix *t, const char *why)
{
	t->lost = true;
	return case_fail(t, "%s", why);
}

static const char *
frame_swap(struct matrix *t, struct frame *frame)
{
	if (!write_all(t->sock, frame, sizeof(*frame)))
		return connection_lost(t, "the other end has disconnected");
	if (!read_all(t->sock, frame, sizeof(*frame)))
		return connection_lost(t, "no message from the other end");
	if (frame->kind != GAVE_UP)
		return NULL;
	t->peer_gave_up = true;
	return case_fail(t, "the other end: %.120s", (const char *)frame->data);
}

const char *
oob_swap(struct matrix *t, const void *mine, void *theirs, size_t len)
{
	struct frame frame = {.kind = GOES_ON};

	memcpy(frame.data, mine, len);
	TRY(frame_swap(t, &frame));
	memcpy(theirs, frame.data, len);
	return NULL;
}

const char *
oob_sync(struct matrix *t)
{
	char mine = 's', theirs;

	return oob_swap(t, &mine, &theirs, 1);
}

const char *
oob_end(struct matrix *t, bool good)
{
	struct frame frame = {.kind = good ? ENDED : GAVE_UP};
	char why[sizeof(t->why)];

	if (t->peer_gave_up)
		return t->why;
	memcpy(why, t->why, sizeof(why));
	if (!good)
		memcpy(frame.data, why, OOB_MAX - 1);
	if (frame_swap(t, &frame) == NULL)
		return good ? NULL : memcpy(t->why, why, sizeof(why));
	if (!good)
		memcpy(t->why, why, sizeof(why));
	return t->why;
}
