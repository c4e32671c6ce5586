/* SPDX-License-Identifier: BSD-3-Clause */
/* A thread that pthread_cancel(3) ends at its first cancellation point. It calls a function first,
 * which has none. */
#ifndef ROCADE_TEST_CANCELLED_H
#define ROCADE_TEST_CANCELLED_H

#include <pthread.h>
#include <stdbool.h>

struct cancelled {
	void (*fn)(void *arg);
	void *arg;
	bool returned;
};

/* For pthread_create(). */
static inline void *
cancelled_main(void *arg)
{
	struct cancelled *c = arg;

	pthread_cancel(pthread_self());
	c->fn(c->arg);
	c->returned = true;
	pthread_testcancel();
	return NULL;
}

/* Waits for the end of the thread. Returns whether the function returned, and the thread ended
 * after that. */
static inline bool
cancelled_after_return(pthread_t thread, const struct cancelled *c)
{
	void *end;

	return pthread_join(thread, &end) == 0 && c->returned && end == PTHREAD_CANCELED;
}

#endif
