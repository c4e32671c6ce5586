/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "testpmd_options.h"
#include "testpmd_parse.h"

static bool
copy_text(char *dst, size_t size, const char *src)
{
	if (strlen(src) >= size)
		return false;
	strcpy(dst, src);
	return true;
}

static bool
set_port(struct conf *conf, const char *value)
{
	uint64_t id;

	if (!parse_number(value, 0, 65534, &id) || conf->n_ports == PORTS_MAX)
		return false;
	for (unsigned i = 0; i < conf->n_ports; i++) {
		if (conf->ports[i].port == id)
			return false;
	}
	conf->current = &conf->ports[conf->n_ports++];
	*conf->current = conf->common;
	conf->current->port = id;
	conf->current->mode_given = false;
	return true;
}

static bool
set_addr(struct conf *conf, const char *value)
{
	return parse_address_list(value) &&
	       copy_text(conf->current->addr, sizeof(conf->current->addr), value);
}

static bool
set_address(char *dst, const char *value, int family)
{
	bool is_v6;

	return parse_host_address(value, strlen(value), &is_v6) &&
	       (family == 0 || (family == 6) == is_v6) &&
	       copy_text(dst, PEER_TEXT_MAX, value);
}

static bool
set_peer(struct conf *conf, const char *value)
{
	return set_address(conf->current->peer, value, 0);
}

static bool
set_gateway4(struct conf *conf, const char *value)
{
	return set_address(conf->current->gateway4, value, 4);
}

static bool
set_gateway6(struct conf *conf, const char *value)
{
	return set_address(conf->current->gateway6, value, 6);
}

static bool
set_mode(struct conf *conf, const char *value)
{
	if (!parse_mode(value, &conf->current->mode))
		return false;
	conf->current->mode_given = true;
	return true;
}

static bool
set_size(struct conf *conf, const char *value)
{
	uint64_t sizes[SIZES_MAX], max = 0;
	unsigned n = parse_size_list(value, sizes, SIZES_MAX);

	if (n == 0)
		return false;
	for (unsigned i = 0; i < n; i++)
		max = sizes[i] > max ? sizes[i] : max;
	memcpy(conf->sizes, sizes, sizeof(sizes[0]) * n);
	conf->n_sizes = n;
	conf->size_max = max;
	return true;
}

static bool
set_wait(struct conf *conf, const char *value)
{
	conf->wait_given = true;
	return parse_number(value, 0, 1000000000, &conf->wait_s);
}

static bool
set_mtu(struct conf *conf, const char *value)
{
	uint64_t mtu;

	if (!parse_number(value, 256, 4096, &mtu) || (mtu & (mtu - 1)) != 0)
		return false;
	conf->mtu = mtu;
	return true;
}

static bool
set_dscp(struct conf *conf, const char *value)
{
	uint64_t dscp;

	if (!parse_number(value, 0, 63, &dscp))
		return false;
	conf->tclass = dscp << 2 | (conf->tclass & 3);
	return true;
}

static bool
set_impair(struct conf *conf, const char *value)
{
	return parse_impair(value, &conf->impair);
}

static bool
set_cmdline_file(struct conf *conf, const char *value)
{
	conf->cmdline_file = value;
	return access(value, R_OK) == 0;
}

static bool
set_json_file(struct conf *conf, const char *value)
{
	conf->json_file = value;
	if (strcmp(value, "-") == 0)
		return true;
	FILE *file = fopen(value, "a");
	return file != NULL && fclose(file) == 0;
}

/* --srq and --verify are the defaults: they undo an earlier --rq or --no-verify. */
static bool
set_srq(struct conf *conf, const char *value)
{
	(void)value;
	conf->rq = false;
	return true;
}

static bool
set_verify(struct conf *conf, const char *value)
{
	(void)value;
	conf->no_verify = false;
	return true;
}

#define HEADING(text_) {.text = text_},
#define NUM(name_, letter_, arg_, effect_, field, min_, max_, text_)                     \
	{.name = name_,                                                                  \
		.letter = letter_,                                                       \
		.arg = arg_,                                                             \
		.effect = effect_,                                                       \
		.offset = offsetof(struct conf, field),                                  \
		.min = min_,                                                             \
		.max = max_,                                                             \
		.text = text_},
#define FLAG(name_, letter_, field, text_)                                               \
	{.name = name_,                                                                  \
		.letter = letter_,                                                       \
		.offset = offsetof(struct conf, field),                                  \
		.text = text_},
#define PORT_NUM(name_, arg_, effect_, field, min_, max_, text_)                         \
	{.name = name_,                                                                  \
		.arg = arg_,                                                             \
		.effect = effect_,                                                       \
		.of_port = true,                                                         \
		.offset = offsetof(struct port_conf, field),                             \
		.min = min_,                                                             \
		.max = max_,                                                             \
		.text = text_},
#define FN(name_, letter_, arg_, effect_, of_port_, fn_, valid_, text_)                  \
	{.name = name_,                                                                  \
		.letter = letter_,                                                       \
		.arg = arg_,                                                             \
		.effect = effect_,                                                       \
		.of_port = of_port_,                                                     \
		.set = fn_,                                                              \
		.valid = valid_,                                                         \
		.text = text_},

const struct option_row option_rows[] = {
#include "testpmd_options.def"
};
const unsigned n_option_rows = sizeof(option_rows) / sizeof(option_rows[0]);

void
options_defaults(struct conf *conf)
{
	*conf = (struct conf){.stats_period = 1,
		.engines = 1,
		.qps = 1,
		.qpn_base = 0x100,
		.sizes = {64},
		.n_sizes = 1,
		.size_max = 64,
		.burst = 32,
		.signal_every = 64,
		.sq_depth = 512,
		.wait_s = 30,
		.hop_limit = 64,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.min_rnr_timer = 6,
		.impair = {.seed = 1}};
	conf->current = &conf->common;
}

static bool
option_row_apply(const struct option_row *row, struct conf *conf, const char *value)
{
	char *base = row->of_port ? (char *)conf->current : (char *)conf;

	if (row->set != NULL)
		return row->set(conf, value);
	if (row->arg == NULL) {
		*(bool *)(base + row->offset) = true;
		return true;
	}
	return parse_number(value, row->min, row->max, (uint64_t *)(base + row->offset));
}

static int
option_row_set(const struct option_row *row, struct conf *conf, const char *value,
	char err[ERR_MAX])
{
	if (option_row_apply(row, conf, value))
		return 0;
	if (row->valid != NULL)
		snprintf(err, ERR_MAX, "invalid value '%s' for --%s: expected %s", value,
			row->name, row->valid);
	else
		snprintf(err, ERR_MAX,
			"invalid value '%s' for --%s: expected %" PRIu64 " to %" PRIu64,
			value, row->name, row->min, row->max);
	return -1;
}

static const struct option_row *
option_row_find(const char *name)
{
	for (unsigned i = 0; i < n_option_rows; i++) {
		if (option_rows[i].name != NULL && strcmp(option_rows[i].name, name) == 0)
			return &option_rows[i];
	}
	return NULL;
}

bool
option_of_port(const char *name)
{
	const struct option_row *row = option_row_find(name);

	return row != NULL && row->of_port;
}

int
option_set(struct conf *conf, const char *name, const char *value,
	enum option_effect *effect, char err[ERR_MAX])
{
	const struct option_row *row = option_row_find(name);

	if (row == NULL || row->effect == OPT_START || row->arg == NULL) {
		snprintf(err, ERR_MAX, "cannot set '%s' after program start", name);
		return -1;
	}
	if (option_row_set(row, conf, value, err) != 0)
		return -1;
	if (effect != NULL)
		*effect = row->effect;
	return 0;
}

/* Builds the arguments of getopt_long() from the table. letters: room for two characters
 * per row. */
static void
getopt_tables(struct option *longs, char *letters)
{
	*letters++ = ':'; /* tell a missing argument from an unknown option */
	for (unsigned i = 0; i < n_option_rows; i++) {
		const struct option_row *row = &option_rows[i];

		if (row->name == NULL)
			continue;
		*longs++ = (struct option){.name = row->name,
			.has_arg = row->arg != NULL,
			.val = 256 + (int)i};
		if (row->letter != 0) {
			*letters++ = row->letter;
			if (row->arg != NULL)
				*letters++ = ':';
		}
	}
	*letters = '\0';
	*longs = (struct option){0};
}

static const struct option_row *
option_row_of(int value)
{
	if (value >= 256)
		return &option_rows[value - 256];
	for (unsigned i = 0; i < n_option_rows; i++) {
		if (option_rows[i].letter == value)
			return &option_rows[i];
	}
	return NULL;
}

int
options_parse(struct conf *conf, int argc, char **argv, char err[ERR_MAX])
{
	struct option longs[sizeof(option_rows) / sizeof(option_rows[0]) + 1];
	char letters[2 * sizeof(option_rows) / sizeof(option_rows[0]) + 2];
	int value;

	getopt_tables(longs, letters);
	optind = 0; /* glibc: start afresh, as EAL uses getopt too */
	opterr = 0;
	while ((value = getopt_long(argc, argv, letters, longs, NULL)) != -1) {
		if (value == ':') {
			snprintf(err, ERR_MAX,
				"option '%s' requires a value (see --help)",
				argv[optind - 1]);
			return -1;
		}
		if (value == '?') {
			snprintf(err, ERR_MAX, "unknown option '%s' (see --help)",
				argv[optind - 1]);
			return -1;
		}
		if (option_row_set(option_row_of(value), conf, optarg, err) != 0)
			return -1;
		if (conf->help || conf->version)
			return 0;
	}
	if (optind < argc) {
		snprintf(err, ERR_MAX, "unexpected argument '%s' (see --help)",
			argv[optind]);
		return -1;
	}
	return 0;
}
