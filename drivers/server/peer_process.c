/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdbool.h>
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

#define OVERFLOW_UID 65534 /* the kernel's default */

/* Reads the first numbers of a file. Returns how many there are, or less than 0: -ENOENT without
 * the file. */
static int
numbers_read(const char *path, unsigned numbers[3])
{
	FILE *file = fopen(path, "re");
	int n;

	if (file == NULL)
		return -errno;
	n = fscanf(file, "%u %u %u", &numbers[0], &numbers[1], &numbers[2]);
	fclose(file);
	return n;
}

static bool
has_a_directory(const char *path)
{
	char folder[PATH_MAX];

	snprintf(folder, sizeof(folder), "%s", path);
	return access(dirname(folder), F_OK) == 0;
}

uint32_t
peer_shared_uid(const char *uid_map, const char *overflow_uid)
{
	unsigned map[3], uid[3];
	int n = numbers_read(uid_map, map);

	/* A kernel without user namespaces has no such file, but the directory of it: a process without /proc may
	 * be in any namespace. Of the first namespace it is one line, with all uids. */
	if ((n == -ENOENT && has_a_directory(uid_map)) ||
		(n == 3 && map[0] == 0 && map[1] == 0 && map[2] == UINT32_MAX))
		return PEER_UID_NONE;
	return numbers_read(overflow_uid, uid) > 0 ? uid[0] : OVERFLOW_UID;
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
