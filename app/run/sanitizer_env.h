/* SPDX-License-Identifier: BSD-3-Clause */
/* Environment variables for programs that were built with a sanitizer. */
#ifndef ROCADE_RUN_SANITIZER_ENV_H
#define ROCADE_RUN_SANITIZER_ENV_H

/* Adds to the user's options. suppressions: the path of a file for ThreadSanitizer. */
void sanitizer_env_set(const char *suppressions);

#endif
