/* SPDX-License-Identifier: BSD-3-Clause */
/* rocade-status: what a daemon and its clients are doing. */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <rocade/rocade.h>

#include "snapshot.h"
#include "view.h"

#define PROGRAM "rocade-status"
#define EXIT_USAGE 2

enum option_id {
	OPT_SOCKET = 256,
	OPT_JSON,
	OPT_WATCH,
	OPT_COUNT,
	OPT_QPS,
	OPT_HELP,
	OPT_VERSION
};

static const struct option options[] = {
	{"socket", required_argument, NULL, OPT_SOCKET},
	{"json", no_argument, NULL, OPT_JSON},
	{"watch", optional_argument, NULL, OPT_WATCH},
	{"count", required_argument, NULL, OPT_COUNT},
	{"qps", no_argument, NULL, OPT_QPS},
	{"help", no_argument, NULL, OPT_HELP},
	{"version", no_argument, NULL, OPT_VERSION},
	{NULL, 0, NULL, 0},
};

static const char help[] =
	"Usage: " PROGRAM " [OPTION]...\n"
	"Shows a daemon, its clients, their QPs and SRQs, rates and error counters.\n\n"
	"  --socket PATH       the daemon's socket (default: as for rocaded)\n"
	"  --qps               also print a line for each QP\n"
	"  --json              print everything as JSON; with --watch, one line each time\n"
	"  --watch[=SECONDS]   repeat every SECONDS (default: 1), with rates\n"
	"  --count N           with --watch, stop after N times\n"
	"  --help, --version\n\n"
	"Exit status: 0; 1 if no daemon answers; 2 for invalid options.\n";

struct settings {
	const char *socket;
	double watch_s;      /* 0: once */
	unsigned long count; /* 0: no limit */
	bool json;
	bool qps;
	bool done;
};

static int
option_number_read(const char *option, const char *text, double least, double *out)
{
	char *end;

	errno = 0;
	*out = strtod(text, &end);
	if (errno == 0 && end != text && *end == '\0' && *out >= least && *out <= 86400)
		return 0;
	fprintf(stderr, PROGRAM ": --%s: invalid value '%s': expected %g to 86400\n",
		option, text, least);
	return EXIT_USAGE;
}

static int
status_option_read(struct settings *s, int option)
{
	double count;
	int rc;

	switch (option) {
	case OPT_SOCKET:
		s->socket = optarg;
		return 0;
	case OPT_JSON:
		s->json = true;
		return 0;
	case OPT_QPS:
		s->qps = true;
		return 0;
	case OPT_WATCH:
		s->watch_s = 1;
		return optarg != NULL
			       ? option_number_read("watch", optarg, 0.1, &s->watch_s)
			       : 0;
	case OPT_COUNT:
		rc = option_number_read("count", optarg, 1, &count);
		s->count = (unsigned long)count;
		return rc;
	case OPT_HELP:
		fputs(help, stdout);
		s->done = true;
		return 0;
	case OPT_VERSION:
		printf(PROGRAM " %s\n", rocade_version());
		s->done = true;
		return 0;
	default:
		fprintf(stderr, PROGRAM ": --help lists the options\n");
		return EXIT_USAGE;
	}
}

static int
status_options_read(struct settings *s, int argc, char **argv)
{
	int option, rc = 0;

	while (rc == 0 && !s->done &&
		(option = getopt_long(argc, argv, "", options, NULL)) != -1)
		rc = status_option_read(s, option);
	if (rc != 0 || s->done)
		return rc;
	if (optind < argc) {
		fprintf(stderr, PROGRAM ": unexpected argument '%s' (see --help)\n",
			argv[optind]);
		return EXIT_USAGE;
	}
	return 0;
}

static int
no_daemon_report(void)
{
	fprintf(stderr,
		PROGRAM ": %s\n" PROGRAM
			": `rocaded --local` starts a daemon; --socket or $ROCADE_SOCKET "
			"selects its socket\n",
		rocade_error());
	return EXIT_FAILURE;
}

static volatile sig_atomic_t ended;

static void
status_on_signal(int number)
{
	(void)number;
	ended = 1;
}

static void
snapshot_show(const struct settings *s, const json_t *snapshot)
{
	if (s->json) {
		json_dumpf(snapshot, stdout,
			s->watch_s != 0 ? JSON_COMPACT : JSON_INDENT(2));
		fputc('\n', stdout);
	} else {
		if (s->watch_s != 0 && isatty(STDOUT_FILENO))
			fputs("\033[H\033[2J", stdout);
		view_print(stdout, snapshot, s->qps);
		if (s->watch_s != 0)
			fputc('\n', stdout);
	}
	fflush(stdout);
}

static double
seconds_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int
status_run(const struct settings *s)
{
	struct timespec pause = {.tv_sec = (time_t)s->watch_s,
		.tv_nsec = (long)((s->watch_s - (double)(time_t)s->watch_s) * 1e9)};
	json_t *before = NULL;
	double last = 0;

	for (unsigned long round = 1; !ended; round++) {
		json_t *now = snapshot_fetch(s->socket);
		double at = seconds_now();

		if (now == NULL) {
			json_decref(before);
			return no_daemon_report();
		}
		if (before != NULL)
			snapshot_rates(now, before, at - last);
		snapshot_show(s, now);
		json_decref(before);
		before = now;
		last = at;
		if (s->watch_s == 0 || round == s->count)
			break;
		(void)nanosleep(&pause, NULL);
	}
	json_decref(before);
	return ferror(stdout) ? EXIT_FAILURE : EXIT_SUCCESS;
}

int
main(int argc, char **argv)
{
	struct sigaction action = {.sa_handler = status_on_signal};
	struct settings s = {.socket = NULL};
	int rc = status_options_read(&s, argc, argv);

	if (rc != 0 || s.done)
		return rc;
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	return status_run(&s);
}
