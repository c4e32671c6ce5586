/* SPDX-License-Identifier: BSD-3-Clause */
/* The commands of rocade-faults that look for failures. argv[0] is the name of the command. Both return an exit code. */
#ifndef FAULTS_FAILURES_H
#define FAULTS_FAILURES_H

#include <stdbool.h>

int explore_main(int argc, char **argv);
int shrink_main(int argc, char **argv);

/* failure_options.c: reads the options, and which ends are failures. operands: how many stand before the --. They are
 * at argv[optind]. Returns -1 to go on, else the exit code. */
struct conf;
struct options;
int failure_options_read(const struct options *o, struct conf *c, int argc, char **argv,
	int operands, const char *expected);

struct option_row;
bool accept_keep(struct conf *c, const char *value);
bool match_keep(struct conf *c, const char *value);

/* Rows of options of both. */
#define FAILURE_ROWS                                                                     \
	{OPTION_FN, 0, "match", "PATTERN", .set = match_keep,                            \
		.valid = "an extended regular expression, not empty (regex(7))",         \
		.text = "a line of the output that matches is a failure"},               \
	{                                                                                \
		OPTION_FN, 0, "accept", "STATUS,...",                                    \
			.set = accept_keep,                                              \
			.valid = "numbers from 0 to 255, separated by commas",           \
			.text = "exit statuses that are no failure, besides 0"           \
	}

#endif
