/* SPDX-License-Identifier: BSD-3-Clause */
/* The capabilities and the user that the daemon gives up, in a child process. */
#include <errno.h>
#include <grp.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#ifdef HAVE_SECCOMP
#include <seccomp.h>
#endif

#include "../../lib/emulated.h"
#include "child.h"
#include "privileges.h"

#define THREADS 4
#define UID 65533 /* no user of the machine */
#define GID 65532

/* Reads a number from /proc/PID/status of a thread. */
static unsigned long long
status_read(pid_t thread, const char *field, int base)
{
	char path[64], line[256];
	unsigned long long value = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/status", (int)thread);
	file = fopen(path, "r");
	child_assert(file != NULL);
	while (fgets(line, sizeof(line), file) != NULL) {
		if (strncmp(line, field, strlen(field)) == 0)
			value = strtoull(line + strlen(field) + 1, NULL, base);
	}
	fclose(file);
	return value;
}

static atomic_int thread_ids[THREADS];

/* Waits as EAL's threads do: in a system call. */
static void *
waiting_thread(void *id)
{
	int ends[2];
	char byte;

	child_assert(pipe(ends) == 0);
	atomic_store((atomic_int *)id, (int)syscall(SYS_gettid));
	(void)!read(ends[0], &byte, 1);
	return NULL;
}

static void
threads_start(void)
{
	pthread_t thread;

	for (unsigned i = 0; i < THREADS; i++) {
		child_assert(pthread_create(
				     &thread, NULL, waiting_thread, &thread_ids[i]) == 0);
		while (atomic_load(&thread_ids[i]) == 0)
			sched_yield();
	}
}

static void
powerless_check(pid_t thread, uid_t uid, gid_t gid)
{
	static const char *const sets[] = {"CapInh:", "CapPrm:", "CapEff:", "CapAmb:"};

	for (unsigned i = 0; i < 4; i++)
		child_assert(status_read(thread, sets[i], 16) == 0);
	child_assert(status_read(thread, "NoNewPrivs:", 10) == 1);
	child_assert(status_read(thread, "Uid:", 10) == uid);
	child_assert(status_read(thread, "Gid:", 10) == gid);
	if (geteuid() != 0)
		return;
	child_assert(status_read(thread, "CapBnd:", 16) == 0);
}

static void
drop_as(const struct daemon_user *user)
{
	char err[ERR_MAX];

	threads_start();
	child_assert(privileges_drop(user, err) == 0);
	powerless_check(getpid(), geteuid(), getegid());
	for (unsigned i = 0; i < THREADS; i++)
		powerless_check(thread_ids[i], geteuid(), getegid());
	child_assert(setuid(0) != 0 || getuid() == 0);
}

static void
same_user_body(void)
{
	uid_t before = geteuid();

	drop_as(&(struct daemon_user){.wanted = false});
	child_assert(geteuid() == before);
}

TEST(capabilities_go_in_every_thread)
{
	assert_child_succeeds(same_user_body);
}

static void
other_user_body(void)
{
	gid_t group = 0;

	child_assert(setgroups(1, &group) == 0);
	drop_as(&(struct daemon_user){.wanted = true, .uid = UID, .gid = GID});
	child_assert(geteuid() == UID && getuid() == UID && getegid() == GID);
	child_assert(getgroups(0, NULL) == 0);
}

static void
refused_body(void)
{
	struct daemon_user root = {.wanted = true},
			   self = {.wanted = true, .uid = geteuid(), .gid = getegid()};
	char err[ERR_MAX];

	if (geteuid() == 0) {
		child_assert(
			setresgid(GID, GID, GID) == 0 && setresuid(UID, UID, UID) == 0);
		self = (struct daemon_user){.wanted = true, .uid = UID, .gid = GID};
	}
	child_assert(privileges_drop(&root, err) == -1);
	child_assert(strstr(err, "only root can become another user") != NULL);
	child_assert(privileges_drop(&self, err) == 0);
}

TEST(only_root_becomes_another_user)
{
	if (geteuid() == 0)
		assert_child_succeeds(other_user_body);
	assert_child_succeeds(refused_body);
}

static void *
deaf_thread(void *id)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	return waiting_thread(id);
}

static void
deaf_body(void)
{
	char err[ERR_MAX];
	pthread_t thread;

	child_assert(pthread_create(&thread, NULL, deaf_thread, &thread_ids[0]) == 0);
	while (atomic_load(&thread_ids[0]) == 0)
		sched_yield();
	child_assert(privileges_drop(&(struct daemon_user){.wanted = false}, err) == -1);
	child_assert(strstr(err, "does not give up its capabilities") != NULL);
}

TEST(thread_that_keeps_its_capabilities_is_an_error)
{
	assert_child_succeeds(deaf_body);
}

#ifdef HAVE_SECCOMP
/* As in a container that forbids capset(2). */
static void
forbidden_body(void)
{
	scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ALLOW);
	char err[ERR_MAX];

	child_assert(
		seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(capset), 0) == 0);
	child_assert(seccomp_load(ctx) == 0);
	seccomp_release(ctx);
	child_assert(privileges_drop(&(struct daemon_user){.wanted = false}, err) == -1);
	child_assert(strstr(err, "does not give up its capabilities") != NULL);
}
#endif

TEST(capabilities_that_stay_are_an_error)
{
#ifdef HAVE_SECCOMP
	if (geteuid() == 0)
		assert_child_succeeds(forbidden_body);
#endif
}

TEST(users_are_found_by_name_and_number)
{
	struct daemon_user a;
	char err[ERR_MAX];

	assert_int_equal(daemon_user_find(NULL, &a, err), 0);
	assert_false(a.wanted);
	assert_int_equal(daemon_user_find("root", &a, err), 0);
	assert_true(a.wanted && a.uid == 0 && a.gid == 0);
	assert_string_equal(a.name, "root");
	assert_int_equal(daemon_user_find("0:7", &a, err), 0);
	assert_true(a.wanted && a.uid == 0 && a.gid == 7);
	assert_string_equal(a.name, "root");
	assert_int_equal(daemon_user_find("65533", &a, err), 0);
	assert_true(a.wanted && a.uid == UID && a.gid == UID && a.name[0] == '\0');
	assert_int_equal(daemon_user_find("65533:root", &a, err), 0);
	assert_true(a.uid == UID && a.gid == 0);
	assert_int_equal(daemon_user_find("nobody-here", &a, err), -1);
	assert_non_null(strstr(err, "user: no user 'nobody-here': expected USER"));
	assert_int_equal(daemon_user_find("root:nobody-here", &a, err), -1);
	assert_non_null(strstr(err, "user: no group 'nobody-here': expected USER"));
	assert_int_equal(daemon_user_find("4294967295", &a, err), -1);
	assert_int_equal(daemon_user_find("", &a, err), -1);
	assert_int_equal(daemon_user_find(":root", &a, err), -1);
}

TEST_NONE_IF_EMULATED
