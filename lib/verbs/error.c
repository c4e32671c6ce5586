/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "verbs/export.h"

static __thread char error_text[512];

int
rocade_fail(int err, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(error_text, sizeof(error_text), fmt, args);
	va_end(args);
	return err;
}

bool
arg_missing(const char *name, const void *pointer)
{
	if (pointer != NULL)
		return false;
	(void)rocade_fail(EINVAL, "%s is NULL: expected a valid pointer", name);
	return true;
}

EXPORT const char *
rocade_error(void)
{
	return error_text;
}

EXPORT const char *
rocade_version(void)
{
	return ROCADE_VERSION;
}
