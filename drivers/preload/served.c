/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "preload/served.h"

#ifdef ROCADE_INSIDE
#include <dlfcn.h>

#include <rocade/rdmacm.h>

#include "verbs/export.h"
#include "verbs/rdmacm_inside.h"

bool
served_device(const char *name)
{
	return rocade_rdmacm_device(name);
}

const struct ucm_backend *
served_backend(void)
{
	return rocade_rdmacm_backend();
}

static __attribute__((constructor)) void
loaded_report(void)
{
	rocade_rdmacm_loaded();
}

/* Returns whether calls of this function end up in this library, or, if it is linked
 * statically, in this program. */
static bool
is_first(const char *name)
{
	const void *found = dlsym(RTLD_DEFAULT, name);
	Dl_info theirs, own;

	return found != NULL && dladdr(found, &theirs) != 0 &&
	       dladdr((const void *)is_first, &own) != 0 &&
	       theirs.dli_fbase == own.dli_fbase;
}

EXPORT int
rocade_rdmacm_check(void)
{
	return rocade_rdmacm_order(
		is_first("open") && is_first("write") && is_first("fstat"));
}
#else
#include "verbs/device_source.h"

bool
served_device(const char *name)
{
	const char *own = device_source_name();

	return own != NULL && (name == NULL || strcmp(name, own) == 0);
}

const struct ucm_backend *
served_backend(void)
{
	return ucm_backend_get();
}
#endif
