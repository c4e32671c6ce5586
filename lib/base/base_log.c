/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_log.h"
#include "base/no_cancel.h"

#define LINE_MAX_BYTES 512 /* longer lines are truncated */

static log_sink_fn log_sink;
static void *log_sink_arg;

void
log_set_sink(log_sink_fn sink, void *arg)
{
	log_sink = sink;
	log_sink_arg = arg;
}

/* Whether ROCADE_LOG of the environment asks for what is neither a warning nor an error. */
static bool
info_wanted(void)
{
	const char *value = getenv("ROCADE_LOG");

	return value != NULL && strcmp(value, "info") == 0;
}

static const char *
level_text(enum log_level level)
{
	return level == LOG_LEVEL_WARN ? "warning: " : "";
}

void
log_write(enum log_level level, const char *fmt, ...)
{
	char line[LINE_MAX_BYTES];
	va_list args;
	int state;

	if (log_sink == NULL && level > LOG_LEVEL_WARN &&
		(level > LOG_LEVEL_INFO || !info_wanted()))
		return;
	va_start(args, fmt);
	vsnprintf(line, sizeof(line), fmt, args);
	va_end(args);
	/* The caller may hold locks. */
	state = no_cancel_begin();
	if (log_sink != NULL)
		log_sink(level, line, log_sink_arg);
	else
		fprintf(stderr, "rocade: %s%s\n", level_text(level), line);
	no_cancel_end(state);
}
