/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_alloc.h"
#include "server/subuids.h"

#define LINE_MAX_BYTES 512
#define UID_MAX_VALUE (UINT32_MAX - 1) /* the last one means "no uid" */

/* Returns whether the text is a number from 1 to max. */
static bool
uid_read(const char *text, uint64_t max, uint32_t *out)
{
	char *end;
	unsigned long long number = strtoull(text, &end, 10);

	*out = (uint32_t)number;
	return text[0] >= '0' && text[0] <= '9' && *end == '\0' && number != 0 &&
	       number <= max;
}

/* Returns the uid of a name or number, or `unknown`. */
static uint32_t
owner_find(const char *text, uint32_t unknown)
{
	const struct passwd *entry = getpwnam(text);
	uint32_t number;

	if (entry != NULL)
		return entry->pw_uid;
	return uid_read(text, UID_MAX_VALUE, &number) ? number : unknown;
}

/* A line is "USER:FIRST:COUNT". Returns whether it is a range. */
static bool
range_read(char *line, struct subuid_range *range)
{
	char *first = strchr(line, ':'),
	     *count = first != NULL ? strchr(first + 1, ':') : NULL;
	uint32_t from, n;

	if (count == NULL)
		return false;
	*first++ = *count++ = '\0';
	count[strcspn(count, "\n")] = '\0';
	if (!uid_read(first, UID_MAX_VALUE, &from) ||
		!uid_read(count, UID_MAX_VALUE - from + 1, &n))
		return false;
	*range = (struct subuid_range){
		.first = from, .count = n, .owner = owner_find(line, from)};
	return true;
}

int
subuids_read(struct subuids *s, const char *path)
{
	FILE *file = fopen(path, "re");
	char line[LINE_MAX_BYTES];
	uint32_t lines = 0;

	*s = (struct subuids){.count = 0};
	if (file == NULL)
		return 0;
	while (fgets(line, sizeof(line), file) != NULL)
		lines++;
	rewind(file);
	if (lines != 0)
		s->ranges =
			alloc_get(&alloc_plain, "subuids", lines * sizeof(*s->ranges));
	if (lines != 0 && s->ranges == NULL) {
		fclose(file);
		return -ENOMEM;
	}
	s->room = lines;
	while (s->count < s->room && fgets(line, sizeof(line), file) != NULL)
		s->count += range_read(line, &s->ranges[s->count]);
	fclose(file);
	return 0;
}

void
subuids_free(struct subuids *s)
{
	if (s->ranges != NULL)
		alloc_put(&alloc_plain, s->ranges, s->room * sizeof(*s->ranges));
	*s = (struct subuids){.count = 0};
}

uint32_t
subuids_payer(const struct subuids *s, uint32_t uid)
{
	for (uint32_t i = 0; i < s->count; i++)
		if (uid - s->ranges[i].first < s->ranges[i].count)
			return s->ranges[i].owner;
	return uid;
}
