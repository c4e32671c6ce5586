/* SPDX-License-Identifier: BSD-3-Clause */
/* rocade-run: starts a program with Rocade's verbs devices. */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rocade/rocade.h>
#include <rocade/status.h>

#include "stacks.h"

#define PROGRAM "rocade-run"
#define EXIT_USAGE 2
#define EXIT_NOT_FOUND 127

enum option_id {
	OPT_SOCKET = 256,
	OPT_DEVICE,
	OPT_START_LOCAL,
	OPT_LIBRARY,
	OPT_DAEMON,
	OPT_HELP,
	OPT_VERSION
};

static const struct option options[] = {
	{"socket", required_argument, NULL, OPT_SOCKET},
	{"device", required_argument, NULL, OPT_DEVICE},
	{"start-local", no_argument, NULL, OPT_START_LOCAL},
	{"library", required_argument, NULL, OPT_LIBRARY},
	{"daemon", required_argument, NULL, OPT_DAEMON},
	{"help", no_argument, NULL, OPT_HELP},
	{"version", no_argument, NULL, OPT_VERSION},
	{NULL, 0, NULL, 0},
};

static const char help[] =
	"Usage: " PROGRAM " [OPTION]... PROGRAM [ARGUMENT]...\n"
	"Starts a program that uses libibverbs on the device of rocaded(8).\n\n"
	"  --socket PATH    the daemon's socket (default: as for rocaded)\n"
	"  --device NAME    fail unless the daemon's device has this name\n"
	"  --start-local    run a private `rocaded --local` as long as PROGRAM runs\n"
	"  --library PATH   the librocade-verbs.so to preload\n"
	"  --daemon PATH    the rocaded for --start-local\n"
	"  --help, --version\n";

struct settings {
	const char *socket;
	const char *device;
	const char *library;
	const char *daemon;
	bool start_local;
	bool done;
};

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

static int
run_options_read(struct settings *s, int argc, char **argv)
{
	int option;

	/* '+': stop at PROGRAM. The options behind it are the program's. */
	while ((option = getopt_long(argc, argv, "+", options, NULL)) != -1) {
		switch (option) {
		case OPT_SOCKET:
			s->socket = optarg;
			break;
		case OPT_DEVICE:
			s->device = optarg;
			break;
		case OPT_START_LOCAL:
			s->start_local = true;
			break;
		case OPT_LIBRARY:
			s->library = optarg;
			break;
		case OPT_DAEMON:
			s->daemon = optarg;
			break;
		case OPT_HELP:
			fputs(help, stdout);
			s->done = true;
			return 0;
		case OPT_VERSION:
			printf(PROGRAM " %s\n", ROCADE_VERSION);
			s->done = true;
			return 0;
		default:
			fprintf(stderr, PROGRAM ": --help lists the options\n");
			return EXIT_USAGE;
		}
	}
	if (optind == argc) {
		fprintf(stderr, PROGRAM ": missing PROGRAM (see --help)\n");
		return EXIT_USAGE;
	}
	return 0;
}

/* Fails without the device: the program might run without RDMA unnoticed. */
static int
device_find(const struct settings *s, char name[ROCADE_NAME_MAX])
{
	if (rocade_device_name(s->socket, name) != 0) {
		fprintf(stderr,
			PROGRAM ": %s\n" PROGRAM
				": `rocaded --local &` starts a daemon, --start-local "
				"one for this program only;\n" PROGRAM
				": --socket or $ROCADE_SOCKET selects its socket\n",
			rocade_error());
		return EXIT_FAILURE;
	}
	if (s->device != NULL && strcmp(s->device, name) != 0) {
		fprintf(stderr,
			PROGRAM ": the daemon's device is '%s', not '%s' as --device "
				"requires\n",
			name, s->device);
		return EXIT_FAILURE;
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
environment_set(const struct settings *s)
{
	char device[ROCADE_NAME_MAX];
	int rc = device_find(s, device);

	if (rc != 0)
		return rc;
	if (access(s->library, R_OK) != 0) {
		fprintf(stderr, PROGRAM ": cannot read %s: %s (see --library)\n",
			s->library, strerror(errno));
		return EXIT_FAILURE;
	}
	if (s->socket != NULL)
		setenv("ROCADE_SOCKET", s->socket, 1);
	preload_add(s->library);
	stacks_env_set(device);
	return 0;
}

/* Waits until the daemon reports that it listens. fd: the daemon's standard error, a
 * pipe. Returns false if the daemon fails. */
static bool
daemon_ready_wait(int fd)
{
	char line[512];
	ssize_t len = read(fd, line, sizeof(line) - 1);

	if (len <= 0)
		return false;
	line[len] = '\0';
	if (strstr(line, "listening") != NULL)
		return true;
	fputs(line, stderr);
	return false;
}

static pid_t
daemon_start(const struct settings *s)
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
	if (pid > 0 && !daemon_ready_wait(pipe_fds[0])) {
		kill(pid, SIGTERM);
		waitpid(pid, NULL, 0);
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
		return EXIT_FAILURE;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int
local_run(struct settings *s, char **argv)
{
	char dir[] = "/tmp/rocade-XXXXXX", path[64];
	pid_t daemon;
	int status;

	if (mkdtemp(dir) == NULL) {
		fprintf(stderr, PROGRAM ": cannot create the directory %s: %s\n", dir,
			strerror(errno));
		return EXIT_FAILURE;
	}
	snprintf(path, sizeof(path), "%s/rocade.sock", dir);
	s->socket = path;
	daemon = daemon_start(s);
	if (daemon < 0) {
		rmdir(dir);
		fprintf(stderr, PROGRAM ": cannot start %s --local\n", s->daemon);
		return EXIT_FAILURE;
	}
	status = environment_set(s);
	if (status == 0)
		status = child_run(argv);
	kill(daemon, SIGTERM);
	waitpid(daemon, NULL, 0);
	rmdir(dir);
	return status;
}

int
main(int argc, char **argv)
{
	char library[4096], daemon[4096];
	struct settings s = {.socket = NULL};
	int rc = run_options_read(&s, argc, argv);

	if (rc != 0 || s.done)
		return rc;
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
