/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs a command with random scripts of faults, and keeps those with which it fails. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <rocade/faults.h>

#include <common/options.h>

#include "trial.h"

#include "failures.h"

#define FOLDER "faults-explore"
#define SEEDS 20
#define SEEDS_MAX 1000000

#define MEMBER(field) OPTION_MEMBER(struct conf, field)
static const struct option_row option_rows[] = {
	{OPTION_NUM, 0, "seeds", "N", MEMBER(seeds), .min = 1, .max = SEEDS_MAX,
		.text = "number of random scripts (default: 20)"},
	{OPTION_NUM, 0, "seed", "N", MEMBER(seed), .max = UINT64_MAX,
		.text = "seed of the first one; the others follow (default: 1)"},
	{OPTION_WORD, 0, "profile", "NAME", MEMBER(profile),
		.words = rocade_faults_profiles,
		.text = "mild: packets that are lost, late or sent twice; nasty: calls "
			"that are refused and requests that fail, too; byzantine: more "
			"of them, again and again, and asynchronous events (default: "
			"mild)"},
	{OPTION_TEXT, 0, "folder", "PATH", MEMBER(folder), .min = 1, .max = PATH_MAX / 2,
		.text = "where a folder for each script with which the command fails is "
			"made (default: " FOLDER ")"},
	FAILURE_ROWS,
	{OPTION_HELP, .name = "help"},
	{OPTION_VERSION, .name = "version"},
};

static const struct options options = {.program = PROGRAM,
	.usage =
		"Usage: " PROGRAM " explore [OPTION]... -- COMMAND [ARGUMENT]...\n"
		"Runs a command, with rocade-run in it, with random scripts of faults. It "
		"fails\nif it ends by a signal, with a status other than 0, or hangs.\n\n",
	.notes = "  --help, --version\n\n"
		 "Exit status: 0 if no run has failed; 1 if some have; 2 for invalid "
		 "arguments,\nand if the command fails without faults.\n",
	.rows = option_rows,
	.count = sizeof(option_rows) / sizeof(option_rows[0]),
	.column = 19,
	.operands = true};

static void
folder_refuse(const char *path, int err)
{
	fprintf(stderr, PROGRAM ": cannot write into the folder %s: %s (see --folder)\n",
		path, strerror(err));
}

/* Returns false, with an error printed, if there is no such folder. */
static bool
folder_make(const char *path)
{
	struct stat st;

	if (mkdir(path, 0777) == 0)
		return true;
	if (errno == EEXIST && stat(path, &st) == 0) {
		if (S_ISDIR(st.st_mode) && access(path, W_OK | X_OK) == 0)
			return true;
		if (!S_ISDIR(st.st_mode))
			errno = ENOTDIR;
	}
	folder_refuse(path, errno);
	return false;
}

/* Returns the number of lines that are rules. */
static unsigned
rules_in(const char *path)
{
	FILE *file = fopen(path, "re");
	unsigned rules = 0;
	char *line = NULL;
	size_t size = 0;

	while (file != NULL && getline(&line, &size, file) > 0)
		rules += line[0] != '#' && line[0] != '\n';
	free(line);
	if (file != NULL)
		fclose(file);
	return rules;
}

static bool
script_draw(const struct conf *c, const char *census, uint64_t seed, const char *path)
{
	char why[ROCADE_FAULTS_WHY];
	FILE *file = fopen(path, "we");
	int err;

	if (file == NULL) {
		fprintf(stderr, PROGRAM ": cannot write %s: %s\n", path, strerror(errno));
		return false;
	}
	err = rocade_faults_draw(census, c->profile, seed, file, why);
	if (err != 0)
		fprintf(stderr, PROGRAM ": %s\n", why);
	if (fclose(file) != 0 && err == 0) {
		err = errno;
		fprintf(stderr, PROGRAM ": cannot write %s: %s\n", path, strerror(err));
	}
	return err == 0;
}

/* Runs the command with the script of a seed. Returns false if it cannot be run. */
static bool
seed_run(struct conf *c, const char *census, uint64_t seed, bool *failed)
{
	char folder[PATH_MAX - 64], text[80];
	struct trial_files files;
	struct trial_end end;

	/* Each profile draws another script. */
	snprintf(folder, sizeof(folder), "%s/%s-seed-%" PRIu64, c->folder,
		rocade_faults_profiles[c->profile], seed);
	if (!folder_make(folder))
		return false;
	trial_files_name(&files, folder);
	if (!script_draw(c, census, seed, files.script) ||
		!trial_run(c, &files, seed, &end)) {
		trial_files_remove(&files);
		rmdir(folder);
		return false;
	}
	*failed = end.kind != END_PASSED;
	printf("seed %" PRIu64 ": rules %u, faults %u, %s\n", seed,
		rules_in(files.script), rules_in(files.journal),
		trial_end_text(&end, text, sizeof(text)));
	fflush(stdout);
	if (!*failed) {
		trial_files_remove(&files);
		rmdir(folder);
	}
	return true;
}

static int
seeds_run(struct conf *c)
{
	char folder[PATH_MAX - 64];
	struct trial_files files;
	uint32_t failed = 0;
	bool one;

	snprintf(folder, sizeof(folder), "%s/without-faults", c->folder);
	trial_files_name(&files, folder);
	if (!folder_make(folder) || !trial_baseline(c, &files))
		return EXIT_USAGE;
	for (uint32_t i = 0; i < c->seeds; i++) {
		if (!seed_run(c, files.journal, c->seed + i, &one))
			return EXIT_USAGE;
		failed += one;
	}
	printf("%" PRIu32 " of %" PRIu32 " scripts failed", failed, c->seeds);
	if (failed != 0)
		printf("; each has a folder in %s", c->folder);
	printf("\n");
	return failed != 0 ? EXIT_RUN : EXIT_OK;
}

int
explore_main(int argc, char **argv)
{
	static struct conf c = {.seeds = SEEDS, .seed = 1, .folder = FOLDER};
	char folder[PATH_MAX];
	int rc = failure_options_read(
		&options, &c, argc, argv, 0, "-- COMMAND, with rocade-run in it");

	if (rc >= 0)
		return rc;
	if (!folder_make(c.folder))
		return EXIT_USAGE;
	if (realpath(c.folder, folder) == NULL) {
		folder_refuse(c.folder, errno);
		return EXIT_USAGE;
	}
	if (strlen(folder) > PATH_MAX / 2) {
		folder_refuse(c.folder, ENAMETOOLONG);
		return EXIT_USAGE;
	}
	c.folder = folder; /* the command may change its directory */
	rc = seeds_run(&c);
	trial_end_if_asked();
	return rc;
}
