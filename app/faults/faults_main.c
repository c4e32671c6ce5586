/* SPDX-License-Identifier: BSD-3-Clause */
/* rocade-faults: explains scripts of faults, and replays journals. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rocade/faults.h>

#include <common/options.h>

#define PROGRAM "rocade-faults"
#define PATH_LENGTH 4096

struct conf {
	char none; /* the program has no options of its own */
};

static const struct option_row option_rows[] = {
	{OPTION_HELP, .name = "help"},
	{OPTION_VERSION, .name = "version"},
};

static const struct options options = {.program = PROGRAM,
	.usage =
		"Usage: " PROGRAM " check FILE\n"
		"       " PROGRAM " replay JOURNAL -- [OPTION]... PROGRAM [ARGUMENT]...\n"
		"check says in sentences what the script FILE of `rocade-run --faults FILE` "
		"does.\nreplay runs the program of a journal again, with the same faults: the "
		"words behind\n-- are those of rocade-run.\n\n",
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

/* Returns the rocade-run of the build tree, or else the installed one. */
static const char *
run_path(char buf[PATH_LENGTH])
{
	static const char relative[] = "../run/rocade-run";
	ssize_t len = readlink("/proc/self/exe", buf, PATH_LENGTH - sizeof(relative));
	char *slash;

	if (len <= 0)
		return ROCADE_RUN;
	buf[len] = '\0';
	slash = strrchr(buf, '/');
	if (slash == NULL)
		return ROCADE_RUN;
	strcpy(slash + 1, relative);
	return access(buf, X_OK) == 0 ? buf : ROCADE_RUN;
}

/* words: those of rocade-run. */
static int
journal_replay(char *journal, char **words, int count)
{
	static char name[] = "rocade-run", option[] = "--faults";
	char **argv = calloc((size_t)count + 4, sizeof(*argv));
	char buf[PATH_LENGTH];
	const char *path = run_path(buf);

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
	struct conf s = {.none = 0};
	int rc = options_read(&options, &s, argc, argv), count;
	char **words;

	if (rc >= 0)
		return rc;
	words = argv + optind;
	count = argc - optind;
	if (count == 2 && strcmp(words[0], "check") == 0)
		return script_check(words[1]);
	if (count > 3 && strcmp(words[0], "replay") == 0 && strcmp(words[2], "--") == 0)
		return journal_replay(words[1], words + 3, count - 3);
	fprintf(stderr,
		PROGRAM
		": invalid command '%s': expected check FILE, or replay JOURNAL -- "
		"PROGRAM (see --help)\n",
		count == 0 ? "" : words[0]);
	return EXIT_USAGE;
}
