/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "case.h"
#include "testpmd_options.h"

static struct conf conf;
static char err[ERR_MAX];

/* Parses the words of text as options. */
static int
parse(const char *text)
{
	static char copy[512];
	char *argv[64] = {"--"};
	int argc = 1;

	snprintf(copy, sizeof(copy), "%s", text);
	for (char *word = strtok(copy, " "); word != NULL; word = strtok(NULL, " "))
		argv[argc++] = word;
	options_defaults(&conf);
	err[0] = '\0';
	return options_parse(&testpmd_options, &conf, argc, argv, err);
}

/* Parses and checks, as main() does. */
static int
accept(const char *text)
{
	if (parse(text) != 0)
		return -1;
	if (conf.loop) {
		if (options_complete_loop(&conf, err) != 0)
			return -1;
	} else if (conf.n_ports == 0) {
		conf.ports[conf.n_ports++] = conf.common;
	}
	return options_check(&conf, err);
}

TEST(default_values)
{
	assert_int_equal(parse(""), 0);
	assert_int_equal(conf.qps, 1);
	assert_int_equal(conf.qpn_base, 0x100);
	assert_int_equal(conf.psn, 0);
	assert_int_equal(conf.signal_every, 64);
	assert_false(conf.rq);
	assert_false(conf.no_verify);
}

TEST(values_are_parsed)
{
	assert_int_equal(
		parse("-q 8 --size 64,4k --rq --no-verify -t 5 --mtu 4096 --dscp 26"), 0);
	assert_int_equal(conf.qps, 8);
	assert_int_equal(conf.n_sizes, 2);
	assert_int_equal(conf.size_max, 4096);
	assert_true(conf.rq);
	assert_true(conf.no_verify);
	assert_int_equal(conf.duration_s, 5);
	assert_int_equal(conf.mtu, 4096);
	assert_int_equal(conf.tclass, 26 << 2);
	/* The later option counts. */
	assert_int_equal(parse("--rq --srq --no-verify --verify -q 8 -q 9"), 0);
	assert_false(conf.rq);
	assert_false(conf.no_verify);
	assert_int_equal(conf.qps, 9);
}

/* Each message names the option, its value and the valid values. */
TEST(wrong_values_are_named)
{
	static const struct {
		const char *text, *say[3];
	} rows[] = {
		{"--size 64x", {"--size", "64x", "bytes"}},
		{"--size 64,,65",
			{"--size", "64,,65", "entry 2, '', is empty; expected bytes"}},
		{"--op send:1,sent:1",
			{"--op", "entry 2, 'sent:1', is no operation", "send-imm"}},
		{"--op flush:0,send:1", {"--op", "entry 1, 'flush:0',", "no weight"}},
		{"--op send:1,read", {"--op", "entry 2, 'read',", "no weight"}},
		{"--peer 10.0.0.2 --peer 10.0.0.2", {"--peer", "entry 2", "twice"}},
		{"--size 3g", {"--size", "3g", "2g"}},
		{"--qps 0", {"--qps", "0", "1 to 65536"}},
		{"--mtu 1500", {"--mtu", "1500", "1024"}},
		{"--mode duplex", {"--mode", "duplex", "send, sink, pingpong or both"}},
		{"--addr 10.0.0.300/24", {"--addr", "10.0.0.300/24", "ADDRESS/PREFIX"}},
		{"--peer 224.0.0.1", {"--peer", "224.0.0.1", "host"}},
		{"--gateway4 fe80::1", {"--gateway4", "fe80::1", "IPv4"}},
		{"--gateway6 10.0.0.1", {"--gateway6", "10.0.0.1", "IPv6"}},
		{"--if-mtu 9001", {"--if-mtu", "9001", "576 to 9000"}},
		{"--vlan 4095", {"--vlan", "4095", "4094"}},
		{"--hop-limit 0", {"--hop-limit", "0", "255"}},
		{"--dscp 64", {"--dscp", "64", "63"}},
		{"--psn 16777216", {"--psn", "16777216", "16777215"}},
		{"--impair lose=1%", {"--impair", "lose=1%", "loss"}},
		{"--cmdline-file /nonexistent",
			{"--cmdline-file", "/nonexistent", "read"}},
		{"--json /nonexistent/x", {"--json", "/nonexistent/x", "writable"}},
		{"--port 0 --port 0", {"--port", "0", "once"}},
		{"--qps", {"--qps", "requires a value", "--help"}},
		{"--frobnicate", {"--frobnicate", "unknown option", "--help"}},
		{"--frobnicate=3", {"--frobnicate", "unknown option", "--help"}},
		{"-q", {"-q", "requires a value", "--help"}},
		{"-iZ", {"Z", "unknown option", "--help"}},
		{"stray", {"stray", "unexpected argument", "--help"}},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(parse(rows[i].text), -1);
		for (size_t j = 0; j < 3; j++) {
			if (strstr(err, rows[i].say[j]) == NULL)
				fail_msg("%s: \"%s\" does not say %s", rows[i].text, err,
					rows[i].say[j]);
		}
	}
}

TEST(options_per_port)
{
	assert_int_equal(
		parse("--vlan 5 --peer 10.0.0.9 --port 3 --addr 10.0.0.1/24 --mode sink "
		      "--port 4 --addr 10.0.1.1/24 --peer 10.0.1.2"),
		0);
	assert_int_equal(conf.n_ports, 2);
	assert_int_equal(conf.ports[0].port, 3);
	assert_int_equal(conf.ports[1].port, 4);
	assert_int_equal(conf.ports[0].vlan, 5);
	assert_int_equal(conf.ports[1].vlan, 5);
	assert_int_equal(conf.ports[0].mode, MODE_SINK);
	assert_int_equal(conf.ports[1].mode, MODE_SEND);
	assert_string_equal(conf.ports[0].peer, "10.0.0.9");
	assert_string_equal(conf.ports[1].peer, "10.0.1.2");
}

TEST(loop_has_two_ports)
{
	assert_int_equal(accept("--loop"), 0);
	assert_int_equal(conf.n_ports, 2);
	assert_int_equal(conf.ports[0].mode, MODE_SEND);
	assert_int_equal(conf.ports[1].mode, MODE_SINK);
	assert_string_equal(conf.ports[0].peer, "192.0.2.2");
	assert_string_equal(conf.ports[1].peer, "192.0.2.1");
	assert_int_equal(accept("--loop --mode sink"), 0);
	assert_int_equal(conf.ports[1].mode, MODE_SEND);
	assert_int_equal(accept("--loop --mode pingpong"), 0);
	assert_int_equal(conf.ports[1].mode, MODE_PINGPONG);
	assert_int_equal(accept("--loop --mode both"), 0);
	assert_int_equal(conf.ports[1].mode, MODE_BOTH);
	assert_int_equal(accept("--loop --port 0 --mode both --port 1 --mode sink"), -1);
	assert_int_equal(accept("--loop --mode both --type ud"), 0);
	assert_int_equal(accept("--loop --mode both --op write:1,read:2,cas:1"), 0);
	assert_int_equal(accept("--loop --mode both --type xrc"), 0);
	assert_int_equal(accept("--loop --port 1 --mode send --addr 2001:db8::9/64"), 0);
	assert_int_equal(conf.ports[0].mode, MODE_SINK);
	assert_string_equal(conf.ports[0].peer, "2001:db8::9");
	assert_int_equal(accept("--loop --port 0 --mode send --port 1 --mode send"), -1);
	assert_non_null(strstr(err, "--mode"));
	assert_int_equal(accept("--loop --port 2"), -1);
	assert_non_null(strstr(err, "0 or 1"));
}

TEST(conflicting_options_are_refused)
{
	static const struct {
		const char *text, *say;
	} rows[] = {
		{"--peer 10.0.0.2", "missing --addr"},
		{"--addr 10.0.0.1/24", "missing --peer"},
		{"--addr 10.0.0.1/24 --peer 10.0.0.1", "own address"},
		{"--addr 10.0.0.3/24,10.0.0.1/24 --peer 10.0.0.1", "own address"},
		{"--loop --op flush --rate 1gbps",
			"messages a second with --op flush, which has no payload"},
		{"--loop --op flush --type xrc", "'flush' for --op: expected send, "},
		{"--loop --rate-sweep 1k,2k -t 1 --sweep-file /nonexistent/x",
			"cannot write '/nonexistent/x.csv': No such file"},
		{"--loop --signal-every 513", "--sq-depth"},
		{"--loop --sq-depth 8 --signal-every 9", "at most 8 (--sq-depth)"},
		{"--loop --rq --srq-limit 5", "--srq-limit"},
		{"--loop --depth 10 --srq-limit 11", "--depth"},
		{"--loop --qpn-base 0xfffffe --qps 2", "--qpn-base"},
		{"--loop --qpn-base 0xfffffc --qps 2 --type xrc -m both", "for --qps"},
		{"--loop --shared queues", "--shared"},
		{"--addr 10.0.0.1/24 -i --shared frames --sleep", "--sleep"},
		{"--loop --nb-cores 3 --qps 2", "at most 2 (--qps"},
		{"--loop --nb-cores 3 --qps 3 --corelist 1,2",
			"at most 2, the lcores of"},
		{"--loop --nb-cores 1 --sleep", "--sleep"},
		{"--loop --engine-lcores 1,2,3",
			"invalid value '1,2,3' for --engine-lcores: expected a number of "
			"lcores that divides 2, the engines of all ports"},
		{"--loop --engines 2 --engine-lcores 1,2,3", "divides 4"},
		{"--loop --corelist 1,2 -q 2 --nb-cores 2 --engine-lcores 3,2",
			"than those of --corelist, which has 2, too"},
		{"--loop --engine-lcores 1 --sleep", "--sleep"},
		{"--loop --rq --srq-per-core", "without --rq"},
		{"--loop --nb-cores 2 --qps 2 --srq-limit 1", "--srq-per-core"},
		{"--loop --nb-cores 2 --qps 2 --type xrc", "--srq-per-core"},
		{"--loop --qpn-base 0xfffffd --qps 3 --nb-cores 2", "--qpn-base"},
		{"--loop --qpn-base 3 --qps 2 --nb-cores 2", "at least 4"},
		{"--addr 10.0.0.1/24 --peer 10.0.0.2,10.0.0.3 -q 1",
			"for --qps: expected a multiple of 2"},
		{"--addr 10.0.0.1/24 --peer 10.0.0.2,10.0.0.3 -q 3",
			"for --qps: expected a multiple of 2"},
		{"--addr 10.0.0.1/24 --peer 10.0.0.2,10.0.0.3 -q 2 -c 3",
			"for --count: expected a multiple of 2"},
		{"--addr 10.0.0.1/24 --peer 10.0.0.2,10.0.0.3 -q 2 -m pingpong",
			"--mode"},
		{"--addr 10.0.0.1/24 --peer 10.0.0.2,10.0.0.3 -q 2 --nb-cores 2",
			"at most 1 (--qps, of each peer)"},
		{"--addr 10.0.0.1/24 --peer 10.0.0.1@1,10.0.0.2",
			"10.0.0.1 is the port's own address; expected it without @N"},
		{"--addr 10.0.0.1/24 --peer 10.0.0.2@9 --qpn-base 0xfffff7", "--qps"},
		{"--addr 10.0.0.1/24 --peer 10.0.0.2@9 --qpn-base 11", "at least 12"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(accept(rows[i].text), -1);
		if (strstr(err, rows[i].say) == NULL)
			fail_msg("%s: \"%s\" does not say %s", rows[i].text, err,
				rows[i].say);
	}
	assert_int_equal(accept("--addr 10.0.0.12/24 --peer 10.0.0.1"), 0);
	assert_int_equal(accept("--addr 10.0.0.1/24 -i"), 0);
	assert_int_equal(accept("--addr 10.0.0.1/24 --peer 10.0.0.2,10.0.0.3 -q 4 -c 6 "
				"--nb-cores 2 --qpn-base 6"),
		0);
	assert_int_equal(accept("--loop --sq-depth 1"), 0);
	assert_int_equal(accept("--loop --engine-lcores 2"), 0);
	assert_int_equal(accept("--loop --engines 3 --engine-lcores 2,4,5"), 0);
	assert_int_equal(accept("--loop --corelist 1,2 -q 2 --nb-cores 2 "
				"--engine-lcores 3,4"),
		0);
	assert_int_equal(accept("--loop --qpn-base 0xfffffd --qps 2"), 0);
	assert_int_equal(
		accept("--loop --qpn-base 0xfffffb --qps 2 --type xrc -m both"), 0);
	assert_int_equal(accept("--loop --qpn-base 0xfffffc --qps 3 --nb-cores 2"), 0);
	assert_int_equal(
		accept("--loop --nb-cores 2 -q 2 --type xrc --srq-per-core --srq-limit 1"),
		0);
	assert_int_equal(accept("--loop --nb-cores 2 -q 2 --corelist 1,2,3"), 0);
}

/* A run that does not start leaves no empty file, and a file that was there as it was. */
TEST(a_json_file_is_not_made_before_there_is_a_result)
{
	char path[64], text[128];
	FILE *file;

	snprintf(path, sizeof(path), "testpmd-options-%d.json", getpid());
	snprintf(text, sizeof(text), "--json %s", path);
	assert_int_equal(parse(text), 0);
	assert_int_equal(access(path, F_OK), -1);
	file = fopen(path, "w");
	assert_non_null(file);
	assert_int_equal(fputs("x", file) >= 0 && fclose(file) == 0, 1);
	assert_int_equal(parse(text), 0);
	file = fopen(path, "r");
	assert_non_null(file);
	assert_int_equal(fgetc(file), 'x');
	fclose(file);
	unlink(path);
}

TEST(options_set_at_run_time)
{
	unsigned use;

	assert_int_equal(accept("--loop"), 0);
	assert_int_equal(option_set(&conf, "burst", "16", &use, err), 0);
	assert_int_equal(conf.burst, 16);
	assert_int_equal(use, OPT_NOW);
	assert_int_equal(option_set(&conf, "mtu", "512", &use, err), 0);
	assert_int_equal(use, OPT_RECONNECT);
	assert_int_equal(option_set(&conf, "burst", "0", &use, err), -1);
	assert_int_equal(conf.burst, 16);
	assert_int_equal(option_set(&conf, "qps", "2", &use, err), -1);
	assert_non_null(strstr(err, "after program start"));
	assert_int_equal(option_set(&conf, "nonsense", "2", &use, err), -1);
	assert_int_equal(option_set(&conf, "size", "1,,2", &use, err), -1);
	assert_non_null(strstr(err, "for --size: entry 2, '', is empty; expected"));
	assert_int_equal(option_set(&conf, "psn", "x", &use, err), -1);
	assert_null(strstr(err, "entry"));
	assert_int_equal(option_set(&conf, "loop", "1", &use, err), -1);
}

/* The table: no name or letter twice, valid ranges, and a text for each option. */
TEST(option_table_is_consistent)
{
	const struct option_row *rows = testpmd_options.rows;

	for (unsigned i = 0; i < testpmd_options.count; i++) {
		assert_non_null(rows[i].text);
		assert_true(rows[i].min <= rows[i].max);
		for (unsigned j = 0; j < i && rows[i].name != NULL; j++) {
			if (rows[j].name == NULL)
				continue;
			assert_string_not_equal(rows[i].name, rows[j].name);
			assert_true(
				rows[i].letter == 0 || rows[i].letter != rows[j].letter);
		}
	}
}
