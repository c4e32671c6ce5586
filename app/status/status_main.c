/* SPDX-License-Identifier: BSD-3-Clause */
/* rocade-status: what a daemon and its clients are doing. */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <rocade/rocade.h>

#include <common/options.h>

#include "prometheus.h"
#include "qp_events.h"
#include "snapshot.h"
#include "view.h"

#define PROGRAM "rocade-status"

struct conf {
	const char *socket;
	double watch_s; /* 0: once */
	uint64_t count; /* 0: no limit */
	bool json;
	bool prometheus;
	struct flight_conf flight;
	struct view_conf view;
};

static bool
watch_set(struct conf *conf, const char *value)
{
	char *end;

	conf->watch_s = 1;
	if (value == NULL)
		return true;
	conf->watch_s = strtod(value, &end);
	return end != value && *end == '\0' && conf->watch_s >= 0.1 &&
	       conf->watch_s <= 86400;
}

static bool
flight_set(struct conf *conf, const char *value)
{
	return flight_conf_read(&conf->flight, value);
}

#define MEMBER(field) OPTION_MEMBER(struct conf, field)
static const struct option_row option_rows[] = {
	{OPTION_TEXT, 0, "socket", "PATH", MEMBER(socket),
		.text = "the daemon's socket (default: as for rocaded)"},
	{OPTION_FLAG, 0, "qps", NULL, MEMBER(view.qps), .max = true,
		.text = "also print a line for each QP"},
	{OPTION_FLAG, 0, "peers", NULL, MEMBER(view.peers), .max = true,
		.text = "also print a line for each host that a client sends to"},
	{OPTION_FLAG, 0, "latencies", NULL, MEMBER(view.latencies), .max = true,
		.text = "also print how long requests took, by type of QP and operation"},
	{OPTION_FLAG, 0, "slow", NULL, MEMBER(view.slow), .max = true,
		.text = "also print the slowest requests, kept for five minutes, and where their time "
			"went"},
	{OPTION_FLAG, 0, "json", NULL, MEMBER(json), .max = true,
		.text = "print everything as JSON; with --watch, one line each time"},
	{OPTION_FLAG, 0, "prometheus", NULL, MEMBER(prometheus), .max = true,
		.text = "print metrics in the text format of Prometheus, once"},
	{OPTION_FN, 0, "watch", "[=SECONDS]", .set = watch_set, .valid = "0.1 to 86400",
		.text = "repeat every SECONDS (default: 1), with rates"},
	{OPTION_NUM, 0, "count", "N", MEMBER(count), 1, 86400,
		.text = "with --watch, stop after N times"},
	{OPTION_FN, 0, "flight", "CLIENT[:QPN]", .set = flight_set,
		.valid = "the id of a client, and behind a colon a QPN up to 0xffffff",
		.text = "print the last events of one QP of a client, or of each, once; the "
			"client needs ROCADE_FLIGHT_RECORDER=1"},
	{OPTION_HELP, .name = "help"},
	{OPTION_VERSION, .name = "version"},
};

static const struct options options = {.program = PROGRAM,
	.usage = "Usage: " PROGRAM " [OPTION]...\n"
		 "Shows a daemon, its clients, their QPs and SRQs, rates and error "
		 "counters.\n\n",
	.notes = "  --help, --version\n\n"
		 "Exit status: 0; 1 if no daemon answers; 2 for invalid options.\n",
	.rows = option_rows,
	.count = sizeof(option_rows) / sizeof(option_rows[0]),
	.column = 22};

static int
no_daemon_report(void)
{
	bool none = errno == ENOENT || errno == ECONNREFUSED;

	fprintf(stderr, PROGRAM ": %s\n", rocade_error());
	if (none)
		fputs(PROGRAM
			": `rocaded --local` starts a daemon; --socket or $ROCADE_SOCKET "
			"selects its socket\n",
			stderr);
	return EXIT_RUN;
}

static volatile sig_atomic_t ended;

static void
status_on_signal(int number)
{
	(void)number;
	ended = 1;
}

static void
snapshot_show(const struct conf *s, const json_t *snapshot)
{
	const struct metrics_to to = {.file = stdout};

	if (s->prometheus)
		prometheus_print(&to, snapshot, &s->view);
	else if (s->json) {
		json_dumpf(snapshot, stdout,
			s->watch_s != 0 ? JSON_COMPACT : JSON_INDENT(2));
		fputc('\n', stdout);
	} else {
		if (s->watch_s != 0 && isatty(STDOUT_FILENO))
			fputs("\033[H\033[2J", stdout);
		view_print(stdout, snapshot, &s->view);
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

/* Waits for the next round, or a signal, also one that has come since the last look at `ended`. */
static void
pause_until_next(const struct timespec *pause)
{
	sigset_t both, before;

	sigemptyset(&both);
	sigaddset(&both, SIGINT);
	sigaddset(&both, SIGTERM);
	sigprocmask(SIG_BLOCK, &both, &before);
	if (!ended)
		(void)ppoll(NULL, 0, pause, &before);
	sigprocmask(SIG_SETMASK, &before, NULL);
}

static int
status_run(const struct conf *s)
{
	struct timespec pause = {.tv_sec = (time_t)s->watch_s,
		.tv_nsec = (long)((s->watch_s - (double)(time_t)s->watch_s) * 1e9)};
	json_t *before = NULL;
	double last = 0;

	for (uint64_t round = 1; !ended; round++) {
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
		pause_until_next(&pause);
	}
	json_decref(before);
	return ferror(stdout) ? EXIT_RUN : EXIT_OK;
}

static int
flight_run(const struct conf *s)
{
	const char *why;

	if (flight_show(stdout, s->socket, &s->flight, &why))
		return ferror(stdout) ? EXIT_RUN : EXIT_OK;
	fprintf(stderr, PROGRAM ": no events of client %" PRIu32 ": %s\n",
		s->flight.client, why);
	return EXIT_RUN;
}

int
main(int argc, char **argv)
{
	struct sigaction action = {.sa_handler = status_on_signal};
	struct conf s = {.socket = NULL};
	int rc = options_read(&options, &s, argc, argv);

	if (rc >= 0)
		return rc;
	if (s.prometheus && (s.json || s.watch_s != 0)) {
		fprintf(stderr,
			PROGRAM ": --prometheus prints once and as text: not with %s\n",
			s.json ? "--json" : "--watch");
		return EXIT_USAGE;
	}
	if (s.flight.client != 0 && (s.prometheus || s.json || s.watch_s != 0)) {
		fprintf(stderr,
			PROGRAM ": --flight prints once and as text: not with %s\n",
			s.prometheus ? "--prometheus"
			: s.json     ? "--json"
				     : "--watch");
		return EXIT_USAGE;
	}
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	return s.flight.client != 0 ? flight_run(&s) : status_run(&s);
}
