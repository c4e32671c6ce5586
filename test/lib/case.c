/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "case.h"

static struct test_case *cases; /* in the order of their lines */
static CMFixtureFunction group_setup, group_teardown;
static unsigned group_failures;
static const char *skipped; /* why, or NULL */

/* The order of constructors is the compiler's. */
void
case_add(struct test_case *added)
{
	struct test_case **at = &cases;

	while (*at != NULL && (*at)->line <= added->line)
		at = &(*at)->next;
	added->next = *at;
	*at = added;
}

void
case_group(CMFixtureFunction setup, CMFixtureFunction teardown)
{
	group_setup = setup;
	group_teardown = teardown;
}

void
case_skip_all(const char *why)
{
	skipped = why;
}

/* Counts a failure until the end, as an assertion does not return. cmocka itself does not count that of
 * a teardown. */
static int
fixture(CMFixtureFunction function, void **state)
{
	int rc;

	if (function == NULL)
		return 0;
	group_failures++;
	rc = function(state);
	if (rc == 0)
		group_failures--;
	return rc;
}

static int
setup_group(void **state)
{
	return fixture(group_setup, state);
}

static int
teardown_group(void **state)
{
	return fixture(group_teardown, state);
}

static const struct test_case *
case_named(const char *name)
{
	for (const struct test_case *c = cases; c != NULL; c = c->next)
		if (strcmp(c->test.name, name) == 0)
			return c;
	return NULL;
}

static bool
chosen(const struct test_case *c, char *const *names)
{
	if (*names == NULL)
		return true;
	for (; *names != NULL; names++)
		if (strcmp(c->test.name, *names) == 0)
			return true;
	return false;
}

/* Runs the cases of these names, all without a name. Returns the exit status. */
static int
run(char *const *names)
{
	struct CMUnitTest *tests;
	size_t count = 0;
	int failed;

	for (const struct test_case *c = cases; c != NULL; c = c->next)
		count += chosen(c, names);
	tests = calloc(count, sizeof(*tests));
	if (tests == NULL) {
		perror("calloc");
		return EXIT_FAILURE;
	}
	count = 0;
	for (const struct test_case *c = cases; c != NULL; c = c->next)
		if (chosen(c, names))
			tests[count++] = c->test;
	failed = _cmocka_run_group_tests(
		program_invocation_short_name, tests, count, setup_group, teardown_group);
	free(tests);
	return failed != 0 || group_failures != 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

int
main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (case_named(argv[i]) == NULL) {
			fprintf(stderr, "%s: no case is named %s; the cases are:\n",
				program_invocation_short_name, argv[i]);
			for (const struct test_case *c = cases; c != NULL; c = c->next)
				fprintf(stderr, "%s\n", c->test.name);
			return 2;
		}
	if (skipped != NULL) {
		printf("1..0 # SKIP %s\n", skipped);
		return EXIT_SUCCESS;
	}
	return run(&argv[argc > 0]);
}
