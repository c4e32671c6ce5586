/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <rocade/faults.h>

#include "run_program.h"
#include "run_state.h"
#include "run_watch.h"
#include "trial.h"

#define LOOK_MIN_MS 1000  /* a request may wait this long for a timer, several times */
#define HANG_TIMES 20     /* of the run without faults */
#define OUTPUT_TIMES 1000 /* of it, too */
#define OUTPUT_MIN (16 * 1024 * 1024) /* bytes */
#define TICK_MS 10
#define EXIT_SHELL_SIGNAL 128 /* + n: what shells and rocade-run return for signal n */

static volatile sig_atomic_t ended_by;
static struct process_tree tree;
static sigset_t asked; /* signals that ask this process to end */

static void
end_asked(int number)
{
	ended_by = number;
}

/* Before the first command. A signal that is ignored, as by nohup(1), stays so. */
static void
signals_await(void)
{
	static const int all[] = {SIGINT, SIGTERM, SIGHUP};
	static bool done;
	struct sigaction action = {.sa_handler = end_asked}, old;

	if (done)
		return;
	done = true;
	sigemptyset(&asked);
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		if (sigaction(all[i], NULL, &old) != 0 || old.sa_handler == SIG_IGN)
			continue;
		sigaddset(&asked, all[i]);
		sigaction(all[i], &action, NULL);
	}
}

/* In the child. One that came since the fork ends it here. */
static void
signals_default(const sigset_t *mask)
{
	for (int number = 1; number < NSIG; number++) {
		if (sigismember(&asked, number) == 1)
			signal(number, SIG_DFL);
	}
	sigprocmask(SIG_SETMASK, mask, NULL);
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

/* In the child. Processes print no advice, which may change from run to run. */
static void
advice_off(void)
{
	const char *off = getenv("ROCADE_OFF");
	char *list;

	if (asprintf(&list, "advice%s%s", off != NULL ? "," : "",
		    off != NULL ? off : "") < 0)
		_exit(EXIT_SHELL_SIGNAL - 1);
	setenv("ROCADE_OFF", list, 1);
	free(list);
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
	int value = WIFEXITED(status) ? WEXITSTATUS(status) : 0;

	if (WIFSIGNALED(status))
		return (struct trial_end){.kind = END_SIGNAL, .value = WTERMSIG(status)};
	if (!c->accepted[value] && value > EXIT_SHELL_SIGNAL &&
		value <= EXIT_SHELL_SIGNAL + SIGRTMAX)
		return (struct trial_end){
			.kind = END_SIGNAL, .value = value - EXIT_SHELL_SIGNAL};
	if (output_matches(c, f->output))
		return (struct trial_end){.kind = END_MATCH};
	return (struct trial_end){
		.kind = c->accepted[value] ? END_PASSED : END_STATUS, .value = value};
}

static uint64_t
trial_clock_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static uint64_t
output_bytes(const struct trial_files *f)
{
	struct stat st;

	return stat(f->output, &st) == 0 ? (uint64_t)st.st_size : 0;
}

static enum run_verdict
look(struct run_watch *w, const struct trial_files *f)
{
	const char *files[] = {f->journal, f->output, NULL};

	process_tree_read(&tree);
	return run_watch_next(w, run_state(&tree, files), output_bytes(f));
}

/* Waits for the child, which may be the only process. Processes that it leaves behind go on as long as the state changes. */
static struct trial_end
command_wait(const struct conf *c, const struct trial_files *f, pid_t child)
{
	static const struct timespec tick = {.tv_nsec = TICK_MS * 1000000};
	uint64_t look_ms = c->look_ms != 0 ? c->look_ms : LOOK_MIN_MS;
	uint64_t begin = trial_clock_ms();
	struct run_watch w = {.limited = c->look_ms != 0, .output_max = c->output_max};
	enum run_verdict verdict = RUN_GOES_ON;
	struct trial_end end = {END_PASSED, 0, 0};
	int status;
	pid_t pid;

	for (uint64_t ms = TICK_MS; ended_by == 0 && verdict == RUN_GOES_ON;
		ms += TICK_MS) {
		while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
			if (pid == child) {
				end = end_of(c, f, status);
				end.ms = trial_clock_ms() - begin;
				w.ended = true;
			}
		}
		if (w.ended && pid < 0)
			return end;
		nanosleep(&tick, NULL);
		if (ms % look_ms < TICK_MS)
			verdict = look(&w, f);
	}
	/* A command that has crashed counts more than that what it has left behind goes on. */
	if (verdict == RUN_HANGS && end.kind == END_PASSED)
		end.kind = END_HANG;
	return end;
}

bool
trial_end_asked(void)
{
	return ended_by != 0;
}

void
trial_end_if_asked(void)
{
	if (!trial_end_asked())
		return;
	fflush(NULL);
	signal(ended_by, SIG_DFL);
	raise(ended_by);
}

/* Returns -1 on failure. */
static pid_t
command_start(const struct conf *c, const struct trial_files *f, const char *seed)
{
	sigset_t mask;
	pid_t child;

	signals_await();
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	fflush(NULL);
	sigprocmask(SIG_BLOCK, &asked, &mask);
	child = fork();
	if (child == 0) {
		signals_default(&mask);
		command_exec(c, f, seed);
	}
	sigprocmask(SIG_SETMASK, &mask, NULL);
	return child;
}

bool
trial_run(
	struct conf *c, const struct trial_files *f, uint64_t seed, struct trial_end *end)
{
	char text[24];
	pid_t child;
	int err;

	snprintf(text, sizeof(text), "%" PRIu64, seed);
	err = rocade_faults_journal_begin(
		f->journal, ROCADE_VERSION, run_program(c->command), text);
	if (err != 0) {
		fprintf(stderr, PROGRAM ": cannot write %s: %s\n", f->journal,
			strerror(err));
		return false;
	}
	child = command_start(c, f, text);
	if (child < 0) {
		fprintf(stderr, PROGRAM ": cannot fork: %s\n", strerror(errno));
		return false;
	}
	*end = command_wait(c, f, child);
	process_tree_end(&tree);
	for (unsigned i = 0; i < tree.count; i++)
		fprintf(stderr, PROGRAM ": process %ld, %s, has not ended by SIGKILL\n",
			(long)tree.all[i].pid, tree.all[i].name);
	process_tree_free(&tree);
	return ended_by == 0;
}

bool
trial_baseline(struct conf *c, const struct trial_files *f)
{
	FILE *script = fopen(f->script, "we");
	struct trial_end end;
	char text[80];

	if (script != NULL)
		rocade_faults_count_all(script);
	if (script == NULL || fclose(script) != 0) {
		fprintf(stderr, PROGRAM ": cannot write %s: %s\n", f->script,
			strerror(errno));
		return false;
	}
	c->look_ms = c->output_max = 0;
	fprintf(stderr, PROGRAM ": running %s without faults\n", c->command[0]);
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
	c->look_ms = end.ms * HANG_TIMES / HANG_LOOKS;
	if (c->look_ms < LOOK_MIN_MS)
		c->look_ms = LOOK_MIN_MS;
	c->output_max = output_bytes(f) * OUTPUT_TIMES;
	if (c->output_max < OUTPUT_MIN)
		c->output_max = OUTPUT_MIN;
	fprintf(stderr, PROGRAM ": the run without faults took %" PRIu64 " ms\n", end.ms);
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
