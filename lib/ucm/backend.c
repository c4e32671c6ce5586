/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ucm/backend.h"

static const struct ucm_backend *current;
static void (*channels_disconnect)(uint32_t generation); /* set before main() */

void
ucm_backend_set(const struct ucm_backend *backend)
{
	__atomic_store_n(&current, backend, __ATOMIC_RELEASE);
}

/* Pairs with the release above. */
const struct ucm_backend *
ucm_backend_get(void)
{
	return __atomic_load_n(&current, __ATOMIC_ACQUIRE);
}

void
ucm_disconnect_set(void (*disconnect)(uint32_t generation))
{
	channels_disconnect = disconnect;
}

void
ucm_channels_disconnect(uint32_t generation)
{
	if (channels_disconnect != NULL)
		channels_disconnect(generation);
}

/* A descriptor of the kernel's rdma_cm is never writable. So the program's end keeps as many unread bytes
 * in the socket as it may, and that is as few as possible. */
static int
sending_fill(int end)
{
	static const uint8_t bytes[1024];
	const int least = 1;
	struct pollfd p = {.fd = end, .events = POLLOUT};

	if (setsockopt(end, SOL_SOCKET, SO_SNDBUF, &least, sizeof(least)) != 0)
		return -errno;
	while (poll(&p, 1, 0) == 1)
		if (send(end, bytes, sizeof(bytes), MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
			return -errno;
	return 0;
}

/* Of the threads that wait in recv() on a datagram or SEQPACKET socket, a message wakes one
 * only. The others would sleep on, although a second event may come without a message. */
int
ucm_sockets_create(int ends[2])
{
	int rc;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
		return -errno;
	rc = sending_fill(ends[1]);
	if (rc != 0) {
		close(ends[0]);
		close(ends[1]);
	}
	return rc;
}

void
ucm_wake_send(int end, uint32_t number)
{
	ssize_t sent = send(end, &number, sizeof(number), MSG_DONTWAIT | MSG_NOSIGNAL);

	(void)sent; /* full: the channel is readable already */
}

/* The last number stays while an event is unread: that of the event may have found no room. */
void
ucm_wakes_take(int fd, uint32_t upto, bool pending)
{
	uint32_t numbers[2];
	ssize_t got;

	do {
		got = recv(fd, numbers, sizeof(numbers), MSG_PEEK | MSG_DONTWAIT);
		if (got < (ssize_t)(pending ? sizeof(numbers) : sizeof(numbers[0])) ||
			(int32_t)(numbers[0] - upto) > 0)
			return;
		(void)recv(fd, numbers, sizeof(numbers[0]), MSG_DONTWAIT);
	} while (got == sizeof(numbers));
}
