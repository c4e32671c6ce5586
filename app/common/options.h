/* SPDX-License-Identifier: BSD-3-Clause */
/* Options of a program, a row each. The rows determine how the command line is parsed, what
 * the errors say, and --help. */
#ifndef COMMON_OPTIONS_H
#define COMMON_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ERR_MAX 1024
#define OPTIONS_MAX 96

struct conf; /* what the options set; each program has its own */

/* Exit codes of all programs; EXIT_ENVIRONMENT: of those that start EAL. */
enum exit_code { EXIT_OK, EXIT_RUN, EXIT_USAGE, EXIT_ENVIRONMENT };

enum option_kind {
	OPTION_HEADING, /* no option: the text is a paragraph of --help */
	OPTION_NUM,     /* a number from min to max */
	OPTION_POWER,   /* a power of two from min to max */
	OPTION_SIZE,    /* a number of bytes up to max, suffix k, m or g */
	OPTION_WORD,    /* one of words, stored as its index; max if there is no value */
	OPTION_TEXT,    /* min to max characters, max 0: any; stored as const char * */
	OPTION_FLAG,    /* no value: max is stored */
	OPTION_FN,      /* set() stores the value */
	OPTION_HELP,
	OPTION_VERSION
};

struct option_row {
	enum option_kind kind;
	char letter; /* 0: there is no short option */
	const char *name;
	/* Name of the value in --help. NULL: an OPTION_WORD takes --name=VALUE or no value,
	 * any other kind no value. "[=NAME]": the value is optional. */
	const char *arg;
	const char *member; /* that the value is stored in */
	size_t offset;      /* of this member */
	size_t size;        /* of this member: 1, 2, 4 or 8 bytes, unless OPTION_TEXT */
	uint64_t min, max;
	/* Returns false if the value is invalid. value is NULL if there is none. */
	bool (*set)(struct conf *conf, const char *value);
	const char *const *words; /* end with NULL */
	const char *valid; /* expected, for the error; NULL: words, or min to max */
	const char *text;  /* for --help, which wraps it; NULL: not in --help */
	unsigned use;      /* the program's own */
};

#define OPTION_MEMBER(type, member_)                                                     \
	.member = #member_, .offset = offsetof(type, member_),                           \
	.size = sizeof(((type *)0)->member_)

struct options {
	const char *program;
	const char *usage, *notes; /* of --help, before and after the rows */
	const struct option_row *rows;
	unsigned count;
	int column;    /* of the texts in --help */
	bool letters;  /* --help has a column for short options */
	bool operands; /* stop at the first argument that is no option: argv[optind] */
	/* If not NULL: called for each option that has been stored. */
	void (*stored)(struct conf *conf, const struct option_row *row);
	/* If not NULL: which part of the value that was refused last is wrong, and why; or "". */
	const char *(*why)(void);
};

enum options_result { OPTIONS_WRONG = -1, OPTIONS_OK, OPTIONS_HELP, OPTIONS_VERSION };

/* Writes an error and returns -1. */
int error_set(char err[ERR_MAX], const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Returns the row of the option, or NULL. */
const struct option_row *option_find(const struct options *o, const char *name);

/* Stores a value. On failure returns false, and writes "expected ..." */
bool option_store(const struct option_row *row, struct conf *conf, const char *value,
	char expected[ERR_MAX]);

/* Writes that the value was refused, and returns -1. */
int option_refused(const struct options *o, const struct option_row *row,
	const char *value, const char *expected, char err[ERR_MAX]);

/* Stores the options, without argv[0]. Stops at --help, --version and the first error,
 * which it writes to err. */
enum options_result options_parse(const struct options *o, struct conf *conf, int argc,
	char **argv, char err[ERR_MAX]);

/* The same for main(): prints the error, --help or --version. Returns -1 to go on, else
 * the exit code. */
int options_read(const struct options *o, struct conf *conf, int argc, char **argv);

/* Returns the index in argv of the `--` that ends EAL's options; argc if there is none; 0
 * if --help or --version is the only argument: they are the program's, not EAL's. */
int options_separator(int argc, char **argv);

#endif
