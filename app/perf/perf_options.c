/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <common/number.h>

#include "perf_options.h"

static const char *const mode_names[MODE_COUNT] = {[MODE_SEND] = "send",
	[MODE_WRITE] = "write",
	[MODE_READ] = "read",
	[MODE_PINGPONG] = "pingpong",
	[MODE_WRITE_LAT] = "write-lat",
	[MODE_READ_LAT] = "read-lat",
	[MODE_RAW_PINGPONG] = "raw-pingpong"};

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

static bool
plan_set_mode(struct conf *conf, const char *value)
{
	for (unsigned i = 0; i < MODE_COUNT; i++) {
		if (strcmp(value, mode_names[i]) == 0) {
			conf->plan.mode = i;
			return true;
		}
	}
	return false;
}

static bool
plan_set_mtu(struct conf *conf, const char *value)
{
	uint64_t mtu;

	if (!parse_number(value, 256, 4096, &mtu) || (mtu & (mtu - 1)) != 0)
		return false;
	conf->plan.mtu = mtu;
	return true;
}

static bool
plan_set_ud(struct conf *conf, const char *value)
{
	(void)value;
	conf->plan.ud = 1;
	return true;
}

static bool
plan_set_events(struct conf *conf, const char *value)
{
	(void)value;
	conf->plan.events = 1;
	return true;
}

static bool
plan_set_srq(struct conf *conf, const char *value)
{
	(void)value;
	conf->plan.rq = 0;
	return true;
}

static bool
plan_set_rq(struct conf *conf, const char *value)
{
	(void)value;
	conf->plan.rq = 1;
	return true;
}

#define AT(field) offsetof(struct conf, field)
#define HEADING(t) {.kind = OPTION_HEADING, .text = t},
#define NUM(n, a, f, lo, hi, t) {OPTION_NUM, n, a, AT(f), lo, hi, NULL, NULL, t},
#define SIZE(n, a, f, hi, t) {OPTION_SIZE, n, a, AT(f), 0, hi, NULL, NULL, t},
#define FLAG(n, f, t) {OPTION_FLAG, n, NULL, AT(f), 0, 0, NULL, NULL, t},
#define TEXT(n, a, f, t)                                                                 \
	{OPTION_TEXT, n, a, AT(f), 0, sizeof(((struct conf *)0)->f), NULL, NULL, t},
#define FN(n, a, fn, v, t) {OPTION_FN, n, a, 0, 0, 0, fn, v, t},
const struct option_row option_rows[] = {
#include "perf_options.def"
};
const unsigned n_option_rows = sizeof(option_rows) / sizeof(option_rows[0]);

static const struct option_row *
option_find(const char *name)
{
	for (unsigned i = 0; i < n_option_rows; i++) {
		const struct option_row *row = &option_rows[i];

		if (row->kind != OPTION_HEADING && strcmp(row->name, name) == 0)
			return row;
	}
	return NULL;
}

static int
option_apply(const struct option_row *row, struct conf *conf, const char *value,
	char err[ERR_MAX])
{
	char *field = (char *)conf + row->offset;
	bool good = true;

	switch (row->kind) {
	case OPTION_NUM:
		good = parse_number(value, row->min, row->max, (uint64_t *)field);
		break;
	case OPTION_SIZE:
		good = parse_size(value, row->max, (uint64_t *)field);
		break;
	case OPTION_FLAG:
		*(bool *)field = true;
		break;
	case OPTION_TEXT:
		good = *value != '\0' && strlen(value) < row->max;
		if (good)
			strcpy(field, value);
		break;
	case OPTION_FN:
		good = row->set(conf, value);
		break;
	case OPTION_HEADING:
		break;
	}
	if (good)
		return 0;
	if (row->valid != NULL)
		snprintf(err, ERR_MAX, "invalid value '%s' for --%s: expected %s", value,
			row->name, row->valid);
	else if (row->kind == OPTION_TEXT)
		snprintf(err, ERR_MAX,
			"invalid value '%s' for --%s: expected 1 to %" PRIu64
			" characters",
			value, row->name, row->max - 1);
	else
		snprintf(err, ERR_MAX,
			"invalid value '%s' for --%s: expected %" PRIu64 " to %" PRIu64,
			value, row->name, row->min, row->max);
	return -1;
}

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

static int
plan_check(const struct plan *plan, char err[ERR_MAX])
{
	const char *error = NULL;

	if (plan->burst > plan->sq_depth)
		error = "invalid --burst: expected at most --sq-depth";
	else if (plan->signal_every > plan->sq_depth)
		error = "invalid --signal-every: expected at most --sq-depth, or the "
			"send queue fills up with unsignaled requests";
	else if (mode_has_latency(plan->mode) && plan->qps != 1)
		error = "invalid --qps: expected 1 for --mode pingpong, write-lat, read-lat "
			"and raw-pingpong";
	else if (plan->mode == MODE_WRITE_LAT && plan->size == 0)
		error = "invalid --size: expected at least 1 for --mode write-lat, "
			"which polls the last byte";
	else if (plan->mode == MODE_RAW_PINGPONG &&
		 (plan->size < 60 || plan->size > 8000))
		error = "invalid --size: expected 60 to 8000 for --mode raw-pingpong";
	else if ((plan->ud || plan->events) && plan->mode != MODE_SEND &&
		 plan->mode != MODE_PINGPONG)
		error = "--ud and --events need --mode send or pingpong";
	else if ((plan->mode == MODE_READ || plan->mode == MODE_READ_LAT) &&
		 plan->reads == 0)
		error = "invalid --reads: expected at least 1 for --mode read and "
			"read-lat";
	else if (plan->events && plan->engines != 1)
		error = "--events needs --engines 1";
	else if (plan->ud && plan->size > (plan->mtu != 0 ? plan->mtu : 4096))
		error = "invalid --size: expected at most the path MTU with --ud";
	else if (plan->qpn_base + plan->qps > 0xffffff)
		error = "invalid --qpn-base or --qps: expected no QPN above 0xfffffe";
	if (error == NULL)
		return 0;
	snprintf(err, ERR_MAX, "%s", error);
	return -1;
}

static int
conf_complete(struct conf *conf, char err[ERR_MAX])
{
	if (conf->socket[0] == '\0') {
		snprintf(err, ERR_MAX, "missing --socket PATH (see --help)");
		return -1;
	}
	if (conf->addr[0] == '\0')
		strcpy(conf->addr, conf->server ? "192.0.2.2/24" : "192.0.2.1/24");
	if (conf->peer[0] == '\0')
		strcpy(conf->peer, conf->server || conf->device[0] != '\0' ? "192.0.2.1"
									   : "192.0.2.2");
	if (conf->device[0] != '\0' &&
		(conf->plan.loss_ppm != 0 || conf->plan.engines != 1 ||
			conf->plan.mode == MODE_RAW_PINGPONG)) {
		snprintf(err, ERR_MAX,
			"--device cannot be combined with --loss-ppm, --engines or "
			"--mode raw-pingpong");
		return -1;
	}
	plan_complete(&conf->plan);
	return plan_check(&conf->plan, err);
}

int
perf_options_parse(struct conf *conf, int argc, char **argv, char err[ERR_MAX])
{
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
	for (int i = 1; i < argc; i++) {
		const struct option_row *row;

		row = strncmp(argv[i], "--", 2) == 0 ? option_find(argv[i] + 2) : NULL;
		if (row == NULL) {
			snprintf(err, ERR_MAX, "unknown option '%s' (see --help)",
				argv[i]);
			return -1;
		}
		if (row->arg != NULL && i + 1 == argc) {
			snprintf(err, ERR_MAX,
				"option '%s' requires a value (see --help)", argv[i]);
			return -1;
		}
		if (option_apply(row, conf, row->arg != NULL ? argv[++i] : "", err) != 0)
			return -1;
	}
	return conf->help || conf->version ? 0 : conf_complete(conf, err);
}
