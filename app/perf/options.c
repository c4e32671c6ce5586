/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <common/number.h>

#include "options.h"

static const char *const mode_names[MODE_COUNT] = {[MODE_SEND] = "send",
	[MODE_WRITE] = "write",
	[MODE_READ] = "read",
	[MODE_PINGPONG] = "pingpong",
	[MODE_WRITE_LAT] = "write-lat",
	[MODE_READ_LAT] = "read-lat",
	[MODE_RAW_PINGPONG] = "raw-pingpong"};

const char *
mode_name(uint64_t mode)
{
	return mode_names[mode];
}

bool
mode_has_latency(uint64_t mode)
{
	return mode >= MODE_PINGPONG;
}

static bool
set_mode(struct conf *conf, const char *value)
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
set_mtu(struct conf *conf, const char *value)
{
	uint64_t mtu;

	if (!parse_number(value, 256, 4096, &mtu) || (mtu & (mtu - 1)) != 0)
		return false;
	conf->plan.mtu = mtu;
	return true;
}

static bool
set_ud(struct conf *conf, const char *value)
{
	(void)value;
	conf->plan.ud = 1;
	return true;
}

static bool
set_events(struct conf *conf, const char *value)
{
	(void)value;
	conf->plan.events = 1;
	return true;
}

static bool
set_srq(struct conf *conf, const char *value)
{
	(void)value;
	conf->plan.rq = 0;
	return true;
}

static bool
set_rq(struct conf *conf, const char *value)
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
#include "options.def"
};
const unsigned n_option_rows = sizeof(option_rows) / sizeof(option_rows[0]);

static const struct option_row *
row_find(const char *name)
{
	for (unsigned i = 0; i < n_option_rows; i++) {
		const struct option_row *row = &option_rows[i];

		if (row->kind != OPTION_HEADING && strcmp(row->name, name) == 0)
			return row;
	}
	return NULL;
}

static int
row_set(const struct option_row *row, struct conf *conf, const char *value,
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
		snprintf(err, ERR_MAX, "--%s %s cannot be: %s", row->name, value,
			row->valid);
	else if (row->kind == OPTION_TEXT)
		snprintf(err, ERR_MAX,
			"--%s %s cannot be: give 1 to %" PRIu64 " characters", row->name,
			value, row->max - 1);
	else
		snprintf(err, ERR_MAX, "--%s %s cannot be: give %" PRIu64 " to %" PRIu64,
			row->name, value, row->min, row->max);
	return -1;
}

/* What the user left open; 0: the library's default, or chosen here. */
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
	const char *wrong = NULL;

	if (plan->burst > plan->sq_depth)
		wrong = "--burst is more than --sq-depth";
	else if (plan->signal_every > plan->sq_depth)
		wrong = "--signal-every is more than --sq-depth: the send queue would "
			"fill "
			"up with nothing signaled in it";
	else if (mode_has_latency(plan->mode) && plan->qps != 1)
		wrong = "a latency is measured with --qps 1";
	else if (plan->mode == MODE_WRITE_LAT && plan->size == 0)
		wrong = "write-lat needs a --size of 1 at least: its last byte is waited "
			"for";
	else if (plan->mode == MODE_RAW_PINGPONG &&
		 (plan->size < 60 || plan->size > 8000))
		wrong = "a frame of raw-pingpong has a --size of 60 to 8000";
	else if ((plan->ud || plan->events) && plan->mode != MODE_SEND &&
		 plan->mode != MODE_PINGPONG)
		wrong = "--ud and --events are for --mode send and pingpong";
	else if ((plan->mode == MODE_READ || plan->mode == MODE_READ_LAT) &&
		 plan->reads == 0)
		wrong = "--mode read and read-lat need --reads of 1 at least";
	else if (plan->events && plan->engines != 1)
		wrong = "--events is for one engine";
	else if (plan->ud && plan->size > (plan->mtu != 0 ? plan->mtu : 4096))
		wrong = "with --ud a --size is the path MTU at the most";
	else if (plan->qpn_base + plan->qps > 0xffffff)
		wrong = "--qpn-base and --qps go beyond the last QPN, 0xfffffe";
	if (wrong == NULL)
		return 0;
	snprintf(err, ERR_MAX, "%s", wrong);
	return -1;
}

static int
conf_complete(struct conf *conf, char err[ERR_MAX])
{
	if (conf->socket[0] == '\0') {
		snprintf(err, ERR_MAX,
			"--socket is missing: give a path, the same to both ends");
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
			"--loss-ppm, --engines and raw-pingpong need a port, not "
			"--device");
		return -1;
	}
	plan_complete(&conf->plan);
	return plan_check(&conf->plan, err);
}

int
options_parse(struct conf *conf, int argc, char **argv, char err[ERR_MAX])
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

		row = strncmp(argv[i], "--", 2) == 0 ? row_find(argv[i] + 2) : NULL;
		if (row == NULL) {
			snprintf(err, ERR_MAX, "%s is no option; --help lists them",
				argv[i]);
			return -1;
		}
		if (row->arg != NULL && i + 1 == argc) {
			snprintf(err, ERR_MAX, "%s needs a value", argv[i]);
			return -1;
		}
		if (row_set(row, conf, row->arg != NULL ? argv[++i] : "", err) != 0)
			return -1;
	}
	return conf->help || conf->version ? 0 : conf_complete(conf, err);
}
