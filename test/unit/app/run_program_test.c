/* SPDX-License-Identifier: BSD-3-Clause */
/* Which program a journal of a command is of. */
#include <faults/run_program.h>

#include "case.h"

TEST(the_program_of_rocade_run_is_the_word_behind_its_options)
{
	static char *const commands[][8] = {
		{"prog"},
		{"./prog", "--library", "x"},
		{"/a/rocade-run", "prog", "--mount"},
		{"rocade-run", "--library", "/lib", "prog"},
		{"rocade-run", "--library=/lib", "prog", "x"},
		{"rocade-run", "--start-local", "--no-advice", "--socket", "-x", "prog"},
		{"rocade-run", "--mount", "--explain", "--", "prog", "x"},
		{"rocade-run", "--start-local", "prog", "--", "x"},
	};

	for (unsigned i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		assert_string_equal(run_program(commands[i]), i == 1 ? "./prog" : "prog");
}

TEST(a_rocade_run_without_a_program_is_the_program)
{
	static char *const commands[][4] = {
		{"rocade-run"},
		{"rocade-run", "--"},
		{"rocade-run", "--library"},
		{"rocade-run", "--mount"},
	};

	for (unsigned i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		assert_string_equal(run_program(commands[i]), "rocade-run");
}
