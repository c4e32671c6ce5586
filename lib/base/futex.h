/* SPDX-License-Identifier: BSD-3-Clause */
/* futex(2), futex_waitv(2): a thread sleeps until one of several words changes. */
#ifndef ROCADE_BASE_FUTEX_H
#define ROCADE_BASE_FUTEX_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

/* As in the headers of Linux 5.16, which has futex_waitv(2), and later. */
#define FUTEX_WORD_32 2
#define FUTEX_WORD_PRIVATE 128
#ifdef SYS_futex_waitv
#define FUTEX_WAITV_CALL SYS_futex_waitv
#else
#define FUTEX_WAITV_CALL 449
#endif

#define FUTEX_WORDS_MAX 128 /* of one wait */

/* struct futex_waitv. */
struct futex_word {
	uint64_t seen; /* the value with which the thread sleeps */
	uint64_t address;
	uint32_t flags;
	uint32_t reserved;
};

/* shared: another process changes the word, in memory that it shares with this one. The
 * sleeper needs to read the word only. */
static inline struct futex_word
futex_word(const uint32_t *word, uint32_t seen, bool shared)
{
	return (struct futex_word){.seen = seen,
		.address = (uintptr_t)word,
		.flags = FUTEX_WORD_32 | (shared ? 0 : FUTEX_WORD_PRIVATE)};
}

/* Sleeps while all words have the values seen, until futex_wake() of one. Returns 0,
 * -EINTR after a signal whose handler does not restart calls (SA_RESTART), or -ENOSYS or
 * -EPERM: the kernel, or a filter of system calls, does not offer that. */
static inline int
futex_wait_any(const struct futex_word *words, unsigned count)
{
	/* EFAULT: another thread has unmapped a word since. */
	if (syscall(FUTEX_WAITV_CALL, words, count, 0, NULL, 0) >= 0 || errno == EAGAIN ||
		errno == EFAULT)
		return 0;
	return -errno;
}

/* Wakes a thread that sleeps on the word, which has changed. */
static inline void
futex_wake(const uint32_t *word, bool shared)
{
	(void)syscall(SYS_futex, word,
		shared ? FUTEX_WAKE : FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1, NULL, NULL, 0);
}

#endif
