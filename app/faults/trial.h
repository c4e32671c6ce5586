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
	int value;   /* status or signal */
	uint64_t ms; /* until the command ended */
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
	uint64_t look_ms;    /* interval of observations. 0: of the run without faults */
	uint64_t output_max; /* bytes */
};

/* The files of a run, in a folder. */
struct trial_files {
	char script[PATH_MAX], journal[PATH_MAX], output[PATH_MAX];
};

void trial_files_name(struct trial_files *f, const char *folder);
void trial_files_remove(const struct trial_files *f);

/* Runs the command with the script that is there, and ends what it leaves behind. Returns false if it cannot be run, with
 * an error printed, and if a signal has asked this process to end. */
bool trial_run(struct conf *c, const struct trial_files *f, uint64_t seed,
	struct trial_end *end);
/* Runs it with a script that counts all, and sets how long a run may be without a new state. Returns false as
 * trial_run(), and with an error printed if it fails. */
bool trial_baseline(struct conf *c, const struct trial_files *f);
bool trial_end_asked(void);
/* Ends this process by the signal that has asked for it, if one has. */
void trial_end_if_asked(void);
/* "status 1", "signal 11 (Segmentation fault)", "hang" and the like. */
const char *trial_end_text(const struct trial_end *end, char *out, size_t size);
bool trial_failed_so(const struct trial_end *a, const struct trial_end *b);

#endif
