/* SPDX-License-Identifier: BSD-3-Clause */
/* The text behind rocade_error(): why the last rocade_* call of this thread failed. */
#ifndef ROCADE_VERBS_ERROR_H
#define ROCADE_VERBS_ERROR_H

/* Sets the text and returns err (a positive errno value), for `return
 * rocade_fail(...)`. */
int rocade_fail(int err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
