/* SPDX-License-Identifier: BSD-3-Clause */
/* rocade-faults: explains scripts of faults, replays journals, and looks for failures. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rocade/faults.h>

#include <common/beside.h>
#include <common/options.h>

#include "failures.h"
#include "trial.h"

#define PATH_LENGTH 4096

static const struct option_row option_rows[] = {
	{OPTION_HELP, .name = "help"},
	{OPTION_VERSION, .name = "version"},
};

static const struct options options = {.program = PROGRAM,
	.usage =
		"Usage: " PROGRAM " check FILE\n"
		"       " PROGRAM " replay JOURNAL -- [OPTION]... PROGRAM [ARGUMENT]...\n"
		"       " PROGRAM " explore [OPTION]... -- COMMAND [ARGUMENT]...\n"
		"       " PROGRAM " shrink [OPTION]... JOURNAL -- COMMAND [ARGUMENT]...\n"
		"check says in sentences what the script FILE of `rocade-run --faults FILE` "
		"does.\nreplay runs the program of a journal again, with the same faults: the "
		"words behind\n-- are those of rocade-run. explore runs a command with random scripts, "
		"and shrink\ndrops faults as long as the command fails; each has --help.\n\n",
	.notes =
		"  --help, --version\n\n"
		"Exit status of check: 0; 1 if the script has an error or cannot be read. Of "
		"replay:\nthat of rocade-run. 2 for invalid arguments.\n",
	.rows = option_rows,
	.count = sizeof(option_rows) / sizeof(option_rows[0]),
	.column = 19,
	.operands = true};

static int
script_check(const char *path)
{
	char why[ROCADE_FAULTS_WHY];

	if (rocade_faults_read(path, stdout, why) == 0)
		return fflush(stdout) == 0 ? EXIT_OK : EXIT_RUN;
	fprintf(stderr, PROGRAM ": %s\n", why);
	return EXIT_RUN;
}

/* words: those of rocade-run. */
static int
journal_replay(char *journal, char **words, int count)
{
	static char name[] = "rocade-run", option[] = "--faults";
	char **argv = calloc((size_t)count + 4, sizeof(*argv));
	char buf[PATH_LENGTH];
	const char *path =
		path_beside_self("../run/rocade-run", ROCADE_RUN, buf, sizeof(buf));

	if (argv == NULL)
		return EXIT_RUN;
	argv[0] = name;
	argv[1] = option;
	argv[2] = journal;
	memcpy(argv + 3, words, (size_t)count * sizeof(*argv));
	execv(path, argv);
	fprintf(stderr, PROGRAM ": cannot run %s: %s\n", path, strerror(errno));
	free(argv);
	return EXIT_RUN;
}

int
main(int argc, char **argv)
{
	/* The program has no options of its own, so that none is stored. */
	int rc = options_read(&options, NULL, argc, argv), count;
	char **words;

	if (rc >= 0)
		return rc;
	words = argv + optind;
	count = argc - optind;
	if (count == 2 && strcmp(words[0], "check") == 0)
		return script_check(words[1]);
	if (count > 3 && strcmp(words[0], "replay") == 0 && strcmp(words[2], "--") == 0)
		return journal_replay(words[1], words + 3, count - 3);
	if (count > 0 && strcmp(words[0], "explore") == 0)
		return explore_main(count, words);
	if (count > 0 && strcmp(words[0], "shrink") == 0)
		return shrink_main(count, words);
	fprintf(stderr,
		PROGRAM ": invalid command '%s': expected check FILE, replay JOURNAL -- "
			"PROGRAM, explore -- COMMAND, or shrink JOURNAL -- COMMAND (see "
			"--help)\n",
		count == 0 ? "" : words[0]);
	return EXIT_USAGE;
}
