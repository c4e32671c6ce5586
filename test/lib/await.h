/* SPDX-License-Identifier: BSD-3-Clause */
/* Waiting in tests, for a condition and never for a duration: the only place of the tests in C that
 * sleeps. test/tidy checks that. */
#ifndef ROCADE_TEST_AWAIT_H
#define ROCADE_TEST_AWAIT_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * A wait fails after AWAIT_TIMES times what this machine needs for a fixed piece of work: 1,000 wake-ups
 * of a thread, and a second of CPU. That is measured when the limit seems to be reached: a machine that is
 * busy needs longer for both. The first measurement is after AWAIT_TIMES seconds, which is the least
 * that the limit can be.
 */
#define AWAIT_TIMES 20

/* A wait; all zeros begins one. */
struct await {
	unsigned pauses;
	uint64_t begin_ns, limit_ns;
	uint64_t (*work_ns)(void); /* NULL: measures the machine */
};

/* Lets other threads run for a moment. Returns false when the limit is reached; then the condition has
 * to be looked at once more, because the measurement took long. */
bool await_pause(struct await *a);

/* The same for loops that are to poll without a pause. */
bool await_goes_on(struct await *a);

/* Sleeps for a moment, so that other threads and processes run ahead. No result may depend on how far. */
void others_run(void);
void others_run_us(unsigned us);
struct pollfd;
/* As poll(2). No result may depend on whether it ends by time. */
int others_run_until(struct pollfd *fds, unsigned count, int ms);

/* Waits for the condition. Its value is the condition's: false when the limit was reached. */
#define awaited(condition)                                                               \
	__extension__({                                                                  \
		struct await await_ = {.pauses = 0};                                     \
		bool holds_ = (condition);                                               \
		for (bool more_ = true; !holds_ && more_; holds_ = (condition))          \
			more_ = await_pause(&await_);                                    \
		holds_;                                                                  \
	})

/* The same, without a pause: the step brings the condition about, such as a poll of an engine. */
#define awaited_by(step, condition)                                                      \
	__extension__({                                                                  \
		struct await await_ = {.pauses = 0};                                     \
		bool holds_ = (condition);                                               \
		for (bool more_ = true; !holds_ && more_; holds_ = (condition)) {        \
			step;                                                            \
			more_ = await_goes_on(&await_);                                  \
		}                                                                        \
		holds_;                                                                  \
	})

/* For the thread of the test: it fails when the limit is reached. */
#define await(condition)                                                                 \
	do {                                                                             \
		if (!awaited(condition))                                                 \
			fail_msg("waited in vain: %s", #condition);                      \
	} while (0)
#define await_by(step, condition)                                                        \
	do {                                                                             \
		if (!awaited_by(step, condition))                                        \
			fail_msg("waited in vain: %s", #condition);                      \
	} while (0)

/* Sleeps in poll(2) until the descriptor is readable. Returns false when the limit is reached. */
bool await_readable(int fd);

/* Between the two calls the process is aborted when the limit is reached: for calls that may wait for
 * each other for ever. */
struct await_guard {
	pthread_t thread;
	int ends[2];
};

void await_guard_begin(struct await_guard *guard);
void await_guard_end(struct await_guard *guard);

/* SIGPROF comes when the process has used this many times AWAIT_TIMES seconds of CPU, in which a busy
 * machine does as much as another: for what may have no end. A later call begins anew. */
void cpu_limit_begin(unsigned times);

/* Waits for the end of a child, which is killed when the limit is reached. Returns how it has ended, as
 * waitpid(2) tells; -1: there is no such child. */
int await_child(pid_t child);

/* Whether a thread of this process sleeps in the kernel: it did so all the time between two looks. */
bool thread_sleeps(pid_t tid);

/* How many times this thread of this process has gone to sleep. */
uint64_t thread_sleep_count(pid_t tid);

/* Whether all threads but the caller's sleep: none has begun, run or ended between two looks. */
bool threads_asleep(void);

/*
 * Waits until all threads but the caller's sleep. For a fork() whose child allocates or calls exit():
 * the allocator of gcc 12's AddressSanitizer has no handler for fork(), and the child would wait for ever
 * for a lock that another thread held. Returns false when the limit is reached. It is no cancellation
 * point.
 */
bool threads_asleep_await(void);

#endif
