/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether a run of a command goes on, by observations at a fixed interval. Nothing here reads a clock. */
#ifndef FAULTS_RUN_WATCH_H
#define FAULTS_RUN_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#define HANG_LOOKS 10    /* observations without a new state that make a hang */
#define REPEAT_LOOKS 200 /* all in all: the run repeats itself */

struct run_watch {
	bool limited;        /* REPEAT_LOOKS holds before the command has ended, too */
	bool ended;          /* the command has, and has left processes behind */
	uint64_t output_max; /* bytes. 0: any */
	uint64_t state;
	unsigned same, looks, left; /* left: those since the command has ended */
};

enum run_verdict {
	RUN_GOES_ON,
	RUN_IS_QUIET, /* what the command has left behind changes no more */
	RUN_HANGS
};

/* Takes the state that is observed now, and how many bytes of output there are. */
enum run_verdict run_watch_next(struct run_watch *w, uint64_t state, uint64_t output);

#endif
