/* SPDX-License-Identifier: BSD-3-Clause */
/* fault_calls: how a call that fails ends the program, and the calls of librdmacm. */
#ifndef E2E_FAULT_CALLS_H
#define E2E_FAULT_CALLS_H

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* err: errno, or 0. */
static inline void
check(const char *call, int err)
{
	if (err == 0)
		return;
	printf("%s: %s\n", call, strerrorname_np(err));
	exit(3);
}

static inline void
check_pointer(const char *call, const void *pointer)
{
	check(call, pointer == NULL ? errno : 0);
}

static inline void
check_minus(const char *call, int rc)
{
	check(call, rc != 0 ? errno : 0);
}

/* For what no rule concerns. */
static inline void
check_other(const char *what, bool good)
{
	if (good)
		return;
	printf("%s: %s\n", what, strerror(errno));
	exit(4);
}

/* fault_cm.c: the modes cm and elsewhere. */
void cm_run(const char *device_address);
void elsewhere_run(void);

#endif
