/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <common/number.h>
#include <common/options.h>

#include "trial.h"

#include "failures.h"

bool
match_keep(struct conf *c, const char *value)
{
	if (c->match != NULL)
		regfree(&c->pattern);
	c->match = NULL;
	if (value[0] == '\0' ||
		regcomp(&c->pattern, value, REG_EXTENDED | REG_NOSUB) != 0)
		return false;
	c->match = value;
	return true;
}

bool
accept_keep(struct conf *c, const char *value)
{
	char one[8];
	uint64_t status;
	size_t len;

	for (;; value += len + 1) {
		len = strcspn(value, ",");
		if (len >= sizeof(one))
			return false;
		memcpy(one, value, len);
		one[len] = '\0';
		if (!parse_number(one, 0, STATUSES - 1, &status))
			return false;
		c->accepted[status] = true;
		if (value[len] == '\0')
			return true;
	}
}

int
failure_options_read(const struct options *o, struct conf *c, int argc, char **argv,
	int operands, const char *expected)
{
	int rc, begin;

	c->accepted[0] = true;
	rc = options_read(o, c, argc, argv);
	if (rc >= 0)
		return rc;
	begin = optind + operands;
	/* getopt(3) takes a -- in front of the first operand. */
	if (operands != 0 && begin < argc && strcmp(argv[begin], "--") == 0)
		begin++;
	else if (operands != 0 || strcmp(argv[optind - 1], "--") != 0)
		begin = argc;
	if (begin >= argc) {
		fprintf(stderr,
			PROGRAM ": %s: missing command: expected %s (see --help)\n",
			argv[0], expected);
		return EXIT_USAGE;
	}
	c->command = argv + begin;
	return -1;
}
