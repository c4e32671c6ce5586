/* SPDX-License-Identifier: BSD-3-Clause */
/* Journals. The first line, a comment, says of which run a journal is; each other line is a rule. A journal is
 * replayed as a script, so that it can be only where its rules refuse the same calls again. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rocade/faults.h>

#include "faults/faults.h"

#define JOURNAL "# rocade-faults journal 1: "
#define RUN "rocade %s, program \"%s\""
#define RUN_MAX 512
#define PROCESS " of the script, process "

/* A program of which a journal has lines. */
struct author {
	const char *name; /* to its quote */
	size_t len;
	const char *process; /* to the end of the line */
};

static void
run_write(char out[RUN_MAX], const char *version, const char *program)
{
	const char *slash = strrchr(program, '/');

	snprintf(out, RUN_MAX, RUN, version, slash != NULL ? slash + 1 : program);
	for (char *c = out; *c != '\0'; c++) {
		if ((unsigned char)*c < ' ')
			*c = '?';
	}
}

int
rocade_faults_journal_begin(
	const char *path, const char *version, const char *program, const char *seed)
{
	char run[RUN_MAX];
	FILE *file = fopen(path, "we");
	int err = file == NULL ? errno : 0;

	if (err != 0)
		return err;
	run_write(run, version, program);
	if (fprintf(file, JOURNAL "%s, seed %s\n", run, seed) < 0)
		err = EIO;
	if (fclose(file) != 0)
		err = errno;
	return err;
}

/* Reads a line as fault_process.c writes it. Returns false if it is another one. */
static bool
author_read(const char *line, const char *end, struct author *out)
{
	const char *quote, *process;

	if (strncmp(line, "in \"", 4) != 0)
		return false;
	out->name = line + 4;
	quote = memchr(out->name, '"', (size_t)(end - out->name));
	process = memmem(line, (size_t)(end - line), PROCESS, strlen(PROCESS));
	if (quote == NULL || process == NULL)
		return false;
	out->len = (size_t)(quote - out->name);
	out->process = process + strlen(PROCESS);
	return true;
}

static size_t
line_len(const char *at)
{
	return strcspn(at, "\n");
}

/* Adds an author unless it is there. Returns the one of this name with another process, or NULL. */
static const struct author *
authors_add(struct author *all, unsigned *count, const struct author *one)
{
	for (unsigned i = 0; i < *count; i++) {
		if (all[i].len != one->len ||
			memcmp(all[i].name, one->name, one->len) != 0)
			continue;
		return line_len(all[i].process) == line_len(one->process) &&
				       memcmp(all[i].process, one->process,
					       line_len(one->process)) == 0
			       ? NULL
			       : &all[i];
	}
	all[(*count)++] = *one;
	return NULL;
}

/* Each process counts for itself, so two of one name would each get the rules of both. */
static int
authors_check(const char *path, const char *text, char why[FAULT_WHY_MAX])
{
	struct author *all = calloc(FAULT_RULES_MAX + 1, sizeof(*all)), one;
	const struct author *other = NULL;
	unsigned count = 0, lines = 0;
	int err = all == NULL ? ENOMEM : 0;

	if (all == NULL)
		snprintf(why, FAULT_WHY_MAX, "out of memory");
	for (const char *at = text;
		err == 0 && *at != '\0' && lines <= FAULT_RULES_MAX;) {
		const char *end = at + line_len(at);

		if (author_read(at, end, &one)) {
			other = authors_add(all, &count, &one);
			lines++;
		}
		if (other != NULL) {
			snprintf(why, FAULT_WHY_MAX,
				"the journal %s cannot be replayed: its processes %.*s and "
				"%.*s have one name, \"%.*s\"; valid: one process of each "
				"name",
				path, (int)line_len(other->process), other->process,
				(int)line_len(one.process), one.process, (int)one.len,
				one.name);
			err = EINVAL;
		}
		at = *end == '\n' ? end + 1 : end;
	}
	free(all);
	return err;
}

int
rocade_faults_journal_check(const char *path, const char *version, const char *program,
	char why[ROCADE_FAULTS_WHY])
{
	char run[RUN_MAX];
	size_t len, run_len;
	char *text = fault_text_read(path, &len);
	const char *of;
	int err = 0;

	if (text == NULL) {
		err = errno;
		snprintf(why, FAULT_WHY_MAX, "cannot read %s: %s", path, strerror(err));
		return err;
	}
	if (strncmp(text, JOURNAL, strlen(JOURNAL)) == 0) {
		run_write(run, version, program);
		run_len = strlen(run);
		of = text + strlen(JOURNAL);
		if (strncmp(of, run, run_len) != 0 || of[run_len] != ',') {
			snprintf(why, FAULT_WHY_MAX,
				"%s is a journal of %.*s, and this is %s (without its first "
				"line it is a script for any program)",
				path, (int)line_len(of), of, run);
			err = EINVAL;
		} else {
			err = authors_check(path, text, why);
		}
	}
	free(text);
	return err;
}
