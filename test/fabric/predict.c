/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "flow.h"
#include "predict.h"
#include "row.h"

#define EXIT_USAGE 2
#define LINKS 4          /* of a round trip over one switch */
#define HOSTS_NS 2200u   /* of a round trip: the loops of both hosts, on average */
#define LINK_NS_MIN 100u /* the least delay of a link */
#define HELLO 20         /* small messages of each flow before the load */
/* Half of the time of the simulation is measured. That half has at least the time of each of the following,
 * but at most US_MAX. */
#define US_MIN 5000
#define US_MAX UINT64_C(2000000)
#define ROUND_TRIPS UINT64_C(200)
#define PACKETS UINT64_C(4000)
#define QUEUES UINT64_C(100) /* times that the switch needs to empty a full queue */

/* The numbers that are given: field of the JSON, option, usual value, range, text of --help. */
#define NUMBERS(X)                                                                       \
	X(hosts, "hosts", 8, 2, 64, "number of hosts")                                   \
	X(mbit, "mbit", 100000, 10, 400000, "rate of each link, Mb/s")                   \
	X(mtu, "mtu", 4096, 256, 4096, "path MTU: 256, 512, 1024, 2048 or 4096")         \
	X(rtt_ns, "rtt-ns", 8500, 3000, 10000000, "round trip of an idle network, ns")   \
	X(buffer_kb, "buffer-kb", 1000, 10, 1000000, "buffer of each switch port, kB")   \
	X(message, "message", 16384, 64, 1048576, "bytes of a message")                  \
	X(depth, "depth", 32, 1, 64, "messages that each flow has under way")            \
	X(loss_ppm, "loss-ppm", 0, 0, 500000, "frames lost at random, per million")      \
	X(seed, "seed", 1, 1, 1000000, "seed of the random numbers")

enum number {
#define NUMBER_ENUM(name, option, usual, low, high, text) NUMBER_##name,
	NUMBERS(NUMBER_ENUM)
#undef NUMBER_ENUM
		NUMBER_COUNT
};

static const struct {
	const char *name, *option;
	unsigned usual, low, high;
	const char *text;
} numbers[] = {
#define NUMBER_ROW(name, option, usual, low, high, text)                                 \
	{#name, option, usual, low, high, text},
	NUMBERS(NUMBER_ROW)
#undef NUMBER_ROW
};

static const struct {
	const char *name;
	enum load load;
} patterns[] = {{"all-to-one", LOAD_INCAST}, {"one-to-all", LOAD_FANOUT},
	{"all-to-all", LOAD_ALL}};

static struct {
	unsigned pattern, value[NUMBER_COUNT];
	const char *cc;
	bool delay_unknown;
} asked;

static void
predict_usage(FILE *to)
{
	fprintf(to,
		"usage: fabric predict [OPTION]...\n"
		"  --pattern NAME   all-to-one, one-to-all or all-to-all (all-to-one)\n");
	for (unsigned i = 0; i < NUMBER_COUNT; i++)
		fprintf(to, "  --%s N   %s: %u to %u (%u)\n", numbers[i].option,
			numbers[i].text, numbers[i].low, numbers[i].high,
			numbers[i].usual);
	fprintf(to,
		"  --cc SETTING     congestion control (swift)\n"
		"  --delay-unknown  losses are its only signal, as with virtual ports\n"
		"Prints a line of JSON.\n");
}

static unsigned
number_read(unsigned which, const char *text)
{
	unsigned low = numbers[which].low, high = numbers[which].high;
	unsigned long n;
	char *end;

	errno = 0;
	n = strtoul(text, &end, 10);
	if (*text >= '0' && *text <= '9' && *end == '\0' && errno == 0 && n >= low &&
		n <= high && (which != NUMBER_mtu || (n & (n - 1)) == 0))
		return (unsigned)n;
	fprintf(stderr,
		"fabric predict: invalid value '%s' for --%s (%s): expected %u to %u\n",
		text, numbers[which].option, numbers[which].text, low, high);
	exit(EXIT_USAGE);
}

static unsigned
pattern_read(const char *text)
{
	for (unsigned i = 0; i < RTE_DIM(patterns); i++) {
		if (strcmp(text, patterns[i].name) == 0)
			return i;
	}
	fprintf(stderr,
		"fabric predict: invalid value '%s' for --pattern: expected all-to-one, one-to-all "
		"or all-to-all\n",
		text);
	exit(EXIT_USAGE);
}

static void
predict_options(int argc, char **argv)
{
	struct option names[NUMBER_COUNT + 5] = {0};
	int option;

	asked.cc = "swift";
	for (int i = 0; i < NUMBER_COUNT; i++) {
		asked.value[i] = numbers[i].usual;
		names[i] = (struct option){
			numbers[i].option, required_argument, NULL, 0x100 + i};
	}
	names[NUMBER_COUNT] = (struct option){"pattern", required_argument, NULL, 'p'};
	names[NUMBER_COUNT + 1] = (struct option){"cc", required_argument, NULL, 'c'};
	names[NUMBER_COUNT + 2] =
		(struct option){"delay-unknown", no_argument, NULL, 'd'};
	names[NUMBER_COUNT + 3] = (struct option){"help", no_argument, NULL, 'h'};
	while ((option = getopt_long(argc, argv, "", names, NULL)) != -1) {
		if (option >= 0x100) {
			asked.value[option - 0x100] =
				number_read((unsigned)option - 0x100, optarg);
		} else if (option == 'p') {
			asked.pattern = pattern_read(optarg);
		} else if (option == 'c') {
			asked.cc = optarg;
		} else if (option == 'd') {
			asked.delay_unknown = true;
		} else {
			predict_usage(option == 'h' ? stdout : stderr);
			exit(option == 'h' ? 0 : EXIT_USAGE);
		}
	}
	if (optind == argc)
		return;
	fprintf(stderr, "fabric predict: unexpected '%s': expected options\n",
		argv[optind]);
	exit(EXIT_USAGE);
}

/* Microseconds that are simulated before the measurement, and as many in it. */
static unsigned
half_us(void)
{
	const unsigned *v = asked.value;
	uint64_t packet_bits = FLOW_PACKET_BYTES(v[NUMBER_mtu]) * 8;
	uint64_t us = US_MIN;

	us = RTE_MAX(us, ROUND_TRIPS * v[NUMBER_rtt_ns] / 1000);
	us = RTE_MAX(us, PACKETS * packet_bits / v[NUMBER_mbit]);
	us = RTE_MAX(us, 8000 * QUEUES * v[NUMBER_buffer_kb] / v[NUMBER_mbit]);
	return (unsigned)RTE_MIN(us, US_MAX);
}

static struct row
row_asked(void)
{
	const unsigned *v = asked.value;
	enum load load = patterns[asked.pattern].load;
	unsigned links_ns = v[NUMBER_rtt_ns] - RTE_MIN(v[NUMBER_rtt_ns], HOSTS_NS);

	return (struct row){
		.name = patterns[asked.pattern].name,
		.load = load,
		.n = load == LOAD_ALL ? v[NUMBER_hosts] : v[NUMBER_hosts] - 1,
		.warm_us = half_us(),
		.us = half_us(),
		.mbit_per_s = v[NUMBER_mbit],
		.delay_ns = RTE_MAX(links_ns / LINKS, LINK_NS_MIN),
		.port_kb = v[NUMBER_buffer_kb],
		.loss = v[NUMBER_loss_ppm],
		.message = v[NUMBER_message],
		.depth = v[NUMBER_depth],
		.mtu = v[NUMBER_mtu],
		.hello = HELLO,
	};
}

/* Returns the payload that arrives, of all flows together, in Gb/s: goodput counts frames on
 * the wire, and of all-to-all those of a host. */
static double
payload_gbps(const struct row *row, const struct result *result)
{
	const unsigned *v = asked.value;
	double part = (double)v[NUMBER_mtu] / FLOW_PACKET_BYTES(v[NUMBER_mtu]);

	return result->value[METRIC_goodput] / 100 * v[NUMBER_mbit] / 1000 * part *
	       (row->load == LOAD_ALL ? v[NUMBER_hosts] : 1);
}

int
predict_main(int argc, char **argv)
{
	struct result result;
	struct cc_conf cc = {0};
	struct row row;
	char why[160];

	predict_options(argc, argv);
	if (cc_text_read("--cc", asked.cc, &cc, why, sizeof(why)) != 0) {
		fprintf(stderr, "fabric predict: %s\n", why);
		return EXIT_USAGE;
	}
	cc.delay_unknown = asked.delay_unknown;
	row = row_asked();
	row_run(&row, &cc, asked.value[NUMBER_seed], 1, NULL, &result);
	printf("{\"pattern\": \"%s\"", row.name);
	for (unsigned i = 0; i < NUMBER_COUNT; i++)
		printf(", \"%s\": %u", numbers[i].name, asked.value[i]);
	printf(", \"payload_gbps\": %.6f, \"jain\": %.4f, \"resent_share\": %.6f, "
	       "\"lost_share\": %.6f, \"virtual_ms\": %.3f, \"cpu_s\": %.2f}\n",
		payload_gbps(&row, &result), result.value[METRIC_jain],
		result.value[METRIC_resends] / 100, result.value[METRIC_loss] / 100,
		result.virtual_s * 1e3, result.cpu_s);
	return 0;
}
