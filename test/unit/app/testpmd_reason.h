/* SPDX-License-Identifier: BSD-3-Clause */
/* For tests that stand for a host of rocade-testpmd: it says its first error to host->reason only. */
#include <stdarg.h>
#include <stdio.h>

#include "host.h"

static void
said(struct host *h, const char *format, va_list args)
{
	if (h->reason[0] == '\0')
		vsnprintf(h->reason, sizeof(h->reason), format, args);
}

void
host_set_error(struct host *h, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	said(h, format, args);
	va_end(args);
}

void
host_fail(struct host *h, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	said(h, format, args);
	va_end(args);
	h->state = HOST_FAILED;
}
