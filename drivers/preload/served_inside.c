/* SPDX-License-Identifier: BSD-3-Clause */
/* served.h in librocade-rdmacm: the devices of the program that embeds Rocade. */
#include <dlfcn.h>
#include <fcntl.h>

#include <rocade/rdmacm.h>

#include "preload/served.h"
#include "verbs/export.h"
#include "verbs/rdmacm_inside.h"

static bool
inside_has_device(const char *name)
{
	return rocade_rdmacm_device(name);
}

static bool
inside_has_channel(void)
{
	return rocade_rdmacm_device(NULL);
}

static bool
inside_facts(unsigned index, bool counters, struct device_facts *out)
{
	(void)counters;
	return rocade_rdmacm_facts(index, out);
}

static const struct ucm_backend *
inside_cm_backend(void)
{
	return rocade_rdmacm_backend();
}

static __attribute__((constructor)) void
loaded_report(void)
{
	rocade_rdmacm_loaded();
}

/* No file has this name. The address of the text is what inside_is_check() looks for. */
static const char check_path[] = "/dev/infiniband/rocade-check";
static __thread bool reached;

static bool
inside_is_check(const char *path)
{
	if (path != check_path)
		return false;
	reached = true;
	return true;
}

/* Opens the path as librdmacm does: the first library that has the function may be another one
 * that calls the next, such as AddressSanitizer's. */
EXPORT int
rocade_rdmacm_check(void)
{
	typedef int open_fn(const char *path, int flags, ...);
	open_fn *first = (open_fn *)dlsym(RTLD_DEFAULT, "open");

	reached = false;
	if (first != NULL)
		(void)first(check_path, O_RDONLY);
	return rocade_rdmacm_order(reached);
}

const struct served served_by = {
	.device = inside_has_device,
	.channel = inside_has_channel,
	.facts = inside_facts,
	.warn = rocade_rdmacm_warn,
	.several = true,
	.backend = inside_cm_backend,
	.check = inside_is_check,
};
