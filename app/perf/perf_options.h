/* SPDX-License-Identifier: BSD-3-Clause */
/* The option table (perf_options.def). Parsing and --help are generated from it. */
#ifndef PERF_OPTIONS_H
#define PERF_OPTIONS_H

#include "perf_conf.h"

enum option_kind {
	OPTION_HEADING,
	OPTION_NUM,
	OPTION_SIZE,
	OPTION_FLAG,
	OPTION_TEXT,
	OPTION_FN
};

struct option_row {
	enum option_kind kind;
	const char *name;
	const char *arg;   /* NULL: none */
	size_t offset;     /* in struct conf */
	uint64_t min, max; /* OPTION_TEXT: max is the size of the field, NUL included */
	/* OPTION_FN: returns false if the value is invalid. */
	bool (*set)(struct conf *conf, const char *value);
	const char *valid; /* expected values, for the error message */
	const char *text;
};

extern const struct option_row option_rows[];
extern const unsigned n_option_rows;

#endif
