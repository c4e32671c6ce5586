/* SPDX-License-Identifier: BSD-3-Clause */
/* The options, a table (options.def): parsing and --help expand from it. */
#ifndef PERF_OPTIONS_H
#define PERF_OPTIONS_H

#include "conf.h"

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
	uint64_t min, max; /* OPTION_TEXT: max characters, the NUL included */
	/* OPTION_FN: returns false when the value cannot be. */
	bool (*set)(struct conf *conf, const char *value);
	const char *valid; /* what would be, for the error */
	const char *text;
};

extern const struct option_row option_rows[];
extern const unsigned n_option_rows;

#endif
