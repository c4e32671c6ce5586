/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The tree is a directory rocade-sysfs-UID-KEY. It lives as long as the daemon of its device: a program may
 * have its working directory in it, or pass it on to others by fork(2) and exec(3), and no lock shows
 * that. Then it goes with the last process that uses it, or is removed by the next one of the user that makes
 * a tree (verbs/sysfs_sweep.h). A program that embeds Rocade has its own tree, and removes it at its end. So has a process
 * with links of its own, and a child that it forks.
 */
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
#define TRIES 16     /* each one fails only if another process ends just then */

struct sysfs_session {
	char root[TREE_PATH_MAX];
	int fd;
	dev_t dev;
	ino_t ino;
	pid_t pid;      /* that has opened fd */
	uid_t uid;      /* of the tree */
	unsigned links; /* served_by.links() */
	bool is_own;    /* no daemon, or links of its own */
	struct sysfs_session *older;
};

__thread unsigned sysfs_depth;

/* Never freed: other threads may use the path of an earlier one. */
static struct sysfs_session *current;

/* The current one after session_leave(), for threads that go on until the process ends. */
static struct sysfs_session left;

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

/* Opens the tree, if there is one of this user, and keeps a lock on it. Returns 0 or -errno. */
static int
root_lock(struct sysfs_session *s, int folder)
{
	int fd = sysfs_tree_lock(folder, strrchr(s->root, '/') + 1, LOCK_SH), high;
	struct stat st;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) != 0) {
		close(fd);
		return -EIO;
	}
	high = fcntl(fd, F_DUPFD_CLOEXEC, FD_LEAST);
	if (high >= 0)
		close(fd);
	s->fd = high >= 0 ? high : fd;
	s->dev = st.st_dev;
	s->ino = st.st_ino;
	s->pid = getpid();
	return 0;
}

static unsigned
links_now(void)
{
	return served_by.links != NULL ? served_by.links() : 0;
}

/* is_own: it notes no daemon, so that it is swept if the process ends without removing it. */
static int
devices_add(int root, bool is_own)
{
	struct device_facts facts;
	int rc = 0;

	for (unsigned i = 0; rc == 0 && served_by.facts(i, true, &facts); i++) {
		rc = sysfs_device_add(root, &facts);
		if (rc == 0 && i == 0 && !is_own)
			rc = sysfs_daemon_note(root, &facts);
	}
	return rc;
}

/* Makes the tree under another name, and gives it its own when it is whole. */
static int
root_make(int folder, const char *name, bool is_own)
{
	char made[160];
	int fd, rc;

	snprintf(made, sizeof(made), "%s.%d.new", name, (int)gettid());
	if (mkdirat(folder, made, 0700) != 0)
		return -errno;
	fd = sysfs_private_open(folder, made);
	if (fd < 0)
		return fd;
	rc = flock(fd, LOCK_SH) == 0 ? sysfs_tree_make(fd) : -errno;
	if (rc == 0)
		rc = devices_add(fd, is_own);
	if (rc == 0 && renameat(folder, made, folder, name) != 0)
		rc = -errno;
	if (rc != 0)
		sysfs_tree_remove(folder, made);
	close(fd);
	/* Another process was faster. */
	return rc == -ENOTEMPTY || rc == -EEXIST ? 0 : rc;
}

/* By which processes agree on a tree: the device of a daemon has the same number in all of them. unshared: no other process
 * gets this key. */
static uint64_t
key_of(const struct device_facts *facts, bool unshared)
{
	uint64_t key = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
	const char *at = facts->name;
	uint64_t own = 0;

	if (unshared && getrandom(&own, sizeof(own), 0) != sizeof(own))
		own = (uint64_t)getpid();
	for (; *at != '\0'; at++)
		key = (key ^ (uint8_t)*at) * UINT64_C(0x100000001b3);
	return ((key ^ facts->guid) + facts->instance) ^ own;
}

static int
root_join(struct sysfs_session *s, int folder, const char *path,
	const struct device_facts *facts)
{
	int rc = -EAGAIN;

	if (snprintf(s->root, sizeof(s->root), "%s" TREE_NAME "%u-%016" PRIx64, path,
		    (unsigned)geteuid(),
		    key_of(facts, served_by.several || s->links != 0)) >=
		(int)sizeof(s->root) - 32)
		return -ENAMETOOLONG;
	for (unsigned i = 0; i < TRIES && (rc == -EAGAIN || rc == -ENOENT); i++) {
		rc = root_lock(s, folder);
		if (rc != -ENOENT)
			continue;
		sysfs_sweep(folder, path, facts);
		rc = root_make(folder, strrchr(s->root, '/') + 1, s->is_own);
		if (rc == 0)
			rc = -EAGAIN;
	}
	return rc;
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
	static bool said;
	struct device_facts facts;
	struct sysfs_session *s;
	const char *path;
	char line[256];
	int rc = -ENOENT, folder;

	if (!served_by.facts(0, false, &facts) || is_mounted(facts.name))
		return NULL;
	s = calloc(1, sizeof(*s));
	if (s == NULL)
		return NULL;
	s->uid = geteuid();
	s->links = links_now();
	s->is_own = facts.socket[0] == '\0' || s->links != 0;
	for (unsigned i = 0; folder = sysfs_folder_open(i, &path), path != NULL; i++) {
		if (path[0] == '/')
			rc = folder;
		if (folder < 0)
			continue;
		rc = root_join(s, folder, path, &facts);
		close(folder);
		if (rc == 0)
			return s;
	}
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
 * another user does not reach it. Rules of faults may have come, and with them links of its own. */
static bool
is_usable(const struct sysfs_session *s)
{
	struct stat st;

	return s->uid == geteuid() && s->links == links_now() &&
	       lstat(s->root, &st) == 0 && is_same(s, &st) && fstat(s->fd, &st) == 0 &&
	       is_same(s, &st);
}

static void
root_release(const struct sysfs_session *s)
{
	struct stat st;

	/* The program may have closed the descriptor, and opened another file. */
	if (fstat(s->fd, &st) == 0 && is_same(s, &st))
		close(s->fd);
}

/* The process has no lock on the tree any more. */
static void
root_remove(const struct sysfs_session *s)
{
	if (s->is_own)
		sysfs_tree_withdraw(AT_FDCWD, s->root);
	else
		sysfs_sweep_one(AT_FDCWD, s->root);
}

const char *
sysfs_session_root(void)
{
	struct sysfs_session *s = session_current(), *before = s;
	int state;

	if (s == &left)
		return NULL;
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
	/* Another thread has done so, or the process ends. */
	close(s->fd);
	if (before == &left)
		root_remove(s);
	free(s);
	return before != &left ? before->root : NULL;
}

void
sysfs_session_refresh(const char *path)
{
	const struct sysfs_session *s = session_current();
	struct device_facts facts;
	struct sysfs_live live;

	if (s == NULL || s == &left || s->links != links_now() ||
		!sysfs_live_find(path, &live))
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

/* Other threads may still use the number, so it does not become that of another file. Returns false if the
 * lock stays. */
static bool
lock_leave(const struct sysfs_session *s)
{
	int none = open("/dev/null", O_RDONLY | O_CLOEXEC);
	bool done = none >= 0 && syscall(SYS_dup3, none, s->fd, O_CLOEXEC) >= 0;

	if (none >= 0)
		close(none);
	return done;
}

/* The tree goes with the program that it is of, or with the last one after the daemon. */
static __attribute__((destructor)) void
session_leave(void)
{
	/* Other threads may look for the tree, and make one that stays. */
	struct sysfs_session *s = __atomic_exchange_n(&current, &left, __ATOMIC_ACQUIRE);
	struct stat st;

	left.older = s;

	/* A child of fork() has the parent's descriptor, and with it the parent's lock. */
	if (s == NULL || s->pid != getpid() || fstat(s->fd, &st) != 0 || !is_same(s, &st))
		return;
	sysfs_depth++;
	if (lock_leave(s))
		root_remove(s);
	sysfs_depth--;
}
