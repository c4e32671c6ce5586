/* SPDX-License-Identifier: BSD-3-Clause */
/* Some programs, for example NCCL and brpc, open libibverbs by dlopen() and look up verbs in its handle
 * by dlsym() or dlvsym(), which would bypass this library. They get this library's functions instead, also
 * those of librdmacm. */
#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>

#include "base/in_vain.h"
#include "preload/early.h"
#include "preload/fault_function.h"
#include "preload/real_dl.h"
#include "verbs/export.h"
#include "verbs/forward.h"

/* A library that this one has functions of, and a function of all its versions. */
struct replaced {
	const char *library, *function, *version;
};

/* Returns the library whose functions have such names, or NULL. */
static const struct replaced *
replaced_by_name(const char *name)
{
	static const struct replaced verbs = {
		"libibverbs.", "ibv_query_gid", "IBVERBS_1.1"};
	static const struct replaced cm = {"librdmacm.", "rdma_create_id", "RDMACM_1.0"};

	if (strncmp(name, "ibv_", 4) == 0 || strncmp(name, "_ibv_", 5) == 0)
		return &verbs;
	return strncmp(name, "rdma_", 5) == 0 ? &cm : NULL;
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

/* version NULL: the default one. */
static void *
lookup(void *handle, const char *name, const char *version)
{
	return version == NULL ? real_dlsym()(handle, name)
			       : real_dlvsym()(handle, name, version);
}

/* Returns our function in place of the real one, or NULL if this is not one of those libraries. */
static EARLY __attribute__((noinline)) void *
verb_replacement(void *handle, const char *name, const char *version)
{
	const struct replaced *replaced;
	const void *real, *symbol;
	void *ours, *faulty = NULL;

	/* Sanitizers and allocators look up functions behind themselves: neither the name nor
	 * forward_depth, a variable of the thread, is read then. */
	if (handle == RTLD_NEXT || handle == RTLD_DEFAULT)
		return NULL;
	replaced = replaced_by_name(name);
	if (replaced == NULL || forward_depth > 0)
		return NULL;
	symbol = real = lookup(handle, name, version);
	/* An older library lacks a function that this one has. A function of all versions shows whose
	 * handle it is. */
	if (symbol == NULL)
		symbol = lookup(handle, replaced->function, replaced->version);
	if (symbol == NULL || !forward_address_in(symbol, replaced->library) ||
		library_handle() == NULL)
		return NULL;
	ours = lookup(library_handle(), name, version);
	if (ours == NULL && real == NULL)
		in_vain_note(IN_VAIN_SYMBOL, name);
	/* A verb that this library lacks is one of an older ABI. */
	if (rocade_faults_function != NULL &&
		(ours != NULL || strncmp(name, "rdma_", 5) == 0))
		faulty = rocade_faults_function(name);
	return faulty != NULL ? faulty : ours;
}

/* The last call is a jump, so that the real function sees the caller's return address,
 * from which it determines what follows RTLD_NEXT. It also leaves the text of dlerror(). */
#ifdef __clang__
#define TAIL_CALL __attribute__((musttail))
#define TAIL_CALLER EARLY
#else
#define TAIL_CALL
#define TAIL_CALLER                                                                      \
	__attribute__((optimize("O2", "optimize-sibling-calls"),                         \
		no_profile_instrument_function, UNSANITIZED))
#endif

EXPORT TAIL_CALLER void *
dlsym(void *handle, const char *name)
{
	dlsym_fn *real = real_dlsym();
	void *ours = verb_replacement(handle, name, NULL);

	if (ours != NULL)
		return ours;
	TAIL_CALL return real(handle, name);
}

EXPORT TAIL_CALLER void *
dlvsym(void *handle, const char *name, const char *version)
{
	dlvsym_fn *real = real_dlvsym();
	void *ours = verb_replacement(handle, name, version);

	if (ours != NULL)
		return ours;
	TAIL_CALL return real(handle, name, version);
}
