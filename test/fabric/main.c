/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs the scenarios of rows.c, prints a line for each with what was measured, and checks
 * it against bounds.def. */
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "plot.h"
#include "predict.h"
#include "row.h"
#include "sweep.h"
#include "tcp.h"
#include "test_clock.h"

static const struct {
	const char *name, *unit;
	int decimals;
	const char *text;
} metrics[] = {
#define METRIC_ROW(name, unit, decimals, text) {#name, unit, decimals, text},
	METRICS(METRIC_ROW)
#undef METRIC_ROW
};

static const struct bound {
	const char *row;
	bool cc; /* with congestion control */
	enum metric metric;
	bool at_most;
	double value;
} bounds[] = {
#define AT_LEAST false
#define AT_MOST true
#define BOUND(row, metric, comparison, value)                                            \
	{row, false, METRIC_##metric, comparison, value},
#define SWIFT(row, metric, comparison, value)                                            \
	{row, true, METRIC_##metric, comparison, value},
#include "bounds.def"
	{NULL, false, METRIC_COUNT, false, 0},
};

static struct {
	const char *only; /* a row's name, or its beginning */
	uint64_t first_seed;
	unsigned seeds, sweep;
	double scale;
	const char *plot;
	const char *cc; /* one setting; NULL: off, and then swift */
	bool list;
	const char *of_rows; /* an option that --sweep does not have */
} options = {.first_seed = 1, .seeds = 1, .scale = 1};

static bool
row_is_asked(const struct row *row)
{
	return options.only == NULL ||
	       strncmp(row->name, options.only, strlen(options.only)) == 0;
}

/* Settings of congestion control with which it runs: one, or off and then swift. */
static unsigned
settings_of(const struct row *row)
{
	return options.cc != NULL || row->client ? 1 : 2;
}

static void
result_print(const struct row *row, const char *cc, uint64_t seed, const struct result *r)
{
	printf("# %-11s %-5s seed %u", row->name, cc, (unsigned)seed);
	for (unsigned i = 0; i < METRIC_COUNT; i++) {
		if (!isnan(r->value[i]))
			printf(" %s %.*f%s%s", metrics[i].name, metrics[i].decimals,
				r->value[i], metrics[i].unit[0] != '%' ? " " : "",
				metrics[i].unit);
	}
	printf(" (%.1f ms took %.2f s of CPU, %.0f ns a packet)\n", r->virtual_s * 1e3,
		r->cpu_s, r->cpu_s * 1e9 / (double)RTE_MAX(r->packets, UINT64_C(1)));
}

/* Returns whether the row passes its bounds. */
static bool
bounds_check(const struct row *row, bool cc, const struct result *r)
{
	bool good = true;

	for (const struct bound *b = bounds; b->row != NULL; b++) {
		double value = r->value[b->metric < METRIC_COUNT ? b->metric : 0];

		if (strcmp(b->row, row->name) != 0 || b->cc != cc ||
			(b->at_most ? value <= b->value : value >= b->value))
			continue;
		printf("# %s, cc %s: %s is %g, must be at %s %g\n", row->name,
			cc ? "swift" : "off", metrics[b->metric].name, value,
			b->at_most ? "most" : "least", b->value);
		good = false;
	}
	return good;
}

static bool
case_run(unsigned number, const struct row *row, const char *cc_text, uint64_t seed,
	struct plot *plot)
{
	struct result result;
	struct cc_conf cc = {0};
	char why[160];
	bool good;

	CHECK(cc_text_read("--cc", cc_text, &cc, why, sizeof(why)) == 0, "%s", why);
	if (plot != NULL)
		plot_run(plot);
	row_run(row, &cc, seed, options.scale, plot, &result);
	result_print(row, cc_text, seed, &result);
	good = options.scale != 1 || bounds_check(row, cc.on, &result);
	printf("%sok %u - %s, cc %s, seed %u\n", good ? "" : "not ", number, row->name,
		cc_text, (unsigned)seed);
	fflush(stdout);
	return good;
}

/* What TCP reaches on the links of a client's row, with the first seed. It is the same with each --cc. */
static void
reference_print(const struct row *row)
{
	struct tcp_result tcp;

	row_reference(row, options.first_seed, options.scale, &tcp);
	printf("# %-11s TCP   seed %u goodput %.1f%% jain %.3f resends %.2f%%\n",
		row->name, (unsigned)options.first_seed, 100 * tcp.goodput, tcp.jain,
		100 * tcp.resends);
}

/* Runs the row with each seed. Returns the number of failures. */
static unsigned
row_cases_run(const struct row *row, const char *cc, unsigned *number)
{
	struct plot *plot = NULL;
	unsigned failed = 0;
	char name[64];

	snprintf(name, sizeof(name), "%s-%s", row->name, cc);
	if (options.plot != NULL)
		plot = plot_open(options.plot, name,
			ps_per_byte(row->gbit_per_s != 0 ? row->gbit_per_s : 100));
	for (unsigned s = 0; s < options.seeds; s++)
		failed += !case_run(++*number, row, cc, options.first_seed + s, plot);
	if (row->client && options.cc == NULL)
		reference_print(row);
	if (plot != NULL)
		plot_close(plot);
	return failed;
}

static void
usage(FILE *to)
{
	fprintf(to,
		"usage: fabric [--only NAME] [--seed N] [--seeds N] [--time FACTOR] [--plot DIRECTORY] [--list]\n"
		"       fabric --sweep N [--seed N]\n"
		"  --only NAME       scenarios whose names begin so\n"
		"  --seed N          first seed (1)\n"
		"  --seeds N         number of seeds (1)\n"
		"  --time FACTOR     scenarios take so much longer (1); the bounds hold for 1\n"
		"  --cc SETTING      congestion control: off, swift, swift,target=US ... (off, then swift)\n"
		"  --plot DIRECTORY  writes curves over time (of the last seed), with a mixed load the\n"
		"                    slowdown by length (of all seeds), as NAME.tsv and NAME.svg\n"
		"  --list            prints the names of scenarios and metrics\n"
		"  --sweep N         N networks that the seeds draw, and rules for each of them; sweep.def\n"
		"                    lists those that break a rule today. With ROCADE_TEST_LONG in the\n"
		"                    environment 20 times as many\n"
		"`fabric predict --help`: another network, and one of three patterns\n");
}

static unsigned
sweep_read(const char *text)
{
	char *end;
	unsigned long count = strtoul(text, &end, 10);

	CHECK(text[0] >= '0' && text[0] <= '9' && *end == '\0' && count >= 1 &&
			count <= SWEEP_MOST,
		"--sweep %s: expected a number of seeds, 1 to %u", text, SWEEP_MOST);
	return (unsigned)count;
}

static void
options_read(int argc, char **argv)
{
	static const struct option names[] = {{"only", required_argument, NULL, 'o'},
		{"seed", required_argument, NULL, 's'},
		{"seeds", required_argument, NULL, 'n'},
		{"time", required_argument, NULL, 't'},
		{"cc", required_argument, NULL, 'c'},
		{"plot", required_argument, NULL, 'p'}, {"list", no_argument, NULL, 'l'},
		{"sweep", required_argument, NULL, 'w'}, {"help", no_argument, NULL, 'h'},
		{0}};
	int option, index = 0;

	while ((option = getopt_long(argc, argv, "", names, &index)) != -1) {
		if (strchr("ontcp", option) != NULL)
			options.of_rows = names[index].name;
		switch (option) {
		case 'o':
			options.only = optarg;
			break;
		case 's':
			options.first_seed = strtoull(optarg, NULL, 0);
			break;
		case 'n':
			options.seeds = (unsigned)strtoul(optarg, NULL, 0);
			break;
		case 't':
			options.scale = strtod(optarg, NULL);
			break;
		case 'c':
			options.cc = optarg;
			break;
		case 'p':
			options.plot = optarg;
			break;
		case 'l':
			options.list = true;
			break;
		case 'w':
			options.sweep = sweep_read(optarg);
			break;
		default:
			usage(option == 'h' ? stdout : stderr);
			exit(option == 'h' ? 0 : 2);
		}
	}
	CHECK(options.sweep == 0 || options.of_rows == NULL,
		"--sweep: --%s is for scenarios; expected only --seed beside it",
		options.of_rows);
	CHECK(optind == argc && options.seeds != 0 && options.scale > 0, "see --help");
}

static void
list_print(void)
{
	for (unsigned i = 0; i < row_count; i++)
		printf("%s\n", rows[i].name);
	for (unsigned i = 0; i < METRIC_COUNT; i++)
		printf("# %s (%s) %s\n", metrics[i].name, metrics[i].unit,
			metrics[i].text);
}

int
main(int argc, char **argv)
{
	unsigned asked = 0, number = 0, failed = 0;

	test_clock = &clock_ns;
	if (argc > 1 && strcmp(argv[1], "predict") == 0)
		return predict_main(argc - 1, argv + 1);
	options_read(argc, argv);
	if (options.list) {
		list_print();
		return 0;
	}
	if (options.sweep != 0)
		return sweep_run(options.first_seed, options.sweep);
	for (unsigned i = 0; i < row_count; i++)
		asked += row_is_asked(&rows[i]) * settings_of(&rows[i]);
	CHECK(asked != 0, "no scenario is named %s", options.only);
	printf("1..%u\n", asked * options.seeds);
	for (unsigned i = 0; i < row_count; i++) {
		if (!row_is_asked(&rows[i]))
			continue;
		if (settings_of(&rows[i]) == 2)
			failed += row_cases_run(&rows[i], "off", &number);
		failed += row_cases_run(
			&rows[i], options.cc != NULL ? options.cc : "swift", &number);
	}
	return failed != 0;
}
