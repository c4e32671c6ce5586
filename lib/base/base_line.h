/* SPDX-License-Identifier: BSD-3-Clause */
/* Text appended piece by piece to a buffer of the caller. */
#ifndef ROCADE_BASE_LINE_H
#define ROCADE_BASE_LINE_H

#include "base/common.h"

struct line {
	char *buf;
	size_t size;
	size_t len; /* of the whole text without the NUL, even if the buffer is full */
};

/* Appends what printf() would print, as far as it fits. */
void line_add(struct line *line, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

#endif
