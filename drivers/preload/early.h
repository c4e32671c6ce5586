/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions that the run-time libraries of sanitizers call before they are initialised. */
#ifndef ROCADE_PRELOAD_EARLY_H
#define ROCADE_PRELOAD_EARLY_H

#define UNSANITIZED_ALL no_sanitize("address", "undefined", "thread")
#ifdef __clang__
/* Otherwise the calls at the begin and end of each function stay. */
#define UNSANITIZED UNSANITIZED_ALL, disable_sanitizer_instrumentation
#else
#define UNSANITIZED UNSANITIZED_ALL
#endif

/* Such a function is not instrumented. It calls no function that a sanitizer replaces, unless its
 * arguments are none of a sanitizer's calls. */
#define EARLY __attribute__((UNSANITIZED))

#endif
