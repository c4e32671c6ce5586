/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The tree is a directory rocade-sysfs-UID-KEY. It lives as long as the daemon of its device: a program may
 * have its working directory in it, or pass it on to others by fork(2) and exec(3), and no lock shows
 * that. A process that makes a tree removes those of the same user whose daemon has ended and that no
 * process has locked: each process that uses a tree has a shared flock(2) on it, which ends with the
 * process however that ends. A program that embeds Rocade has its own tree, and removes it at its end.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/no_cancel.h"
#include "preload/served.h"
#include "preload/sysfs_session.h"
#include "verbs/sysfs_tree.h"

#define FD_LEAST 256 /* above those that a program expects to get next */
#define DAEMON_LINK "daemon"
#define TRIES 16 /* each one fails only if another process ends just then */

struct sysfs_session {
	char root[TREE_PATH_MAX];
	int fd;
	dev_t dev;
	ino_t ino;
	pid_t pid;   /* that has opened fd */
	uid_t uid;   /* of the tree */
	bool is_own; /* there is no daemon */
	struct sysfs_session *older;
};

__thread unsigned sysfs_depth;

/* Never freed: other threads may use the path of an earlier one. */
static struct sysfs_session *current;

static struct sysfs_session *
session_current(void)
{
	/* Pairs with the release in sysfs_session_root(). */
	return __atomic_load_n(&current, __ATOMIC_ACQUIRE);
}

static bool
is_same(const struct sysfs_session *s, const struct stat *st)
{
	return st->st_dev == s->dev && st->st_ino == s->ino;
}

/* Opens a directory of this user, which no other user can change. Returns a descriptor or -errno. */
static int
private_open(int folder, const char *name)
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

/* Opens /dev/shm or /tmp, in which other users cannot replace a directory of this one. Its owner may have no
 * number in a user namespace. Returns a descriptor or -errno. */
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

/* Opens the tree, if there is one of this user, and locks it. Returns 0 or -errno. */
static int
root_lock(struct sysfs_session *s, int folder, int how)
{
	struct stat st, now;
	int fd = private_open(folder, strrchr(s->root, '/') + 1);
	int rc = 0, high;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) != 0)
		rc = -errno;
	else if (flock(fd, how) != 0)
		rc = -errno;
	else if (lstat(s->root, &now) != 0 || now.st_ino != st.st_ino ||
		 now.st_dev != st.st_dev)
		rc = -EAGAIN; /* the last process has removed it meanwhile */
	high = rc == 0 ? fcntl(fd, F_DUPFD_CLOEXEC, FD_LEAST) : -1;
	if (rc != 0 || high >= 0)
		close(fd);
	s->fd = high >= 0 ? high : fd;
	s->dev = st.st_dev;
	s->ino = st.st_ino;
	s->pid = getpid();
	return rc;
}

/* With an exclusive lock. Another process finds the tree whole or not at all. */
static void
root_remove(int folder, const char *name)
{
	char away[NAME_MAX + 32];

	snprintf(away, sizeof(away), "%s.%d.old", name, (int)getpid());
	if (renameat(folder, name, folder, away) == 0)
		sysfs_tree_remove(folder, away);
}

/* The link tells the daemon's socket: the file is another one if another daemon has its name. root: of the
 * tree. */
static int
daemon_note(int root, const char *path)
{
	char text[PATH_MAX];
	struct stat st;

	if (path[0] == '\0' || stat(path, &st) != 0)
		return 0;
	snprintf(text, sizeof(text), "%jx:%jx:%s", (uintmax_t)st.st_dev,
		(uintmax_t)st.st_ino, path);
	return symlinkat(text, root, DAEMON_LINK) == 0 ? 0 : -errno;
}

static bool
daemon_has_ended(int root)
{
	char text[PATH_MAX], *at;
	ssize_t len = syscall(SYS_readlinkat, root, DAEMON_LINK, text, sizeof(text) - 1);
	uintmax_t dev, ino;
	struct stat st;

	if (len <= 0)
		return true;
	text[len] = '\0';
	dev = strtoumax(text, &at, 16);
	ino = strtoumax(at + (*at == ':'), &at, 16);
	if (stat(at + (*at == ':'), &st) != 0)
		return errno == ENOENT || errno == ENOTDIR;
	return st.st_dev != dev || st.st_ino != ino;
}

/* Removes what nothing can use any more. */
static void
sweep(int folder, const char *path)
{
	struct sysfs_session s;
	struct dirent *entry;
	char prefix[64];
	DIR *dir = opendir(path);

	snprintf(prefix, sizeof(prefix), "%s%u-", TREE_NAME + 1, (unsigned)geteuid());
	while (dir != NULL && (entry = readdir(dir)) != NULL) {
		if (strncmp(entry->d_name, prefix, strlen(prefix)) != 0 ||
			snprintf(s.root, sizeof(s.root), "%s/%s", path, entry->d_name) >=
				(int)sizeof(s.root))
			continue;
		if (root_lock(&s, folder, LOCK_EX | LOCK_NB) == 0) {
			if (daemon_has_ended(s.fd))
				root_remove(folder, entry->d_name);
			close(s.fd);
		}
	}
	if (dir != NULL)
		closedir(dir);
}

static int
devices_add(int root)
{
	struct device_facts facts;
	int rc = 0;

	for (unsigned i = 0; rc == 0 && served_by.facts(i, true, &facts); i++) {
		rc = sysfs_device_add(root, &facts);
		if (rc == 0)
			rc = i == 0 ? daemon_note(root, facts.socket) : 0;
	}
	return rc;
}

/* Makes the tree under another name, and gives it its own when it is whole. */
static int
root_make(int folder, const char *name)
{
	char made[160];
	int fd, rc;

	snprintf(made, sizeof(made), "%s.%d.new", name, (int)gettid());
	if (mkdirat(folder, made, 0700) != 0)
		return -errno;
	fd = private_open(folder, made);
	if (fd < 0)
		return fd;
	rc = flock(fd, LOCK_SH) == 0 ? sysfs_tree_make(fd) : -errno;
	if (rc == 0)
		rc = devices_add(fd);
	if (rc == 0 && renameat(folder, made, folder, name) != 0)
		rc = -errno;
	if (rc != 0)
		sysfs_tree_remove(folder, made);
	close(fd);
	/* Another process was faster. */
	return rc == -ENOTEMPTY || rc == -EEXIST ? 0 : rc;
}

static int
root_join(struct sysfs_session *s, int folder, const char *path, uint64_t key)
{
	int rc = -EAGAIN;

	if (snprintf(s->root, sizeof(s->root), "%s" TREE_NAME "%u-%016" PRIx64, path,
		    (unsigned)geteuid(), key) >= (int)sizeof(s->root) - 32)
		return -ENAMETOOLONG;
	for (unsigned i = 0; i < TRIES && (rc == -EAGAIN || rc == -ENOENT); i++) {
		rc = root_lock(s, folder, LOCK_SH);
		if (rc != -ENOENT)
			continue;
		sweep(folder, path);
		rc = root_make(folder, strrchr(s->root, '/') + 1);
		if (rc == 0)
			rc = -EAGAIN;
	}
	return rc;
}

/* By which processes agree on a tree: the device of a daemon has the same number in all of them. A program
 * that embeds Rocade shares its tree with no other. */
static uint64_t
key_of(const struct device_facts *facts)
{
	uint64_t key = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
	const char *at = facts->name;
	uint64_t own = 0;

	if (served_by.several && getrandom(&own, sizeof(own), 0) != sizeof(own))
		own = (uint64_t)getpid();
	for (; *at != '\0'; at++)
		key = (key ^ (uint8_t)*at) * UINT64_C(0x100000001b3);
	return ((key ^ facts->guid) + facts->instance) ^ own;
}

/* Returns whether `rocade-run --mount` has made the files of the device where the kernel has such. */
static bool
is_mounted(const char *name)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/1", name);
	return access(path, F_OK) == 0;
}

static struct sysfs_session *
session_join(void)
{
	const char *folders[] = {getenv("XDG_RUNTIME_DIR"), "/dev/shm", "/tmp"};
	static bool said;
	struct device_facts facts;
	struct sysfs_session *s;
	char line[256];
	int rc = -ENOENT, folder;

	if (!served_by.facts(0, false, &facts) || is_mounted(facts.name))
		return NULL;
	s = calloc(1, sizeof(*s));
	if (s == NULL)
		return NULL;
	s->uid = geteuid();
	s->is_own = facts.socket[0] == '\0';
	for (unsigned i = 0; rc != 0 && i < RTE_DIM(folders); i++) {
		if (folders[i] == NULL || folders[i][0] != '/')
			continue;
		/* sudo may pass $XDG_RUNTIME_DIR of another user. */
		rc = folder = i == 0 ? private_open(AT_FDCWD, folders[i])
				     : common_open(folders[i]);
		if (folder < 0)
			continue;
		rc = root_join(s, folder, folders[i], key_of(&facts));
		close(folder);
	}
	if (rc == 0)
		return s;
	if (!__atomic_exchange_n(&said, true, __ATOMIC_RELAXED)) {
		snprintf(line, sizeof(line),
			"no directory for the sysfs files of %s in $XDG_RUNTIME_DIR, /dev/shm "
			"or /tmp: %s",
			facts.name, strerror(-rc));
		served_by.warn(line);
	}
	free(s);
	return NULL;
}

/* Devices of this process that were opened or closed since the tree was made. */
static void
devices_update(const struct sysfs_session *s)
{
	struct device_facts facts;

	if (!served_by.several)
		return;
	sysfs_devices_sweep(s->fd, served_by.device);
	for (unsigned i = 0; served_by.facts(i, true, &facts); i++) {
		if (sysfs_device_is_there(s->fd, &facts))
			continue;
		sysfs_device_remove(s->fd, facts.name);
		(void)sysfs_device_add(s->fd, &facts);
	}
}

/* A program may have closed the descriptor, another process removed the tree, and a program that has become
 * another user does not reach it. */
static bool
is_usable(const struct sysfs_session *s)
{
	struct stat st;

	return s->uid == geteuid() && lstat(s->root, &st) == 0 && is_same(s, &st) &&
	       fstat(s->fd, &st) == 0 && is_same(s, &st);
}

static void
root_release(const struct sysfs_session *s)
{
	struct stat st;

	/* The program may have closed the descriptor, and opened another file. */
	if (fstat(s->fd, &st) == 0 && is_same(s, &st))
		close(s->fd);
}

const char *
sysfs_session_root(void)
{
	struct sysfs_session *s = session_current(), *before = s;
	int state;

	if (s != NULL && is_usable(s)) {
		devices_update(s);
		return s->root;
	}
	state = no_cancel_begin();
	s = session_join();
	no_cancel_end(state);
	if (s == NULL)
		return NULL;
	s->older = before;
	if (__atomic_compare_exchange_n(
		    &current, &before, s, false, __ATOMIC_RELEASE, __ATOMIC_ACQUIRE)) {
		if (before != NULL)
			root_release(before);
		return s->root;
	}
	/* Another thread has done so. */
	close(s->fd);
	free(s);
	return before->root;
}

void
sysfs_session_refresh(const char *path)
{
	const struct sysfs_session *s = session_current();
	struct device_facts facts;
	struct sysfs_live live;

	if (s == NULL || !sysfs_live_find(path, &live))
		return;
	for (unsigned i = 0; served_by.facts(i, sysfs_live_counts(&live), &facts); i++) {
		if (strcmp(facts.name, live.device) == 0) {
			(void)sysfs_live_write(s->fd, &live, &facts);
			return;
		}
	}
	/* The daemon has ended. */
	(void)sysfs_live_write_down(s->fd, &live);
}

static __attribute__((destructor)) void
session_leave(void)
{
	const struct sysfs_session *s = session_current();
	struct stat st;

	/* A child of fork() has the parent's descriptor, and with it the parent's lock. */
	if (s == NULL || !s->is_own || s->pid != getpid() || fstat(s->fd, &st) != 0 ||
		!is_same(s, &st))
		return;
	sysfs_depth++;
	root_remove(AT_FDCWD, s->root);
	sysfs_depth--;
}
