/* SPDX-License-Identifier: BSD-3-Clause */
/* rocaded: the daemon that provides RDMA to the programs of this machine, between each
 * other and over a port. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include <rocade/rocade.h>

#include <common/eal_end.h>
#include <common/impair_option.h>

#include "own_status.h"
#include "privileges.h"
#include "service.h"
#include "settings.h"
#include "syscall_filter.h"

#define ADDRESS_DEFAULT "192.0.2.1/24"

static struct rocade_daemon *serving;
static volatile sig_atomic_t reread, stopped, keepalive_due;

struct command {
	int eal_argc; /* of argv, for EAL: the program's name first */
	int argc;     /* of argv behind the `--`, or all of it */
	char **argv;
	char **eal_argv;
};

static void
rocaded_on_signal(int number)
{
	if (number == SIGHUP)
		reread = 1;
	else if (number == SIGALRM)
		keepalive_due = 1;
	else
		stopped = 1;
	rocade_daemon_stop(serving);
}

static void
signals_set(void (*handler)(int))
{
	struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};

	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
	sigaction(SIGALRM, &action, NULL);
}

/* Makes the main loop return twice in the time in which the service manager expects a
 * keep-alive message: the message is sent only while the loop runs. */
static void
watchdog_start(uint64_t expected_us)
{
	uint64_t us = expected_us / 2;
	struct itimerval every = {.it_interval = {.tv_sec = (time_t)(us / 1000000),
					  .tv_usec = (suseconds_t)(us % 1000000)}};

	every.it_value = every.it_interval;
	(void)setitimer(ITIMER_REAL, &every, NULL);
}

/* Raises the limit of file descriptors: each client needs up to five, which exceeds the
 * usual limit of a shell. */
static void
descriptors_allow(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &limit);
}

/* Returns 0, or -1 with an error. */
static int
settings_complete(const struct command *c, struct conf *s, char err[ERR_MAX])
{
	bool port = s->port != NULL || s->eal_count != 0 || c->eal_argc != 1;

	if (!s->local == !port)
		return error_set(err,
			"%s: --local connects the programs of this machine, --port or "
			"EAL arguments select a DPDK port",
			port ? "conflicting options" : "missing --local or --port");
	if (s->local && s->queues > 1)
		return error_set(err,
			"--queues: %u queues need a DPDK port: with --local there is no queue, "
			"and one thread serves all clients",
			s->queues);
	if (s->local && s->daemon.addresses == NULL)
		s->daemon.addresses = ADDRESS_DEFAULT;
	return settings_check(s, err);
}

/* Options override the file. They are read before it, for --config, and again after it.
 * Returns -1 to go on, else the exit code; err: what the caller has to print, or "". */
static int
settings_read(const struct command *c, struct conf *s, char err[ERR_MAX])
{
	const char *path;
	int code, rc = 0;

	err[0] = '\0';
	settings_init(s);
	code = options_read(&rocaded_options, s, c->argc, c->argv);
	if (code >= 0)
		return code;
	path = s->check_config != NULL ? s->check_config : s->config;
	if (path != NULL) {
		settings_init(s);
		rc = file_read(s, path, err);
		if (rc == 0)
			rc = (int)options_parse(
				&rocaded_options, s, c->argc, c->argv, err);
	}
	if (rc == 0 && settings_complete(c, s, err) == 0)
		return -1;
	return EXIT_USAGE;
}

/* Applies the settings that can change at run time. *s: the settings in force. */
static void
settings_reread(struct command *c, struct conf *s)
{
	static struct conf wanted;
	char kept[256], err[ERR_MAX];

	reread = 0;
	if (settings_read(c, &wanted, err) >= 0) {
		rocade_daemon_notice("%s", err);
		rocade_daemon_notice("settings unchanged");
		settings_fini(&wanted);
		return;
	}
	settings_need_restart(s, &wanted, kept, sizeof(kept));
	if (rocade_daemon_change(serving, &wanted.daemon) != 0) {
		rocade_daemon_notice("%s; settings unchanged", rocade_error());
		settings_fini(&wanted);
		return;
	}
	rocade_daemon_log((enum rocade_daemon_log)wanted.log_level);
	if (kept[0] != '\0')
		rocade_daemon_notice("settings reloaded; restart to change %s", kept);
	else
		rocade_daemon_notice("settings reloaded");
	/* *s stays: later changes are compared with the settings that the daemon started
	 * with. */
	settings_fini(&wanted);
}

/* Before the line that says that the daemon listens: rocade-run shows what comes before that. */
static void
impairment_notice(const struct conf *s)
{
	char text[IMPAIR_TEXT_MAX];

	if (impair_wanted(&s->daemon.impair))
		rocade_daemon_notice("packets %s are impaired on purpose: %s",
			s->local ? "between clients" : "of the port",
			impair_format(&s->daemon.impair, text));
}

static int
serve(struct command *c, struct conf *s)
{
	int rc = 0;

	impairment_notice(s);
	rocade_daemon_notice("listening at %s", rocade_daemon_socket(serving));
	service_notify("READY=1");
	while (rc == 0 && !stopped) {
		if (reread) {
			service_notify("RELOADING=1");
			settings_reread(c, s);
			service_notify("READY=1");
		}
		if (keepalive_due) {
			keepalive_due = 0;
			service_notify("WATCHDOG=1");
		}
		rc = rocade_daemon_run(serving);
	}
	service_notify("STOPPING=1");
	return rc;
}

static enum filter_mode
filter_mode_of(const struct conf *s)
{
#ifdef ROCADE_INSTRUMENTED
	/* Sanitizers and gcov make system calls of their own at the end. */
	if (s->seccomp == FILTER_KILL)
		return FILTER_LOG;
#endif
	return (enum filter_mode)s->seccomp;
}

/* Gives the socket's file to the user. In a folder that others may write to, the path
 * may lead to another file by now: only a socket is given away. */
static int
socket_give(const char *path, const struct daemon_user *user)
{
	int fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;
	int rc = -1;

	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode))
		rc = fchownat(fd, "", user->uid, user->gid, AT_EMPTY_PATH);
	if (rc != 0)
		fprintf(stderr, PROGRAM ": socket: %s: cannot give it to user %u: %s\n",
			path, (unsigned)user->uid, strerror(errno));
	if (fd >= 0)
		close(fd);
	return rc;
}

/* Gives up what only the start needed. */
static int
confine(const struct conf *s, const struct daemon_user *user)
{
	char err[ERR_MAX];

	if (user->wanted && s->daemon.listen_fd == 0 &&
		socket_give(rocade_daemon_socket(serving), user) != 0)
		return -1;
	if (user->wanted && s->metrics.any.sa_family == AF_UNIX &&
		socket_give(s->metrics.text, user) != 0)
		return -1;
	if (privileges_drop(user, err) != 0 ||
		filter_install(!s->local, filter_mode_of(s), err) != 0) {
		fprintf(stderr, PROGRAM ": %s\n", err);
		return -1;
	}
	if (!filter_built && s->seccomp != FILTER_OFF)
		fprintf(stderr, PROGRAM
			": built without libseccomp: no filter of system calls\n");
	return 0;
}

/* Starts the threads that run beside the main loop, which are confined as it is. */
static int
threads_start(const struct conf *s)
{
	char err[ERR_MAX];
	cpu_set_t cpus;

	if (!s->local)
		rocaded_other_cpus(&cpus);
	if (metrics_start(s->local ? NULL : &cpus, err) != 0) {
		fprintf(stderr, PROGRAM ": %s\n", err);
		return -1;
	}
	return s->local ? 0 : rocaded_queues_start(s, serving);
}

/* Opens the port and creates the daemon. Returns 0, or -1 after printing the error. */
static int
serving_create(struct command *c, struct conf *s)
{
	if (!s->local &&
		rocaded_port_open(s, c->eal_argc, c->eal_argv, &s->daemon.port) != 0)
		return -1;
	if (rocade_daemon_create(&s->daemon, &serving) == 0)
		return 0;
	fprintf(stderr, PROGRAM ": %s\n", rocade_error());
	if (s->daemon.port != NULL) {
		rocade_daemon_close_port(s->daemon.port);
		eal_end();
	}
	return -1;
}

static int
rocaded_run(struct command *c, struct conf *s, const struct daemon_user *user)
{
	uint64_t watchdog_us = service_connect();
	char err[ERR_MAX];
	int rc;

	descriptors_allow();
	rocade_daemon_log((enum rocade_daemon_log)s->log_level);
	s->daemon.listen_fd = service_listen_fd();
	if (s->daemon.listen_fd < 0) {
		fprintf(stderr, PROGRAM
			": the service manager has passed several sockets: expected one\n");
		return EXIT_RUN;
	}
	if (metrics_listen(&s->metrics, err) != 0) {
		fprintf(stderr, PROGRAM ": %s\n", err);
		return EXIT_RUN;
	}
	if (serving_create(c, s) != 0) {
		metrics_stop();
		return EXIT_RUN;
	}
	own_status_start(serving);
	if (!s->local)
		telemetry_start();
	signals_set(rocaded_on_signal);
	signal(SIGPIPE, SIG_IGN);
	watchdog_start(watchdog_us);
	rc = confine(s, user);
	if (rc == 0)
		rc = threads_start(s);
	if (rc == 0)
		rc = serve(c, s);
	own_status_stop();
	if (!s->local)
		rocaded_queues_stop(serving);
	/* A signal that comes now must not use a daemon that is being destroyed. */
	signals_set(SIG_IGN);
	rocade_daemon_destroy(serving);
	metrics_stop();
	if (!s->local)
		eal_end();
	return rc == 0 ? EXIT_OK : EXIT_RUN;
}

int
main(int argc, char **argv)
{
	int separator = options_separator(argc, argv);
	struct command c = {.eal_argc = 1, .eal_argv = argv, .argc = argc, .argv = argv};
	static struct conf s;
	struct daemon_user user;
	char err[ERR_MAX];
	int code;

	/* RLIMIT_FSIZE: a call fails with EFBIG, and does not end the daemon. */
	signal(SIGXFSZ, SIG_IGN);
	/* A sleep ends when it is over, and not up to 50 us later. Threads inherit this. */
	(void)prctl(PR_SET_TIMERSLACK, 1UL);
	if (separator < argc && separator != 0) {
		c.eal_argc = separator;
		c.argc = argc - separator;
		c.argv = argv + separator;
	}
	code = settings_read(&c, &s, err);
	if (code < 0 && daemon_user_find(s.user, &user, err) != 0)
		code = EXIT_USAGE;
	if (code >= 0 && err[0] != '\0')
		fprintf(stderr, PROGRAM ": %s\n", err);
	if (code < 0 && s.check_config != NULL)
		code = printf("%s: OK\n", s.check_config) < 0 ? EXIT_RUN : EXIT_OK;
	else if (code < 0)
		code = rocaded_run(&c, &s, &user);
	settings_fini(&s);
	return code;
}
