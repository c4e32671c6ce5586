/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "run_program.h"

/* Options of rocade-run without a value. Each other one has its value behind a = or in the next word. */
static const char *const flags[] = {
	"--start-local", "--mount", "--explain", "--no-advice", NULL};

static bool
is_flag(const char *word)
{
	unsigned i = 0;

	while (flags[i] != NULL && strcmp(flags[i], word) != 0)
		i++;
	return flags[i] != NULL || strchr(word, '=') != NULL;
}

const char *
run_program(char *const *command)
{
	const char *slash = strrchr(command[0], '/');
	unsigned i = 1;

	if (strcmp(slash != NULL ? slash + 1 : command[0], "rocade-run") != 0)
		return command[0];
	while (command[i] != NULL && command[i][0] == '-' &&
		strcmp(command[i], "--") != 0)
		i += is_flag(command[i]) || command[i + 1] == NULL ? 1 : 2;
	i += command[i] != NULL && strcmp(command[i], "--") == 0;
	return command[i] != NULL ? command[i] : command[0];
}
