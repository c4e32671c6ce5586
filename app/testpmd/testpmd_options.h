/* SPDX-License-Identifier: BSD-3-Clause */
/* The option table (testpmd_options.def). Parsing, --help and `set NAME VALUE` are
 * generated from it. */
#ifndef TESTPMD_OPTIONS_H
#define TESTPMD_OPTIONS_H

#include "testpmd_conf.h"

/* When a changed option takes effect. */
enum option_use {
	OPT_START,     /* only when the program starts */
	OPT_NOW,       /* `set`: from now on, or from the next `start` */
	OPT_RECONNECT, /* `set`: the next `start` reconnects */
	OPT_EFFECT = 3,
	OPT_OF_PORT = 4 /* an option of a port */
};

extern const struct options testpmd_options;

void options_defaults(struct conf *conf);

/* Sets an option that `set` may change, and *use to its enum option_use. Returns 0, or -1
 * with a message in err. */
int option_set(struct conf *conf, const char *name, const char *value, unsigned *use,
	char err[ERR_MAX]);

/* Whether a result can be written to the file at the end of a run. A run that does not start leaves no empty
 * file. Otherwise errno is set. */
bool file_is_writable(const char *path);

/* Checks combinations of options. Returns 0, or -1 with a message in err. */
int options_check(const struct conf *conf, char err[ERR_MAX]);

/* Fills in what the user left open of both ends of --loop. Returns 0, or -1 with a
 * message in err. */
int options_complete_loop(struct conf *conf, char err[ERR_MAX]);

#endif
