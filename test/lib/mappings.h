/* SPDX-License-Identifier: BSD-3-Clause */
/* A process that has as many mappings as the kernel allows it. */
#ifndef ROCADE_TEST_MAPPINGS_H
#define ROCADE_TEST_MAPPINGS_H

#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>

#include "case.h"

#define MAPPING_PAGE 4096

/* The most mappings of a process (vm.max_map_count). */
static inline size_t
mappings_limit(void)
{
	FILE *file = fopen("/proc/sys/vm/max_map_count", "re");
	size_t limit = 0;

	assert_non_null(file);
	assert_int_equal(fscanf(file, "%zu", &limit), 1);
	fclose(file);
	return limit;
}

static void *last_mapping;

static inline void
mappings_give(uint8_t *pages, size_t len)
{
	assert_int_equal(munmap(pages, len), 0);
	while (last_mapping != NULL) {
		void *before = *(void **)last_mapping;

		assert_int_equal(munmap(last_mapping, MAPPING_PAGE), 0);
		last_mapping = before;
	}
}

/* Takes all mappings that are left: pages of which no two neighbours have the same rights. */
static inline uint8_t *
mappings_exhaust(size_t len)
{
	uint8_t *pages = mmap(
		NULL, len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	size_t at = MAPPING_PAGE;

	assert_ptr_not_equal(pages, MAP_FAILED);
	while (at + 2 * MAPPING_PAGE < len &&
		mprotect(pages + at, MAPPING_PAGE, PROT_READ) == 0)
		at += 2 * MAPPING_PAGE;
	assert_int_equal(errno, ENOMEM);
	/* mmap(2) is allowed a few more than mprotect(2). They are kept in a list, each in the one before. */
	last_mapping = NULL;
	for (void *at_end; (at_end = mmap(NULL, MAPPING_PAGE, PROT_READ | PROT_WRITE,
				    MAP_SHARED | MAP_ANONYMOUS, -1, 0)) != MAP_FAILED;) {
		*(void **)at_end = last_mapping;
		last_mapping = at_end;
	}
	return pages;
}

#endif
