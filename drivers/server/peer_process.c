/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "server/peer_process.h"

/* Not yet in the headers of every C library. */
#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

struct ucred
peer_process_read(int socket)
{
	struct ucred who = {.pid = 0};
	socklen_t len = sizeof(who);

	(void)getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &who, &len);
	return who;
}

int
peer_process_open(int socket, pid_t pid)
{
	int fd = -1;
	socklen_t len = sizeof(fd);

	if (getsockopt(socket, SOL_SOCKET, SO_PEERPIDFD, &fd, &len) == 0)
		return fd;
	/* pid 0 is refused. */
	return errno == ENOPROTOOPT ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
}

const char *
peer_process_text(pid_t pid, char *text, size_t size)
{
	if (pid == 0)
		snprintf(text, size, "unknown process");
	else
		snprintf(text, size, "process %d", (int)pid);
	return text;
}

void
peer_process_name(pid_t pid, char *name, size_t size)
{
	char path[64];
	ssize_t len;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	len = read(fd, name, size - 1);
	close(fd);
	for (ssize_t i = 0; i < len; i++) {
		if (name[i] == '\n')
			name[i] = '\0';
		else if (name[i] < ' ' || name[i] > '~' ||
			 strchr("\"\\", name[i]) != NULL)
			name[i] = '?';
	}
}
