/* SPDX-License-Identifier: BSD-3-Clause */
/* Text to numbers: every function returns true, or false and leaves *out alone. */
#ifndef COMMON_NUMBER_H
#define COMMON_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

/* Decimal or 0x; within min..max. */
bool parse_number(const char *text, uint64_t min, uint64_t max, uint64_t *out);
/* Bytes: a number with k, m or g behind it (1024 each). */
bool parse_size(const char *text, uint64_t max, uint64_t *out);

#endif
