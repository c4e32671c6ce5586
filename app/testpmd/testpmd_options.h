/* SPDX-License-Identifier: BSD-3-Clause */
/* The option table (testpmd_options.def). Parsing, --help and `set NAME VALUE` are
 * generated from it. */
#ifndef TESTPMD_OPTIONS_H
#define TESTPMD_OPTIONS_H

#include "testpmd_conf.h"

/* When a changed option takes effect. */
enum option_effect {
	OPT_START,    /* only when the program starts */
	OPT_NOW,      /* `set`: from now on, or from the next `start` */
	OPT_RECONNECT /* `set`: the next `start` reconnects */
};

struct option_row {
	const char *name; /* NULL: a heading, in text */
	char letter;      /* 0: there is no short option */
	const char *arg;  /* name of the value in --help; NULL: the option has no value */
	enum option_effect effect;
	bool of_port; /* in struct port_conf */
	size_t offset;
	uint64_t min, max;
	/* Stores the value, or returns false if it is invalid. NULL: the value is stored
	 * at offset, as uint64_t, or as bool if arg is NULL. */
	bool (*set)(struct conf *conf, const char *value);
	const char *valid; /* expected values, for the error message; NULL: min to max */
	const char *text;
};

extern const struct option_row option_rows[];
extern const unsigned n_option_rows;

void options_defaults(struct conf *conf);

/* argv[0] is ignored. Returns 0, or -1 with a message in err. Stops at --help or
 * --version without checking the rest. */
int options_parse(struct conf *conf, int argc, char **argv, char err[ERR_MAX]);

/* Sets an option that `set` may change. Returns 0, or -1 with a message in err. effect
 * may be NULL. */
int option_set(struct conf *conf, const char *name, const char *value,
	enum option_effect *effect, char err[ERR_MAX]);

/* Whether this is an option of a port. */
bool option_of_port(const char *name);

/* Checks combinations of options. Returns 0, or -1 with a message in err. */
int options_check(const struct conf *conf, char err[ERR_MAX]);

/* Fills in what the user left open of both ends of --loop. Returns 0, or -1 with a
 * message in err. */
int options_complete_loop(struct conf *conf, char err[ERR_MAX]);

#endif
