/* SPDX-License-Identifier: BSD-3-Clause */
/* The system's devices: nothing to do. */
#include "host.h"

const char *
host_open(char **options, unsigned count, bool loop)
{
	(void)options;
	if (loop)
		return "there is no loop here";
	return count != 0 ? "the system's devices take no options" : NULL;
}

const char *
host_device(unsigned which)
{
	(void)which;
	return NULL; /* the first, unless the command line names another */
}

void
host_stop(void)
{
}

void
host_report(void)
{
}

void
host_close(void)
{
}
