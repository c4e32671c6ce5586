/* SPDX-License-Identifier: BSD-3-Clause */
/* drivers/preload/sanitizers.c says the same to a run-time library that is a shared object. It is not
 * asked if the program has such a function of its own, or if the run-time library is a part of the
 * program, as clang's. */
#include "sanitizer_env.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "env_list.h"

#define SEPARATORS ":, \t\r\n"

/* Not as the end of another name, such as print_suppressions. */
static bool
names_suppressions(const char *options)
{
	const char *at = options;

	while (at != NULL && (at = strstr(at, "suppressions=")) != NULL) {
		if (at == options || strchr(SEPARATORS, at[-1]) != NULL)
			return true;
		at++;
	}
	return false;
}

void
sanitizer_env_set(const char *suppressions)
{
	const char *present = getenv("TSAN_OPTIONS");
	char entry[4096 + 32];

	env_prepend("ASAN_OPTIONS", "verify_asan_link_order=0", SEPARATORS);
	/* One file at most: the user's own one stays. */
	if (names_suppressions(present) || strchr(suppressions, '"') != NULL ||
		access(suppressions, R_OK) != 0)
		return;
	snprintf(entry, sizeof(entry), "suppressions=\"%s\"", suppressions);
	env_prepend("TSAN_OPTIONS", entry, SEPARATORS);
}
