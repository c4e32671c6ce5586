/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <sys/socket.h>

#include "ucm/backend.h"

static const struct ucm_backend *current;

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

/* Of the threads that wait in recv() on a datagram or SEQPACKET socket, a message wakes one
 * only. The others would sleep on, although a second event may come without a message. */
int
ucm_sockets_create(int ends[2])
{
	return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0 ? 0 : -errno;
}
