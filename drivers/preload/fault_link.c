/* SPDX-License-Identifier: BSD-3-Clause */
/* faults/fault_outage.c says when the link is down. A thread waits for the next time at which something changes. */
#include <errno.h>
#include <pthread.h>
#include <time.h>

#include "base/common.h"
#include "base/futex.h"
#include "preload/fault_link.h"
#include "preload/fault_process.h"
#include "preload/fault_write.h"
#include "verbs/fault_hooks.h"

static struct {
	pthread_mutex_t lock;
	uint32_t changes; /* wakes the thread */
	bool begun;
	bool ended; /* without the lock */
	struct fault_links links;
} state = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool
has_ended(void)
{
	return __atomic_load_n(&state.ended, __ATOMIC_RELAXED);
}

/* The functions below with the lock. */

static void
step_apply(const struct fault_link_step *step)
{
	if (step->hit.rule != NULL)
		fault_hit_apply(&step->hit);
	if (step->changes)
		verbs_hooks()->links_cut(state.links.cut);
}

/* Brings the links to the state that they have to have now. */
static void
links_update(uint64_t now)
{
	struct fault_link_step step;

	while (!has_ended() && fault_links_step(&state.links, now, &step))
		step_apply(&step);
}

/* Without the lock. until: FAULT_NO_END without end. */
static void
link_wait(uint32_t seen, uint64_t until)
{
	uint64_t now = verbs_hooks()->clock(), left = until > now ? until - now : 0;
	struct timespec limit = {.tv_sec = (time_t)(left / NS_PER_SEC),
		.tv_nsec = (long)(left % NS_PER_SEC)};

	/* A relative time, and no descriptor, which the program might close. */
	(void)syscall(SYS_futex, &state.changes, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, seen,
		until != FAULT_NO_END ? &limit : NULL, NULL, 0);
}

static void *
link_main(void *unused)
{
	uint64_t now, until;
	uint32_t seen;

	pthread_mutex_lock(&state.lock);
	while (!has_ended()) {
		seen = state.changes;
		now = verbs_hooks()->clock();
		links_update(now);
		until = fault_links_due(&state.links, now);
		pthread_mutex_unlock(&state.lock);
		link_wait(seen, until);
		pthread_mutex_lock(&state.lock);
	}
	pthread_mutex_unlock(&state.lock);
	return unused;
}

/* In a child of fork(2), which has opened no device yet. Another thread of the parent may have had the lock. */
static void
link_forked(void)
{
	pthread_mutex_init(&state.lock, NULL);
	state.begun = state.ended = false;
	fault_links_free(&state.links);
	verbs_hooks()->links_own();
}

static void
links_become_own(void)
{
	verbs_hooks()->links_own();
	pthread_atfork(NULL, NULL, link_forked);
}

/* Before main(), if no constructor of another library opens a device before. */
static __attribute__((constructor)) void
link_process_begins(void)
{
	static pthread_once_t own = PTHREAD_ONCE_INIT;

	if (fault_link_is_possible() && verbs_hooks() != NULL)
		pthread_once(&own, links_become_own);
}

/* Returns 0 or an errno. */
static int
thread_begin(void)
{
	static struct own_thread thread = {
		.name = "rocade-link", .main = link_main, .detached = true};
	int err = fault_links_begin(
		&state.links, fault_process_plan(), verbs_hooks()->clock());

	if (err == 0)
		err = verbs_hooks()->thread_start(&thread);
	if (err != 0)
		fault_links_free(&state.links);
	return err;
}

/* The functions below without it. */

void
fault_link_begin(struct ibv_context *context)
{
	int err = 0;

	if (!fault_link_is_possible() || verbs_hooks() == NULL)
		return;
	link_process_begins();
	pthread_mutex_lock(&state.lock);
	if (!state.begun && !has_ended())
		err = thread_begin();
	state.begun = state.begun || err == 0;
	if (err == 0)
		err = verbs_hooks()->link_watch(context);
	/* This port may be a new one. */
	if (err == 0 && state.links.cut)
		verbs_hooks()->links_cut(true);
	if (err == 0 && !has_ended())
		links_update(verbs_hooks()->clock());
	pthread_mutex_unlock(&state.lock);
	if (err != 0)
		fault_report("no memory or thread for rules of the link: they are not "
			     "applied to this device");
}

bool
fault_link_change(const struct fault_hit *hit)
{
	struct fault_link_step step;
	bool applies = false;
	int err = errno;
	uint64_t now;

	pthread_mutex_lock(&state.lock);
	if (state.begun && !has_ended()) {
		now = verbs_hooks()->clock();
		/* The thread may be late. */
		links_update(now);
		applies = fault_links_hit(&state.links, hit, now, &step);
	}
	if (applies) {
		step_apply(&step);
		__atomic_store_n(&state.changes, state.changes + 1, __ATOMIC_RELAXED);
		futex_wake(&state.changes, false);
	}
	pthread_mutex_unlock(&state.lock);
	errno = err;
	return applies;
}

/* The process ends: the link stays as it is. A signal handler that calls exit(3) may have interrupted the thread that has
 * the lock, so this takes none. */
static __attribute__((destructor)) void
link_end(void)
{
	__atomic_store_n(&state.ended, true, __ATOMIC_RELAXED);
}
