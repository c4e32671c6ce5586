/* SPDX-License-Identifier: BSD-3-Clause */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "verbs/sysfs_sweep.h"
#include "verbs/sysfs_tree.h"

#define DAEMON_LINK "daemon"

/* Of the daemon that a tree is of. */
struct noted {
	uintmax_t dev, ino; /* of its socket */
	uint64_t instance;
	char socket[PATH_MAX];
};

int
sysfs_private_open(int folder, const char *name)
{
	int fd = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) == 0 && st.st_uid == geteuid() && (st.st_mode & 077) == 0)
		return fd;
	close(fd);
	return -EPERM;
}

/* Opens /dev/shm or /tmp. Its owner may have no number in a user namespace. Returns a descriptor or -errno. */
static int
common_open(const char *folder)
{
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct stat st;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) == 0 &&
		((st.st_mode & S_ISVTX) != 0 || (st.st_mode & 022) == 0))
		return fd;
	close(fd);
	return -EPERM;
}

int
sysfs_folder_open(unsigned i, const char **path)
{
	const char *folders[] = {getenv("XDG_RUNTIME_DIR"), "/dev/shm", "/tmp"};

	*path = NULL;
	if (i >= RTE_DIM(folders))
		return -ENOENT;
	*path = folders[i] != NULL ? folders[i] : "";
	if ((*path)[0] != '/')
		return -ENOENT;
	/* sudo may pass $XDG_RUNTIME_DIR of another user. */
	return i == 0 ? sysfs_private_open(AT_FDCWD, *path) : common_open(*path);
}

int
sysfs_tree_lock(int folder, const char *name, int how)
{
	int fd = sysfs_private_open(folder, name), rc = 0;
	struct stat st, now;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) != 0 || flock(fd, how) != 0)
		rc = -errno;
	else if (fstatat(folder, name, &now, AT_SYMLINK_NOFOLLOW) != 0 ||
		 now.st_ino != st.st_ino || now.st_dev != st.st_dev)
		rc = -EAGAIN;
	if (rc == 0)
		return fd;
	close(fd);
	return rc;
}

void
sysfs_tree_withdraw(int folder, const char *name)
{
	char away[NAME_MAX + 32];

	snprintf(away, sizeof(away), "%s.%d.old", name, (int)getpid());
	if (renameat(folder, name, folder, away) == 0)
		sysfs_tree_remove(folder, away);
}

/* The socket is another file if another daemon has its name. One that a service manager keeps is the same
 * for the next daemon, whose device is another one. */
int
sysfs_daemon_note(int root, const struct device_facts *facts)
{
	char text[PATH_MAX + 64];
	struct stat st;

	if (facts->socket[0] == '\0' || stat(facts->socket, &st) != 0)
		return 0;
	snprintf(text, sizeof(text), "%jx:%jx:%" PRIx64 ":%s", (uintmax_t)st.st_dev,
		(uintmax_t)st.st_ino, (uint64_t)facts->instance, facts->socket);
	return symlinkat(text, root, DAEMON_LINK) == 0 ? 0 : -errno;
}

static bool
noted_read(int root, struct noted *noted)
{
	char text[PATH_MAX + 64], *at;
	ssize_t len = syscall(SYS_readlinkat, root, DAEMON_LINK, text, sizeof(text) - 1);

	if (len <= 0)
		return false;
	text[len] = '\0';
	noted->dev = strtoumax(text, &at, 16);
	noted->ino = strtoumax(at + (*at == ':'), &at, 16);
	noted->instance = strtoumax(at + (*at == ':'), &at, 16);
	snprintf(noted->socket, sizeof(noted->socket), "%s", at + (*at == ':'));
	return true;
}

/* Returns whether the daemon's socket is not there any more. */
static bool
socket_has_gone(const struct noted *noted)
{
	struct stat st;

	if (stat(noted->socket, &st) != 0)
		return errno == ENOENT || errno == ENOTDIR;
	return st.st_dev != noted->dev || st.st_ino != noted->ino;
}

/* A daemon that was killed leaves its socket. */
static bool
nobody_listens(const struct noted *noted)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	bool refused;
	int fd;

	if (strlen(noted->socket) >= sizeof(addr.sun_path))
		return false;
	strcpy(addr.sun_path, noted->socket);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	refused = fd >= 0 && connect(fd, (struct sockaddr *)&addr, sizeof(addr)) != 0 &&
		  errno == ECONNREFUSED;
	if (fd >= 0)
		close(fd);
	return refused;
}

static bool
daemon_has_ended(int root, const struct device_facts *now)
{
	struct noted noted;

	if (!noted_read(root, &noted) || socket_has_gone(&noted))
		return true;
	if (now != NULL && strcmp(now->socket, noted.socket) == 0)
		return now->instance != noted.instance;
	return nobody_listens(&noted);
}

void
sysfs_sweep(int folder, const char *path, const struct device_facts *now)
{
	struct dirent *entry;
	char prefix[64];
	DIR *dir = opendir(path);

	snprintf(prefix, sizeof(prefix), "%s%u-", &TREE_NAME[1], (unsigned)geteuid());
	while (dir != NULL && (entry = readdir(dir)) != NULL) {
		int root;

		if (strncmp(entry->d_name, prefix, strlen(prefix)) != 0)
			continue;
		root = sysfs_tree_lock(folder, entry->d_name, LOCK_EX | LOCK_NB);
		if (root < 0)
			continue;
		if (daemon_has_ended(root, now))
			sysfs_tree_withdraw(folder, entry->d_name);
		close(root);
	}
	if (dir != NULL)
		closedir(dir);
}

void
sysfs_sweep_one(int folder, const char *name)
{
	int root = sysfs_tree_lock(folder, name, LOCK_EX | LOCK_NB);
	struct noted noted;

	if (root < 0)
		return;
	if (!noted_read(root, &noted) || socket_has_gone(&noted))
		sysfs_tree_withdraw(folder, name);
	close(root);
}
