/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The daemon drops its privileges once devices, sockets and hugepages are open and the
 * interface receives multicast. No port that the tests use needs a capability after that.
 *
 * Capabilities and "no new privileges" belong to a thread, and EAL has started threads by
 * then. So each thread drops its own, in a handler of a signal.
 */
#include <dirent.h>
#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <common/number.h>

#include "privileges.h"

#define ID_MAX (UINT32_MAX - 1) /* the highest number is no ID: setresuid(2) */
#define THREADS_MAX 256
#define THREAD_WAIT_US 1000
#define THREAD_WAITS 5000 /* until a thread must have answered */
/* This signal is ignored by default: if it comes late it does no harm. */
#define THREAD_SIGNAL SIGURG

static int
group_find(const char *text, gid_t *gid)
{
	const struct group *group = getgrnam(text);
	uint64_t number;

	if (group != NULL)
		*gid = group->gr_gid;
	else if (parse_number(text, 0, ID_MAX, &number))
		*gid = (gid_t)number;
	else
		return -1;
	return 0;
}

int
daemon_user_find(const char *text, struct daemon_user *user, char err[ERR_MAX])
{
	const char *colon = text != NULL ? strchr(text, ':') : NULL;
	const struct passwd *entry;
	char name[sizeof(user->name)];
	uint64_t number;

	memset(user, 0, sizeof(*user));
	if (text == NULL)
		return 0;
	snprintf(name, sizeof(name), "%.*s",
		(int)(colon != NULL ? (size_t)(colon - text) : strlen(text)), text);
	entry = getpwnam(name);
	if (entry == NULL && parse_number(name, 0, ID_MAX, &number)) {
		user->uid = (uid_t)number;
		user->gid = (gid_t)number;
		entry = getpwuid(user->uid);
	} else if (entry == NULL) {
		return error_set(err,
			"user: no user '%s': expected USER or USER:GROUP, names or numbers "
			"of this machine",
			name);
	}
	if (entry != NULL) {
		user->uid = entry->pw_uid;
		user->gid = entry->pw_gid;
		snprintf(user->name, sizeof(user->name), "%s", entry->pw_name);
	}
	if (colon != NULL && group_find(colon + 1, &user->gid) != 0)
		return error_set(err,
			"user: no group '%s': expected USER or USER:GROUP, names or "
			"numbers of this machine",
			colon + 1);
	user->wanted = true;
	return 0;
}

/* Empties the bounding set: neither the thread nor what it executes can get a
 * capability back. Without CAP_SETPCAP this has no effect, and "no new privileges" alone
 * prevents it. */
static void
bounding_set_drop(void)
{
	for (unsigned long cap = 0; prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++)
		(void)prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
}

static atomic_bool capabilities_left; /* in a thread that has tried to drop them */

static void
capabilities_drop(void)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct caps[_LINUX_CAPABILITY_U32S_3];
	bool left = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0;

	memset(caps, 0, sizeof(caps));
	(void)syscall(SYS_capset, &head, caps); /* ambient ones go with the permitted */
	left |= syscall(SYS_capget, &head, caps) != 0;
	for (unsigned i = 0; i < _LINUX_CAPABILITY_U32S_3; i++)
		left |= (caps[i].permitted | caps[i].inheritable) != 0;
	if (left)
		atomic_store(&capabilities_left, true);
}

static void (*thread_task)(void);
static atomic_uint threads_done;

static void
on_thread_signal(int number)
{
	int err = errno;

	(void)number;
	thread_task();
	errno = err;
	atomic_fetch_add(&threads_done, 1);
}

/* Returns the number of threads, 0 if they cannot be listed. */
static unsigned
threads_list(pid_t threads[THREADS_MAX])
{
	DIR *dir = opendir("/proc/self/task");
	const struct dirent *entry;
	unsigned count = 0;

	while (dir != NULL && (entry = readdir(dir)) != NULL && count < THREADS_MAX) {
		if (entry->d_name[0] != '.')
			threads[count++] = (pid_t)atoi(entry->d_name);
	}
	if (dir != NULL)
		closedir(dir);
	return count < THREADS_MAX ? count : 0;
}

/* Returns whether the thread has run the task, or has ended. */
static bool
thread_run(pid_t thread)
{
	unsigned before = atomic_load(&threads_done);

	if (syscall(SYS_tgkill, getpid(), thread, THREAD_SIGNAL) != 0)
		return errno == ESRCH;
	for (unsigned i = 0; i < THREAD_WAITS; i++) {
		if (atomic_load(&threads_done) != before ||
			syscall(SYS_tgkill, getpid(), thread, 0) != 0)
			return true;
		usleep(THREAD_WAIT_US);
	}
	return false;
}

/* Runs the task in every thread. Returns whether each has run it. */
static bool
threads_run(void (*task)(void))
{
	struct sigaction action = {.sa_handler = on_thread_signal,
				 .sa_flags = SA_RESTART},
			 before;
	pid_t threads[2][THREADS_MAX];
	unsigned count = 0, seen;
	bool good = true, same = false;

	thread_task = task;
	sigaction(THREAD_SIGNAL, &action, &before);
	/* Until the list is the same twice: a thread may have started another one
	 * before its turn came. */
	for (unsigned round = 0; good && !same; round++) {
		pid_t *now = threads[round % 2];

		seen = count;
		count = threads_list(now);
		good = count != 0;
		same = count == seen &&
		       memcmp(threads[0], threads[1], count * sizeof(*now)) == 0;
		for (unsigned i = 0; i < count && good && !same; i++)
			good = thread_run(now[i]);
	}
	sigaction(THREAD_SIGNAL, &before, NULL);
	return good;
}

/* setresuid() and the like of glibc change the IDs of all threads. */
static int
daemon_user_become(const struct daemon_user *user, char err[ERR_MAX])
{
	int rc;

	if (!user->wanted ||
		(geteuid() != 0 && user->uid == geteuid() && user->gid == getegid()))
		return 0;
	if (geteuid() != 0)
		return error_set(err, "user: only root can become another user");
	rc = user->name[0] != '\0' ? initgroups(user->name, user->gid)
				   : setgroups(0, NULL);
	if (rc != 0 || setresgid(user->gid, user->gid, user->gid) != 0 ||
		setresuid(user->uid, user->uid, user->uid) != 0)
		return error_set(err, "user: cannot become user %u, group %u: %s",
			(unsigned)user->uid, (unsigned)user->gid, strerror(errno));
	return 0;
}

int
privileges_drop(const struct daemon_user *user, char err[ERR_MAX])
{
	if (!threads_run(bounding_set_drop))
		return error_set(err, "a thread does not give up its capabilities");
	if (daemon_user_become(user, err) != 0)
		return -1;
	if (!threads_run(capabilities_drop) || atomic_load(&capabilities_left))
		return error_set(err, "a thread does not give up its capabilities");
	return 0;
}
