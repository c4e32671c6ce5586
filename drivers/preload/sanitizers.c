/* SPDX-License-Identifier: BSD-3-Clause */
/* What the run-time library of a sanitizer asks for options, if it is a shared object (gcc's libasan and
 * libtsan) and the program has no such function. Their documentation names these functions. It calls
 * them before anything is initialised. */
#include "preload/early.h"
#include "verbs/export.h"

#include "preload/tsan_supp.h"

const char *__asan_default_options(void);
const char *__tsan_default_suppressions(void);

/* AddressSanitizer ends a program in which another library is before it, because that could hide
 * allocations from it. This library is, and replaces no allocator. */
EXPORT EARLY const char *
__asan_default_options(void)
{
	return "verify_asan_link_order=0";
}

/* ThreadSanitizer sees the memcpy() calls of this library, which is not instrumented, but not its
 * locks, and would report races between them. */
EXPORT EARLY const char *
__tsan_default_suppressions(void)
{
	return TSAN_SUPPRESSIONS;
}
