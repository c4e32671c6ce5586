/* SPDX-License-Identifier: BSD-3-Clause */
/* rocade-pairs: the message rate of pairs of engines, each on a core of its own, or of threads that
 * post beside lcores that run the engines, for tools/bench.sh. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_launch.h>
#include <rte_lcore.h>

#include <jansson.h>

#include <common/eal_end.h>
#include <common/eal_start.h>
#include <common/options.h>

#include "pairs_json.h"

#define PROGRAM "rocade-pairs"
#define RESOLVE_S 10
#define STALL_S 10
#define CLOCK_PASSES 16 /* passes between two reads of the clock */

struct conf {
	uint64_t pairs, posters, share, crossed, loop, seconds, warmup_ms, control,
		control_rate, control_ms, passes;
	const char *json;
};

/* An lcore that runs a pair, with --posters without its engines. */
struct lane {
	struct pair *pair;
	bool (*pass)(struct pair *pair, bool post);
	uint64_t begin_tsc, end_tsc; /* of the window, the same for all lanes */
	uint64_t from;               /* pair->received when the window began */
	uint64_t last_tsc;           /* the last read of the clock */
	uint64_t messages;
	double seconds;
	struct pass_spans spans; /* --passes: in the window */
} __attribute__((aligned(PAIR_LINE)));

static const char *const share_names[] = {"nothing", "srq", "cq", NULL};

static const char *const control_names[] = {"none", "deregister", "connect", NULL};

static struct conf conf = {.pairs = 1, .seconds = 2, .warmup_ms = 500};
static struct pairs pairs;
static struct lane lanes[PAIRS_MAX];
static struct pairs_control_run control;
static struct control_intervals intervals; /* of the first lane */
static unsigned ended;                     /* lanes whose window has ended */
static bool failed;                        /* a lane has */

static const struct option_row option_rows[] = {
	{.kind = OPTION_NUM,
		.name = "pairs",
		.arg = "N",
		OPTION_MEMBER(struct conf, pairs),
		.min = 1,
		.max = PAIRS_MAX,
		.text = "pairs of engines; each runs on an lcore of EAL's (1)"},
	{.kind = OPTION_NUM,
		.name = "posters",
		.arg = "N",
		OPTION_MEMBER(struct conf, posters),
		.max = PAIRS_MAX,
		.text = "lcores that post and poll CQs, each with QPs of its own, beside "
			"those that poll the engines; 0: these do both (0)"},
	{.kind = OPTION_WORD,
		.name = "share",
		.arg = "WHAT",
		OPTION_MEMBER(struct conf, share),
		.words = share_names,
		.text = "what the engines of a device share: nothing; srq: one SRQ; cq: one "
			"CQ for requests and one for receives (nothing)"},
	{.kind = OPTION_FLAG,
		.name = "crossed",
		OPTION_MEMBER(struct conf, crossed),
		.max = 1,
		.text = "the QP of engine i sends to that of engine i + 1, so that packets "
			"arrive at another engine than their QP's and are handed to it"},
	{.kind = OPTION_WORD,
		.name = "control",
		.arg = "WHAT",
		OPTION_MEMBER(struct conf, control),
		.words = control_names,
		.text = "control calls beside the traffic, on one more lcore: register and "
			"deregister a region, or create and connect two QPs (none)"},
	{.kind = OPTION_NUM,
		.name = "control-rate",
		.arg = "N",
		OPTION_MEMBER(struct conf, control_rate),
		.min = 0,
		.max = 10000000,
		.text = "how many times a second; 0: as many as possible (0)"},
	{.kind = OPTION_NUM,
		.name = "control-ms",
		.arg = "MS",
		OPTION_MEMBER(struct conf, control_ms),
		.min = 0,
		.max = 60000,
		.text = "control calls in every second interval of MS milliseconds only, compared "
			"with the intervals around it; 0: always (0)"},
	{.kind = OPTION_FLAG,
		.name = "passes",
		OPTION_MEMBER(struct conf, passes),
		.max = 1,
		.text = "read the clock after each pass, not after each 16th, and write how "
			"long passes take to the --json file; rates are lower"},
	{.kind = OPTION_FLAG,
		.name = "loop",
		OPTION_MEMBER(struct conf, loop),
		.max = 1,
		.text = "use a loop in memory instead of the ethdev ports 0 and 1"},
	{.kind = OPTION_NUM,
		.name = "seconds",
		.arg = "S",
		OPTION_MEMBER(struct conf, seconds),
		.min = 1,
		.max = 86400,
		.text = "duration of the measurement, in seconds (2)"},
	{.kind = OPTION_NUM,
		.name = "warmup-ms",
		.arg = "MS",
		OPTION_MEMBER(struct conf, warmup_ms),
		.min = 0,
		.max = 3600000,
		.text = "warm-up time before it, in milliseconds (500)"},
	{.kind = OPTION_TEXT,
		.name = "json",
		.arg = "FILE",
		OPTION_MEMBER(struct conf, json),
		.text = "write the result as JSON to FILE; -: standard output"},
	{.kind = OPTION_HELP, .name = "help", .text = "print this help"},
	{.kind = OPTION_VERSION, .name = "version", .text = "print name and version"},
};

static const struct options options = {.program = PROGRAM,
	.usage =
		"Usage: " PROGRAM " [EAL options] -- [options]\n"
		"\n"
		"Measures how many 64 B SENDs pairs of engines move. Pair i is engine i of a "
		"sending device\nand engine i of a receiving one, polled by one lcore. It posts, too, "
		"or others do (--posters).\n",
	.notes = "",
	.rows = option_rows,
	.count = sizeof(option_rows) / sizeof(option_rows[0]),
	.column = 20};

static int
pairs_report(int code, const char *what, const char *why)
{
	fprintf(stderr, PROGRAM ": %s: %s\n", what, why);
	return code;
}

static int
pairs_ports_open(void)
{
	struct rocade_port_conf port[2] = {
		{.size = sizeof(port[0]),
			.addresses = "192.0.2.1/24",
			.engines = (uint16_t)conf.pairs,
			.ethdev = 0},
		{.size = sizeof(port[0]),
			.addresses = "192.0.2.2/24",
			.engines = (uint16_t)conf.pairs,
			.ethdev = 1},
	};
	struct rocade_port *ports[2] = {NULL, NULL};
	int rc;

	if (conf.loop != 0)
		rc = rocade_open_loop(port, ports);
	else if ((rc = rocade_open_port(&port[0], &ports[0])) == 0)
		rc = rocade_open_port(&port[1], &ports[1]);
	/* The port of the memif client is closed first. */
	pairs.receiving.port = ports[0];
	pairs.sending.port = ports[1];
	return rc;
}

static void
pairs_ports_close(void)
{
	if (pairs.sending.port != NULL)
		rocade_close_port(pairs.sending.port);
	if (pairs.receiving.port != NULL)
		rocade_close_port(pairs.receiving.port);
}

/* Lanes, each with a pair of QPs. */
static unsigned
lanes_count(void)
{
	return (unsigned)(conf.posters != 0 ? conf.posters : conf.pairs);
}

/* Both ends resolve each other, so that no window begins with that. */
static bool
pairs_resolve(void)
{
	uint64_t end = rte_rdtsc() + RESOLVE_S * rte_get_tsc_hz();
	union ibv_gid sender, receiver;

	if (ibv_query_gid(pairs.sending.context, 1, 0, &sender) != 0 ||
		ibv_query_gid(pairs.receiving.context, 1, 0, &receiver) != 0)
		return false;
	while (rocade_port_resolve(pairs.sending.port, &receiver) != 0 ||
		rocade_port_resolve(pairs.receiving.port, &sender) != 0) {
		if (rte_rdtsc() > end)
			return false;
		for (unsigned i = 0; i < conf.pairs; i++)
			pairs_engines_poll(&pairs, i);
	}
	return true;
}

static void
lane_fail(struct lane *lane, const char *why)
{
	lane->pair->failed = why;
	__atomic_store_n(&failed, true, __ATOMIC_RELAXED);
}

static bool
lanes_have_ended(void)
{
	return __atomic_load_n(&ended, __ATOMIC_RELAXED) == lanes_count() ||
	       __atomic_load_n(&failed, __ATOMIC_RELAXED);
}

/* Polls the engines of pair `arg` until all lanes have ended. */
static int
engines_run(void *arg)
{
	while (!lanes_have_ended())
		pairs_engines_poll(&pairs, (unsigned)(uintptr_t)arg);
	return 0;
}

/* Runs the pair until every lane's window has ended: the others must not be measured alone. */
static int
lane_run(void *arg)
{
	struct lane *lane = arg;
	struct pair *pair = lane->pair;
	uint64_t stall_tsc = lane->end_tsc + STALL_S * rte_get_tsc_hz(), from_tsc = 0,
		 now;
	const unsigned clock_passes = conf.passes != 0 ? 1 : CLOCK_PASSES;
	unsigned left = clock_passes;

	for (;;) {
		if (unlikely(!lane->pass(pair, true)))
			lane_fail(lane, pair->failed);
		if (likely(--left != 0))
			continue;
		left = clock_passes;
		now = rte_rdtsc();
		if (conf.passes != 0 && from_tsc != 0 && lane->seconds == 0)
			pass_spans_add(&lane->spans, now - lane->last_tsc);
		lane->last_tsc = now;
		if (lane == &lanes[0] && lane->seconds == 0)
			control_intervals_add(&intervals, now, pair->received);
		if (from_tsc == 0 && now >= lane->begin_tsc) {
			from_tsc = now;
			lane->from = pair->received;
		} else if (from_tsc != 0 && lane->seconds == 0 && now >= lane->end_tsc) {
			lane->messages = pair->received - lane->from;
			lane->seconds =
				(double)(now - from_tsc) / (double)rte_get_tsc_hz();
			__atomic_fetch_add(&ended, 1, __ATOMIC_RELAXED);
		}
		if (now > stall_tsc)
			lane_fail(lane, "another pair did not end");
		if (lanes_have_ended())
			return 0;
	}
}

/* Starts what runs on the n-th lcore after the main one: the other lanes, the engines, control calls. */
static void
worker_launch(unsigned n, unsigned lcore)
{
	unsigned lanes_left = lanes_count() - 1;
	unsigned engines = conf.posters != 0 ? (unsigned)conf.pairs : 0;

	if (n < lanes_left)
		rte_eal_remote_launch(lane_run, &lanes[n + 1], lcore);
	else if (n < lanes_left + engines)
		rte_eal_remote_launch(
			engines_run, (void *)(uintptr_t)(n - lanes_left), lcore);
	else if (n == lanes_left + engines && conf.control != CONTROL_NONE)
		rte_eal_remote_launch(pairs_control_run, &control, lcore);
}

/* Returns false if a pair has failed. */
static bool
lanes_run(void)
{
	static bool stop;
	uint64_t hz = rte_get_tsc_hz(), begin = rte_rdtsc() + conf.warmup_ms * hz / 1000;
	unsigned n = 0, lcore;

	for (unsigned i = 0; i < lanes_count(); i++) {
		lanes[i] = (struct lane){.pair = &pairs.pair[i],
			.pass = conf.posters != 0 ? pair_work : pair_pass,
			.begin_tsc = begin,
			.end_tsc = begin + conf.seconds * hz};
		pass_spans_init(&lanes[i].spans, hz);
	}
	control = (struct pairs_control_run){.pairs = &pairs,
		.what = (enum pairs_control)conf.control,
		.rate = conf.control_rate,
		.begin_tsc = begin,
		.interval_tsc = conf.control_ms * hz / 1000,
		.stop = &stop};
	control_intervals_begin(&intervals, begin, control.interval_tsc);
	RTE_LCORE_FOREACH_WORKER(lcore)
	{
		worker_launch(n++, lcore);
	}
	lane_run(&lanes[0]);
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	rte_eal_mp_wait_lcore();
	return !failed && control.failed == NULL;
}

/* Returns the sum of a counter over the engines of both devices. */
static uint64_t
pairs_counter(const char *name)
{
	struct rocade_port *ports[2] = {pairs.sending.port, pairs.receiving.port};
	struct rocade_stat rows[256];
	uint64_t sum = 0;

	for (unsigned k = 0; k < 2; k++) {
		unsigned n = rocade_port_stats(
			ports[k], -1, rows, sizeof(rows) / sizeof(rows[0]));

		for (unsigned i = 0; i < n && i < sizeof(rows) / sizeof(rows[0]); i++)
			sum += strcmp(rows[i].name, name) == 0 ? rows[i].value : 0;
	}
	return sum;
}

static json_t *
pairs_json(double rate)
{
	json_t *object = json_object(), *each = json_array();

	for (unsigned i = 0; i < lanes_count(); i++)
		json_array_append_new(
			each, json_real((double)lanes[i].messages / lanes[i].seconds));
	json_object_set_new(object, "pairs", json_integer((json_int_t)conf.pairs));
	json_object_set_new(object, "posters", json_integer((json_int_t)conf.posters));
	json_object_set_new(object, "share", json_string(share_names[conf.share]));
	json_object_set_new(object, "crossed", json_boolean(conf.crossed != 0));
	json_object_set_new(object, "control", json_string(control_names[conf.control]));
	json_object_set_new(
		object, "control_rounds", json_integer((json_int_t)control.rounds));
	intervals_json(object, &intervals);
	if (conf.passes != 0) {
		struct pass_spans all = lanes[0].spans;

		for (unsigned i = 1; i < lanes_count(); i++)
			pass_spans_merge(&all, &lanes[i].spans);
		passes_json(object, &all);
	}
	json_object_set_new(object, "size", json_integer(64));
	json_object_set_new(object, "messages_per_s", json_real(rate));
	json_object_set_new(object, "messages_per_s_of_pair", each);
	json_object_set_new(object, "rx_handoff",
		json_integer((json_int_t)pairs_counter("rx_handoff")));
	json_object_set_new(object, "rx_packets",
		json_integer((json_int_t)pairs_counter("rx_packets")));
	json_object_set_new(object, "handoff_full",
		json_integer((json_int_t)pairs_counter("drop_handoff_full")));
	return object;
}

static int
pairs_print(void)
{
	double rate = 0;
	json_t *object;
	int rc = 0;

	for (unsigned i = 0; i < lanes_count(); i++)
		rate += (double)lanes[i].messages / lanes[i].seconds;
	object = pairs_json(rate);
	if (conf.json == NULL || strcmp(conf.json, "-") != 0)
		printf("%" PRIu64 " pairs, %" PRIu64
		       " posters, sharing %s%s: %.3f Mmsg/s; control calls: %s, "
		       "%" PRIu64 " rounds\n",
			conf.pairs, conf.posters, share_names[conf.share],
			conf.crossed ? ", crossed" : "", rate / 1e6,
			control_names[conf.control], control.rounds);
	else
		rc = json_dumpf(object, stdout, JSON_INDENT(2)) != 0 || puts("") < 0;
	if (conf.json != NULL && strcmp(conf.json, "-") != 0)
		rc = json_dump_file(object, conf.json, JSON_INDENT(2));
	json_decref(object);
	return rc == 0 ? EXIT_OK
		       : pairs_report(
				 EXIT_RUN, "cannot write the --json file", conf.json);
}

static void
lanes_report(int code)
{
	if (control.failed != NULL)
		pairs_report(code, "a control call failed", control.failed);
	for (unsigned i = 0; i < lanes_count() && control.failed == NULL; i++)
		pairs_report(code, "a pair ended",
			pairs.pair[i].failed != NULL ? pairs.pair[i].failed
						     : "another pair failed");
}

static int
pairs_run(void)
{
	const struct pairs_conf how = {.pairs = lanes_count(),
		.engines = (unsigned)conf.pairs,
		.share = (enum pairs_share)conf.share,
		.crossed = conf.crossed != 0};
	const char *wrong = pairs_open(&pairs, &how);
	int code = EXIT_RUN;

	if (wrong != NULL)
		pairs_report(code, "cannot open the pairs, failed", wrong);
	else if (!pairs_resolve())
		pairs_report(code, "cannot resolve the MAC address of the other port",
			"no answer within 10 s");
	else if (!lanes_run())
		lanes_report(code);
	else
		code = pairs_print();
	pairs_close(&pairs);
	return code;
}

int
main(int argc, char **argv)
{
	int separator = options_separator(argc, argv);
	int code = options_read(&options, &conf, argc - separator, argv + separator);

	if (code >= 0)
		return code;
	if (eal_start(PROGRAM, separator, argv) != 0)
		return EXIT_ENVIRONMENT;
	if (conf.posters != 0 && (conf.posters < conf.pairs || conf.crossed != 0))
		code = pairs_report(EXIT_USAGE, "invalid option --posters",
			"expected no fewer than --pairs, and not --crossed");
	else if (rte_lcore_count() <
		 conf.pairs + conf.posters + (conf.control != CONTROL_NONE))
		code = pairs_report(EXIT_USAGE, "too few lcores",
			"expected one for each of --pairs and --posters, and one for "
			"--control (--lcores of EAL)");
	else if (pairs_ports_open() != 0)
		code = pairs_report(
			EXIT_ENVIRONMENT, "cannot open the ports", rocade_error());
	else
		code = pairs_run();
	pairs_ports_close();
	eal_end();
	return code;
}
