/* SPDX-License-Identifier: BSD-3-Clause */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "verbs/forward.h"

static const struct {
	const char *name;
	const char *version;
} forward_rows[FORWARD_COUNT] = {
#define FORWARD(name, version) [FORWARD_##name] = {#name, version},
#include "verbs/symbols.def"
};

__thread unsigned forward_depth;

/* found so far; threads that race store the same value */
static void *symbols[FORWARD_COUNT];
static void *library;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void
library_open(void)
{
	library = dlopen("libibverbs.so.1", RTLD_LAZY | RTLD_LOCAL);
}

void *
forward_symbol(enum forward_id id)
{
	void *symbol = __atomic_load_n(&symbols[id], __ATOMIC_RELAXED);

	if (symbol != NULL)
		return symbol;
	pthread_once(&once, library_open);
	/* dlvsym() may call a function of Rocade, which must not take the call for its
	 * own */
	forward_depth++;
	if (library != NULL && forward_rows[id].version[0] != '\0')
		symbol = dlvsym(library, forward_rows[id].name, forward_rows[id].version);
	else if (library != NULL)
		symbol = dlsym(library, forward_rows[id].name);
	forward_depth--;
	if (symbol == NULL)
		errno = ENOSYS;
	else
		__atomic_store_n(&symbols[id], symbol, __ATOMIC_RELAXED);
	return symbol;
}

/* Returns whether the address is in a shared object whose file name begins so. */
static bool
is_in(const void *address, const char *const *prefixes, size_t n)
{
	const char *base;
	Dl_info info;

	if (dladdr(address, &info) == 0 || info.dli_fname == NULL)
		return false;
	base = strrchr(info.dli_fname, '/');
	base = base != NULL ? base + 1 : info.dli_fname;
	for (size_t i = 0; i < n; i++) {
		if (strncmp(base, prefixes[i], strlen(prefixes[i])) == 0)
			return true;
	}
	return false;
}

bool
forward_caller(const void *address)
{
	static const char *const prefixes[] = {"libibverbs.", "libmlx", "librte_"};

	return is_in(address, prefixes, sizeof(prefixes) / sizeof(prefixes[0]));
}

bool
forward_address_in(const void *address, const char *file)
{
	return is_in(address, &file, 1);
}
