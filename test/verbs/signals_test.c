/* SPDX-License-Identifier: BSD-3-Clause */
/* An open device with the MR fault handler changes nothing of the application's own handling of SIGSEGV and
 * SIGBUS: sigaction(2). Each test runs a child, whose end says what it saw. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "case.h"
#include "verbs_pair.h"

#define PAGE 4096
#define SEEN 40 /* exit status of a handler that found what it should */
#define NOT_SEEN 41
#define ENDLESS 42

static struct verbs_pair pair;
static volatile unsigned calls;

static void
device_open(void)
{
	struct verbs_pair_conf conf = {.depth = 4, .mr_fault_handler = true};

	pair_open(&pair, &conf);
}

static void
handle(int sig, void (*handler)(int), int flags, int masked)
{
	struct sigaction action = {.sa_handler = handler, .sa_flags = flags};

	sigemptyset(&action.sa_mask);
	if (masked != 0)
		sigaddset(&action.sa_mask, masked);
	sigaction(sig, &action, NULL);
}

static void
fault(int sig)
{
	volatile uint8_t *page = (void *)(uintptr_t)PAGE; /* never mapped */
	int file;

	if (sig == SIGBUS) {
		file = memfd_create("empty", MFD_CLOEXEC);
		page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	}
	*page = 1;
}

/* Returns the signal that ended the child, or its negative exit status. */
static int
end_of(void (*child)(int sig), int sig)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		signal(SIGSEGV, SIG_DFL);
		signal(SIGBUS, SIG_DFL);
		child(sig);
		_exit(0);
	}
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFSIGNALED(status) ? WTERMSIG(status) : -WEXITSTATUS(status);
}

static void
count(int sig)
{
	if (++calls > 3)
		_exit(ENDLESS);
}

static void
fault_with_one_shot_handler(int sig)
{
	handle(sig, count, SA_RESETHAND, 0);
	device_open();
	fault(sig);
}

static void
send_with_one_shot_handler(int sig)
{
	handle(sig, count, SA_RESETHAND, 0);
	device_open();
	kill(getpid(), sig);
	if (calls != 1)
		_exit(NOT_SEEN);
	kill(getpid(), sig);
}

/* The handler was called; the device is closed, and opened again with another one. */
static void
close_behind_one_shot_handler(int sig)
{
	struct sigaction now;

	handle(sig, count, SA_RESETHAND, 0);
	device_open();
	kill(getpid(), sig);
	pair_close(&pair);
	sigaction(sig, NULL, &now);
	if (calls != 1 || now.sa_handler != SIG_DFL)
		_exit(NOT_SEEN);
	handle(sig, count, SA_RESETHAND, 0);
	device_open();
	kill(getpid(), sig);
	_exit(calls == 2 ? SEEN : NOT_SEEN);
}

TEST(one_shot_handler_is_called_once)
{
	static const int signals[] = {SIGSEGV, SIGBUS};

	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(
			end_of(fault_with_one_shot_handler, signals[i]), signals[i]);
		assert_int_equal(
			end_of(send_with_one_shot_handler, signals[i]), signals[i]);
		assert_int_equal(
			end_of(close_behind_one_shot_handler, signals[i]), -SEEN);
	}
}

static void
look_at_mask(int sig)
{
	sigset_t blocked;

	pthread_sigmask(SIG_BLOCK, NULL, &blocked);
	_exit(sigismember(&blocked, SIGUSR2) == 1 && sigismember(&blocked, sig) == 1 &&
				sigismember(&blocked, SIGUSR1) == 0
			? SEEN
			: NOT_SEEN);
}

static void
fault_with_mask(int sig)
{
	handle(sig, look_at_mask, 0, SIGUSR2);
	device_open();
	fault(sig);
}

TEST(signals_of_sa_mask_are_blocked)
{
	assert_int_equal(end_of(fault_with_mask, SIGSEGV), -SEEN);
	assert_int_equal(end_of(fault_with_mask, SIGBUS), -SEEN);
}

static void
fault_again(int sig)
{
	if (calls++ != 0)
		_exit(SEEN);
	fault(sig);
}

static void
nest(int sig)
{
	handle(sig, fault_again, SA_NODEFER, 0);
	device_open();
	fault(sig);
}

/* sa_mask blocks it in spite of the flag. */
static void
nest_masked(int sig)
{
	handle(sig, fault_again, SA_NODEFER, sig);
	device_open();
	fault(sig);
}

static void
nest_deferred(int sig)
{
	handle(sig, fault_again, 0, 0);
	device_open();
	fault(sig);
}

/* A fault in the handler enters it again with SA_NODEFER, and otherwise ends the process. */
TEST(handler_is_entered_again_if_it_asks)
{
	assert_int_equal(end_of(nest, SIGSEGV), -SEEN);
	assert_int_equal(end_of(nest, SIGBUS), -SEEN);
	assert_int_equal(end_of(nest_masked, SIGSEGV), SIGSEGV);
	assert_int_equal(end_of(nest_deferred, SIGSEGV), SIGSEGV);
}

static void
restart(int sig)
{
	struct sigaction now;

	device_open();
	sigaction(sig, NULL, &now);
	_exit(now.sa_flags & SA_RESTART ? SEEN : NOT_SEEN);
}

static void
handle_and_restart(int sig)
{
	handle(sig, count, SA_RESTART, 0);
	restart(sig);
}

static void
handle_and_interrupt(int sig)
{
	handle(sig, count, 0, 0);
	restart(sig);
}

static void
ignore(int sig)
{
	signal(sig, SIG_IGN);
	restart(sig);
}

/* A signal that was sent interrupts calls of the system if it would without the device. */
TEST(calls_are_restarted_as_before)
{
	assert_int_equal(end_of(handle_and_restart, SIGSEGV), -SEEN);
	assert_int_equal(end_of(handle_and_interrupt, SIGSEGV), -NOT_SEEN);
	assert_int_equal(end_of(ignore, SIGBUS), -SEEN);
}
