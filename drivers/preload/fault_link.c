/* SPDX-License-Identifier: BSD-3-Clause */
/* The link is down until some time. Each rule that takes it down moves that time back, and one that takes it up makes it
 * now. A thread waits for the next time at which something changes. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "base/common.h"
#include "base/futex.h"
#include "preload/fault_link.h"
#include "preload/fault_process.h"
#include "preload/fault_write.h"
#include "verbs/fault_hooks.h"

#define NO_TIME UINT64_MAX

/* Times are in nanoseconds of the clock of the engines. */
static struct {
	pthread_mutex_t lock;
	uint32_t changes; /* wakes the thread */
	bool begun, ended;
	bool cut; /* the links of the devices are down */
	uint64_t begin;
	uint64_t down_until; /* NO_TIME: it has no end */
	uint64_t *outages;   /* that each rule of times has had */
	uint32_t rules;      /* of times */
} state = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* The functions below with the lock. */

static void
links_set(bool cut)
{
	if (state.cut == cut)
		return;
	state.cut = cut;
	verbs_hooks()->links_cut(cut);
}

static void
down_begin(uint64_t until)
{
	if (until > state.down_until)
		state.down_until = until;
	links_set(true);
}

/* Applies the outages whose time has come, also one that is over: its events come all the same. Returns when the next
 * one is due. */
static uint64_t
outages_apply(uint64_t now)
{
	struct fault_hit hit = {.rule = NULL};
	uint64_t next = NO_TIME, from;

	for (uint32_t i = 0; i < state.rules; i++) {
		hit.rule = fault_rule_of_times(i);
		while (fault_outage_of(hit.rule, state.outages[i], &hit.outage)) {
			from = state.begin + hit.outage.from * NS_PER_MS;
			if (from > now) {
				next = from < next ? from : next;
				break;
			}
			state.outages[i]++;
			fault_hit_apply(&hit);
			down_begin(hit.outage.to == FAULT_NO_END
					   ? NO_TIME
					   : state.begin + hit.outage.to * NS_PER_MS);
			links_set(state.down_until > now);
		}
	}
	return next;
}

/* Brings the links to the state that they have to have now. Returns when that changes. */
static uint64_t
links_update(void)
{
	uint64_t now = verbs_hooks()->clock(), next = outages_apply(now);

	links_set(state.down_until > now);
	return state.cut && state.down_until < next ? state.down_until : next;
}

/* Without the lock. next: as of links_update(). */
static void
link_wait(uint32_t seen, uint64_t next)
{
	uint64_t now = verbs_hooks()->clock(), left = next > now ? next - now : 0;
	struct timespec limit = {.tv_sec = (time_t)(left / NS_PER_SEC),
		.tv_nsec = (long)(left % NS_PER_SEC)};

	/* A relative time, and no descriptor, which the program might close. */
	(void)syscall(SYS_futex, &state.changes, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, seen,
		next != NO_TIME ? &limit : NULL, NULL, 0);
}

static void *
link_main(void *unused)
{
	uint64_t next;
	uint32_t seen;

	pthread_mutex_lock(&state.lock);
	while (!state.ended) {
		seen = state.changes;
		next = links_update();
		pthread_mutex_unlock(&state.lock);
		link_wait(seen, next);
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
	state.begun = state.ended = state.cut = false;
	state.down_until = 0;
	state.rules = 0;
	free(state.outages);
	state.outages = NULL;
}

static void
forks_watch(void)
{
	pthread_atfork(NULL, NULL, link_forked);
}

/* Returns 0 or an errno. */
static int
thread_begin(void)
{
	static struct own_thread thread = {
		.name = "rocade-link", .main = link_main, .detached = true};
	static pthread_once_t forks = PTHREAD_ONCE_INIT;

	pthread_once(&forks, forks_watch);
	while (fault_rule_of_times(state.rules) != NULL)
		state.rules++;
	state.outages = calloc(state.rules + 1, sizeof(*state.outages));
	if (state.outages == NULL)
		return ENOMEM;
	state.begin = verbs_hooks()->clock();
	return verbs_hooks()->thread_start(&thread);
}

/* The functions below without it. */

void
fault_link_begin(struct ibv_context *context)
{
	int err = 0;

	if (!fault_link_is_possible() || verbs_hooks() == NULL)
		return;
	pthread_mutex_lock(&state.lock);
	if (!state.begun && !state.ended)
		err = thread_begin();
	state.begun = state.begun || err == 0;
	if (err == 0)
		err = verbs_hooks()->link_watch(context);
	/* This port may be a new one. */
	if (err == 0 && state.cut)
		verbs_hooks()->links_cut(true);
	if (err == 0 && !state.ended)
		(void)links_update();
	pthread_mutex_unlock(&state.lock);
	if (err != 0)
		fault_report(
			"no memory or thread for rules of the link: they are not applied");
}

bool
fault_link_change(const struct fault_hit *hit)
{
	uint64_t now = verbs_hooks()->clock(), until = now;
	bool applies;
	int err = errno;

	if (hit->rule->err == FAULT_LINK_DOWN)
		until = hit->rule->span.down != 0 ? now + hit->rule->span.down * NS_PER_MS
						  : NO_TIME;
	pthread_mutex_lock(&state.lock);
	applies = state.begun && !state.ended &&
		  (hit->rule->err == FAULT_LINK_DOWN ? until > state.down_until
						     : state.cut);
	if (applies) {
		fault_hit_apply(hit);
		state.down_until = until;
		links_set(until > now);
		__atomic_store_n(&state.changes, state.changes + 1, __ATOMIC_RELAXED);
		futex_wake(&state.changes, false);
	}
	pthread_mutex_unlock(&state.lock);
	errno = err;
	return applies;
}

/* The process ends: the link stays as it is. */
static __attribute__((destructor)) void
link_end(void)
{
	pthread_mutex_lock(&state.lock);
	state.ended = true;
	pthread_mutex_unlock(&state.lock);
}
