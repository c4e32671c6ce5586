/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <rocade/faults.h>

#include "run_state.h"
#include "trial.h"

#define LOOK_MIN_MS 1000 /* a request may wait this long for a timer, several times */
#define HANG_TIMES 20    /* of the run without faults */
#define HANG_LOOKS 10    /* observations of one state that make a hang */
#define REPEAT_LOOKS 200 /* all in all: the command repeats itself */
#define TICK_MS 10
#define EXIT_SHELL_SIGNAL 128 /* + n: what shells and rocade-run return for signal n */

static volatile sig_atomic_t ended_by;
static struct process_tree tree; /* too large for the stack */

static void
end_asked(int number)
{
	ended_by = number;
}

void
trial_files_name(struct trial_files *f, const char *folder)
{
	snprintf(f->script, sizeof(f->script), "%s/script.txt", folder);
	snprintf(f->journal, sizeof(f->journal), "%s/journal.txt", folder);
	snprintf(f->output, sizeof(f->output), "%s/output.txt", folder);
}

void
trial_files_remove(const struct trial_files *f)
{
	unlink(f->script);
	unlink(f->journal);
	unlink(f->output);
}

/* Processes print no advice, which may change from run to run. */
static void
advice_off(void)
{
	const char *off = getenv("ROCADE_OFF");
	char list[1024];

	snprintf(list, sizeof(list), "advice%s%s", off != NULL ? "," : "",
		off != NULL ? off : "");
	setenv("ROCADE_OFF", list, 1);
}

/* In the child. The rocade-run of the command takes the script from the environment. */
static __attribute__((noreturn)) void
command_exec(const struct conf *c, const struct trial_files *f, const char *seed)
{
	int in = open("/dev/null", O_RDONLY);
	int out = open(f->output, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0644);

	if (in < 0 || out < 0)
		_exit(EXIT_SHELL_SIGNAL - 1);
	dup2(in, STDIN_FILENO);
	dup2(out, STDOUT_FILENO);
	dup2(out, STDERR_FILENO);
	close(in);
	close(out);
	setenv("ROCADE_FAULTS", f->script, 1);
	setenv("ROCADE_FAULTS_SEED", seed, 1);
	setenv("ROCADE_FAULT_JOURNAL", f->journal, 1);
	advice_off();
	execvp(c->command[0], c->command);
	dprintf(STDERR_FILENO, PROGRAM ": cannot run %s: %s\n", c->command[0],
		strerror(errno));
	_exit(EXIT_SHELL_SIGNAL - 1);
}

/* Whether a line of the output matches. */
static bool
output_matches(const struct conf *c, const char *path)
{
	FILE *file = c->match != NULL ? fopen(path, "re") : NULL;
	char *line = NULL;
	size_t size = 0;
	bool found = false;
	ssize_t len;

	while (file != NULL && !found && (len = getline(&line, &size, file)) > 0) {
		line[strcspn(line, "\n")] = '\0';
		found = regexec(&c->pattern, line, 0, NULL, 0) == 0;
	}
	free(line);
	if (file != NULL)
		fclose(file);
	return found;
}

/* How a command ended by itself. */
static struct trial_end
end_of(const struct conf *c, const struct trial_files *f, int status)
{
	struct trial_end end = {END_PASSED, WIFEXITED(status) ? WEXITSTATUS(status) : 0};

	if (WIFSIGNALED(status))
		return (struct trial_end){END_SIGNAL, WTERMSIG(status)};
	if (end.value > EXIT_SHELL_SIGNAL && end.value <= EXIT_SHELL_SIGNAL + SIGRTMAX)
		return (struct trial_end){END_SIGNAL, end.value - EXIT_SHELL_SIGNAL};
	if (output_matches(c, f->output))
		return (struct trial_end){END_MATCH, 0};
	if (!c->accepted[end.value])
		end.kind = END_STATUS;
	return end;
}

/* The observations of a run. */
struct watch {
	uint64_t state;
	unsigned same, looks;
};

static void
look(struct watch *w, const struct trial_files *f)
{
	const char *files[] = {f->journal, f->output, NULL};
	uint64_t state;

	process_tree_read(&tree);
	state = run_state(&tree, files);
	w->same = state == w->state ? w->same + 1 : 0;
	w->state = state;
	w->looks++;
}

/* Waits for the child, which may be the only process. Processes that it leaves behind go on as long as the state changes. */
static struct trial_end
command_wait(const struct conf *c, const struct trial_files *f, pid_t child)
{
	static const struct timespec tick = {.tv_nsec = TICK_MS * 1000000};
	uint64_t look_ms = c->look_ms != 0 ? c->look_ms : LOOK_MIN_MS;
	struct watch w = {.state = 0};
	bool ended = false;
	int status = 0, one;
	pid_t pid;

	for (uint64_t ms = TICK_MS; ended_by == 0; ms += TICK_MS) {
		while ((pid = waitpid(-1, &one, WNOHANG)) > 0) {
			if (pid == child) {
				status = one;
				ended = true;
				w.same = 0;
			}
		}
		if (ended && pid < 0)
			return end_of(c, f, status);
		nanosleep(&tick, NULL);
		if (ms % look_ms >= TICK_MS)
			continue;
		look(&w, f);
		if (ended && w.same != 0)
			break;
		if (!ended && c->look_ms != 0 &&
			(w.same == HANG_LOOKS || w.looks == REPEAT_LOOKS))
			return (struct trial_end){END_HANG, 0};
	}
	return end_of(c, f, status);
}

/* With the signal that has asked for it. */
static void
self_end_if_asked(void)
{
	if (ended_by == 0)
		return;
	signal(ended_by, SIG_DFL);
	raise(ended_by);
}

bool
trial_run(
	struct conf *c, const struct trial_files *f, uint64_t seed, struct trial_end *end)
{
	static const int asked[] = {SIGINT, SIGTERM, SIGHUP};
	struct sigaction action = {.sa_handler = end_asked};
	char text[24];
	pid_t child;
	int err;

	snprintf(text, sizeof(text), "%" PRIu64, seed);
	err = rocade_faults_journal_begin(
		f->journal, ROCADE_VERSION, c->command[0], text);
	if (err != 0) {
		fprintf(stderr, PROGRAM ": cannot write %s: %s\n", f->journal,
			strerror(err));
		return false;
	}
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	fflush(NULL);
	child = fork();
	if (child == 0)
		command_exec(c, f, text);
	for (size_t i = 0; i < sizeof(asked) / sizeof(asked[0]); i++)
		sigaction(asked[i], &action, NULL);
	if (child < 0) {
		fprintf(stderr, PROGRAM ": cannot fork: %s\n", strerror(errno));
		return false;
	}
	*end = command_wait(c, f, child);
	process_tree_end(&tree);
	self_end_if_asked();
	return true;
}

static uint64_t
trial_clock_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

bool
trial_baseline(struct conf *c, const struct trial_files *f)
{
	FILE *script = fopen(f->script, "we");
	uint64_t begin = trial_clock_ms(), took;
	struct trial_end end;
	char text[80];

	if (script != NULL)
		rocade_faults_count_all(script);
	if (script == NULL || fclose(script) != 0) {
		fprintf(stderr, PROGRAM ": cannot write %s: %s\n", f->script,
			strerror(errno));
		return false;
	}
	c->look_ms = 0;
	if (!trial_run(c, f, 0, &end))
		return false;
	if (end.kind != END_PASSED) {
		fprintf(stderr,
			PROGRAM ": without faults %s fails: %s (see %s); expected a "
				"command that fails only with faults\n",
			c->command[0], trial_end_text(&end, text, sizeof(text)),
			f->output);
		return false;
	}
	took = trial_clock_ms() - begin;
	c->look_ms = took * HANG_TIMES / HANG_LOOKS;
	if (c->look_ms < LOOK_MIN_MS)
		c->look_ms = LOOK_MIN_MS;
	fprintf(stderr, PROGRAM ": the run without faults took %" PRIu64 " ms\n", took);
	return true;
}

const char *
trial_end_text(const struct trial_end *end, char *out, size_t size)
{
	static const char *const kinds[] = {[END_PASSED] = "passed",
		[END_MATCH] = "the output matches",
		[END_HANG] = "hang"};

	if (end->kind == END_STATUS)
		snprintf(out, size, "status %d", end->value);
	else if (end->kind == END_SIGNAL)
		snprintf(out, size, "signal %d (%s)", end->value, strsignal(end->value));
	else
		snprintf(out, size, "%s", kinds[end->kind]);
	return out;
}

bool
trial_failed_so(const struct trial_end *a, const struct trial_end *b)
{
	return a->kind == b->kind && (a->kind == END_PASSED || a->value == b->value);
}
