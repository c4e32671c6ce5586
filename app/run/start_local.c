/* SPDX-License-Identifier: BSD-3-Clause */
/* --start-local: a daemon that lives as long as the program. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <rocade/status.h>

#include <common/options.h>

#include "mount_tree.h"
#include "run_conf.h"

#define READY_S 10    /* a daemon that does not listen after this long has failed */
#define END_S 10      /* for the daemon to end on SIGTERM */
#define END_POLL_MS 5 /* interval of checks whether it has */

/* The signals of this process, which are those of the program: it waits with them blocked, and
 * passes on what comes. */
static struct {
	sigset_t forwarded, waited; /* waited: and SIGCHLD */
	int fd;                     /* readable: one of `forwarded` has come */
	sigset_t mask_before;
	struct sigaction child_before; /* action of SIGCHLD */
} signals;

static void
signals_block(void)
{
	static const int all[] = {
		SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM, SIGTERM};
	struct sigaction action = {.sa_handler = SIG_DFL};

	/* The kernel keeps no status of children if the caller ignored it. */
	sigaction(SIGCHLD, &action, &signals.child_before);
	sigemptyset(&signals.forwarded);
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		/* The program ignores what the caller ignores. */
		if (sigaction(all[i], NULL, &action) == 0 && action.sa_handler != SIG_IGN)
			sigaddset(&signals.forwarded, all[i]);
	}
	signals.waited = signals.forwarded;
	sigaddset(&signals.waited, SIGCHLD);
	sigprocmask(SIG_BLOCK, &signals.waited, &signals.mask_before);
	signals.fd = signalfd(-1, &signals.forwarded, SFD_CLOEXEC);
}

/* In a child, or to end by a signal that has come. */
static void
signals_restore(void)
{
	sigaction(SIGCHLD, &signals.child_before, NULL);
	sigprocmask(SIG_SETMASK, &signals.mask_before, NULL);
}

static bool
signal_has_come(void)
{
	struct pollfd fd = {.fd = signals.fd, .events = POLLIN};

	return poll(&fd, 1, 0) == 1;
}

/* The line of the daemon's standard error that is not complete yet. */
struct messages {
	char text[512];
	size_t len;
};

static int64_t
monotonic_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Passes whole lines on. Returns true at the line that says that the daemon listens. */
static bool
messages_take(struct messages *m)
{
	char *line = m->text, *end;

	m->text[m->len] = '\0';
	while ((end = strchr(line, '\n')) != NULL) {
		*end = '\0';
		if (strstr(line, "listening at ") != NULL)
			return true;
		fprintf(stderr, "%s\n", line);
		line = end + 1;
	}
	m->len = strlen(line);
	memmove(m->text, line, m->len + 1);
	if (m->len + 1 < sizeof(m->text))
		return false;
	fputs(m->text, stderr);
	m->len = 0;
	return false;
}

/* Waits until the daemon reports that it listens. fd: the daemon's standard error, a
 * pipe. Returns false if the daemon fails, or a signal comes. */
static bool
daemon_ready_wait(const struct conf *s, int fd)
{
	struct pollfd fds[] = {
		{.fd = fd, .events = POLLIN}, {.fd = signals.fd, .events = POLLIN}};
	int64_t until = monotonic_ms() + READY_S * 1000;
	struct messages m = {.len = 0};

	for (;;) {
		int64_t left = until - monotonic_ms();
		int rc = left > 0 ? poll(fds, 2, (int)left) : 0;
		ssize_t len;

		if (rc == 0) {
			fprintf(stderr, PROGRAM ": %s does not listen after %d s\n",
				s->daemon, READY_S);
			return false;
		}
		if (rc < 0 && errno == EINTR)
			continue;
		if (rc > 0 && fds[1].revents != 0)
			return false;
		len = rc < 0 ? -1 : read(fd, m.text + m.len, sizeof(m.text) - 1 - m.len);
		if (len <= 0) {
			fputs(m.text, stderr);
			return false;
		}
		m.len += (size_t)len;
		if (messages_take(&m))
			return true;
	}
}

/* Ends the daemon; kills it if it does not end in time. */
static void
daemon_end(pid_t pid)
{
	kill(pid, SIGTERM);
	for (unsigned ms = 0; waitpid(pid, NULL, WNOHANG) == 0; ms += END_POLL_MS) {
		if (ms >= END_S * 1000) {
			kill(pid, SIGKILL);
			waitpid(pid, NULL, 0);
			return;
		}
		poll(NULL, 0, END_POLL_MS);
	}
}

static void
daemon_exec(const struct conf *s)
{
	const char *argv[] = {s->daemon, "--local", "--socket", s->socket,
		s->impair != NULL ? "--impair" : NULL, s->impair,
		s->impair_seed != NULL ? "--impair-seed" : NULL, s->impair_seed, NULL};

	execvp(s->daemon, (char **)(uintptr_t)argv);
	dprintf(STDERR_FILENO, PROGRAM ": cannot run %s: %s (see --daemon)\n", s->daemon,
		strerror(errno));
	_exit(EXIT_NOT_FOUND);
}

static pid_t
daemon_start(const struct conf *s)
{
	int pipe_fds[2];
	pid_t pid;

	if (pipe2(pipe_fds, O_CLOEXEC) != 0)
		return -1;
	pid = fork();
	if (pid == 0) {
		signals_restore();
		prctl(PR_SET_PDEATHSIG, SIGTERM);
		setpgid(0, 0); /* Ctrl-C goes to the program only */
		dup2(pipe_fds[1], STDERR_FILENO);
		daemon_exec(s);
	}
	close(pipe_fds[1]);
	if (pid > 0 && !daemon_ready_wait(s, pipe_fds[0])) {
		daemon_end(pid);
		pid = -1;
	}
	/* The read end stays open: the daemon may still write messages. */
	return pid;
}

/* The terminal sends these to the process group, so to the program too. */
static bool
is_of_terminal(const siginfo_t *info)
{
	return (info->si_signo == SIGINT || info->si_signo == SIGQUIT) &&
	       info->si_code == SI_KERNEL;
}

/* Waits for a signal of those that are blocked. With --mount it does the work of that meanwhile. */
static int
signal_wait(const struct conf *s, siginfo_t *info)
{
	static const struct timespec interval = {.tv_sec = MOUNT_REFRESH_S};
	int number;

	if (!s->mount)
		return sigwaitinfo(&signals.waited, info);
	number = sigtimedwait(&signals.waited, info, &interval);
	if (number < 0 && errno == EAGAIN)
		mount_refresh(s);
	return number;
}

static int
child_run(const struct conf *s, char **argv)
{
	pid_t child = fork(), ended = 0;
	siginfo_t info;
	int status = 0;

	if (child == 0) {
		int rc = s->mount ? mount_program_enter() : 0;

		if (rc != 0)
			_exit(rc);
		signals_restore();
		program_exec(argv);
	}
	while (child > 0 && ended == 0) {
		int number = signal_wait(s, &info);

		if (number == SIGCHLD)
			ended = waitpid(child, &status, WNOHANG);
		else if (number > 0 && !is_of_terminal(&info))
			kill(child, number);
	}
	if (ended <= 0) {
		fprintf(stderr, PROGRAM ": cannot run %s: %s\n", argv[0],
			strerror(errno));
		return EXIT_RUN;
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int
local_run(struct conf *s, char **argv)
{
	char dir[] = "/tmp/rocade-XXXXXX", path[64];
	bool ran = false;
	int status = EXIT_RUN;
	pid_t daemon;

	if (mkdtemp(dir) == NULL) {
		fprintf(stderr, PROGRAM ": cannot create the directory %s: %s\n", dir,
			strerror(errno));
		return EXIT_RUN;
	}
	snprintf(path, sizeof(path), "%s/rocade.sock", dir);
	s->socket = path;
	signals_block();
	daemon = daemon_start(s);
	if (daemon > 0) {
		status = environment_set(s);
		if (status == 0 && s->mount)
			status = mount_enter(s);
		ran = status == 0 && !signal_has_come();
		if (ran)
			status = child_run(s, argv);
		daemon_end(daemon);
	} else if (!signal_has_come()) {
		fprintf(stderr, PROGRAM ": cannot start %s --local\n", s->daemon);
	}
	unlink(path);
	rmdir(dir);
	rocade_sysfs_sweep(); /* what the program has used of the daemon's device */
	if (!ran)
		signals_restore();
	return status;
}

int
mounted_run(struct conf *s, char **argv)
{
	int status = environment_set(s);

	if (status == 0)
		status = mount_enter(s);
	if (status != 0)
		return status;
	signals_block();
	return child_run(s, argv);
}
