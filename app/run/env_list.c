/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "env_list.h"

/* Returns whether the list has this entry. */
static bool
list_has(const char *list, const char *entry, const char *separators)
{
	size_t len;

	for (; *list != '\0'; list += len) {
		list += strspn(list, separators);
		len = strcspn(list, separators);
		if (len == strlen(entry) && strncmp(list, entry, len) == 0)
			return true;
	}
	return false;
}

bool
env_has(const char *name, const char *entry, const char *separators)
{
	const char *present = getenv(name);

	return present != NULL && list_has(present, entry, separators);
}

void
env_prepend(const char *name, const char *entry, const char *separators)
{
	const char *present = getenv(name);
	char *list = NULL;

	if (present == NULL || present[0] == '\0')
		setenv(name, entry, 1);
	else if (!list_has(present, entry, separators) &&
		 asprintf(&list, "%s%c%s", entry, separators[0], present) > 0)
		setenv(name, list, 1);
	free(list);
}

void
env_remove(const char *name, const char *entry, const char *separators)
{
	const char *present = getenv(name);
	char *list, *end;
	size_t len;

	if (present == NULL || !list_has(present, entry, separators))
		return;
	list = end = strdup(present);
	for (const char *at = list; *at != '\0'; at += len) {
		at += strspn(at, separators);
		len = strcspn(at, separators);
		if (len == strlen(entry) && strncmp(at, entry, len) == 0)
			continue;
		if (end != list && len != 0)
			*end++ = separators[0];
		memmove(end, at, len);
		end += len;
	}
	*end = '\0';
	setenv(name, list, 1);
	free(list);
}
