/* SPDX-License-Identifier: BSD-3-Clause */
/* --faults: a library in front of librocade-verbs.so, in the same folder, and the script for it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rocade/faults.h>

#include <common/options.h>

#include "env_list.h"
#include "fault_env.h"

#define LIBRARY "librocade-faults.so"

static void
library_path(const struct conf *s, char *out, size_t size)
{
	const char *slash = strrchr(s->library, '/');
	int folder = slash != NULL ? (int)(slash - s->library) + 1 : 0;

	snprintf(out, size, "%.*s" LIBRARY, folder, s->library);
}

/* Runs add lines, so an old journal is emptied here. */
static bool
journal_begin(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);

	if (fd < 0)
		return false;
	close(fd);
	return true;
}

int
faults_check(const struct conf *s)
{
	char why[ROCADE_FAULTS_WHY], library[4096];
	int err;

	if (s->faults == NULL)
		return 0;
	err = rocade_faults_read(s->faults, NULL, why);
	if (err != 0) {
		fprintf(stderr, PROGRAM ": %s (see rocade-faults(1))\n", why);
		return EXIT_USAGE;
	}
	library_path(s, library, sizeof(library));
	if (access(library, R_OK) != 0) {
		fprintf(stderr,
			PROGRAM ": cannot read %s: %s: --faults requires it beside "
				"librocade-verbs.so (see --library)\n",
			library, strerror(errno));
		return EXIT_RUN;
	}
	if (s->fault_journal != NULL && !journal_begin(s->fault_journal)) {
		fprintf(stderr, PROGRAM ": cannot write the journal %s: %s\n",
			s->fault_journal, strerror(errno));
		return EXIT_RUN;
	}
	fprintf(stderr, PROGRAM ": calls are refused as %s says, seed %s\n", s->faults,
		s->seed != NULL ? s->seed : "1");
	return 0;
}

void
faults_env_set(const struct conf *s, const char *separators)
{
	char library[4096];

	if (s->faults == NULL)
		return;
	library_path(s, library, sizeof(library));
	env_prepend("LD_PRELOAD", library, separators);
	setenv("ROCADE_FAULTS", s->faults, 1);
	setenv("ROCADE_FAULTS_SEED", s->seed != NULL ? s->seed : "1", 1);
	if (s->fault_journal != NULL)
		setenv("ROCADE_FAULT_JOURNAL", s->fault_journal, 1);
	else
		unsetenv("ROCADE_FAULT_JOURNAL");
}
