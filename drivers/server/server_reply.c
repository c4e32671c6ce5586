/* SPDX-License-Identifier: BSD-3-Clause */
#include <linux/sock_diag.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "server/server_reply.h"

/* Less than any message takes. The kernel counts one byte more while it frees a message. */
#define MESSAGE_LEAST 128

/* Messages that were sent take memory until the client has received them. */
bool
replies_are_read(int socket)
{
	uint32_t info[SK_MEMINFO_VARS];
	socklen_t len = sizeof(info);

	return getsockopt(socket, SOL_SOCKET, SO_MEMINFO, info, &len) == 0 &&
	       info[SK_MEMINFO_WMEM_ALLOC] < MESSAGE_LEAST;
}

bool
reply_send(int socket, const struct sw_reply *reply, const int *fds, unsigned n)
{
	char control[CMSG_SPACE(SW_ATTACH_FDS * sizeof(int))] __attribute__((aligned(8)));
	struct iovec from = {.iov_base = (void *)reply, .iov_len = sizeof(*reply)};
	struct msghdr msg = {.msg_iov = &from, .msg_iovlen = 1};

	if (n != 0) {
		struct cmsghdr *c;

		if (!replies_are_read(socket))
			return false;
		memset(control, 0, sizeof(control));
		msg.msg_control = control;
		msg.msg_controllen = CMSG_SPACE(n * sizeof(int));
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(n * sizeof(int));
		memcpy(CMSG_DATA(c), fds, n * sizeof(int));
	}
	return sendmsg(socket, &msg, MSG_NOSIGNAL | MSG_DONTWAIT) ==
	       (ssize_t)sizeof(*reply);
}
