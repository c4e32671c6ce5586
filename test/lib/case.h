/* SPDX-License-Identifier: BSD-3-Clause */
/* The cases of a test program. TEST() defines one and adds it; main() of case.c runs those of the
 * program in the order of their lines. The program's arguments are names of cases: it runs these only.
 *
 *     TEST(psn_wraps)
 *     {
 *             assert_int_equal(psn_add(0xffffff, 1), 0);
 *     }
 *
 * `state` is cmocka's argument of the case. */
#ifndef ROCADE_TEST_CASE_H
#define ROCADE_TEST_CASE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

/* The tests use the names that cmocka 1.1 has: cmocka 2 has them too, and warns of some. */
#define CMOCKA_DISABLE_DEPRECATION_WARNINGS
#include <cmocka.h>
/* A macro of cmocka 2, which no test uses: structures have members of that name. */
#undef stop

struct test_case {
	struct CMUnitTest test;
	unsigned line;
	struct test_case *next;
};

/* Adds a case of this name that runs a function. Its setup runs before and its teardown after it; each
 * may be NULL. */
#define TEST_ADD(name, function, setup, teardown)                                        \
	static void __attribute__((constructor)) name##_add(void)                        \
	{                                                                                \
		static struct test_case added = {                                        \
			{#name, function, setup, teardown, NULL}, __LINE__, NULL};       \
                                                                                         \
		case_add(&added);                                                        \
	}

/* The same with the function's body behind the macro. */
#define TEST_WITH(name, setup, teardown)                                                 \
	static void name(void **state);                                                  \
	TEST_ADD(name, name, setup, teardown)                                            \
	static void name(void **state)

#define TEST(name) TEST_WITH(name, NULL, NULL)

/* The group's setup runs before all cases of the program, its teardown after them; each may be NULL.
 * Either may fail the program. */
#define TEST_GROUP(setup, teardown)                                                      \
	static void __attribute__((constructor)) group_add(void)                         \
	{                                                                                \
		case_group(setup, teardown);                                             \
	}

/* For the macros, before main(). */
void case_add(struct test_case *added);
void case_group(CMFixtureFunction setup, CMFixtureFunction teardown);

/* The program has no case on this machine: it prints the reason. Before main(). */
void case_skip_all(const char *why);

#endif
