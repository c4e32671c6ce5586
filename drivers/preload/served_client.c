/* SPDX-License-Identifier: BSD-3-Clause */
/* served.h in librocade-verbs: the device of the daemon. */
#include <string.h>

#include "base/base_log.h"
#include "base/in_vain.h"
#include "base/off.h"
#include "base/own_thread.h"
#include "preload/netlink.h"
#include "preload/preload_channel.h"
#include "preload/served.h"
#include "verbs/device_source.h"
#include "verbs/forward.h"

/* Returns the name of the daemon's device, or NULL. */
static const char *
client_device(void)
{
	const char *own = device_source_name();

	/* A program may read the paths of a device before it lists devices, and a shell lists
	 * none. */
	if (own == NULL) {
		device_source_refresh();
		own = device_source_name();
	}
	return own;
}

static bool
client_has_device(const char *name)
{
	const char *own = forward_depth > 0 || is_off(OFF_SYSFS) ? NULL : client_device();

	return own != NULL && (name == NULL || strcmp(name, own) == 0);
}

static bool
client_has_channel(void)
{
	return forward_depth == 0 && client_device() != NULL;
}

static bool
client_has_any(void)
{
	return client_device() != NULL;
}

static bool
client_facts(unsigned index, bool counters, struct device_facts *out)
{
	return index == 0 && device_source_facts(counters, out);
}

static void
client_warn(const char *line)
{
	log_warn("%s", line);
}

static void
client_absent(const char *path)
{
	in_vain_note(IN_VAIN_PATH, path);
}

static const struct ucm_backend *
client_cm_backend(void)
{
	return ucm_backend_get();
}

static bool
client_is_check(const char *path)
{
	(void)path;
	return false;
}

static __attribute__((constructor)) void
disconnect_register(void)
{
	ucm_disconnect_set(channels_of_daemon_disconnect);
}

const struct served served_by = {
	.device = client_has_device,
	.channel = client_has_channel,
	.facts = client_facts,
	.links = device_source_links,
	.warn = client_warn,
	.explains = in_vain_wanted,
	.main_only = own_threads_and_main_only,
	.absent = client_absent,
	.netlink = client_has_any,
	.netlink_write = netlink_write,
	.netlink_dup = netlink_dup,
	.backend = client_cm_backend,
	.check = client_is_check,
};
