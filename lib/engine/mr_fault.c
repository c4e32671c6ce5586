/* SPDX-License-Identifier: BSD-3-Clause */
/* Control path. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/off.h"
#include "engine/mr_fault.h"
#include "mem/on_demand.h"

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif

#define ASIDE_MAX 64 /* the SGEs of several requests */

/* Pages that were moved away, because the application has taken the rights to them, and pages of
 * on-demand regions that it has unmapped. The lock is taken in the signal handler: its holder
 * accesses no memory of regions. */
static rte_spinlock_t aside_lock = RTE_SPINLOCK_INITIALIZER;
static unsigned aside_count;
static struct aside {
	void *page;
	void *kept;        /* where its content and rights are meanwhile; NULL: a hole */
	const bool *owner; /* mr_fault_aside of the thread that puts it back */
} aside[ASIDE_MAX];

__thread struct key_table *mr_fault_keys;
__thread bool mr_fault_aside;

static const int signals[] = {SIGSEGV, SIGBUS};
static struct sigaction old_actions[RTE_DIM(signals)];
/* The handler in old_actions is one that is called once, and it was. */
static bool spent[RTE_DIM(signals)];
static bool left_in_chain[RTE_DIM(signals)]; /* see handlers_restore() */
static uintptr_t page_mask;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned open_contexts;
static bool installed;

/* True if nothing is mapped at the address, or a file that was truncated. */
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

/* Returns a page whose content is that of the given one, or zeros where that is not
 * readable. */
static void *
page_copy(void *page)
{
	size_t size = ~page_mask + 1;
	void *copy = mmap(
		NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct iovec to = {.iov_base = copy, .iov_len = size};
	struct iovec from = {.iov_base = page, .iov_len = size};

	/* The kernel reads it: reading it here could fault again. */
	if (copy != MAP_FAILED)
		(void)process_vm_readv(getpid(), &to, 1, &from, 1, 0);
	return copy;
}

/* Exchanges the page for its copy, which the engine may access. The address stays mapped
 * all the time, so that no other thread's mapping can take it. */
static bool
page_exchange(void *page, void **kept)
{
	size_t size = ~page_mask + 1;
	void *copy = page_copy(page);

	if (copy == MAP_FAILED)
		return false;
	*kept = mremap(page, size, size, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, NULL);
	if (*kept == MAP_FAILED) { /* a kernel before 5.13, or hugetlbfs */
		munmap(copy, size);
		return false;
	}
	return mremap(copy, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, page) == page;
}

static bool
aside_has(const void *page)
{
	for (unsigned i = 0; i < aside_count; i++) {
		if (aside[i].page == page)
			return true;
	}
	return false;
}

/* The page holds data of the application, which must not be replaced, or nothing: hole. Until the
 * pass ends another page takes its place. */
static bool
page_put_aside(int sig, const void *addr, bool hole)
{
	void *page = (void *)((uintptr_t)addr & page_mask);
	bool done;

	rte_spinlock_lock(&aside_lock);
	/* Another engine's thread may have been first. When it puts the page back, this
	 * access may fault again. */
	done = aside_has(page);
	if (!done && aside_count < ASIDE_MAX) {
		struct aside *a = &aside[aside_count];

		*a = (struct aside){.page = page, .owner = &mr_fault_aside};
		errno = 0;
		done = hole ? page_map_zero(sig, addr) : page_exchange(page, &a->kept);
		if (done && errno != EEXIST) { /* else it is the application's mapping */
			aside_count++;
			mr_fault_aside = true;
		}
	}
	rte_spinlock_unlock(&aside_lock);
	return done;
}

void
mr_fault_restore(void)
{
	size_t size = ~page_mask + 1;
	unsigned left = 0;

	rte_spinlock_lock(&aside_lock);
	for (unsigned i = 0; i < aside_count; i++) {
		if (aside[i].owner != &mr_fault_aside)
			aside[left++] = aside[i];
		else if (aside[i].kept == NULL)
			munmap(aside[i].page, size);
		else
			(void)mremap(aside[i].kept, size, size,
				MREMAP_MAYMOVE | MREMAP_FIXED, aside[i].page);
	}
	aside_count = left;
	rte_spinlock_unlock(&aside_lock);
	mr_fault_aside = false;
}

/* Makes the access possible, which goes to no data of the application, and invalidates the regions
 * but on-demand ones. Returns false if this is not a fault of registered memory. */
static bool
fault_resolve(int sig, const siginfo_t *info)
{
	bool hole = is_hole(sig, info);
	bool no_right = sig == SIGSEGV && info->si_code == SEGV_ACCERR;

	if (mr_fault_keys == NULL || (!hole && !no_right))
		return false;
	if (key_invalidate_at(mr_fault_keys, info->si_addr))
		return hole ? page_map_zero(sig, info->si_addr)
			    : page_put_aside(sig, info->si_addr, false);
	/* Memory of an on-demand region, which has gone since it was touched. The application
	 * would not have the bytes, either, if they had been written before. A page of a file
	 * that was truncated is still mapped. */
	return on_demand_is_touched((uintptr_t)info->si_addr) &&
	       page_put_aside(sig, info->si_addr, hole && sig == SIGSEGV);
}

/* Returns whether there is a handler: ours, or that of the application or of a library. */
static bool
is_handler(const struct sigaction *action)
{
	return action->sa_flags & SA_SIGINFO ||
	       (action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN);
}

/* Restores what was there before. A handler that is called once (SA_RESETHAND) has left the default. */
static void
action_restore(unsigned i)
{
	static const struct sigaction none = {.sa_handler = SIG_DFL};
	bool is_spent = __atomic_load_n(&spent[i], __ATOMIC_RELAXED);

	sigaction(signals[i], is_spent ? &none : &old_actions[i], NULL);
}

/* The call of the handler that was installed before, as the kernel calls it (sigaction(2)): its sa_mask
 * and SA_RESTART are those of ours (handlers_install()), and the rest is done here. */
static void
handler_call(const struct sigaction *old, int sig, siginfo_t *info, void *context)
{
	sigset_t set;

	if (old->sa_flags & SA_NODEFER && sigismember(&old->sa_mask, sig) == 0) {
		sigemptyset(&set);
		sigaddset(&set, sig);
		pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	}
	if (old->sa_flags & SA_SIGINFO)
		old->sa_sigaction(sig, info, context);
	else
		old->sa_handler(sig);
}

static void
signal_forward(int sig, siginfo_t *info, void *context)
{
	unsigned i = sig == SIGSEGV ? 0 : 1;
	const struct sigaction *old = &old_actions[i];
	bool is_spent = false;

	if (is_handler(old) && old->sa_flags & SA_RESETHAND)
		is_spent = __atomic_exchange_n(&spent[i], true, __ATOMIC_RELAXED);
	if (is_handler(old) && !is_spent) {
		handler_call(old, sig, info, context);
	} else if (info->si_code > 0) {
		action_restore(i); /* the access faults again */
	} else if (is_spent || old->sa_handler == SIG_DFL) {
		/* Sent by kill(2): delivered again when this handler returns. */
		action_restore(i);
		raise(sig);
	}
}

/* Async-signal-safe: reads the key table, stores to a word of an entry, and makes system
 * calls. It does not fault itself: it accesses no registered memory. */
static void
mr_fault_handler(int sig, siginfo_t *info, void *context)
{
	int err = errno;

	/* Not if kill(2) has sent the signal. */
	bool touch = info->si_code > 0 && on_demand_recover(context);
	bool ours = touch || fault_resolve(sig, info);

	errno = err;
	if (!ours)
		signal_forward(sig, info, context);
}

static bool
is_our_handler(const struct sigaction *action)
{
	return action->sa_flags & SA_SIGINFO && action->sa_sigaction == mr_fault_handler;
}

static void
handlers_install(void)
{
	struct sigaction now, action = {.sa_sigaction = mr_fault_handler};

	page_mask = ~((uintptr_t)sysconf(_SC_PAGESIZE) - 1);
	for (unsigned i = 0; i < RTE_DIM(signals); i++) {
		sigaction(signals[i], NULL, &now);
		/* The other handler calls ours, or has gone and left ours. Ours above it, each
		 * would call the other without end. */
		if (left_in_chain[i] && is_handler(&now))
			continue;
		/* An ignored signal interrupts no call of the system. */
		action.sa_flags = SA_SIGINFO | SA_ONSTACK |
				  (now.sa_handler == SIG_IGN ? SA_RESTART
							     : now.sa_flags & SA_RESTART);
		action.sa_mask = now.sa_mask;
		__atomic_store_n(&spent[i], false, __ATOMIC_RELAXED);
		old_actions[i] = now; /* read by ours as soon as it is installed */
		sigaction(signals[i], &action, NULL);
	}
}

/* A handler that was installed after ours, and calls it, stays, and ours below it. */
static void
handlers_restore(void)
{
	struct sigaction now;

	for (unsigned i = 0; i < RTE_DIM(signals); i++) {
		sigaction(signals[i], NULL, &now);
		left_in_chain[i] = !is_our_handler(&now) && is_handler(&now);
		if (is_our_handler(&now))
			action_restore(i);
	}
}

void
mr_fault_get(void)
{
	pthread_mutex_lock(&lock);
	if (open_contexts++ == 0 && !is_off(OFF_MR_FAULT_HANDLER)) {
		handlers_install();
		installed = true;
	}
	pthread_mutex_unlock(&lock);
}

void
mr_fault_put(void)
{
	pthread_mutex_lock(&lock);
	if (--open_contexts == 0 && installed) {
		handlers_restore();
		installed = false;
	}
	pthread_mutex_unlock(&lock);
}

bool
mr_fault_installed(void)
{
	bool is;

	pthread_mutex_lock(&lock);
	is = installed;
	pthread_mutex_unlock(&lock);
	return is;
}
