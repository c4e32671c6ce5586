/* SPDX-License-Identifier: BSD-3-Clause */
/* The filter of system calls, installed in a child process. */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "../../lib/emulated.h"
#include "child.h"
#include "syscall_filter.h"

static void
filter_start(bool port, enum filter_mode mode)
{
	char err[ERR_MAX];

	child_assert(filter_install(port, mode, err) == 0);
}

/* Sanitizers make system calls of their own, some of which the filter forbids. */
#ifdef ROCADE_INSTRUMENTED
#define INSTRUMENTED true
#else
#define INSTRUMENTED false
#endif

static bool port_wanted;
static body_fn forbidden;

static void
filtered_body(void)
{
	filter_start(port_wanted, FILTER_KILL);
	forbidden();
}

static bool
is_killed(bool port, body_fn body)
{
	int status;

	port_wanted = port;
	forbidden = body;
	status = child_status(filtered_body);
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS;
}

static void
execute(void)
{
	execl("/bin/true", "true", (char *)NULL);
}

static void
fork_process(void)
{
	if (syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) == 0)
		_exit(0);
}

static void
write_file(void)
{
	(void)open("/dev/null", O_WRONLY);
}

static void
create_file(void)
{
	(void)open("/tmp/rocade-test-never", O_RDONLY | O_CREAT, 0600);
}

static void
map_executable(void)
{
	(void)mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void
make_executable(void)
{
	void *page = mmap(
		NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	mprotect(page, 4096, PROT_READ | PROT_EXEC);
}

static void
internet_socket(void)
{
	(void)socket(AF_INET, SOCK_STREAM, 0);
}

static void
unix_socket(void)
{
	(void)socket(AF_UNIX, SOCK_STREAM, 0);
}

static void
read_at(void)
{
	char byte;

	(void)!pread(0, &byte, 1, 0);
}

static void
control_device(void)
{
	int n;

	(void)ioctl(0, 0x541b /* FIONREAD */, &n);
}

static void
trace_process(void)
{
	ptrace(PTRACE_ATTACH, getppid(), NULL, NULL);
}

static void
kill_process(void)
{
	kill(getppid(), 0);
}

static void
kill_thread_of_another(void)
{
	syscall(SYS_tgkill, getppid(), getppid(), 0);
}

static void
be_dumpable(void)
{
	prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
}

static void
change_user(void)
{
	(void)syscall(SYS_setresuid, -1, -1, -1);
}

TEST(filter_kills)
{
	static const body_fn never[] = {execute, fork_process, write_file, create_file,
		map_executable, make_executable, internet_socket, trace_process,
		kill_process, kill_thread_of_another, be_dumpable, change_user};
	static const body_fn with_a_port[] = {unix_socket, control_device, read_at};

	if (!filter_built)
		skip();
	for (size_t i = 0; i < sizeof(never) / sizeof(never[0]); i++) {
		assert_true(is_killed(false, never[i]));
		assert_true(is_killed(true, never[i]));
	}
	for (size_t i = 0; i < sizeof(with_a_port) / sizeof(with_a_port[0]); i++) {
		assert_true(is_killed(false, with_a_port[i]));
		assert_true(INSTRUMENTED || !is_killed(true, with_a_port[i]));
	}
}

static void *
thread_body(void *arg)
{
	(void)arg;
	pthread_setname_np(pthread_self(), "test");
	return NULL;
}

static void
useful_body(void)
{
	pthread_t thread;
	char *text = malloc(1000000), byte;
	int fd;

	filter_start(false, INSTRUMENTED ? FILTER_LOG : FILTER_KILL);
	child_assert(text != NULL);
	text = realloc(text, 20000000);
	child_assert(text != NULL);
	fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	child_assert(ftruncate(fd, 4096) == 0);
	child_assert(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) == 0);
	child_assert(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) !=
		     MAP_FAILED);
	fd = open("/proc/self/comm", O_RDONLY);
	child_assert(read(fd, &byte, 1) == 1);
	/* By clone(), as clone3() has failed with ENOSYS. */
	child_assert(pthread_create(&thread, NULL, thread_body, NULL) == 0);
	child_assert(pthread_join(thread, NULL) == 0);
	usleep(1);
	free(text);
}

TEST(filter_allows_what_the_daemon_does)
{
	if (!filter_built)
		skip();
	assert_child_succeeds(useful_body);
}

static void *
endless_thread(void *arg)
{
	(void)arg;
	while (true)
		usleep(1000);
	return NULL;
}

/* As EAL at its end: pthread_cancel() loads a library. */
static void
cancel_body(void)
{
	pthread_t thread;
	void *result;

	filter_start(true, INSTRUMENTED ? FILTER_LOG : FILTER_KILL);
	child_assert(pthread_create(&thread, NULL, endless_thread, NULL) == 0);
	child_assert(pthread_cancel(thread) == 0);
	child_assert(pthread_join(thread, &result) == 0);
	child_assert(result == PTHREAD_CANCELED);
}

TEST(eal_can_cancel_its_threads)
{
	if (!filter_built)
		skip();
	assert_child_succeeds(cancel_body);
}

static void
abort_body(void)
{
	filter_start(false, FILTER_KILL);
	signal(SIGABRT, SIG_DFL);
	abort();
}

TEST(aborting_is_no_forbidden_call)
{
	int status = child_status(abort_body);

	assert_true(INSTRUMENTED || (WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT));
}

static void
lenient_body(void)
{
	filter_start(false, FILTER_LOG);
	child_assert(socket(AF_INET, SOCK_STREAM, 0) >= 0);
}

static void
unfiltered_body(void)
{
	filter_start(false, FILTER_OFF);
	child_assert(prctl(PR_GET_SECCOMP, 0, 0, 0, 0) == 0);
	child_assert(socket(AF_INET, SOCK_STREAM, 0) >= 0);
}

TEST(other_modes_kill_nothing)
{
	assert_child_succeeds(lenient_body);
	assert_child_succeeds(unfiltered_body);
}

static atomic_bool installed;

static void *
late_thread(void *arg)
{
	(void)arg;
	while (!atomic_load(&installed))
		sched_yield();
	internet_socket();
	return NULL;
}

static void
threads_body(void)
{
	pthread_t thread;

	child_assert(pthread_create(&thread, NULL, late_thread, NULL) == 0);
	filter_start(false, FILTER_KILL);
	atomic_store(&installed, true);
	pthread_join(thread, NULL);
}

TEST(filter_binds_threads_that_run_already)
{
	int status;

	if (!filter_built)
		skip();
	status = child_status(threads_body);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS);
}

TEST_NONE_IF_EMULATED
