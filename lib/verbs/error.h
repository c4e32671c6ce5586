/* SPDX-License-Identifier: BSD-3-Clause */
/* The sentence behind rocade_error(): why the last rocade_* call of this thread failed. */
#ifndef ROCADE_VERBS_ERROR_H
#define ROCADE_VERBS_ERROR_H

/* Keeps the sentence and returns err (a positive errno value), for `return fail(...)`. */
int rocade_fail(int err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
