/* SPDX-License-Identifier: BSD-3-Clause */
/* A case in a child process: it gives up what it cannot get back, and the kernel may kill it. */
#ifndef ROCADE_TEST_CHILD_H
#define ROCADE_TEST_CHILD_H

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "await.h"
#include "case.h"

typedef void (*body_fn)(void);

/* Runs the body in a child process. Returns how it has ended: await_child(). */
static inline int
child_status(body_fn body)
{
	pid_t child = fork();

	assert_true(child >= 0);
	if (child == 0) {
		signal(SIGSYS, SIG_DFL); /* of a sanitizer */
		body();
		_exit(0);
	}
	return await_child(child);
}

/* In a child: exits with a number that tells the line. */
#define child_assert(is)                                                                 \
	((is) ? (void)0 : _exit(__LINE__ % 256 != 0 ? __LINE__ % 256 : 1))

#define assert_child_succeeds(body) assert_int_equal(child_status(body), 0)

#endif
