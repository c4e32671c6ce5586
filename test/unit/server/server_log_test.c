/* SPDX-License-Identifier: BSD-3-Clause */
/* The daemon's log: levels and destinations. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rocade/daemon.h>

#include "base/base_log.h"

#include <cmocka.h>

/* Logs a line of each level. text: what was written to standard error. */
static void
log_all_levels(enum rocade_daemon_log level, char *text, size_t size)
{
	int ends[2], err = dup(2);
	ssize_t len;

	assert_int_equal(pipe(ends), 0);
	fflush(stderr);
	dup2(ends[1], 2);
	rocade_daemon_log(level);
	log_err("one");
	log_warn("two");
	log_info("three");
	log_write(LOG_LEVEL_DEBUG, "four");
	fprintf(stderr, ".");
	fflush(stderr);
	dup2(err, 2);
	close(err);
	close(ends[1]);
	len = read(ends[0], text, size - 1);
	assert_true(len > 0);
	text[len] = '\0';
	close(ends[0]);
}

static void
lines_up_to_the_level(void **state)
{
	char text[256];

	unsetenv("JOURNAL_STREAM");
	log_all_levels(ROCADE_LOG_ERROR, text, sizeof(text));
	assert_string_equal(text, "rocaded: error: one\n.");
	log_all_levels(ROCADE_LOG_WARNING, text, sizeof(text));
	assert_string_equal(text, "rocaded: error: one\nrocaded: warning: two\n.");
	log_all_levels(ROCADE_LOG_DEBUG, text, sizeof(text));
	assert_non_null(strstr(text, "rocaded: three\nrocaded: four\n."));
}

static void
journal_lines_have_priorities(void **state)
{
	char text[256];

	setenv("JOURNAL_STREAM", "8:12345", 1);
	log_all_levels(ROCADE_LOG_DEBUG, text, sizeof(text));
	assert_string_equal(text, "<3>one\n<4>two\n<6>three\n<7>four\n.");
	unsetenv("JOURNAL_STREAM");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_up_to_the_level),
		cmocka_unit_test(journal_lines_have_priorities),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
