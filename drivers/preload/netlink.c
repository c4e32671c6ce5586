/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernel does not know Rocade's device, and answers nothing about it by netlink. `rocade-run
 * --explain` says of a program that it asks there. */
#include <errno.h>
#include <linux/netlink.h>
#include <sys/socket.h>

#include "base/in_vain.h"
#include "preload/next.h"
#include "verbs/export.h"
#include "verbs/forward.h"

/* Children of fork() and vfork() may open sockets before exec(), where the dynamic loader must not be
 * called. So the constructor below looks the function up. */
static __typeof__(&socket)
next_socket(void)
{
	return NEXT_FUNCTION(socket);
}

static __attribute__((constructor)) void
socket_find(void)
{
	(void)next_socket();
}

EXPORT int
socket(int domain, int type, int protocol)
{
	/* libibverbs looks for the devices of the kernel. */
	if (domain == AF_NETLINK && protocol == NETLINK_RDMA && forward_depth == 0)
		in_vain_note(IN_VAIN_NETLINK,
			"NETLINK_RDMA (as rdma(8) does: ibv_devinfo and ibstat show the device)");
	return next_socket()(domain, type, protocol);
}
