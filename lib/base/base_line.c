/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stdio.h>

#include "base/base_line.h"

void
line_add(struct line *line, const char *fmt, ...)
{
	size_t used = line->len < line->size ? line->len : line->size;
	va_list args;
	int n;

	va_start(args, fmt);
	n = vsnprintf(line->buf + used, line->size - used, fmt, args);
	va_end(args);
	if (n > 0)
		line->len += (size_t)n;
}
