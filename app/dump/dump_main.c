/* SPDX-License-Identifier: BSD-3-Clause */
/* rocade-dump: writes packets that a daemon moves as pcapng. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <rocade/dump.h>
#include <rocade/pcapng.h>
#include <rocade/rocade.h>

#include <common/options.h>

#include "interfaces.h"

#define PROGRAM "rocade-dump"
#define WAIT_MS 200
#define MULTICAST 0xffffff /* as a QPN */

static const char *const directions[] = {"both", "in", "out", NULL};
enum direction { BOTH, IN, OUT };

struct conf {
	const char *socket;
	const char *file; /* NULL: standard output */
	uint64_t client, qpn, snap, count, seconds;
	uint8_t direction; /* enum direction */
};

#define MEMBER(field) OPTION_MEMBER(struct conf, field)
static const struct option_row option_rows[] = {
	{OPTION_TEXT, 0, "socket", "PATH", MEMBER(socket),
		.text = "the daemon's socket (default: as for rocaded)"},
	{OPTION_TEXT, 0, "write", "FILE", MEMBER(file),
		.text = "write to FILE (default: standard output, if that is no terminal)"},
	{OPTION_NUM, 0, "client", "ID", MEMBER(client), 1, UINT32_MAX,
		.text = "only packets of the client that rocade-status shows with this id"},
	{OPTION_NUM, 0, "qp", "QPN", MEMBER(qpn), 2, MULTICAST - 1,
		.valid = "2 to 0xfffffe",
		.text = "only packets to and from this QP of a client"},
	{OPTION_WORD, 0, "direction", "WHICH", MEMBER(direction), .words = directions,
		.text = "both, or only packets to clients (in), or from clients (out) (both)"},
	{OPTION_NUM, 0, "snap", "BYTES", MEMBER(snap), 1, 65535,
		.text = "keep at most BYTES of each packet (all)"},
	{OPTION_NUM, 0, "count", "N", MEMBER(count), 1, UINT32_MAX,
		.text = "stop after N packets"},
	{OPTION_NUM, 0, "seconds", "N", MEMBER(seconds), 1, 86400,
		.text = "stop after N seconds"},
	{OPTION_HELP, .name = "help"},
	{OPTION_VERSION, .name = "version"},
};

static const struct options options = {.program = PROGRAM,
	.usage =
		"Usage: " PROGRAM " [OPTION]...\n"
		"Writes packets that rocaded moves as pcapng, for Wireshark: those of the "
		"user's clients,\nfor root and the daemon's user those of all.\n\n",
	.notes =
		"  --help, --version\n\n"
		"Exit status: 0; 1 if no daemon answers, it gives no packets or ends; 2 for "
		"invalid options.\n",
	.rows = option_rows,
	.count = sizeof(option_rows) / sizeof(option_rows[0]),
	.column = 22};

static volatile sig_atomic_t ended;

static void
dump_on_signal(int number)
{
	(void)number;
	ended = 1;
}

static double
dump_clock_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

struct totals {
	uint64_t written, lost, last_ns;
	struct interfaces interfaces;
};

/* Returns false without memory. */
static bool
packet_write(FILE *to, const struct conf *conf, struct rocade_dump *dump,
	const struct rocade_dump_packet *p, struct totals *t)
{
	uint32_t interface =
		interface_of(&t->interfaces, to, p->client, dump, (uint32_t)conf->snap);
	char comment[32];

	if (interface == UINT32_MAX)
		return false;
	/* A packet of RC or UC does not name the QP that it comes from. */
	snprintf(comment, sizeof(comment), "%s QP 0x%06" PRIx32, p->out ? "from" : "to",
		p->qpn);
	pcapng_packet(to, &(struct pcapng_packet){.interface = interface,
				  .wall_ns = p->wall_ns,
				  .len = p->len,
				  .kept = p->kept,
				  .data = p->data,
				  .out = p->out,
				  .lost = p->lost,
				  .comment = p->qpn != MULTICAST ? comment : NULL});
	t->interfaces.rows[interface].written++;
	t->written++;
	t->lost += p->lost;
	t->last_ns = p->wall_ns;
	return true;
}

/* Writes packets until one of the limits, a signal, or the end of the daemon. Returns what
 * rocade_dump_next() returned last, or -1 if the file cannot be written. */
static int
packets_write(
	FILE *to, const struct conf *conf, struct rocade_dump *dump, struct totals *t)
{
	double until = dump_clock_s() + (double)conf->seconds;
	struct rocade_dump_packet packet;
	int rc = 0;

	while (!ended && rc >= 0 && (conf->count == 0 || t->written < conf->count) &&
		(conf->seconds == 0 || dump_clock_s() < until)) {
		rc = rocade_dump_next(dump, WAIT_MS, &packet);
		if (rc > 0 && !packet_write(to, conf, dump, &packet, t))
			rc = -1;
		/* A reader of the file sees all packets that have come. */
		if (rc == 0)
			fflush(to);
		if (ferror(to))
			rc = -1;
	}
	return rc;
}

static int
dump_run(FILE *to, const struct conf *conf)
{
	const struct rocade_dump_conf wanted = {.client = (uint32_t)conf->client,
		.qpn = (uint32_t)conf->qpn,
		.snap = (uint32_t)conf->snap,
		.in = conf->direction != OUT,
		.out = conf->direction != IN};
	struct totals t = {.written = 0};
	struct rocade_dump *dump;
	int rc;

	if (rocade_dump_open(conf->socket, &wanted, &dump) != 0) {
		fprintf(stderr, PROGRAM ": %s\n", rocade_error());
		return EXIT_RUN;
	}
	pcapng_begin(to, PROGRAM " " ROCADE_VERSION);
	fflush(to);
	fprintf(stderr, PROGRAM ": packets are written\n");
	rc = packets_write(to, conf, dump, &t);
	rocade_dump_stop(dump);
	t.lost += rocade_dump_lost(dump);
	rocade_dump_close(dump);
	/* How many of which client were lost is not known. */
	for (uint32_t i = 0; i < t.interfaces.count; i++)
		pcapng_statistics(to, i, t.last_ns, t.interfaces.rows[i].written,
			i == 0 ? t.lost : 0);
	free(t.interfaces.rows);
	fflush(to);
	fprintf(stderr, PROGRAM ": %" PRIu64 " packets written, %" PRIu64 " lost\n",
		t.written, t.lost);
	if (ferror(to))
		fprintf(stderr, PROGRAM ": cannot write: %s\n", strerror(errno));
	else if (rc < 0)
		fprintf(stderr, PROGRAM ": the daemon has ended, or memory is missing\n");
	return rc < 0 || ferror(to) ? EXIT_RUN : EXIT_OK;
}

int
main(int argc, char **argv)
{
	struct sigaction action = {.sa_handler = dump_on_signal};
	struct conf conf = {.socket = NULL};
	int rc = options_read(&options, &conf, argc, argv);
	FILE *to = stdout;

	if (rc >= 0)
		return rc;
	if (conf.file != NULL && strcmp(conf.file, "-") != 0) {
		to = fopen(conf.file, "wbe");
		if (to == NULL) {
			fprintf(stderr, PROGRAM ": %s: %s\n", conf.file, strerror(errno));
			return EXIT_RUN;
		}
	} else if (isatty(STDOUT_FILENO)) {
		fprintf(stderr,
			PROGRAM ": standard output is a terminal: give --write FILE\n");
		return EXIT_USAGE;
	}
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	action.sa_handler = SIG_IGN;
	sigaction(SIGPIPE, &action, NULL);
	rc = dump_run(to, &conf);
	if (to != stdout && fclose(to) != 0 && rc == EXIT_OK)
		rc = EXIT_RUN;
	return rc;
}
