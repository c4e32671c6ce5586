/* SPDX-License-Identifier: BSD-3-Clause */
/* Loads the script, counts, writes the journal, and reports at the end which rules were never applied. */
#include <ctype.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error_fd.h"
#include "base/no_cancel.h"
#include "base/off.h"
#include "preload/fault_process.h"
#include "preload/fault_queues.h"
#include "preload/fault_write.h"
#include "preload/real_dl.h"
#include "verbs/fault_hooks.h"

#define REPORTED_MAX 10

__thread unsigned fault_inside;

static struct {
	struct fault_script script;
	struct fault_plan plan;
	const char *path, *journal; /* NULL: none */
	dev_t journal_dev;          /* of the file that the journal was at first */
	ino_t journal_ino;
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
	self.journal_failed = false;
	error_leave();
}

/* A program whose faults are not known does not run. This is before main(), so standard error is the one that the
 * program got. */
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
	const char *value = secure_getenv(name);

	return value != NULL && value[0] != '\0' ? strdup(value) : NULL;
}

/* rocade-run writes the number in decimal digits. */
static uint64_t
seed_read(void)
{
	const char *text = secure_getenv("ROCADE_FAULTS_SEED");
	char *end, why[FAULT_WHY_MAX];
	uint64_t seed;

	if (text == NULL)
		return 1;
	errno = 0;
	seed = strtoull(text, &end, 10);
	if (!isdigit((unsigned char)text[0]) || *end != '\0' || errno != 0) {
		snprintf(why, sizeof(why),
			"invalid value '%.40s' of ROCADE_FAULTS_SEED: expected a number "
			"from 0 to 18446744073709551615",
			text);
		self_end(why);
	}
	return seed;
}

/* The names as a journal has them. argv[0] may be empty. */
static void
names_read(void)
{
	prctl(PR_GET_NAME, self.comm);
	if (self.comm[0] == '\0')
		strcpy(self.comm, "?");
	snprintf(self.name, sizeof(self.name), "%s",
		program_invocation_short_name[0] != '\0' ? program_invocation_short_name
							 : self.comm);
	for (char *c = self.name; *c != '\0'; c++)
		*c = fault_name_byte(*c);
	for (char *c = self.comm; *c != '\0'; c++)
		*c = fault_name_byte(*c);
}

static void
self_load(void)
{
	const char *names[2] = {self.name, self.comm};
	char why[FAULT_WHY_MAX];
	struct stat st;

	self.path = variable("ROCADE_FAULTS");
	if (self.path == NULL)
		return;
	error_keep();
	self.journal = variable("ROCADE_FAULT_JOURNAL");
	if (self.journal != NULL && stat(self.journal, &st) == 0) {
		self.journal_dev = st.st_dev;
		self.journal_ino = st.st_ino;
	}
	names_read();
	if (fault_script_read(&self.script, self.path, why) != 0)
		self_end(why);
	if (fault_plan_init(&self.plan, &self.script, seed_read(), names, 2) != 0)
		self_end("out of memory");
	pthread_atfork(NULL, NULL, self_forked);
}

/* Before main(), so that an error ends the program there. A constructor of another library may come first. */
static __attribute__((constructor)) void
fault_process_begins(void)
{
	pthread_once(&once, self_load);
}

bool
fault_same_library(const void *a, const void *b)
{
	Dl_info of_a, of_b;

	return dladdr(a, &of_a) != 0 && dladdr(b, &of_b) != 0 &&
	       of_a.dli_fbase == of_b.dli_fbase;
}

/* A plugin that was opened by dlopen() may have librdmacm for itself: then that is not in the search order. */
void *
fault_next_function(const char *name, const char *node)
{
	void *found = real_dlvsym()(RTLD_NEXT, name, node);
	void *library;

	if (found != NULL || strncmp(name, "rdma_", 5) != 0)
		return found;
	library = dlopen("librdmacm.so.1", RTLD_LAZY | RTLD_LOCAL);
	return library != NULL ? real_function_of(library, name) : NULL;
}

/* The file is opened for each line: programs close descriptors that they do not know, and use their numbers. Returns
 * why the line is not written, or NULL. */
static const char *
journal_line_write(const char *line, size_t len)
{
	int fd = open(
		self.journal, O_WRONLY | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	const char *why = NULL;
	struct stat st;
	ssize_t written;

	if (fd < 0)
		return strerror(errno);
	if (fstat(fd, &st) != 0 || st.st_dev != self.journal_dev ||
		st.st_ino != self.journal_ino) {
		why = "it is another file than at the start of the process";
	} else {
		written = write(fd, line, len);
		if (written != (ssize_t)len)
			why = written < 0 ? strerror(errno) : "there is no space";
	}
	close(fd);
	return why;
}

/* The thread may have a lock of Rocade's: it is no cancellation point. */
static void
journal_add(const char *line, int len)
{
	struct fault_write_mask mask;
	const char *why;
	int state;

	if (self.journal == NULL)
		return;
	state = no_cancel_begin();
	fault_write_begin(&mask);
	why = journal_line_write(line, (size_t)len);
	if (why != NULL &&
		!__atomic_exchange_n(&self.journal_failed, true, __ATOMIC_RELAXED))
		dprintf(error_fd(),
			"rocade: faults: the journal %s lacks lines of process %ld: %s\n",
			self.journal, (long)getpid(), why);
	fault_write_end(&mask);
	no_cancel_end(state);
}

/* At the first call that counts: the line of the process, for rocade_faults_journal_check(). */
static void
self_use(void)
{
	char line[FAULT_NAME_MAX + sizeof(self.comm) + 128];
	int err = errno, len;

	if (__atomic_load_n(&self.used, __ATOMIC_RELAXED) ||
		__atomic_exchange_n(&self.used, true, __ATOMIC_RELAXED))
		return;
	error_keep(); /* in a child */
	len = snprintf(line, sizeof(line), FAULT_JOURNAL_PROCESS "%ld: \"%s\", \"%s\"\n",
		(long)getpid(), self.name, self.comm);
	journal_add(line, len);
	errno = err;
}

bool
fault_is_possible(unsigned counted)
{
	pthread_once(&once, self_load);
	if (self.plan.script == NULL)
		return false;
	self_use();
	return fault_plan_concerns(&self.plan, counted);
}

void
fault_hit_apply(const struct fault_hit *hit)
{
	char line[FAULT_NAME_MAX + 256], what[FAULT_HIT_TEXT];
	int len, err = errno;

	fault_plan_applied(&self.plan, hit);
	fault_hit_write(hit, what, sizeof(what));
	len = snprintf(line, sizeof(line),
		"in \"%s\": %s # line %" PRIu32 " of the script, process %ld%s\n",
		self.name, what, hit->rule->line, (long)getpid(),
		hit->rule->call == FAULT_TIMES ? ", by the clock" : "");
	journal_add(line, len);
	errno = err;
}

bool
fault_link_is_possible(void)
{
	const struct fault_plan *plan = &self.plan;
	uint32_t i;

	pthread_once(&once, self_load);
	if (plan->script == NULL)
		return false;
	for (i = plan->start[FAULT_REQUESTS]; i < plan->start[FAULT_SUBJECTS]; i++) {
		if (plan->script->rules[plan->order[i]].action == FAULT_LINK)
			return true;
	}
	return false;
}

const struct fault_plan *
fault_process_plan(void)
{
	return &self.plan;
}

struct fault_hit
fault_request_hit(
	unsigned counted, struct fault_queue queue, uint64_t number, unsigned kind)
{
	return fault_plan_request(&self.plan, counted, queue, number, kind);
}

void
fault_request_undo(unsigned counted)
{
	__atomic_fetch_sub(&self.plan.count[counted], 1, __ATOMIC_RELAXED);
}

struct fault_hit
fault_packet_hit(struct fault_queue queue, const struct fault_packet *packet)
{
	return fault_plan_packet(&self.plan, queue, packet);
}

struct fault_hit
fault_call_hit(enum fault_call call)
{
	if (fault_inside != 0 || !fault_is_possible(call))
		return (struct fault_hit){.rule = NULL};
	return fault_plan_next(&self.plan, call);
}

int
fault_refusal(enum fault_call call)
{
	struct fault_hit hit = fault_call_hit(call);

	if (hit.rule == NULL)
		return 0;
	fault_hit_apply(&hit);
	errno = hit.rule->err;
	return hit.rule->err;
}

const struct fault_hooks *
verbs_hooks(void)
{
	static const struct fault_hooks *hooks;
	const struct fault_hooks *found = __atomic_load_n(&hooks, __ATOMIC_RELAXED);
	__typeof__(&rocade_fault_hooks) get;

	if (found != NULL)
		return found;
	get = (__typeof__(&rocade_fault_hooks))real_dlvsym()(
		RTLD_NEXT, "rocade_fault_hooks", "ROCADE_PRIVATE");
	if (get != NULL) {
		found = get();
		__atomic_store_n(&hooks, found, __ATOMIC_RELAXED);
	}
	return found;
}

/* Writes what the process has counted of what a rule counts. */
static void
counted_write(const struct fault_rule *r, char *out, size_t size)
{
	static const char *const units[] = {
		"send requests", "receive requests", "request packets"};
	uint64_t count = r->call < FAULT_COUNTED ? self.plan.count[r->call] : 0;

	if (r->call == FAULT_TIMES)
		snprintf(out, size, "has ended before its time");
	else if (r->call < FAULT_CALLS)
		snprintf(out, size, "counted %" PRIu64 " %s of %s", count,
			fault_counts_requests((enum fault_call)r->call) ? "work requests"
									: "calls",
			fault_call_name((enum fault_call)r->call));
	else
		snprintf(out, size,
			"counted %" PRIu64 " %s, and created %" PRIu64 " QPs and %" PRIu64
			" SRQs",
			count, units[r->call - FAULT_CALLS], fault_queues_made(FAULT_QP),
			fault_queues_made(FAULT_SRQ));
}

static void
unapplied_report(int fd)
{
	const struct fault_plan *plan = &self.plan;
	unsigned unapplied = 0;
	char counted[160];

	for (uint32_t i = 0; i < plan->start[FAULT_SUBJECTS]; i++) {
		const struct fault_rule *r = &plan->script->rules[plan->order[i]];

		if (plan->applied[plan->order[i]] != 0 || unapplied++ >= REPORTED_MAX)
			continue;
		counted_write(r, counted, sizeof(counted));
		dprintf(fd,
			"rocade: faults: %s, line %" PRIu32
			": the rule was never applied; %s %s\n",
			self.path, r->line, self.name, counted);
	}
	if (unapplied > REPORTED_MAX)
		dprintf(fd, "rocade: faults: %s: %u more rules were never applied\n",
			self.path, unapplied - REPORTED_MAX);
}

/* For random scripts: what this process was seen to do. */
static void
counts_journal(void)
{
	struct fault_program me = {.pid = (long)getpid(),
		.qps = fault_queues_made(FAULT_QP),
		.srqs = fault_queues_made(FAULT_SRQ)};
	char line[FAULT_COUNTS_TEXT];

	memcpy(me.name, self.name, sizeof(me.name));
	fault_counts_write(&self.plan, &me, line, sizeof(line));
	journal_add(line, (int)strlen(line));
}

/* As the advice, not in processes that have used no device. */
static __attribute__((destructor)) void
fault_process_ends(void)
{
	int fd = self.used && !is_off(OFF_ADVICE) ? error_fd() : -1;
	struct fault_write_mask mask;

	if (self.used)
		counts_journal();
	if (fd < 0)
		return;
	fault_write_begin(&mask);
	unapplied_report(fd);
	fault_write_end(&mask);
}
