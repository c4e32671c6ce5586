/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <common/impair_option.h>

#include "peers.h"
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
	conf->current->mode_given = conf->current->peer_open = false;
	return true;
}

static bool
set_addr(struct conf *conf, const char *value)
{
	if (!parse_address_list(value) ||
		!copy_text(conf->current->addr, sizeof(conf->current->addr), value))
		return false;
	peers_set(conf->current);
	return true;
}

static bool
set_address(char *dst, const char *value, int family)
{
	bool is_v6;

	return parse_host_address(value, strlen(value), &is_v6) &&
	       (family == 6) == is_v6 && copy_text(dst, PEER_TEXT_MAX, value);
}

static bool
set_peer(struct conf *conf, const char *value)
{
	return peers_add(conf->current, value);
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
set_vlan(struct conf *conf, const char *value)
{
	return parse_number(value, 1, 4094, &conf->current->vlan);
}

static bool
set_if_mtu(struct conf *conf, const char *value)
{
	return parse_number(value, 576, 9000, &conf->current->if_mtu);
}

/* Opening the port checks the rest. */
static bool
set_cc(struct conf *conf, const char *value)
{
	conf->cc = value;
	return strcmp(value, "off") == 0 || strncmp(value, "swift", 5) == 0;
}

static bool
set_dump(struct conf *conf, const char *value)
{
	conf->dump = value;
	return value[0] != '\0' && strlen(value) <= DUMP_PATH_MAX;
}

static bool
set_shared(struct conf *conf, const char *value)
{
	static const char *const names[] = {
		[SHARED_FRAMES] = "frames",
		[SHARED_QUEUES] = "queues",
		[SHARED_SEGMENTS] = "segments",
	};

	for (unsigned i = SHARED_FRAMES; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(value, names[i]) == 0) {
			conf->shared = (enum shared_kind)i;
			return true;
		}
	}
	return false;
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
set_type(struct conf *conf, const char *value)
{
	return parse_type(value, &conf->type);
}

static bool
set_op(struct conf *conf, const char *value)
{
	if (!parse_mix(value, &conf->mix))
		return false;
	/* An atomic has one size: --size need not be given for it. */
	if (!conf->size_given && (mix_all(&conf->mix) & OP_WORD) != 0) {
		conf->sizes[0] = conf->size_max = OP_WORD_LEN;
		conf->n_sizes = 1;
	}
	return true;
}

static bool
set_corelist(struct conf *conf, const char *value)
{
	unsigned n = parse_lcore_list(value, conf->corelist, CORES_MAX);

	conf->n_corelist = n;
	return n != 0;
}

static bool
set_engine_lcores(struct conf *conf, const char *value)
{
	unsigned n = parse_lcore_list(value, conf->engine_lcores, CORES_MAX);

	conf->n_engine_lcores = n;
	conf->engine_lcores_text = value;
	return n != 0;
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
	conf->size_given = true;
	return true;
}

static bool
set_rate(struct conf *conf, const char *value)
{
	return parse_rate(value, &conf->rate);
}

static bool
set_rate_sweep(struct conf *conf, const char *value)
{
	unsigned n = parse_rate_list(value, conf->sweep, SWEEP_MAX);

	if (n == 0)
		return false;
	conf->n_sweep = n;
	conf->rate = conf->sweep[0];
	return true;
}

static bool
set_sweep_file(struct conf *conf, const char *value)
{
	conf->sweep_file = value;
	return value[0] != '\0' && strlen(value) <= DUMP_PATH_MAX;
}

static bool
set_signal_every(struct conf *conf, const char *value)
{
	conf->signal_given = true;
	return parse_number(value, 0, 1048576, &conf->signal_every);
}

static bool
set_wait(struct conf *conf, const char *value)
{
	conf->wait_given = true;
	return parse_number(value, 0, 1000000000, &conf->wait_s);
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

bool
file_is_writable(const char *path)
{
	bool there = access(path, F_OK) == 0;
	FILE *file = fopen(path, "a");

	if (file == NULL || fclose(file) != 0)
		return false;
	return there || unlink(path) == 0;
}

static bool
set_json_file(struct conf *conf, const char *value)
{
	conf->json_file = value;
	return strcmp(value, "-") == 0 || file_is_writable(value);
}

#define MEMBER(field) OPTION_MEMBER(struct conf, field)
#define HEADING(t) {OPTION_HEADING, .text = t},
#define NUM(n, l, a, u, f, lo, hi, t)                                                    \
	{OPTION_NUM, l, n, a, MEMBER(f), .min = lo, .max = hi, .text = t, .use = u},
#define POWER(n, a, u, f, lo, hi, v, t)                                                  \
	{OPTION_POWER, 0, n, a, MEMBER(f), .min = lo, .max = hi, .valid = v, .text = t,  \
		.use = u},
#define FLAG(n, l, f, value, t)                                                          \
	{OPTION_FLAG, l, n, NULL, MEMBER(f), .max = value, .text = t},
#define FN(n, l, a, u, fn, v, t)                                                         \
	{OPTION_FN, l, n, a, .set = fn, .valid = v, .text = t, .use = u},
#define HELP(n, l, t) {OPTION_HELP, l, n, .text = t},
#define VERSION(n, l, t) {OPTION_VERSION, l, n, .text = t},
static const struct option_row option_rows[] = {
#include "testpmd_options.def"
};

/* A test compares the exit codes with the man page and docs/testpmd.md. */
const struct options testpmd_options = {.program = PROGRAM,
	.usage = "Usage: " PROGRAM " [EAL options] -- [options]\n"
		 "       " PROGRAM " -- --loop [options]\n"
		 "\n"
		 "Sends RoCEv2 messages between two DPDK ports and verifies every byte. "
		 "Start it on two\n"
		 "hosts, --mode sink on one and --mode send on the other; each needs "
		 "its own address (--addr)\n"
		 "and the other's (--peer). EAL options are those of DPDK (" PROGRAM
		 " --no-pci\n--vdev=... -- OPTIONS).\n",
	.notes = "\nExit codes:\n"
		 "  0  all messages arrived and were verified\n"
		 "  1  the run failed: no peer, connection lost, or wrong data\n"
		 "  2  invalid option or value\n"
		 "  3  cannot start EAL or open a port\n"
		 "\nExample, on two hosts:\n"
		 "  " PROGRAM " -- --mode sink --addr 192.0.2.2/24 --peer 192.0.2.1\n"
		 "  " PROGRAM
		 " -- --mode send --addr 192.0.2.1/24 --peer 192.0.2.2 -q 8 -t 10\n",
	.rows = option_rows,
	.count = sizeof(option_rows) / sizeof(option_rows[0]),
	.column = 28,
	.letters = true,
	.why = list_why};

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
		.sweep_file = "rate-sweep",
		.hop_limit = 64,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.min_rnr_timer = 6,
		.impair = {.seed = 1}};
	(void)parse_mix("send", &conf->mix);
	conf->current = &conf->common;
}

int
option_set(struct conf *conf, const char *name, const char *value, unsigned *use,
	char err[ERR_MAX])
{
	const struct option_row *row = option_find(&testpmd_options, name);
	char expected[ERR_MAX];

	if (row == NULL || (row->use & OPT_EFFECT) == OPT_START)
		return error_set(err, "cannot set '%s' after program start", name);
	*use = row->use;
	list_why_clear();
	if (option_store(row, conf, value, expected))
		return 0;
	return option_refused(&testpmd_options, row, value, expected, err);
}
