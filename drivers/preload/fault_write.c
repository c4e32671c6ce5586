/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include "base/error_fd.h"
#include "preload/fault_write.h"

/* Signals that a write raises, which would end the program: a file at its limit (RLIMIT_FSIZE), a pipe without a
 * reader. */
static const int write_signals[] = {SIGXFSZ, SIGPIPE};
#define WRITE_SIGNALS (sizeof(write_signals) / sizeof(write_signals[0]))

void
fault_write_begin(struct fault_write_mask *m)
{
	sigset_t pending;

	sigpending(&pending);
	sigemptyset(&m->added);
	for (size_t i = 0; i < WRITE_SIGNALS; i++) {
		if (sigismember(&pending, write_signals[i]) == 0)
			sigaddset(&m->added, write_signals[i]);
	}
	pthread_sigmask(SIG_BLOCK, &m->added, &m->before);
}

void
fault_write_end(const struct fault_write_mask *m)
{
	const struct timespec none = {.tv_sec = 0};

	while (sigtimedwait(&m->added, NULL, &none) > 0) {
	}
	pthread_sigmask(SIG_SETMASK, &m->before, NULL);
}

void
fault_report(const char *what)
{
	struct fault_write_mask mask;

	fault_write_begin(&mask);
	dprintf(error_fd(), "rocade: faults: %s\n", what);
	fault_write_end(&mask);
}
