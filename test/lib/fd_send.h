/* SPDX-License-Identifier: BSD-3-Clause */
/* Sends descriptors to a process that expects none. */
#ifndef ROCADE_TEST_FD_SEND_H
#define ROCADE_TEST_FD_SEND_H

#include <string.h>
#include <sys/socket.h>
#include <sys/types.h>

#define FDS_SEND_MAX 253 /* the kernel's SCM_MAX_FD */

/* Sends a message of len bytes with n descriptors. Returns as sendmsg(). */
static inline ssize_t
fds_send(int to, const int *fds, unsigned n, const void *bytes, size_t len)
{
	char control[CMSG_SPACE(FDS_SEND_MAX * sizeof(int))]
		__attribute__((aligned(8))) = {0};
	struct iovec from = {.iov_base = (void *)bytes, .iov_len = len};
	struct msghdr msg = {.msg_iov = &from,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = CMSG_SPACE(n * sizeof(int))};
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(n * sizeof(int));
	memcpy(CMSG_DATA(c), fds, n * sizeof(int));
	return sendmsg(to, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* The same with one descriptor. */
static inline ssize_t
fd_send(int to, int fd, const void *bytes, size_t len)
{
	return fds_send(to, &fd, 1, bytes, len);
}

#endif
