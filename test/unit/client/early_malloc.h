/* SPDX-License-Identifier: BSD-3-Clause */
/* A library with a malloc() that asks dlsym() for the next one, as some allocators do. */
#ifndef ROCADE_TEST_EARLY_MALLOC_H
#define ROCADE_TEST_EARLY_MALLOC_H

unsigned early_malloc_calls(void);

#endif
