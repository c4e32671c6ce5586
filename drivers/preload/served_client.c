/* SPDX-License-Identifier: BSD-3-Clause */
/* served.h in librocade-verbs: the device of the daemon. */
#include <string.h>

#include "preload/served.h"
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

bool
served_check(const char *path)
{
	(void)path;
	return false;
}
