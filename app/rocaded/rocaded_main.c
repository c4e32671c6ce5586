/* SPDX-License-Identifier: BSD-3-Clause */
/* rocaded: the daemon that provides RDMA to the programs of this machine, between each
 * other and over a port. */
#include <getopt.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <rocade/rocade.h>

#include <common/eal_end.h>

#include "settings.h"

#define EXIT_USAGE 2
#define ADDRESS_DEFAULT "192.0.2.1/24"

enum option_id { OPT_CONFIG = 256, OPT_CHECK, OPT_HELP, OPT_VERSION, OPT_ROWS };

static struct rocade_daemon *serving;
static volatile sig_atomic_t reread, stopped;

struct command {
	int eal_argc; /* of argv, for EAL: the program's name first */
	int argc;     /* of argv behind the `--`, or all of it */
	char **argv;
	char **eal_argv;
	const char *config;
	bool check;
	bool done; /* --help or --version */
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

static void
options_fill(struct option *options)
{
	static const struct option own[] = {
		{"config", required_argument, NULL, OPT_CONFIG},
		{"check-config", required_argument, NULL, OPT_CHECK},
		{"help", no_argument, NULL, OPT_HELP},
		{"version", no_argument, NULL, OPT_VERSION},
	};

	memcpy(options, own, sizeof(own));
	options += sizeof(own) / sizeof(own[0]);
	for (unsigned i = 0; i < row_count; i++)
		options[i] = (struct option){rows[i].key,
			rows[i].kind == KIND_FLAG ? optional_argument : required_argument,
			NULL, (int)(OPT_ROWS + i)};
	options[row_count] = (struct option){.name = NULL};
}

static int
rocaded_option_read(struct command *c, struct settings *s, int option)
{
	const struct row *row = &rows[option - OPT_ROWS];
	char why[ERR_MAX];

	switch (option) {
	case OPT_CHECK:
	case OPT_CONFIG:
		c->check |= option == OPT_CHECK;
		c->config = optarg;
		return 0;
	case OPT_HELP:
		settings_help_print(stdout);
		c->done = true;
		return 0;
	case OPT_VERSION:
		printf(PROGRAM " %s\n", rocade_version());
		c->done = true;
		return 0;
	default:
		if (option < OPT_ROWS) {
			fprintf(stderr, PROGRAM ": --help lists the options\n");
			return EXIT_USAGE;
		}
		if (settings_set(s, row, optarg != NULL ? optarg : "yes", 0, why) == 0)
			return 0;
		fprintf(stderr, PROGRAM ": --%s: %s\n", row->key, why);
		return EXIT_USAGE;
	}
}

static int
rocaded_options_read(struct command *c, struct settings *s)
{
	struct option options[SETTINGS_MAX + OPT_ROWS - OPT_CONFIG + 1];
	int option, rc = 0;

	options_fill(options);
	optind = 0; /* from the start: SIGHUP reads them again */
	while (rc == 0 && !c->done &&
		(option = getopt_long(c->argc, c->argv, "", options, NULL)) != -1)
		rc = rocaded_option_read(c, s, option);
	if (rc == 0 && !c->done && optind < c->argc) {
		fprintf(stderr, PROGRAM ": unexpected argument '%s' (see --help)\n",
			c->argv[optind]);
		rc = EXIT_USAGE;
	}
	return rc;
}

/* Options override the file. They are read before it, for --config, and again after
 * it. */
static int
settings_read(struct command *c, struct settings *s)
{
	char err[ERR_MAX];
	bool port;
	int rc;

	settings_init(s);
	rc = rocaded_options_read(c, s);
	if (rc != 0 || c->done)
		return rc;
	if (c->config != NULL) {
		settings_fini(s);
		settings_init(s);
		rc = file_read(s, c->config, err);
		if (rc == 0)
			rc = rocaded_options_read(c, s);
		else
			fprintf(stderr, PROGRAM ": %s\n", err);
	}
	if (rc != 0)
		return EXIT_USAGE;
	port = s->port != NULL || s->eal_count != 0 || c->eal_argc != 1;
	if (!s->local == !port) {
		fprintf(stderr,
			PROGRAM
			": %s: --local connects the programs of this machine, --port or "
			"EAL arguments select a DPDK port\n",
			port ? "conflicting options" : "missing --local or --port");
		return EXIT_USAGE;
	}
	if (settings_check(s, err) != 0) {
		fprintf(stderr, PROGRAM ": %s\n", err);
		return EXIT_USAGE;
	}
	s->conf.vlan = (uint16_t)s->vlan;
	if (s->local && s->conf.addresses == NULL)
		s->conf.addresses = ADDRESS_DEFAULT;
	return 0;
}

/* Applies the settings that can change at run time. *s: the settings in force. */
static void
settings_reread(struct command *c, struct settings *s)
{
	struct settings wanted;
	char kept[256];

	reread = 0;
	if (settings_read(c, &wanted) != 0) {
		fprintf(stderr, PROGRAM ": settings unchanged\n");
		settings_fini(&wanted);
		return;
	}
	settings_need_restart(s, &wanted, kept, sizeof(kept));
	if (rocade_daemon_change(serving, &wanted.conf) != 0) {
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
serve(struct command *c, struct settings *s)
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
rocaded_run(struct command *c, struct settings *s)
{
	int rc;

	descriptors_allow();
	rocade_daemon_log((enum rocade_daemon_log)s->log_level);
	if (!s->local &&
		rocaded_port_open(s, c->eal_argc, c->eal_argv, &s->conf.port) != 0)
		return EXIT_FAILURE;
	if (rocade_daemon_create(&s->conf, &serving) != 0) {
		fprintf(stderr, PROGRAM ": %s\n", rocade_error());
		if (s->conf.port != NULL)
			rocade_daemon_close_port(s->conf.port);
		return EXIT_FAILURE;
	}
	if (!s->local)
		telemetry_start(rocade_daemon_socket(serving));
	rc = serve(c, s);
	/* A signal that comes now must not use a daemon that is being destroyed. */
	signals_set(SIG_IGN);
	rocade_daemon_destroy(serving);
	if (!s->local)
		eal_end();
	return rc == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

int
main(int argc, char **argv)
{
	struct command c = {.eal_argc = 1, .eal_argv = argv, .argc = argc, .argv = argv};
	struct settings s;
	int rc, dashes = 1;

	while (dashes < argc && strcmp(argv[dashes], "--") != 0)
		dashes++;
	if (dashes < argc) {
		c.eal_argc = dashes;
		c.argc = argc - dashes;
		c.argv = argv + dashes;
	}
	rc = settings_read(&c, &s);
	if (rc == 0 && !c.done && c.check)
		printf("%s: OK\n", c.config);
	else if (rc == 0 && !c.done)
		rc = rocaded_run(&c, &s);
	settings_fini(&s);
	return rc;
}
