/* SPDX-License-Identifier: BSD-3-Clause */
/* What the processes of a run have counted: a comment of its journal for each, behind the one with which it begins. A
 * process that a signal ends, or _exit(2), writes none. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "faults/faults.h"

#define ASSUMED 16 /* of everything, for a process that has not said it */

static const char *const queue_counts[] = {"request", "receive", "packet"};

static const char *
counted_name(unsigned counted)
{
	return counted < FAULT_CALLS ? fault_call_name((enum fault_call)counted)
				     : queue_counts[counted - FAULT_CALLS];
}

static void
counted_add(char *out, size_t size, const char *name, uint64_t count)
{
	size_t len = strlen(out);

	if (count != 0)
		snprintf(out + len, size - len, " %s %" PRIu64, name, count);
}

void
fault_counts_write(const struct fault_plan *p, const struct fault_program *of, char *out,
	size_t size)
{
	size_t len;

	snprintf(out, size, FAULT_JOURNAL_COUNTED "%ld: \"%s\":", of->pid, of->name);
	for (unsigned i = 0; i < FAULT_COUNTED; i++)
		counted_add(out, size, counted_name(i), p->count[i]);
	counted_add(out, size, "qp", of->qps);
	counted_add(out, size, "srq", of->srqs);
	len = strlen(out);
	snprintf(out + len, size - len, "\n");
}

/* Returns where a count of this name is kept, or NULL. */
static uint64_t *
count_named(struct fault_program *p, const char *name)
{
	for (unsigned i = 0; i < FAULT_COUNTED; i++) {
		if (strcmp(counted_name(i), name) == 0)
			return &p->count[i];
	}
	if (strcmp(name, "qp") == 0)
		return &p->qps;
	return strcmp(name, "srq") == 0 ? &p->srqs : NULL;
}

/* A process with this line of FAULT_JOURNAL_PROCESS. */
static void
program_begin(struct fault_census *c, const char *at)
{
	struct fault_program *p = &c->programs[c->count];
	char *behind;

	if (c->count == FAULT_PROGRAMS_MAX)
		return;
	*p = (struct fault_program){.pid = strtol(at, &behind, 10), .qps = 1, .srqs = 1};
	if (sscanf(behind, ": \"%255[^\"\n]\"", p->name) != 1)
		return;
	for (unsigned i = 0; i < FAULT_COUNTED; i++)
		p->count[i] = ASSUMED;
	c->count++;
}

static void
counts_read(struct fault_program *p, const char *at)
{
	char name[32];
	uint64_t count, *kept;
	int len;

	p->counted = true;
	p->qps = p->srqs = 0;
	memset(p->count, 0, sizeof(p->count));
	while (sscanf(at, " %31[a-z_] %" SCNu64 "%n", name, &count, &len) == 2) {
		kept = count_named(p, name);
		if (kept != NULL)
			*kept = count;
		at += len;
		if (*at != ' ')
			break;
	}
}

/* A line of FAULT_JOURNAL_COUNTED: of the last process with its PID. */
static void
program_end(struct fault_census *c, const char *at)
{
	char *behind;
	long pid = strtol(at, &behind, 10);
	unsigned i = c->count;
	int len = 0;

	while (i > 0 && (c->programs[i - 1].pid != pid || c->programs[i - 1].counted))
		i--;
	if (i == 0 || sscanf(behind, ": \"%*[^\"\n]\":%n", &len) < 0 || len == 0)
		return;
	counts_read(&c->programs[i - 1], behind + len);
}

void
fault_census_read(struct fault_census *c, const char *journal)
{
	c->count = 0;
	for (const char *at = journal; *at != '\0';
		at += strcspn(at, "\n"), at += *at == '\n') {
		if (strncmp(at, FAULT_JOURNAL_PROCESS, strlen(FAULT_JOURNAL_PROCESS)) ==
			0)
			program_begin(c, at + strlen(FAULT_JOURNAL_PROCESS));
		else if (strncmp(at, FAULT_JOURNAL_COUNTED,
				 strlen(FAULT_JOURNAL_COUNTED)) == 0)
			program_end(c, at + strlen(FAULT_JOURNAL_COUNTED));
	}
}

static int
by_name(const void *a, const void *b)
{
	return strcmp(((const struct fault_program *)a)->name,
		((const struct fault_program *)b)->name);
}

static uint64_t
larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

void
fault_census_join(struct fault_census *c)
{
	struct fault_program *of = c->programs;
	unsigned kept = 0;

	qsort(of, c->count, sizeof(*of), by_name);
	for (unsigned i = 0; i < c->count; i++) {
		if (kept == 0 || strcmp(of[kept - 1].name, of[i].name) != 0) {
			of[kept++] = of[i];
			continue;
		}
		for (unsigned n = 0; n < FAULT_COUNTED; n++)
			of[kept - 1].count[n] =
				larger(of[kept - 1].count[n], of[i].count[n]);
		of[kept - 1].qps = larger(of[kept - 1].qps, of[i].qps);
		of[kept - 1].srqs = larger(of[kept - 1].srqs, of[i].srqs);
	}
	c->count = kept;
}
