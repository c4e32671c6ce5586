/* SPDX-License-Identifier: BSD-3-Clause */
/* rocade-faults: explains scripts of faults. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <rocade/faults.h>

#include <common/options.h>

#define PROGRAM "rocade-faults"

struct conf {
	char none; /* the program has no options of its own */
};

static const struct option_row option_rows[] = {
	{OPTION_HELP, .name = "help"},
	{OPTION_VERSION, .name = "version"},
};

static const struct options options = {.program = PROGRAM,
	.usage = "Usage: " PROGRAM " check FILE\n"
		 "Says in sentences what the faults of a script are, which "
		 "`rocade-run --faults FILE` applies.\n\n",
	.notes =
		"  --help, --version\n\n"
		"Exit status: 0; 1 if the script has an error or cannot be read; 2 for invalid "
		"arguments.\n",
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

int
main(int argc, char **argv)
{
	struct conf s = {.none = 0};
	int rc = options_read(&options, &s, argc, argv);

	if (rc >= 0)
		return rc;
	if (optind == argc || strcmp(argv[optind], "check") != 0) {
		fprintf(stderr,
			PROGRAM ": invalid command '%s': expected check (see --help)\n",
			optind == argc ? "" : argv[optind]);
		return EXIT_USAGE;
	}
	if (optind + 2 != argc) {
		fprintf(stderr, PROGRAM ": check: expected one FILE (see --help)\n");
		return EXIT_USAGE;
	}
	return script_check(argv[optind + 1]);
}
