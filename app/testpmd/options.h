/* SPDX-License-Identifier: BSD-3-Clause */
/* The options, a table (options.def): parsing, --help and `set NAME VALUE` expand from
 * it. */
#ifndef TESTPMD_OPTIONS_H
#define TESTPMD_OPTIONS_H

#include "conf.h"

/* When a changed option takes effect. */
enum option_effect {
	OPT_START,    /* only when the program starts */
	OPT_NOW,      /* `set`: from now on, or from the next `start` */
	OPT_RECONNECT /* `set`: the next `start` connects anew */
};

struct option_row {
	const char *name; /* NULL: a heading, in text */
	char letter;      /* or 0 */
	const char *arg;  /* NULL: none */
	enum option_effect effect;
	bool of_port; /* into struct port_conf */
	size_t offset;
	uint64_t min, max;
	/* NULL: a number, or without arg a bool. Returns false when the value cannot be.
	 */
	bool (*set)(struct conf *conf, const char *value);
	const char *valid; /* what would be, for the error; NULL: min to max */
	const char *text;
};

extern const struct option_row option_rows[];
extern const unsigned n_option_rows;

void options_defaults(struct conf *conf);

/*
 * argv[0] is not looked at. 0, or -1 with one sentence in err. With --help or --version
 * among them nothing else is checked.
 */
int options_parse(struct conf *conf, int argc, char **argv, char err[ERR_MAX]);

/* An option that `set` may change. 0 or -1 with a sentence. effect may be NULL. */
int option_set(struct conf *conf, const char *name, const char *value,
	enum option_effect *effect, char err[ERR_MAX]);

/* Whether it is one of a port. */
bool option_of_port(const char *name);

/* What no option by itself shows: 0, or -1 with a sentence. */
int options_check(const struct conf *conf, char err[ERR_MAX]);

/* Both ends of --loop, as far as the user left them open. 0, or -1 with a sentence. */
int options_complete_loop(struct conf *conf, char err[ERR_MAX]);

#endif
