/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers that a page of docs/ names. */
#ifndef ROCADE_TEST_PAGE_H
#define ROCADE_TEST_PAGE_H

#include <stdio.h>
#include <string.h>

#include "case.h"

/* The page says "NUMBER WORDS". */
static inline void
page_names(const char *path, size_t number, const char *words)
{
	static char page[200000];
	FILE *file = fopen(path, "r");
	char text[128];

	assert_non_null(file);
	assert_in_range(fread(page, 1, sizeof(page) - 1, file), 1, sizeof(page) - 2);
	fclose(file);
	snprintf(text, sizeof(text), "%zu %s", number, words);
	if (strstr(page, text) == NULL)
		fail_msg("%s does not say \"%s\"", path, text);
}

#endif
