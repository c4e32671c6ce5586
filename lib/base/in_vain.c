/* SPDX-License-Identifier: BSD-3-Clause */
/* Control path. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_common.h>

#include "base/error_fd.h"
#include "base/in_vain.h"

#define NOTES 64
#define NOTE_MAX 160

static struct {
	unsigned taken;
	pid_t pid; /* a forked child has not made the calls of its parent */
	struct {
		bool written;
		enum in_vain kind;
		char text[NOTE_MAX];
	} notes[NOTES];
} state;

bool
in_vain_wanted(void)
{
	static int wanted; /* -1: no, 0: not known, 1: yes */
	int now = __atomic_load_n(&wanted, __ATOMIC_RELAXED);
	const char *value;

	if (now == 0) {
		value = getenv(IN_VAIN_ENV);
		now = value != NULL && strcmp(value, "1") == 0 ? 1 : -1;
		__atomic_store_n(&wanted, now, __ATOMIC_RELAXED);
	}
	return now > 0;
}

static __attribute__((constructor)) void
error_begin(void)
{
	if (!in_vain_wanted())
		return;
	error_keep();
	(void)pthread_atfork(NULL, NULL, error_leave);
}

static bool
is_known(enum in_vain kind, const char *text, unsigned taken)
{
	for (unsigned i = 0; i < RTE_MIN(taken, (unsigned)NOTES); i++) {
		if (__atomic_load_n(&state.notes[i].written, __ATOMIC_ACQUIRE) &&
			state.notes[i].kind == kind &&
			strncmp(state.notes[i].text, text, NOTE_MAX - 1) == 0)
			return true;
	}
	return false;
}

static void
note_add(enum in_vain kind, const char *text)
{
	pid_t pid = getpid();
	unsigned at;

	if (state.pid != pid) {
		memset(&state, 0, sizeof(state));
		state.pid = pid;
	}
	if (is_known(kind, text, __atomic_load_n(&state.taken, __ATOMIC_RELAXED)))
		return;
	error_keep(); /* in a child */
	at = __atomic_fetch_add(&state.taken, 1, __ATOMIC_RELAXED);
	if (at >= NOTES)
		return;
	state.notes[at].kind = kind;
	snprintf(state.notes[at].text, NOTE_MAX, "%s", text);
	/* Pairs with the acquire in is_known() and notes_print(). */
	__atomic_store_n(&state.notes[at].written, true, __ATOMIC_RELEASE);
}

void
in_vain_note(enum in_vain kind, const char *text)
{
	int err = errno;

	if (in_vain_wanted())
		note_add(kind, text);
	errno = err;
}

static __attribute__((destructor)) void
notes_print(void)
{
	static const char *const names[IN_VAIN_KINDS] = {
		"the path", "the symbol", "the call (EOPNOTSUPP)", "netlink"};
	unsigned taken = state.pid == getpid() ? state.taken : 0;
	int fd = taken > 0 ? error_fd() : -1;

	if (fd < 0)
		return;

	for (unsigned i = 0; i < RTE_MIN(taken, (unsigned)NOTES); i++) {
		if (__atomic_load_n(&state.notes[i].written, __ATOMIC_ACQUIRE))
			dprintf(fd, "rocade: %s looked in vain for %s %s\n",
				program_invocation_short_name, names[state.notes[i].kind],
				state.notes[i].text);
	}
	if (taken > NOTES)
		dprintf(fd, "rocade: %s looked in vain for %u more\n",
			program_invocation_short_name, taken - NOTES);
}
