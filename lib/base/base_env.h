/* SPDX-License-Identifier: BSD-3-Clause */
/* Switches in the environment of the process. */
#ifndef ROCADE_BASE_BASE_ENV_H
#define ROCADE_BASE_BASE_ENV_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* False if the variable is "0". */
static inline bool
env_enabled(const char *name)
{
	const char *value = getenv(name);

	return value == NULL || strcmp(value, "0") != 0;
}

#endif
