/* SPDX-License-Identifier: BSD-3-Clause */
/* The daemon's log: standard error. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include <rocade/daemon.h>

#include "base/base_log.h"
#include "verbs/export.h"

static enum log_level max_level = LOG_LEVEL_WARN;
static bool journal; /* the journal expects a priority before each line: sd-daemon(3) */

static void
line_write(enum log_level level, const char *line, void *arg)
{
	static const char *const names[] = {"error: ", "warning: ", "", ""};
	static const int priorities[] = {3, 4, 6, 7};

	(void)arg;
	if (level > max_level)
		return;
	if (journal)
		fprintf(stderr, "<%d>%s\n", priorities[level], line);
	else
		fprintf(stderr, "rocaded: %s%s\n", names[level], line);
}

static_assert((int)ROCADE_LOG_DEBUG == (int)LOG_LEVEL_DEBUG &&
		      (int)ROCADE_LOG_ERROR == (int)LOG_LEVEL_ERR,
	"same values");

EXPORT void
rocade_daemon_log(enum rocade_daemon_log level)
{
	max_level = (enum log_level)level;
	journal = getenv("JOURNAL_STREAM") != NULL;
	log_set_sink(line_write, NULL);
}
