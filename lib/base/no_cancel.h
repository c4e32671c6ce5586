/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pthread_cancel(3) ends a thread at its next cancellation point: a function of libc such as
 * write(2) or close(2), whether it blocks or not. A thread of the application that ends there
 * with a lock of ours keeps the lock for ever. So no call with a lock held is a cancellation
 * point. On the data path that takes the system call itself, of which libc makes none.
 */
#ifndef ROCADE_BASE_NO_CANCEL_H
#define ROCADE_BASE_NO_CANCEL_H

#include <pthread.h>
#include <stddef.h>

#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

/* write(2). */
static inline ssize_t
no_cancel_write(int fd, const void *bytes, size_t len)
{
	return syscall(SYS_write, fd, bytes, len);
}

/* send(2). */
static inline ssize_t
no_cancel_send(int fd, const void *bytes, size_t len, int flags)
{
	return syscall(SYS_sendto, fd, bytes, len, flags, NULL, 0);
}

/* For the control path: from here on the thread has no cancellation points. Returns the state for
 * no_cancel_end(). */
static inline int
no_cancel_begin(void)
{
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	return state;
}

/* Not a cancellation point itself: a pending cancellation takes effect at the thread's next one. */
static inline void
no_cancel_end(int state)
{
	pthread_setcancelstate(state, NULL);
}

#endif
