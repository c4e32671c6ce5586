/* SPDX-License-Identifier: BSD-3-Clause */
/* --faults: a library in front of librocade-verbs.so, in the same folder, and the script for it. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <rocade/faults.h>

#include <common/number.h>
#include <common/options.h>

#include "env_list.h"
#include "fault_env.h"

#define LIBRARY "librocade-faults.so"
#define SEED_MAX 24

static void
library_path(const struct conf *s, char *out, size_t size)
{
	const char *slash = strrchr(s->library, '/');
	int folder = slash != NULL ? (int)(slash - s->library) + 1 : 0;

	snprintf(out, size, "%.*s" LIBRARY, folder, s->library);
}

/* Writes the number of the seed, which options_read() has checked, in decimal digits. */
static const char *
seed_of(const struct conf *s, char out[SEED_MAX])
{
	uint64_t seed = 1;

	if (s->seed != NULL)
		(void)parse_number(s->seed, 0, UINT64_MAX, &seed);
	snprintf(out, SEED_MAX, "%" PRIu64, seed);
	return out;
}

/* Each process opens the file again, and what a pipe has can be read once. A directory has its own error. */
static bool
file_check(const char *option, const char *path)
{
	struct stat st;

	if (stat(path, &st) != 0 || S_ISREG(st.st_mode) || S_ISDIR(st.st_mode))
		return true;
	fprintf(stderr,
		PROGRAM ": invalid value '%s' for %s: expected a regular file, because "
			"each process opens it\n",
		path, option);
	return false;
}

/* Runs add lines, so an old journal is emptied here. */
static int
journal_begin(const struct conf *s)
{
	struct stat script, journal;
	char seed[SEED_MAX];
	int err;

	if (s->fault_journal == NULL)
		return 0;
	if (!file_check("--fault-journal", s->fault_journal))
		return EXIT_USAGE;
	if (stat(s->faults, &script) == 0 && stat(s->fault_journal, &journal) == 0 &&
		script.st_dev == journal.st_dev && script.st_ino == journal.st_ino) {
		fprintf(stderr,
			PROGRAM
			": --fault-journal %s: expected another file than that of "
			"--faults\n",
			s->fault_journal);
		return EXIT_USAGE;
	}
	err = rocade_faults_journal_begin(
		s->fault_journal, ROCADE_VERSION, s->program, seed_of(s, seed));
	if (err == 0)
		return 0;
	fprintf(stderr, PROGRAM ": cannot write the journal %s: %s\n", s->fault_journal,
		strerror(err));
	return EXIT_RUN;
}

void
faults_inherit(struct conf *s)
{
	const char *path = getenv("ROCADE_FAULTS");

	if (s->faults != NULL || path == NULL || path[0] == '\0')
		return;
	s->faults = path;
	s->faults_inherited = true;
}

int
faults_check(const struct conf *s)
{
	char why[ROCADE_FAULTS_WHY], library[4096], seed[SEED_MAX];
	const char *from = s->faults_inherited ? "ROCADE_FAULTS" : "--faults";
	int err, rc;

	if (s->faults == NULL)
		return 0;
	if (!file_check(from, s->faults))
		return EXIT_USAGE;
	err = rocade_faults_read(s->faults, NULL, why);
	if (err == 0 && !s->faults_inherited)
		err = rocade_faults_journal_check(
			s->faults, ROCADE_VERSION, s->program, why);
	if (err != 0) {
		fprintf(stderr, PROGRAM ": %s%s (see rocade-faults(1))\n",
			s->faults_inherited ? "ROCADE_FAULTS: " : "", why);
		return EXIT_USAGE;
	}
	library_path(s, library, sizeof(library));
	if (access(library, R_OK) != 0) {
		fprintf(stderr,
			PROGRAM ": cannot read %s: %s: %s requires it beside "
				"librocade-verbs.so (see --library)\n",
			library, strerror(errno), from);
		return EXIT_RUN;
	}
	if (s->faults_inherited)
		return 0;
	rc = journal_begin(s);
	if (rc == 0)
		fprintf(stderr, PROGRAM ": calls are refused as %s says, seed %s\n",
			s->faults, seed_of(s, seed));
	return rc;
}

void
faults_env_set(const struct conf *s, const char *separators)
{
	char library[4096], seed[SEED_MAX], journal[PATH_MAX];

	if (s->faults == NULL)
		return;
	library_path(s, library, sizeof(library));
	env_prepend("LD_PRELOAD", library, separators);
	if (s->faults_inherited)
		return;
	setenv("ROCADE_FAULTS", s->faults, 1);
	setenv("ROCADE_FAULTS_SEED", seed_of(s, seed), 1);
	if (s->fault_journal != NULL) /* the processes do not follow symbolic links */
		setenv("ROCADE_FAULT_JOURNAL",
			realpath(s->fault_journal, journal) != NULL ? journal
								    : s->fault_journal,
			1);
	else
		unsetenv("ROCADE_FAULT_JOURNAL");
}
