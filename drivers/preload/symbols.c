/* SPDX-License-Identifier: BSD-3-Clause */
/* Some programs, for example NCCL, look up verbs in a handle of libibverbs by dlvsym(),
 * which would bypass this library. They get this library's functions instead. */
#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>

#include "verbs/export.h"
#include "verbs/forward.h"

typedef void *dlvsym_fn(void *handle, const char *name, const char *version);

static bool
is_verb(const char *name)
{
	return strncmp(name, "ibv_", 4) == 0 || strncmp(name, "_ibv_", 5) == 0;
}

static bool
is_from_libibverbs(const void *symbol)
{
	const char *base;
	Dl_info info;

	if (dladdr(symbol, &info) == 0 || info.dli_fname == NULL)
		return false;
	base = strrchr(info.dli_fname, '/');
	base = base != NULL ? base + 1 : info.dli_fname;
	return strncmp(base, "libibverbs.", 11) == 0;
}

/* Returns a handle of this library, which is loaded and stays loaded. */
static void *
library_handle(void)
{
	static void *handle;
	void *found = __atomic_load_n(&handle, __ATOMIC_RELAXED);
	Dl_info info;

	if (found == NULL && dladdr((const void *)library_handle, &info) != 0) {
		found = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
		__atomic_store_n(&handle, found, __ATOMIC_RELAXED);
	}
	return found;
}

/* AddressSanitizer calls dlvsym() before it is initialised. */
#define UNSANITIZED no_sanitize("address", "undefined")

/* Returns our function in place of the real one, or NULL if this is not a verb of
 * libibverbs. */
static __attribute__((noinline, UNSANITIZED)) void *
verb_replacement(dlvsym_fn *real, void *handle, const char *name, const char *version)
{
	const void *symbol;

	if (handle == RTLD_NEXT || handle == RTLD_DEFAULT || !is_verb(name) ||
		forward_depth > 0)
		return NULL;
	symbol = real(handle, name, version);
	/* An older libibverbs lacks a verb that this library has. Whether the handle is
	 * libibverbs's, a verb of all versions shows. */
	if (symbol == NULL)
		symbol = real(handle, "ibv_query_gid", "IBVERBS_1.1");
	if (symbol == NULL || !is_from_libibverbs(symbol) || library_handle() == NULL)
		return NULL;
	return real(library_handle(), name, version);
}

/* The last call is a jump, so that the real function sees the caller's return address,
 * from which it determines what follows RTLD_NEXT. */
#ifdef __clang__
#define TAIL_CALL __attribute__((musttail))
#define TAIL_CALLER
#else
#define TAIL_CALL
#define TAIL_CALLER __attribute__((optimize("O2"), UNSANITIZED))
#endif

EXPORT TAIL_CALLER void *
dlvsym(void *handle, const char *name, const char *version)
{
	static dlvsym_fn *next;
	dlvsym_fn *real = __atomic_load_n(&next, __ATOMIC_RELAXED);
	void *ours;

	if (real == NULL) {
		real = (dlvsym_fn *)dlsym(RTLD_NEXT, "dlvsym");
		__atomic_store_n(&next, real, __ATOMIC_RELAXED);
	}
	ours = verb_replacement(real, handle, name, version);
	if (ours != NULL)
		return ours;
	TAIL_CALL return real(handle, name, version);
}
