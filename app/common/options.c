/* SPDX-License-Identifier: BSD-3-Clause */
#include <getopt.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <common/number.h>
#include <common/options.h>

#define WIDTH 90
#define VALUE_OF_ROW_0 256 /* getopt_long() returns smaller values for letters */

int
error_set(char err[ERR_MAX], const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(err, ERR_MAX, format, args);
	va_end(args);
	return -1;
}

const struct option_row *
option_find(const struct options *o, const char *name)
{
	for (unsigned i = 0; i < o->count; i++) {
		if (o->rows[i].name != NULL && strcmp(o->rows[i].name, name) == 0)
			return &o->rows[i];
	}
	return NULL;
}

static void
number_store(void *member, size_t size, uint64_t number)
{
	switch (size) {
	case 1:
		*(uint8_t *)member = (uint8_t)number;
		break;
	case 2:
		*(uint16_t *)member = (uint16_t)number;
		break;
	case 4:
		*(uint32_t *)member = (uint32_t)number;
		break;
	default:
		*(uint64_t *)member = number;
		break;
	}
}

static bool
text_fits(const struct option_row *row, const char *value)
{
	size_t len = strlen(value);

	return len >= row->min && (len <= row->max || row->max == 0);
}

/* Writes "expected mild, nasty or byzantine". */
static void
words_write(const char *const *words, char expected[ERR_MAX])
{
	size_t len = (size_t)snprintf(expected, ERR_MAX, "expected %s", words[0]);

	for (unsigned i = 1; words[i] != NULL && len < ERR_MAX; i++)
		len += (size_t)snprintf(expected + len, ERR_MAX - len, "%s%s",
			words[i + 1] != NULL ? ", " : " or ", words[i]);
}

bool
option_store(const struct option_row *row, struct conf *conf, const char *value,
	char expected[ERR_MAX])
{
	char *member = (char *)conf + row->offset;
	uint64_t number = row->max;
	bool good = true;

	if (row->kind == OPTION_NUM || row->kind == OPTION_POWER)
		good = parse_number(value, row->min, row->max, &number) &&
		       (row->kind == OPTION_NUM || (number & (number - 1)) == 0);
	else if (row->kind == OPTION_SIZE)
		good = parse_size(value, row->max, &number);
	else if (row->kind == OPTION_WORD && value != NULL)
		good = parse_word(value, row->words, &number);
	else if (row->kind == OPTION_TEXT)
		good = text_fits(row, value);
	else if (row->kind == OPTION_FN)
		good = row->set(conf, value);
	if (!good) {
		if (row->valid != NULL)
			snprintf(expected, ERR_MAX, "expected %s", row->valid);
		else if (row->kind == OPTION_WORD)
			words_write(row->words, expected);
		else
			snprintf(expected, ERR_MAX,
				"expected %" PRIu64 " to %" PRIu64 "%s", row->min,
				row->max, row->kind == OPTION_TEXT ? " characters" : "");
		return false;
	}
	if (row->kind == OPTION_TEXT)
		*(const char **)member = value;
	else if (row->kind != OPTION_FN)
		number_store(member, row->size, number);
	return true;
}

static int
option_has_arg(const struct option_row *row)
{
	if (row->arg == NULL)
		return row->kind == OPTION_WORD ? optional_argument : no_argument;
	return row->arg[0] == '[' ? optional_argument : required_argument;
}

/* Builds the arguments of getopt_long(). */
static void
getopt_tables(const struct options *o, struct option *longs, char *letters)
{
	if (o->count > OPTIONS_MAX)
		abort();
	if (o->operands)
		*letters++ = '+';
	*letters++ = ':'; /* tell a missing value from an unknown option */
	for (unsigned i = 0; i < o->count; i++) {
		const struct option_row *row = &o->rows[i];

		if (row->kind == OPTION_HEADING)
			continue;
		*longs++ = (struct option){.name = row->name,
			.has_arg = option_has_arg(row),
			.val = VALUE_OF_ROW_0 + (int)i};
		if (row->letter != 0) {
			*letters++ = row->letter;
			if (row->arg != NULL)
				*letters++ = ':';
		}
	}
	*letters = '\0';
	*longs = (struct option){.name = NULL};
}

static const struct option_row *
option_of_value(const struct options *o, int value)
{
	const struct option_row *row = o->rows;

	if (value >= VALUE_OF_ROW_0)
		return row + (value - VALUE_OF_ROW_0);
	while (row->letter != value)
		row++;
	return row;
}

/* Writes what getopt_long() has refused: value is what it returned, argument the last one that it
 * has passed. Of letters in one argument that need not be the one with the wrong letter. */
static int
refusal_set(const struct options *o, int value, const char *argument, char err[ERR_MAX])
{
	const char *what = value == ':' ? "option '%s' requires a value (see --help)"
					: "unknown option '%s' (see --help)";
	char option[64];

	if (optopt >= VALUE_OF_ROW_0) {
		snprintf(
			option, sizeof(option), "--%s", option_of_value(o, optopt)->name);
		if (value == '?')
			what = "option '%s' takes no value (see --help)";
	} else {
		snprintf(option, sizeof(option), "-%c", optopt);
	}
	return error_set(err, what, optopt != 0 ? option : argument);
}

int
option_refused(const struct options *o, const struct option_row *row, const char *value,
	const char *expected, char err[ERR_MAX])
{
	const char *why = o->why != NULL ? o->why() : "";

	return error_set(err, "invalid value '%s' for --%s: %s%s%s", value, row->name,
		why, why[0] != '\0' ? "; " : "", expected);
}

enum options_result
options_parse(const struct options *o, struct conf *conf, int argc, char **argv,
	char err[ERR_MAX])
{
	struct option longs[OPTIONS_MAX + 1];
	char letters[2 * OPTIONS_MAX + 3], expected[ERR_MAX];
	int value;

	getopt_tables(o, longs, letters);
	optind = 0; /* glibc: start afresh, as EAL uses getopt too */
	opterr = 0;
	while ((value = getopt_long(argc, argv, letters, longs, NULL)) != -1) {
		const struct option_row *row;

		if (value == ':' || value == '?')
			return refusal_set(o, value, argv[optind - 1], err);
		row = option_of_value(o, value);
		if (row->kind == OPTION_HELP || row->kind == OPTION_VERSION)
			return row->kind == OPTION_HELP ? OPTIONS_HELP : OPTIONS_VERSION;
		if (!option_store(row, conf, optarg, expected))
			return option_refused(o, row, optarg, expected, err);
		if (o->stored != NULL)
			o->stored(conf, row);
	}
	if (optind < argc && !o->operands)
		return error_set(
			err, "unexpected argument '%s' (see --help)", argv[optind]);
	return OPTIONS_OK;
}

/* Prints text in lines of at most WIDTH columns, all but the first indented. */
static void
wrapped_print(const char *text, int indent)
{
	int at = indent;

	while (*text != '\0') {
		int len = (int)strcspn(text, " \n");

		if (at > indent && (text[-1] == '\n' || at + 1 + len > WIDTH)) {
			printf("\n%*s", indent, "");
			at = indent;
		} else if (at > indent) {
			putchar(' ');
			at++;
		}
		printf("%.*s", len, text);
		at += len;
		text += len;
		if (*text != '\0')
			text++;
	}
	putchar('\n');
}

static void
help_row_print(const struct options *o, const struct option_row *row)
{
	int at;

	if (row->kind == OPTION_HEADING) {
		putchar('\n');
		wrapped_print(row->text, 0);
		return;
	}
	if (row->letter != 0)
		at = printf("  -%c, --%s", row->letter, row->name);
	else
		at = printf("%s--%s", o->letters ? "      " : "  ", row->name);
	if (row->arg != NULL)
		at += printf("%s%s", row->arg[0] == '[' ? "" : " ", row->arg);
	if (at >= o->column - 1) {
		putchar('\n');
		at = 0;
	}
	printf("%*s", o->column - at, "");
	wrapped_print(row->text, o->column);
}

int
options_read(const struct options *o, struct conf *conf, int argc, char **argv)
{
	char err[ERR_MAX];

	switch (options_parse(o, conf, argc, argv, err)) {
	case OPTIONS_HELP:
		fputs(o->usage, stdout);
		for (unsigned i = 0; i < o->count; i++) {
			if (o->rows[i].text != NULL)
				help_row_print(o, &o->rows[i]);
		}
		fputs(o->notes, stdout);
		return EXIT_OK;
	case OPTIONS_VERSION:
		printf("%s " ROCADE_VERSION "\n", o->program);
		return EXIT_OK;
	case OPTIONS_WRONG:
		fprintf(stderr, "%s: %s\n", o->program, err);
		return EXIT_USAGE;
	default:
		return -1;
	}
}

int
options_separator(int argc, char **argv)
{
	static const char *const own[] = {"--help", "--version", "-h", "-V", NULL};
	uint64_t which;
	int i = 1;

	if (argc == 2 && parse_word(argv[1], own, &which))
		return 0;
	while (i < argc && strcmp(argv[i], "--") != 0)
		i++;
	return i;
}
