/* SPDX-License-Identifier: BSD-3-Clause */
/* Loads the script, counts, writes the journal, and reports at the end which rules never matched. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/off.h"
#include "preload/fault_process.h"

#define REPORTED_MAX 10

__thread unsigned fault_inside;

static struct {
	struct fault_script script;
	struct fault_plan plan;
	const char *path, *journal;              /* NULL: none */
	char name[FAULT_NAME_MAX + 1], comm[16]; /* of the program */
	bool used;                               /* a call was counted */
	bool journal_failed;
} self;

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void
self_forked(void)
{
	fault_plan_restart(&self.plan);
	self.used = false;
}

/* A program whose faults are not known does not run. */
static __attribute__((noreturn)) void
self_end(const char *why)
{
	dprintf(STDERR_FILENO, "rocade: faults: %s\n", why);
	_exit(1);
}

/* A copy that the program cannot change by its environment. */
static const char *
variable(const char *name)
{
	const char *value = getenv(name);

	return value != NULL && value[0] != '\0' ? strdup(value) : NULL;
}

static void
self_load(void)
{
	const char *names[2] = {self.name, self.comm};
	const char *seed = getenv("ROCADE_FAULTS_SEED");
	char why[FAULT_WHY_MAX];

	self.path = variable("ROCADE_FAULTS");
	if (self.path == NULL)
		return;
	self.journal = variable("ROCADE_FAULT_JOURNAL");
	snprintf(self.name, sizeof(self.name), "%s", program_invocation_short_name);
	prctl(PR_GET_NAME, self.comm);
	if (fault_script_read(&self.script, self.path, why) != 0)
		self_end(why);
	if (fault_plan_init(&self.plan, &self.script,
		    seed != NULL ? strtoull(seed, NULL, 10) : 1, names, 2) != 0)
		self_end("out of memory");
	pthread_atfork(NULL, NULL, self_forked);
}

/* Before main(), so that an error ends the program there. A constructor of another library may come first. */
static __attribute__((constructor)) void
fault_process_begins(void)
{
	pthread_once(&once, self_load);
}

struct fault_hit
fault_find(enum fault_call call)
{
	pthread_once(&once, self_load);
	if (self.plan.script == NULL)
		return (struct fault_hit){.rule = NULL};
	if (!__atomic_load_n(&self.used, __ATOMIC_RELAXED))
		__atomic_store_n(&self.used, true, __ATOMIC_RELAXED);
	return fault_plan_next(&self.plan, call);
}

bool
fault_same_library(const void *a, const void *b)
{
	Dl_info of_a, of_b;

	return dladdr(a, &of_a) != 0 && dladdr(b, &of_b) != 0 &&
	       of_a.dli_fbase == of_b.dli_fbase;
}

/* The name as a script can have it. */
static void
name_write(char out[FAULT_NAME_MAX + 1])
{
	snprintf(out, FAULT_NAME_MAX + 1, "%s", self.name);
	for (char *c = out; *c != '\0'; c++) {
		if (*c == '"' || (unsigned char)*c < ' ')
			*c = '?';
	}
}

/* The file is opened for each line: programs close descriptors that they do not know, and use their numbers. */
static void
journal_add(enum fault_call call, const struct fault_hit *hit)
{
	char name[FAULT_NAME_MAX + 1], line[FAULT_NAME_MAX + 256];
	int fd, len;
	bool good;

	if (self.journal == NULL)
		return;
	name_write(name);
	len = snprintf(line, sizeof(line),
		"in \"%s\": call %" PRIu64 " of %s: %s # line %" PRIu32
		" of the script, process %ld\n",
		name, hit->number, fault_call_name(call),
		fault_error_name(hit->rule->err), hit->rule->line, (long)getpid());
	fd = open(self.journal, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
	good = fd >= 0 && write(fd, line, (size_t)len) == len;
	if (!good && !__atomic_exchange_n(&self.journal_failed, true, __ATOMIC_RELAXED))
		dprintf(STDERR_FILENO, "rocade: faults: the journal %s lacks lines: %s\n",
			self.journal, strerror(errno));
	if (fd >= 0)
		close(fd);
}

int
fault_apply(enum fault_call call, const struct fault_hit *hit)
{
	fault_plan_matched(&self.plan, hit);
	journal_add(call, hit);
	errno = hit->rule->err;
	return hit->rule->err;
}

int
fault_refusal(enum fault_call call)
{
	struct fault_hit hit;

	if (fault_inside != 0)
		return 0;
	hit = fault_find(call);
	return hit.rule != NULL ? fault_apply(call, &hit) : 0;
}

static void
unmatched_report(void)
{
	const struct fault_plan *plan = &self.plan;
	unsigned unmatched = 0;

	for (uint32_t i = 0; i < plan->start[FAULT_CALLS]; i++) {
		const struct fault_rule *r = &plan->script->rules[plan->order[i]];
		enum fault_call call = (enum fault_call)r->call;

		if (plan->matched[plan->order[i]] != 0 || unmatched++ >= REPORTED_MAX)
			continue;
		dprintf(STDERR_FILENO,
			"rocade: faults: %s, line %" PRIu32
			": the rule never matched; %s counted %" PRIu64 " %s of %s\n",
			self.path, r->line, self.name, plan->count[call],
			fault_counts_requests(call) ? "work requests" : "calls",
			fault_call_name(call));
	}
	if (unmatched > REPORTED_MAX)
		dprintf(STDERR_FILENO,
			"rocade: faults: %s: %u more rules never matched\n", self.path,
			unmatched - REPORTED_MAX);
}

/* As the advice, not in processes that have used no device. */
static __attribute__((destructor)) void
fault_process_ends(void)
{
	if (self.used && !is_off(OFF_ADVICE))
		unmatched_report();
}
