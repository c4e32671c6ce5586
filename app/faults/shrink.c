/* SPDX-License-Identifier: BSD-3-Clause */
/* Drops faults of a journal, or rules of a script, as long as a command fails as with all of them. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <rocade/faults.h>

#include <common/options.h>

#include "drop_parts.h"
#include "trial.h"

#include "failures.h"

#define RUNS 3
#define RUNS_MAX 1000

#define MEMBER(field) OPTION_MEMBER(struct conf, field)
static const struct option_row option_rows[] = {
	{OPTION_NUM, 0, "runs", "K", MEMBER(runs), .min = 1, .max = RUNS_MAX,
		.text = "a script fails if one of K runs does (default: 3)"},
	FAILURE_ROWS,
	{OPTION_HELP, .name = "help"},
	{OPTION_VERSION, .name = "version"},
};

static const struct options options = {.program = PROGRAM,
	.usage =
		"Usage: " PROGRAM " shrink [OPTION]... JOURNAL -- COMMAND [ARGUMENT]...\n"
		"Drops faults of a journal, or rules of a script, as long as the command "
		"fails as\nwith all of them, and prints the rest as a script.\n\n",
	.notes = "  --help, --version\n\n"
		 "Exit status: 0; 1 if the command does not fail with the faults of the "
		 "journal; 2\nfor invalid arguments, and if the command fails without "
		 "faults.\n",
	.rows = option_rows,
	.count = sizeof(option_rows) / sizeof(option_rows[0]),
	.column = 19,
	.operands = true};

/* The rules, without comments. */
struct rules {
	char *lines[ROCADE_FAULTS_RULES];
	bool kept[ROCADE_FAULTS_RULES], spare[ROCADE_FAULTS_RULES];
	unsigned count;
	struct conf *c;
	struct trial_files files;
	struct trial_end end; /* with all of them */
	unsigned runs;        /* so far */
	bool broken;          /* a run was not possible */
};

/* Ends the line where a comment begins, which is outside of quotes, and at its last blank. */
static void
comment_cut(char *line)
{
	bool quoted = false;
	size_t len = 0;

	for (size_t i = 0; line[i] != '\0' && (quoted || line[i] != '#'); i++) {
		quoted ^= line[i] == '"';
		if (strchr(" \t\r\n", line[i]) == NULL)
			len = i + 1;
	}
	line[len] = '\0';
}

static bool
is_there(const struct rules *r, const char *line)
{
	for (unsigned i = 0; i < r->count; i++) {
		if (strcmp(r->lines[i], line) == 0)
			return true;
	}
	return false;
}

/* Which requests a share means depends on the rules before it. */
static bool
has_share(const char *line)
{
	const char *quote = strrchr(line, '"');

	return strchr(quote != NULL ? quote : line, '%') != NULL;
}

/* The file may have grown since it was read. Returns false with an error printed. */
static bool
rule_keep(struct rules *r, const char *line, const char *path)
{
	char *copy = r->count < ROCADE_FAULTS_RULES ? strdup(line) : NULL;

	if (copy == NULL)
		fprintf(stderr, PROGRAM ": cannot read %s: %s\n", path,
			strerror(r->count < ROCADE_FAULTS_RULES ? ENOMEM : E2BIG));
	else
		r->lines[r->count++] = copy;
	return copy != NULL;
}

/* The script was read without errors before. Returns false with an error printed. */
static bool
rules_read(struct rules *r, const char *path)
{
	FILE *file = fopen(path, "re");
	char *line = NULL;
	size_t size = 0;
	bool good = file != NULL;

	if (file == NULL)
		fprintf(stderr, PROGRAM ": cannot read %s: %s\n", path, strerror(errno));
	while (good && getline(&line, &size, file) > 0) {
		comment_cut(line);
		if (line[0] == '\0' || is_there(r, line))
			continue;
		good = !has_share(line);
		if (!good)
			fprintf(stderr,
				PROGRAM
				": '%s' of %s: the rules before it determine which P%% "
				"means; valid: the journal of a run, or rules with call "
				"N, request N, receive N, packet N or each Nth\n",
				line, path);
		else
			good = rule_keep(r, line, path);
	}
	free(line);
	if (file != NULL)
		fclose(file);
	if (good && r->count == 0)
		fprintf(stderr, PROGRAM ": %s has no fault; expected one at least\n",
			path);
	return good && r->count != 0;
}

/* Whether one of K runs fails as it should. first: any failure, which is kept. */
static bool
script_fails(struct rules *r, bool first)
{
	struct trial_end end;

	for (uint32_t i = 0; i < r->c->runs && !r->broken; i++) {
		r->runs++;
		r->broken = !trial_run(r->c, &r->files, 0, &end);
		if (r->broken || end.kind == END_PASSED)
			continue;
		if (first)
			r->end = end;
		if (trial_failed_so(&end, &r->end))
			return true;
	}
	return false;
}

static bool
kept_write(const struct rules *r, const bool *kept, FILE *to)
{
	for (unsigned i = 0; i < r->count; i++) {
		if (kept[i])
			fprintf(to, "%s\n", r->lines[i]);
	}
	return !ferror(to);
}

static bool
kept_script(struct rules *r, const bool *kept)
{
	FILE *script = fopen(r->files.script, "we");
	bool written = script != NULL && kept_write(r, kept, script);

	if (script != NULL && fclose(script) != 0)
		written = false;
	if (!written) {
		fprintf(stderr, PROGRAM ": cannot write %s: %s\n", r->files.script,
			strerror(errno));
		r->broken = true;
	}
	return written;
}

static bool
kept_fails(const bool *kept, void *arg)
{
	struct rules *r = arg;
	unsigned count = 0;
	bool fails;

	if (r->broken || !kept_script(r, kept))
		return false;
	fails = script_fails(r, false);
	if (r->broken)
		return false;
	for (unsigned i = 0; i < r->count; i++)
		count += kept[i];
	fprintf(stderr, PROGRAM ": with %u of %u: %s\n", count, r->count,
		fails ? "fails" : "does not fail in this way");
	return fails;
}

static int
rules_shrink(struct rules *r, const char *path)
{
	char text[80];
	unsigned left;

	memset(r->kept, true, r->count * sizeof(r->kept[0]));
	if (!trial_baseline(r->c, &r->files) || !kept_script(r, r->kept))
		return EXIT_USAGE;
	if (!script_fails(r, true)) {
		if (r->broken)
			return EXIT_USAGE;
		fprintf(stderr,
			PROGRAM ": with all faults of %s the command has not failed in "
				"%" PRIu32 " runs (see --runs)\n",
			path, r->c->runs);
		return EXIT_RUN;
	}
	trial_end_text(&r->end, text, sizeof(text));
	fprintf(stderr, PROGRAM ": with all %u: %s\n", r->count, text);
	left = parts_drop(r->kept, r->spare, r->count, kept_fails, r);
	printf("# %s, with %u of %u rules of %s, after %u runs%s\n", text, left, r->count,
		path, r->runs, r->broken ? ", not to the end" : "");
	kept_write(r, r->kept, stdout);
	if (fflush(stdout) != 0)
		return EXIT_RUN;
	return r->broken ? EXIT_USAGE : EXIT_OK;
}

/* A journal of another version or program is refused. The program is one of the words of the command, or, of a shell,
 * in one of them. */
static bool
journal_fits(const char *path, char **command)
{
	char why[ROCADE_FAULTS_WHY], *words, *word, *save;
	int err = EINVAL;

	for (unsigned i = 0; command[i] != NULL && err == EINVAL; i++) {
		words = strdup(command[i]);
		for (word = words != NULL ? strtok_r(words, " \t\n;&|()", &save) : NULL;
			word != NULL && err == EINVAL;
			word = strtok_r(NULL, " \t\n;&|()", &save))
			err = rocade_faults_journal_check(
				path, ROCADE_VERSION, word, why);
		free(words);
	}
	if (err == EINVAL) /* the difference to the program that it begins with */
		err = rocade_faults_journal_check(path, ROCADE_VERSION, command[0], why);
	if (err != 0)
		fprintf(stderr, PROGRAM ": %s%s\n", why,
			err == ENOTUNIQ ? "; valid too: its script" : "");
	return err == 0;
}

static int
journal_shrink(struct conf *c, const char *path)
{
	static struct rules rules;
	char folder[] = "/tmp/rocade-faults-XXXXXX", why[ROCADE_FAULTS_WHY];
	struct stat st;
	int rc = EXIT_USAGE;

	if (stat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)) {
		fprintf(stderr,
			PROGRAM
			": invalid value '%s' for JOURNAL: expected a regular file, "
			"because it is read more than once\n",
			path);
		return EXIT_USAGE;
	}
	if (rocade_faults_read(path, NULL, why) != 0) {
		fprintf(stderr, PROGRAM ": %s\n", why);
		return EXIT_USAGE;
	}
	if (!journal_fits(path, c->command) || !rules_read(&rules, path))
		return EXIT_USAGE;
	if (mkdtemp(folder) == NULL) {
		fprintf(stderr, PROGRAM ": cannot make the folder %s: %s\n", folder,
			strerror(errno));
		return EXIT_USAGE;
	}
	rules.c = c;
	trial_files_name(&rules.files, folder);
	rc = rules_shrink(&rules, path);
	if (rc != EXIT_USAGE || trial_end_asked()) { /* else an error names its files */
		trial_files_remove(&rules.files);
		rmdir(folder);
	}
	trial_end_if_asked();
	return rc;
}

int
shrink_main(int argc, char **argv)
{
	static struct conf c = {.runs = RUNS};
	int rc = failure_options_read(
		&options, &c, argc, argv, 1, "JOURNAL -- COMMAND, with rocade-run in it");

	return rc >= 0 ? rc : journal_shrink(&c, argv[optind]);
}
