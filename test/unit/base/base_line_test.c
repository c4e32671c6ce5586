/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include "base/base_line.h"

#include <cmocka.h>

static void
text_is_appended(void **state)
{
	char buf[32];
	struct line line = {.buf = buf, .size = sizeof(buf)};

	line_add(&line, "port %u", 4791);
	line_add(&line, ", %s", "up");
	assert_string_equal(buf, "port 4791, up");
	assert_int_equal(line.len, strlen(buf));
}

static void
counts_when_full(void **state)
{
	char buf[8] = "1234567";
	struct line line = {.buf = buf, .size = 5};

	line_add(&line, "abc");
	line_add(&line, "defg");
	line_add(&line, "hi");
	assert_string_equal(buf, "abcd");
	assert_int_equal(line.len, 9);
	assert_int_equal(buf[5], '6');
}

static void
counts_without_a_buffer(void **state)
{
	struct line line = {.buf = NULL, .size = 0};

	line_add(&line, "%d", 12345);
	assert_int_equal(line.len, 5);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_is_appended),
		cmocka_unit_test(counts_when_full),
		cmocka_unit_test(counts_without_a_buffer),
	};

	return cmocka_run_group_tests_name("line", tests, NULL, NULL);
}
