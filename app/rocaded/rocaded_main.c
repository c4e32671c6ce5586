/* SPDX-License-Identifier: BSD-3-Clause */
/* rocaded: the daemon that provides RDMA to the programs of this machine, between each
 * other and over a port. */
#include <signal.h>
#include <string.h>
#include <sys/resource.h>

#include <rocade/rocade.h>

#include <common/eal_end.h>

#include "settings.h"

#define ADDRESS_DEFAULT "192.0.2.1/24"

static struct rocade_daemon *serving;
static volatile sig_atomic_t reread, stopped;

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
}

/* Raises the limit of file descriptors: each client needs four, which exceeds the usual
 * limit of a shell. */
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
	if (s->local && s->daemon.addresses == NULL)
		s->daemon.addresses = ADDRESS_DEFAULT;
	return settings_check(s, err);
}

/* Options override the file. They are read before it, for --config, and again after it.
 * Returns -1 to go on, else the exit code. */
static int
settings_read(const struct command *c, struct conf *s)
{
	char err[ERR_MAX];
	const char *path;
	int code, rc = 0;

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
	fprintf(stderr, PROGRAM ": %s\n", err);
	return EXIT_USAGE;
}

/* Applies the settings that can change at run time. *s: the settings in force. */
static void
settings_reread(struct command *c, struct conf *s)
{
	static struct conf wanted;
	char kept[256];

	reread = 0;
	if (settings_read(c, &wanted) >= 0) {
		fprintf(stderr, PROGRAM ": settings unchanged\n");
		settings_fini(&wanted);
		return;
	}
	settings_need_restart(s, &wanted, kept, sizeof(kept));
	if (rocade_daemon_change(serving, &wanted.daemon) != 0) {
		fprintf(stderr, PROGRAM ": %s; settings unchanged\n", rocade_error());
		settings_fini(&wanted);
		return;
	}
	rocade_daemon_log((enum rocade_daemon_log)wanted.log_level);
	if (kept[0] != '\0')
		fprintf(stderr, PROGRAM ": settings reloaded; restart to change %s\n",
			kept);
	else
		fprintf(stderr, PROGRAM ": settings reloaded\n");
	/* *s stays: later changes are compared with the settings that the daemon started
	 * with. */
	settings_fini(&wanted);
}

static int
serve(struct command *c, struct conf *s)
{
	int rc = 0;

	signals_set(rocaded_on_signal);
	signal(SIGPIPE, SIG_IGN);
	fprintf(stderr, PROGRAM ": listening at %s\n", rocade_daemon_socket(serving));
	while (rc == 0 && !stopped) {
		if (reread)
			settings_reread(c, s);
		rc = rocade_daemon_run(serving);
	}
	return rc;
}

static int
rocaded_run(struct command *c, struct conf *s)
{
	int rc;

	descriptors_allow();
	rocade_daemon_log((enum rocade_daemon_log)s->log_level);
	if (!s->local &&
		rocaded_port_open(s, c->eal_argc, c->eal_argv, &s->daemon.port) != 0)
		return EXIT_RUN;
	if (rocade_daemon_create(&s->daemon, &serving) != 0) {
		fprintf(stderr, PROGRAM ": %s\n", rocade_error());
		if (s->daemon.port != NULL)
			rocade_daemon_close_port(s->daemon.port);
		return EXIT_RUN;
	}
	if (!s->local)
		telemetry_start(rocade_daemon_socket(serving));
	rc = serve(c, s);
	/* A signal that comes now must not use a daemon that is being destroyed. */
	signals_set(SIG_IGN);
	rocade_daemon_destroy(serving);
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
	int code;

	if (separator < argc && separator != 0) {
		c.eal_argc = separator;
		c.argc = argc - separator;
		c.argv = argv + separator;
	}
	code = settings_read(&c, &s);
	if (code < 0 && s.check_config != NULL)
		code = printf("%s: OK\n", s.check_config) < 0 ? EXIT_RUN : EXIT_OK;
	else if (code < 0)
		code = rocaded_run(&c, &s);
	settings_fini(&s);
	return code;
}
