/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <stdio.h>

#include "perf_conf.h"

static const char *const mode_names[] = {[MODE_SEND] = "send",
	[MODE_WRITE] = "write",
	[MODE_READ] = "read",
	[MODE_PINGPONG] = "pingpong",
	[MODE_WRITE_LAT] = "write-lat",
	[MODE_READ_LAT] = "read-lat",
	[MODE_RAW_PINGPONG] = "raw-pingpong",
	[MODE_COUNT] = NULL};

const char *
perf_mode_name(uint64_t mode)
{
	return mode_names[mode];
}

bool
mode_has_latency(uint64_t mode)
{
	return mode >= MODE_PINGPONG;
}

#define MEMBER(field) OPTION_MEMBER(struct conf, field)
#define HEADING(t) {OPTION_HEADING, .text = t},
#define NUM(n, a, f, lo, hi, t)                                                          \
	{OPTION_NUM, .name = n, .arg = a, MEMBER(f), .min = lo, .max = hi, .text = t},
#define POWER(n, a, f, lo, hi, v, t)                                                     \
	{OPTION_POWER, .name = n, .arg = a, MEMBER(f), .min = lo, .max = hi, .valid = v, \
		.text = t},
#define SIZE(n, a, f, hi, t)                                                             \
	{OPTION_SIZE, .name = n, .arg = a, MEMBER(f), .max = hi, .text = t},
#define WORD(n, a, f, w, t)                                                              \
	{OPTION_WORD, .name = n, .arg = a, MEMBER(f), .words = w, .text = t},
#define FLAG(n, f, value, t) {OPTION_FLAG, .name = n, MEMBER(f), .max = value, .text = t},
#define TEXT(n, a, f, hi, t)                                                             \
	{OPTION_TEXT, .name = n, .arg = a, MEMBER(f), .min = 1, .max = hi, .text = t},
#define HELP(n, t) {OPTION_HELP, .name = n, .text = t},
#define VERSION(n, t) {OPTION_VERSION, .name = n, .text = t},
static const struct option_row option_rows[] = {
#include "perf_options.def"
};

/* A test compares the exit codes with the man page. */
static const struct options perf_options = {.program = PROGRAM,
	.usage = "Usage: " PROGRAM " [EAL options] -- --server --socket PATH [options]\n"
		 "       " PROGRAM " [EAL options] -- --socket PATH [options]\n"
		 "\n"
		 "Measures rates and latencies of RDMA between two processes of one "
		 "host, each with a DPDK\n"
		 "port. The client, without --server, determines what is measured and "
		 "prints the result.\n"
		 "Payload is not checked; rocade-testpmd does that.\n",
	.notes =
		"\nExit codes:\n"
		"  0  measured\n"
		"  1  the run failed: the peer disconnected, a request failed, or no message "
		"was measured\n"
		"  2  invalid option or value\n"
		"  3  cannot start EAL, open a port or a device, or use SCHED_FIFO\n",
	.rows = option_rows,
	.count = sizeof(option_rows) / sizeof(option_rows[0]),
	.column = 26};

/* Replaces the options that the user left at 0 by defaults that depend on others. */
static void
plan_complete(struct plan *plan)
{
	if (plan->sq_depth == 0)
		plan->sq_depth = plan->qps <= 32     ? 512
				 : plan->qps <= 1024 ? 16384 / plan->qps
						     : 16;
	if (plan->burst == 0)
		plan->burst = plan->sq_depth >= 64 ? 32 : plan->sq_depth / 2;
	if (plan->signal_every == 0)
		plan->signal_every = plan->sq_depth >= 128 ? 64 : plan->sq_depth / 2;
}

static uint64_t
common_divisor(uint64_t a, uint64_t b)
{
	return b == 0 ? a : common_divisor(b, a % b);
}

/* A list is posted when the send queue has room for all of it. The requests behind the last
 * signaled one stay in the queue until then: of lists of `burst` requests, at most
 * signal_every less their common divisor. */
static const char *
send_queue_error(const struct plan *plan)
{
	static char text[200];
	uint64_t burst = mode_has_latency(plan->mode) ? 1 : plan->burst;
	uint64_t least =
		burst + plan->signal_every - common_divisor(burst, plan->signal_every);

	if (plan->sq_depth >= least)
		return NULL;
	snprintf(text, sizeof(text),
		"invalid --sq-depth %" PRIu64 ": expected at least %" PRIu64
		" with --burst %" PRIu64 " and --signal-every %" PRIu64
		", or unsignaled requests fill the queue",
		plan->sq_depth, least, burst, plan->signal_every);
	return text;
}

/* Returns what is wrong with a plan, or NULL. */
static const char *
plan_error(const struct plan *plan)
{
	if (mode_has_latency(plan->mode) && plan->qps != 1)
		return "invalid --qps: expected 1 for --mode pingpong, write-lat, read-lat "
		       "and raw-pingpong";
	if (plan->mode == MODE_WRITE_LAT && plan->size == 0)
		return "invalid --size: expected at least 1 for --mode write-lat, "
		       "which polls the last byte";
	if (plan->mode == MODE_RAW_PINGPONG && (plan->size < 60 || plan->size > 8000))
		return "invalid --size: expected 60 to 8000 for --mode raw-pingpong";
	if ((plan->ud || plan->events) && plan->mode != MODE_SEND &&
		plan->mode != MODE_PINGPONG)
		return "--ud and --events need --mode send or pingpong";
	if ((plan->mode == MODE_READ || plan->mode == MODE_READ_LAT) && plan->reads == 0)
		return "invalid --reads: expected at least 1 for --mode read and "
		       "read-lat";
	if (plan->events && plan->engines != 1)
		return "--events needs --engines 1";
	if (plan->ud && plan->size > (plan->mtu != 0 ? plan->mtu : 4096))
		return "invalid --size: expected at most the path MTU with --ud";
	if (plan->qpn_base + plan->qps > 0xffffff)
		return "invalid --qpn-base or --qps: expected no QPN above 0xfffffe";
	return send_queue_error(plan);
}

/* Completes the options. Returns what is wrong with them, or NULL. */
static const char *
conf_complete(struct conf *conf)
{
	if (conf->socket == NULL)
		return "missing --socket PATH (see --help)";
	if (conf->addr == NULL)
		conf->addr = conf->server ? "192.0.2.2/24" : "192.0.2.1/24";
	if (conf->peer == NULL)
		conf->peer =
			conf->server || conf->device != NULL ? "192.0.2.1" : "192.0.2.2";
	if (conf->device != NULL &&
		(conf->plan.loss_ppm != 0 || conf->plan.engines != 1 ||
			conf->plan.mode == MODE_RAW_PINGPONG))
		return "--device cannot be combined with --loss-ppm, --engines or "
		       "--mode raw-pingpong";
	plan_complete(&conf->plan);
	return plan_error(&conf->plan);
}

int
perf_options_read(struct conf *conf, int argc, char **argv)
{
	const char *error = "missing -- before the options (see --help)";
	int code = -1;

	*conf = (struct conf){.plan = {.size = 64,
				      .qps = 1,
				      .engines = 1,
				      .qpn_base = 0x100,
				      .timeout = 14,
				      .rxd = 1024,
				      .txd = 1024,
				      .reads = 16,
				      .seconds = 10,
				      .warmup_ms = 500}};
	if (argc != 0) {
		code = options_read(&perf_options, conf, argc, argv);
		error = code < 0 ? conf_complete(conf) : NULL;
	}
	if (error == NULL)
		return code;
	fprintf(stderr, PROGRAM ": %s\n", error);
	return EXIT_USAGE;
}
