/* SPDX-License-Identifier: BSD-3-Clause */
/* A line of text that grows in a buffer of the caller. Its length goes on counting when
 * the buffer is full. */
#ifndef ROCADE_BASE_LINE_H
#define ROCADE_BASE_LINE_H

#include "base/common.h"

struct line {
	char *buf;
	size_t size;
	size_t len; /* of the whole text, without the NUL */
};

void
line_add(struct line *line, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
