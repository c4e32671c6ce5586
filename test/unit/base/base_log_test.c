/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/common.h"
#include "base/base_log.h"
#include "case.h"

struct sink {
	unsigned lines;
	enum log_level level;
	char line[4096];
};

static void
sink_keep(enum log_level level, const char *line, void *arg)
{
	struct sink *sink = arg;

	sink->lines++;
	sink->level = level;
	snprintf(sink->line, sizeof(sink->line), "%s", line);
}

TEST(sink_gets_every_level)
{
	struct sink sink = {0};

	log_set_sink(sink_keep, &sink);
	log_err("port %u: %s", 7, "gone");
	assert_int_equal(sink.level, LOG_LEVEL_ERR);
	assert_string_equal(sink.line, "port 7: gone");
	log_warn("w");
	assert_int_equal(sink.level, LOG_LEVEL_WARN);
	log_info("i");
	assert_int_equal(sink.level, LOG_LEVEL_INFO);
	log_write(LOG_LEVEL_DEBUG, "d");
	assert_int_equal(sink.level, LOG_LEVEL_DEBUG);
	assert_int_equal(sink.lines, 4);
	log_set_sink(NULL, NULL);
}

TEST(long_line_is_cut)
{
	struct sink sink = {0};
	char text[2000];

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	log_set_sink(sink_keep, &sink);
	log_err("%s", text);
	log_set_sink(NULL, NULL);
	assert_int_equal(sink.lines, 1);
	assert_in_range(strlen(sink.line), 200, sizeof(text) - 2);
	assert_memory_equal(sink.line, text, strlen(sink.line));
}

/* Returns what one message of each level wrote to stderr. */
static const char *
stderr_of_levels(void)
{
	static char text[512];
	FILE *file = tmpfile();
	int saved = dup(STDERR_FILENO);
	size_t len;

	assert_non_null(file);
	assert_true(saved >= 0);
	assert_true(dup2(fileno(file), STDERR_FILENO) >= 0);
	log_err("first %d", 1);
	log_warn("second");
	log_info("third");
	log_write(LOG_LEVEL_DEBUG, "fourth");
	dup2(saved, STDERR_FILENO);
	close(saved);

	rewind(file);
	len = fread(text, 1, sizeof(text) - 1, file);
	text[len] = '\0';
	fclose(file);
	return text;
}

TEST(without_a_sink_warnings_go_to_stderr)
{
	unsetenv("ROCADE_LOG");
	assert_string_equal(
		stderr_of_levels(), "rocade: first 1\nrocade: warning: second\n");
	setenv("ROCADE_LOG", "warning", 1);
	assert_string_equal(
		stderr_of_levels(), "rocade: first 1\nrocade: warning: second\n");
}

TEST(environment_asks_for_information)
{
	setenv("ROCADE_LOG", "info", 1);
	assert_string_equal(stderr_of_levels(),
		"rocade: first 1\nrocade: warning: second\nrocade: third\n");
	unsetenv("ROCADE_LOG");
}
