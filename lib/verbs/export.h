/* SPDX-License-Identifier: BSD-3-Clause */
/* Public functions, and the text of rocade_error(): why the last rocade_* call of this thread
 * failed. */
#ifndef ROCADE_VERBS_EXPORT_H
#define ROCADE_VERBS_EXPORT_H

#include <string.h>

#include <rocade/rocade.h>

/* All others are hidden. librocade.map lists the version node of each name. */
#define EXPORT __attribute__((visibility("default")))

/* Sets the text and returns err (a positive errno value), for `return
 * rocade_fail(...)`. */
int rocade_fail(int err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Returns true, and sets the text, if the program has given no pointer for this argument. */
bool arg_missing(const char *name, const void *pointer);

/* Gives the program a structure that the library has filled, of len bytes, in the size bytes that the
 * program has for it: see rocade.h. */
static inline void
out_give(void *to, size_t size, const void *from, size_t len)
{
	size_t both = size < len ? size : len;

	memcpy(to, from, both);
	memset((char *)to + both, 0, size - both);
}

/* The number of rows that can be filled in: none without an array. */
static inline unsigned
rows_of(const void *rows, unsigned n)
{
	return rows != NULL ? n : 0;
}

/* As out_give(), for row i of an array of the program, whose rows have row_size bytes each. */
static inline void
stat_give(struct rocade_stat *rows, unsigned i, size_t row_size,
	const struct rocade_stat *row)
{
	out_give((char *)rows + i * row_size, row_size, row, sizeof(*row));
}

#endif
