/* SPDX-License-Identifier: BSD-3-Clause */
/* Journals. The first line, a comment, says of which run a journal is. A comment is of each process that has made a call
 * that counts. The other lines are rules. A journal is replayed as a script, so that it can be only where its rules
 * refuse the same calls again. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rocade/faults.h>

#include "faults/faults.h"

#define JOURNAL "# rocade-faults journal 1: "
#define RUN "rocade %s, program \"%s\""
#define RUN_MAX 512

/* A program of which a journal has rules. */
struct author {
	const char *name; /* to its quote */
	size_t len;
	unsigned processes; /* for which these rules are */
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

static const char *
line_end(const char *at)
{
	return at + strcspn(at, "\n");
}

/* Reads a name in quotes behind some text of a line. Returns what is behind it, or NULL if the line is another one. */
static const char *
name_read(const char *at, const char *text, struct author *out)
{
	const char *quote;

	if (at == NULL || strncmp(at, text, strlen(text)) != 0)
		return NULL;
	out->name = at + strlen(text);
	quote = memchr(out->name, '"', (size_t)(line_end(at) - out->name));
	if (quote == NULL)
		return NULL;
	out->len = (size_t)(quote - out->name);
	return quote + 1;
}

static bool
is_same_name(const struct author *a, const struct author *b)
{
	return a->len == b->len && memcmp(a->name, b->name, a->len) == 0;
}

/* Reads the programs of the rules, each once. Returns their number. */
static unsigned
authors_read(const char *text, struct author all[FAULT_RULES_MAX])
{
	struct author one = {.processes = 0};
	unsigned count = 0, known;

	for (const char *at = text; *at != '\0' && count < FAULT_RULES_MAX;
		at = line_end(at), at += *at == '\n') {
		if (name_read(at, "in \"", &one) == NULL)
			continue;
		for (known = 0; known < count && !is_same_name(&all[known], &one);)
			known++;
		if (known == count)
			all[count++] = one;
	}
	return count;
}

/* Adds a process by its line to the programs that have one of its names. Returns one that has two then, or NULL. */
static const struct author *
process_add(struct author *all, unsigned count, const char *line)
{
	struct author name, comm;
	const struct author *twice = NULL;
	const char *at;

	if (strncmp(line, FAULT_JOURNAL_PROCESS, strlen(FAULT_JOURNAL_PROCESS)) != 0)
		return NULL;
	at = memchr(line, ':', (size_t)(line_end(line) - line));
	if (name_read(name_read(at, ": \"", &name), ", \"", &comm) == NULL)
		return NULL;
	for (unsigned i = 0; i < count; i++) {
		if ((is_same_name(&all[i], &name) || is_same_name(&all[i], &comm)) &&
			++all[i].processes == 2)
			twice = &all[i];
	}
	return twice;
}

/* Each process counts for itself, so two of one name would each get the rules of both. */
static int
processes_check(const char *path, const char *text, char why[FAULT_WHY_MAX])
{
	struct author *all = calloc(FAULT_RULES_MAX, sizeof(*all));
	const struct author *twice = NULL;
	unsigned count;

	if (all == NULL) {
		snprintf(why, FAULT_WHY_MAX, "out of memory");
		return ENOMEM;
	}
	count = authors_read(text, all);
	for (const char *at = text; twice == NULL && *at != '\0';
		at = line_end(at), at += *at == '\n')
		twice = process_add(all, count, at);
	if (twice != NULL)
		snprintf(why, FAULT_WHY_MAX,
			"the journal %s cannot be replayed: several processes have one "
			"name, \"%.*s\"; valid: one process of each name that a rule has",
			path, (int)twice->len, twice->name);
	free(all);
	return twice != NULL ? ENOTUNIQ : 0;
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
				path, (int)(line_end(of) - of), of, run);
			err = EINVAL;
		} else {
			err = processes_check(path, text, why);
		}
	}
	free(text);
	return err;
}
