/* SPDX-License-Identifier: BSD-3-Clause */
/* Text to numbers. Each function returns true, or returns false and leaves *out
 * unchanged. */
#ifndef COMMON_NUMBER_H
#define COMMON_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

/* Parses a decimal or 0x hexadecimal number from min to max. */
bool parse_number(const char *text, uint64_t min, uint64_t max, uint64_t *out);
/* Parses a size in bytes with an optional suffix k, m or g (powers of 1024). */
bool parse_size(const char *text, uint64_t max, uint64_t *out);
/* Finds a word among words, which end with NULL. Stores its index. */
bool parse_word(const char *text, const char *const *words, uint64_t *out);

#endif
