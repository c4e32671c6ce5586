/* SPDX-License-Identifier: BSD-3-Clause */
/* The function of librocade-faults that librocade-verbs calls. */
#ifndef ROCADE_PRELOAD_FAULT_FUNCTION_H
#define ROCADE_PRELOAD_FAULT_FUNCTION_H

#include "verbs/export.h"

/* Returns the function of this name that refuses calls, or NULL. NULL itself without rocade-run --faults. */
EXPORT void *rocade_faults_function(const char *name) __attribute__((weak));

#endif
