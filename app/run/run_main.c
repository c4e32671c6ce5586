/* SPDX-License-Identifier: BSD-3-Clause */
/* rocade-run: starts a program with Rocade's verbs devices. */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rocade/rocade.h>
#include <rocade/status.h>

#include <common/options.h>

#include "stacks.h"

#define PROGRAM "rocade-run"
#define EXIT_NOT_FOUND 127
#define NO_UID UINT64_MAX
#define READY_S 10    /* a daemon that does not listen after this long has failed */
#define END_S 10      /* for the daemon to end on SIGTERM */
#define END_POLL_MS 5 /* interval of checks whether it has */

struct conf {
	const char *socket;
	const char *device;
	const char *library;
	const char *daemon;
	uint64_t daemon_uid; /* NO_UID: not given */
	bool start_local;
	bool no_advice;
};

#define MEMBER(field) OPTION_MEMBER(struct conf, field)
static const struct option_row option_rows[] = {
	{OPTION_TEXT, 0, "socket", "PATH", MEMBER(socket),
		.text = "the daemon's socket (default: as for rocaded)"},
	{OPTION_TEXT, 0, "device", "NAME", MEMBER(device),
		.text = "fail unless the daemon's device has this name"},
	{OPTION_NUM, 0, "daemon-uid", "UID", MEMBER(daemon_uid), .max = UINT32_MAX - 1,
		.text = "accept a daemon of this user (default: of root and of yours)"},
	{OPTION_FLAG, 0, "start-local", NULL, MEMBER(start_local), .max = true,
		.text = "run a private `rocaded --local` as long as PROGRAM runs"},
	{OPTION_FLAG, 0, "no-advice", NULL, MEMBER(no_advice), .max = true,
		.text = "print no line of advice when PROGRAM has ended after errors"},
	{OPTION_TEXT, 0, "library", "PATH", MEMBER(library),
		.text = "the librocade-verbs.so to preload"},
	{OPTION_TEXT, 0, "daemon", "PATH", MEMBER(daemon),
		.text = "the rocaded for --start-local"},
	{OPTION_HELP, .name = "help"},
	{OPTION_VERSION, .name = "version"},
};

static const struct options options = {.program = PROGRAM,
	.usage = "Usage: " PROGRAM " [OPTION]... PROGRAM [ARGUMENT]...\n"
		 "Starts a program that uses libibverbs on the device of rocaded(8).\n\n",
	.notes = "  --help, --version\n",
	.rows = option_rows,
	.count = sizeof(option_rows) / sizeof(option_rows[0]),
	.column = 19,
	.operands = true};

/* Returns the path relative to this executable if it exists (build tree), else the
 * installed one. */
static const char *
path_beside_self(const char *relative, const char *installed, char *buf, size_t size)
{
	ssize_t len = readlink("/proc/self/exe", buf, size - 1);
	char *slash;

	if (len <= 0)
		return installed;
	buf[len] = '\0';
	slash = strrchr(buf, '/');
	if (slash == NULL || (size_t)(slash - buf) + strlen(relative) + 2 > size)
		return installed;
	strcpy(slash + 1, relative);
	return access(buf, F_OK) == 0 ? buf : installed;
}

/* Fails without the device: the program might run without RDMA unnoticed. */
static int
device_find(const struct conf *s, char name[ROCADE_NAME_MAX])
{
	int err = rocade_device_name(s->socket, name);

	if (err != 0)
		fprintf(stderr, PROGRAM ": %s\n", rocade_error());
	if (err == EPERM)
		fprintf(stderr, PROGRAM
			": a daemon reads all that its clients send; --daemon-uid "
			"UID accepts that of a user whom you trust\n");
	else if (err != 0)
		fprintf(stderr,
			PROGRAM ": `rocaded --local &` starts a daemon, --start-local "
				"one for this program only;\n" PROGRAM
				": --socket or $ROCADE_SOCKET selects its socket\n");
	if (err != 0)
		return EXIT_RUN;
	if (s->device != NULL && strcmp(s->device, name) != 0) {
		fprintf(stderr,
			PROGRAM ": the daemon's device is '%s', not '%s' as --device "
				"requires\n",
			name, s->device);
		return EXIT_RUN;
	}
	return 0;
}

/* Prepends the library to LD_PRELOAD. The user's own preloads stay. */
static void
preload_add(const char *library)
{
	const char *present = getenv("LD_PRELOAD");
	char *list = NULL;

	if (present == NULL || present[0] == '\0')
		setenv("LD_PRELOAD", library, 1);
	else if (strstr(present, library) == NULL &&
		 asprintf(&list, "%s:%s", library, present) > 0)
		setenv("LD_PRELOAD", list, 1);
	free(list);
}

/* Sets the environment of the program. */
static int
environment_set(const struct conf *s)
{
	char device[ROCADE_NAME_MAX], uid[24];
	int rc;

	if (s->daemon_uid != NO_UID) {
		snprintf(uid, sizeof(uid), "%" PRIu64, s->daemon_uid);
		setenv("ROCADE_DAEMON_UID", uid, 1);
	}
	rc = device_find(s, device);
	if (rc != 0)
		return rc;
	if (access(s->library, R_OK) != 0) {
		fprintf(stderr, PROGRAM ": cannot read %s: %s (see --library)\n",
			s->library, strerror(errno));
		return EXIT_RUN;
	}
	if (s->socket != NULL)
		setenv("ROCADE_SOCKET", s->socket, 1);
	if (s->no_advice)
		setenv("ROCADE_ADVICE", "0", 1);
	preload_add(s->library);
	stacks_env_set(device);
	return 0;
}

/* Waits until the daemon reports that it listens. fd: the daemon's standard error, a
 * pipe. Returns false if the daemon fails. */
static bool
daemon_ready_wait(const struct conf *s, int fd)
{
	struct pollfd readable = {.fd = fd, .events = POLLIN};
	char line[512];
	ssize_t len;

	if (poll(&readable, 1, READY_S * 1000) == 0) {
		fprintf(stderr, PROGRAM ": %s does not listen after %d s\n", s->daemon,
			READY_S);
		return false;
	}
	len = read(fd, line, sizeof(line) - 1);
	if (len <= 0)
		return false;
	line[len] = '\0';
	if (strstr(line, "listening") != NULL)
		return true;
	fputs(line, stderr);
	return false;
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

static pid_t
daemon_start(const struct conf *s)
{
	int pipe_fds[2];
	pid_t pid;

	if (pipe(pipe_fds) != 0)
		return -1;
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGTERM);
		setpgid(0, 0); /* Ctrl-C goes to the program only */
		dup2(pipe_fds[1], STDERR_FILENO);
		close(pipe_fds[0]);
		close(pipe_fds[1]);
		execlp(s->daemon, s->daemon, "--local", "--socket", s->socket,
			(char *)NULL);
		dprintf(STDERR_FILENO, PROGRAM ": cannot run %s: %s (see --daemon)\n",
			s->daemon, strerror(errno));
		_exit(EXIT_NOT_FOUND);
	}
	close(pipe_fds[1]);
	if (pid > 0 && !daemon_ready_wait(s, pipe_fds[0])) {
		daemon_end(pid);
		pid = -1;
	}
	/* The read end stays open: the daemon may still write messages. */
	return pid;
}

static pid_t child;

static void
child_signal_forward(int number)
{
	if (child > 0)
		kill(child, number);
}

static void
program_exec(char **argv)
{
	execvp(argv[0], argv);
	fprintf(stderr, PROGRAM ": cannot run %s: %s\n", argv[0], strerror(errno));
	_exit(EXIT_NOT_FOUND);
}

/* Returns the exit status of the program, or 128 + n for signal n, as shells do. */
static int
child_run(char **argv)
{
	struct sigaction action = {
		.sa_handler = child_signal_forward, .sa_flags = SA_RESTART};
	int status;

	child = fork();
	if (child == 0)
		program_exec(argv);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
	signal(SIGINT, SIG_IGN); /* the terminal sends it to both */
	while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	if (child < 0)
		return EXIT_RUN;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int
local_run(struct conf *s, char **argv)
{
	char dir[] = "/tmp/rocade-XXXXXX", path[64];
	pid_t daemon;
	int status;

	if (mkdtemp(dir) == NULL) {
		fprintf(stderr, PROGRAM ": cannot create the directory %s: %s\n", dir,
			strerror(errno));
		return EXIT_RUN;
	}
	snprintf(path, sizeof(path), "%s/rocade.sock", dir);
	s->socket = path;
	daemon = daemon_start(s);
	if (daemon < 0) {
		unlink(path);
		rmdir(dir);
		fprintf(stderr, PROGRAM ": cannot start %s --local\n", s->daemon);
		return EXIT_RUN;
	}
	status = environment_set(s);
	if (status == 0)
		status = child_run(argv);
	daemon_end(daemon);
	unlink(path);
	rmdir(dir);
	return status;
}

int
main(int argc, char **argv)
{
	char library[4096], daemon[4096];
	struct conf s = {.daemon_uid = NO_UID};
	int rc = options_read(&options, &s, argc, argv);

	if (rc >= 0)
		return rc;
	if (optind == argc) {
		fprintf(stderr, PROGRAM ": missing PROGRAM (see --help)\n");
		return EXIT_USAGE;
	}
	if (s.library == NULL)
		s.library = path_beside_self("../../drivers/librocade-verbs.so",
			ROCADE_LIBRARY, library, sizeof(library));
	if (s.daemon == NULL)
		s.daemon = path_beside_self(
			"../rocaded/rocaded", ROCADE_DAEMON, daemon, sizeof(daemon));
	if (s.start_local)
		return local_run(&s, argv + optind);
	rc = environment_set(&s);
	if (rc != 0)
		return rc;
	program_exec(argv + optind);
	return EXIT_NOT_FOUND;
}
