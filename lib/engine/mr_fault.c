/* SPDX-License-Identifier: BSD-3-Clause */
/* Control path. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/base_env.h"
#include "engine/mr_fault.h"

__thread struct key_table *mr_fault_keys;

static const int signals[] = {SIGSEGV, SIGBUS};
static struct sigaction old_actions[RTE_DIM(signals)];
static uintptr_t page_mask;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned open_contexts;

/* True if nothing is mapped at the address, or a file that was truncated. A page that is
 * mapped without the needed rights holds data of the application: it must not be
 * replaced. */
static bool
is_hole(int sig, const siginfo_t *info)
{
	return sig == SIGSEGV ? info->si_code == SEGV_MAPERR
			      : info->si_code == BUS_ADRERR;
}

/* Maps a page of zeros. If another thread has mapped the page meanwhile, that mapping
 * stays, and the access is retried. */
static bool
page_map_zero(int sig, const void *addr)
{
	void *page = (void *)((uintptr_t)addr & page_mask);
	int place = sig == SIGSEGV ? MAP_FIXED_NOREPLACE : MAP_FIXED;

	return mmap(page, ~page_mask + 1, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | place, -1, 0) != MAP_FAILED ||
	       errno == EEXIST;
}

static void
signal_forward(int sig, siginfo_t *info, void *context)
{
	const struct sigaction *old = &old_actions[sig == SIGSEGV ? 0 : 1];

	if (old->sa_flags & SA_SIGINFO) {
		old->sa_sigaction(sig, info, context);
	} else if (old->sa_handler != SIG_DFL && old->sa_handler != SIG_IGN) {
		old->sa_handler(sig);
	} else if (info->si_code > 0) {
		sigaction(sig, old, NULL); /* the access faults again */
	} else if (old->sa_handler == SIG_DFL) {
		/* Sent by kill(2): delivered again when this handler returns. */
		sigaction(sig, old, NULL);
		raise(sig);
	}
}

/* Async-signal-safe: reads the key table, stores to a word of an entry, and makes system
 * calls. It does not fault itself: it accesses no registered memory. */
static void
mr_fault_handler(int sig, siginfo_t *info, void *context)
{
	int err = errno;

	if (mr_fault_keys == NULL || !is_hole(sig, info) ||
		!key_invalidate_at(mr_fault_keys, info->si_addr) ||
		!page_map_zero(sig, info->si_addr))
		signal_forward(sig, info, context);
	errno = err;
}

static void
handlers_install(void)
{
	struct sigaction action = {.sa_flags = SA_SIGINFO | SA_ONSTACK};

	page_mask = ~((uintptr_t)sysconf(_SC_PAGESIZE) - 1);
	action.sa_sigaction = mr_fault_handler;
	sigemptyset(&action.sa_mask);
	for (unsigned i = 0; i < RTE_DIM(signals); i++)
		sigaction(signals[i], &action, &old_actions[i]);
}

/* A handler that was installed after ours, and calls it, stays. */
static void
handlers_restore(void)
{
	struct sigaction now;

	for (unsigned i = 0; i < RTE_DIM(signals); i++) {
		sigaction(signals[i], NULL, &now);
		if (now.sa_flags & SA_SIGINFO && now.sa_sigaction == mr_fault_handler)
			sigaction(signals[i], &old_actions[i], NULL);
	}
}

void
mr_fault_get(void)
{
	pthread_mutex_lock(&lock);
	if (open_contexts++ == 0 && env_enabled("ROCADE_MR_FAULT_HANDLER"))
		handlers_install();
	pthread_mutex_unlock(&lock);
}

void
mr_fault_put(void)
{
	pthread_mutex_lock(&lock);
	if (--open_contexts == 0)
		handlers_restore();
	pthread_mutex_unlock(&lock);
}
