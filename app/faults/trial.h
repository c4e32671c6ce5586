/* SPDX-License-Identifier: BSD-3-Clause */
/* A run of a command with a script of faults, and how it ended. */
#ifndef FAULTS_TRIAL_H
#define FAULTS_TRIAL_H

#include <limits.h>
#include <regex.h>
#include <stdbool.h>
#include <stdint.h>

#define PROGRAM "rocade-faults"
#define STATUSES 256

enum end_kind { END_PASSED, END_STATUS, END_SIGNAL, END_MATCH, END_HANG };

struct trial_end {
	enum end_kind kind;
	int value; /* status or signal */
};

/* Which ends are failures, and the command. */
struct conf {
	uint32_t seeds, runs;
	uint64_t seed; /* the first one */
	uint8_t profile;
	const char *folder;
	const char *match;
	regex_t pattern;         /* of match */
	bool accepted[STATUSES]; /* exit statuses */
	char **command;          /* ends with NULL */
	uint64_t look_ms; /* interval of observations. 0: of the run without faults */
};

/* The files of a run, in a folder. */
struct trial_files {
	char script[PATH_MAX], journal[PATH_MAX], output[PATH_MAX];
};

void trial_files_name(struct trial_files *f, const char *folder);
void trial_files_remove(const struct trial_files *f);

/* Runs the command with the script that is there. Returns false, with an error printed, if it cannot be run. If a signal
 * asks this process to end, it does, and the processes that it has started. */
bool trial_run(struct conf *c, const struct trial_files *f, uint64_t seed,
	struct trial_end *end);
/* Runs it with a script that counts all, and sets how long a run may be without a new state. Returns false, with an
 * error printed, if it fails. */
bool trial_baseline(struct conf *c, const struct trial_files *f);
/* "status 1", "signal 11 (Segmentation fault)", "hang" and the like. */
const char *trial_end_text(const struct trial_end *end, char *out, size_t size);
bool trial_failed_so(const struct trial_end *a, const struct trial_end *b);

#endif
