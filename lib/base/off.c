/* SPDX-License-Identifier: BSD-3-Clause */
/* Control path. */
#include "base/off.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>

static const char *const names[OFF_COUNT] = {
#define OFF(which, name) [OFF_##which] = name,
#include "base/off.def"
#undef OFF
};

static const char valid[] =
#define OFF(which, name) " " name
#include "base/off.def"
#undef OFF
	;

/* Moves *at behind the next entry of the list, and returns the entry and its length. NULL: there is none. */
static const char *
entry_next(const char **at, size_t *len)
{
	const char *entry = *at;

	if (entry == NULL)
		return NULL;
	*len = strcspn(entry, ",");
	*at = entry[*len] != '\0' ? entry + *len + 1 : NULL;
	return entry;
}

static bool
entry_names(const char *entry, size_t len, enum off which)
{
	return strlen(names[which]) == len && memcmp(entry, names[which], len) == 0;
}

bool
is_off(enum off which)
{
	const char *at = getenv(OFF_ENV), *entry;
	size_t len;

	while ((entry = entry_next(&at, &len)) != NULL) {
		if (entry_names(entry, len, which))
			return true;
	}
	return false;
}

int
off_check(char *why, size_t size)
{
	const char *at = getenv(OFF_ENV), *entry;
	size_t len;

	if (at != NULL && at[0] == '\0')
		return 0;
	while ((entry = entry_next(&at, &len)) != NULL) {
		unsigned which = 0;

		while (which < OFF_COUNT && !entry_names(entry, len, which))
			which++;
		if (which == OFF_COUNT) {
			snprintf(why, size,
				OFF_ENV ": invalid entry '%.*s': expected names of this "
					"list, with commas between them:%s",
				(int)RTE_MIN(len, 64u), entry, valid);
			return -EINVAL;
		}
	}
	return 0;
}
