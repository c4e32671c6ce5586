/* SPDX-License-Identifier: BSD-3-Clause */
/* The option engine, with a program that has an option of each kind. */
#include <getopt.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <common/options.h>

#include "case.h"

struct conf {
	uint16_t vlan;
	uint32_t power;
	uint64_t size;
	uint8_t colour;
	bool flag;
	const char *name;
	char every[8];
	unsigned stored;
};

static bool
every_set(struct conf *conf, const char *value)
{
	return snprintf(conf->every, sizeof(conf->every), "%s",
		       value != NULL ? value : "none") < (int)sizeof(conf->every);
}

static void
on_stored(struct conf *conf, const struct option_row *row)
{
	conf->stored += row->use;
}

#define MEMBER(field) OPTION_MEMBER(struct conf, field)
static const char *const colours[] = {"red", "blue", "grey", NULL};
static const struct option_row rows[] = {
	{OPTION_HEADING, .text = "Kinds"},
	{OPTION_NUM, 'v', "vlan", "ID", MEMBER(vlan), 1, 4094, .text = "a number",
		.use = 1},
	{OPTION_POWER, 0, "power", "N", MEMBER(power), 2, 8, .valid = "2, 4 or 8",
		.text = "a power of two", .use = 2},
	{OPTION_SIZE, 0, "size", "BYTES", MEMBER(size), 0, 4096, .text = "bytes"},
	{OPTION_WORD, 0, "colour", NULL, MEMBER(colour), 0, 1, .words = colours,
		.text = "first line\nsecond line"},
	{OPTION_FLAG, 'f', "flag", NULL, MEMBER(flag), 0, true,
		.text = "a text that is longer than the ninety columns of a line, so that --help "
			"wraps it"},
	{OPTION_FLAG, 0, "no-flag", NULL, MEMBER(flag), 0, false},
	{OPTION_TEXT, 0, "name", "AN-EXTRAORDINARILY-LONG-NAME", MEMBER(name), 1, 4,
		.text = "a text"},
	{OPTION_FN, 0, "every", "[=S]", .set = every_set, .valid = "something short",
		.text = "an optional value"},
	{OPTION_HELP, 'h', "help", .text = "print this help"},
	{OPTION_VERSION, 'V', "version", .text = "print name and version"},
};
static struct options options = {.program = "prog",
	.usage = "Usage: prog\n",
	.notes = "\nThe end.\n",
	.rows = rows,
	.count = sizeof(rows) / sizeof(rows[0]),
	.column = 20,
	.letters = true,
	.stored = on_stored};

static struct conf conf;
static char err[ERR_MAX];

/* Splits text into the arguments after the program's name. */
static int
split(const char *text, char *argv[32])
{
	static char copy[256];
	int argc = 1;

	argv[0] = "prog";
	snprintf(copy, sizeof(copy), "%s", text);
	for (char *word = strtok(copy, " "); word != NULL; word = strtok(NULL, " "))
		argv[argc++] = word;
	return argc;
}

static enum options_result
parse(const char *text)
{
	char *argv[32];
	int argc = split(text, argv);

	memset(&conf, 0, sizeof(conf));
	err[0] = '\0';
	return options_parse(&options, &conf, argc, argv, err);
}

TEST(each_kind_is_stored)
{
	assert_int_equal(parse("-v 7 --power 4 --size 2k --colour=red --flag --name=abcd "
			       "--every=2"),
		OPTIONS_OK);
	assert_int_equal(conf.vlan, 7);
	assert_int_equal(conf.power, 4);
	assert_int_equal(conf.size, 2048);
	assert_int_equal(conf.colour, 0);
	assert_true(conf.flag);
	assert_string_equal(conf.name, "abcd");
	assert_string_equal(conf.every, "2");
	assert_int_equal(conf.stored, 3);
	/* Options without their optional value; the last of several counts. */
	assert_int_equal(
		parse("--colour --every --flag --no-flag -f -v8 --vlan 9"), OPTIONS_OK);
	assert_int_equal(conf.colour, 1);
	assert_string_equal(conf.every, "none");
	assert_true(conf.flag);
	assert_int_equal(conf.vlan, 9);
	assert_int_equal(parse("-h --nonsense"), OPTIONS_HELP);
	assert_int_equal(parse("--version"), OPTIONS_VERSION);
}

TEST(errors_name_option_value_and_range)
{
	static const char *const wrong[][2] = {
		{"-v 0", "invalid value '0' for --vlan: expected 1 to 4094"},
		{"--vlan 4095", "invalid value '4095' for --vlan: expected 1 to 4094"},
		{"--power 6", "invalid value '6' for --power: expected 2, 4 or 8"},
		{"--power 16", "invalid value '16' for --power: expected 2, 4 or 8"},
		{"--size 5k", "invalid value '5k' for --size: expected 0 to 4096"},
		{"--colour=green",
			"invalid value 'green' for --colour: expected red, blue or grey"},
		{"--name abcde",
			"invalid value 'abcde' for --name: expected 1 to 4 characters"},
		{"--name=", "invalid value '' for --name: expected 1 to 4 characters"},
		{"--every=01234567",
			"invalid value '01234567' for --every: expected something short"},
		{"--vlan", "option '--vlan' requires a value (see --help)"},
		{"--nonsense", "unknown option '--nonsense' (see --help)"},
		{"--flag=1", "option '--flag' takes no value (see --help)"},
		{"--no-f=1", "option '--no-flag' takes no value (see --help)"},
		{"--vl", "option '--vlan' requires a value (see --help)"},
		{"-fxv 1", "unknown option '-x' (see --help)"},
		{"-xf", "unknown option '-x' (see --help)"},
		{"-f -fv", "option '-v' requires a value (see --help)"},
		{"--n=1", "unknown option '--n=1' (see --help)"},
		{"stray -f", "unexpected argument 'stray' (see --help)"},
	};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_int_equal(parse(wrong[i][0]), OPTIONS_WRONG);
		assert_string_equal(err, wrong[i][1]);
	}
}

TEST(operands_end_the_options)
{
	options.operands = true;
	assert_int_equal(parse("-f program --nonsense"), OPTIONS_OK);
	options.operands = false;
	assert_int_equal(optind, 2);
	assert_true(conf.flag);
}

TEST(options_of_eal_end_at_two_dashes)
{
	static const struct {
		const char *text;
		int separator;
	} lines[] = {{"", 1}, {"-l 0 --no-pci", 4}, {"-l 0 -- --vlan 5 --", 3},
		{"--help", 0}, {"-V", 0}, {"--version x", 3}, {"-- --help", 1}};

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		char *argv[32];
		int argc = split(lines[i].text, argv);

		assert_int_equal(options_separator(argc, argv), lines[i].separator);
	}
}

/* Runs options_read() with a file as output and error. */
static int
read_into(const char *text, char *out, size_t size)
{
	char *argv[32];
	int argc = split(text, argv), fds[2] = {dup(1), dup(2)}, code;
	FILE *file = tmpfile();

	fflush(stdout);
	dup2(fileno(file), 1);
	dup2(fileno(file), 2);
	code = options_read(&options, &conf, argc, argv);
	fflush(stdout);
	dup2(fds[0], 1);
	dup2(fds[1], 2);
	close(fds[0]);
	close(fds[1]);
	rewind(file);
	out[fread(out, 1, size - 1, file)] = '\0';
	fclose(file);
	return code;
}

TEST(main_gets_exit_codes)
{
	char out[2048];

	assert_int_equal(read_into("-f", out, sizeof(out)), -1);
	assert_string_equal(out, "");
	assert_int_equal(read_into("-x", out, sizeof(out)), EXIT_USAGE);
	assert_string_equal(out, "prog: unknown option '-x' (see --help)\n");
	assert_int_equal(read_into("--version", out, sizeof(out)), EXIT_OK);
	assert_string_equal(out, "prog " ROCADE_VERSION "\n");
	assert_int_equal(read_into("--help", out, sizeof(out)), EXIT_OK);
	assert_string_equal(out,
		"Usage: prog\n"
		"\n"
		"Kinds\n"
		"  -v, --vlan ID     a number\n"
		"      --power N     a power of two\n"
		"      --size BYTES  bytes\n"
		"      --colour      first line\n"
		"                    second line\n"
		"  -f, --flag        a text that is longer than the ninety columns of a line, so "
		"that\n"
		"                    --help wraps it\n"
		"      --name AN-EXTRAORDINARILY-LONG-NAME\n"
		"                    a text\n"
		"      --every[=S]   an optional value\n"
		"  -h, --help        print this help\n"
		"  -V, --version     print name and version\n"
		"\n"
		"The end.\n");
}
