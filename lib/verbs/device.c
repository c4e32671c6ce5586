/* SPDX-License-Identifier: BSD-3-Clause */
/* The device list (ibv_get_device_list(3)): Rocade's devices, then the real library's unless
 * ROCADE_OFF has host-devices. */
#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_log.h"
#include "base/off.h"
#include "verbs/device_source.h"
#include "verbs/forward.h"
#include "verbs/objects.h"

static unsigned
device_count(void)
{
	return device_source_count() + port_count();
}

/* Returns up to max devices, each with a reference that device_put() releases. */
static unsigned
device_get_all(struct ibv_device **list, unsigned max)
{
	unsigned n = max != 0 ? device_source_get(list) : 0;

	return n + port_devices_get(list + n, max - n);
}

static void
device_put(struct ibv_device *device)
{
	/* The device of a source is never freed. */
	if (to_device(device)->source == NULL)
		port_device_put(to_device(device));
}

int
device_context_add(struct ibv_device *device, struct rocade_port **port)
{
	struct verbs_device *of = to_device(device);

	if (of->source != NULL)
		return device_source_context_add(of, port);
	*port = port_context_add(of);
	return *port != NULL ? 0 : ENODEV;
}

void
device_context_remove(struct rocade_port *port)
{
	if (port->source != NULL)
		device_source_context_remove(port);
	else
		port_context_remove(port);
}

/* Enlarges the real library's list and puts Rocade's devices first. The list is plain
 * malloc memory, because some programs release it with free(). */
static struct ibv_device **
list_merge(struct ibv_device **real, unsigned real_count, int *num_devices)
{
	unsigned room = device_count();
	struct ibv_device **list = realloc(
		real, (room + (size_t)real_count + 1) * sizeof(struct ibv_device *));
	unsigned n;

	if (list == NULL) {
		if (real != NULL)
			forward_void(ibv_free_device_list, real);
		return null_errno(ENOMEM);
	}
	memmove(list + room, list, real_count * sizeof(struct ibv_device *));
	n = device_get_all(list, room);
	/* A port may have been closed since device_count(). */
	memmove(list + n, list + room, real_count * sizeof(struct ibv_device *));
	list[n + real_count] = NULL;
	if (num_devices != NULL)
		*num_devices = (int)(n + real_count);
	return list;
}

/* The calls of librdmacm are about to fail, for a reason that they do not tell. */
static void
rdmacm_missing_warn(void)
{
	static bool warned;

	if (!port_rdmacm_missing() ||
		__atomic_exchange_n(&warned, true, __ATOMIC_RELAXED))
		return;
	log_warn(
		"librdmacm cannot use the ports of this program: link -lrocade-rdmacm, and call "
		"rocade_rdmacm_check()");
}

EXPORT struct ibv_device **
ibv_get_device_list(int *num_devices)
{
	struct ibv_device **real = NULL;
	bool host_devices = !is_off(OFF_HOST_DEVICES);
	int real_count = 0, err, rc;

	if (forward_depth > 0 || forward_caller(__builtin_return_address(0)))
		return forward(NULL, ibv_get_device_list, num_devices);
	if (forward_address_in(__builtin_return_address(0), "librdmacm."))
		rdmacm_missing_warn();
	if (host_devices)
		real = forward(NULL, ibv_get_device_list, &real_count);
	err = errno;
	rc = device_source_refresh();
	if (device_count() == 0 && real == NULL && host_devices) {
		if (num_devices != NULL)
			*num_devices = 0;
		/* Of the daemon that is there, or of the real library. */
		return null_errno(
			rc == 0 || rc == -ENOENT || rc == -ECONNREFUSED ? err : -rc);
	}
	return list_merge(real, real != NULL ? (unsigned)real_count : 0, num_devices);
}

EXPORT void
ibv_free_device_list(struct ibv_device **list)
{
	size_t kept = 0;

	if (list == NULL)
		return;
	for (size_t i = 0; list[i] != NULL; i++) {
		if (device_is_ours(list[i]))
			device_put(list[i]);
		else
			list[kept++] = list[i];
	}
	list[kept] = NULL;
	if (forward_symbol(FORWARD_ibv_free_device_list) != NULL)
		forward_void(ibv_free_device_list, list);
	else
		free(list);
}

EXPORT const char *
ibv_get_device_name(struct ibv_device *device)
{
	if (!device_is_ours(device))
		return forward(NULL, ibv_get_device_name, device);
	return device->name;
}

EXPORT int
ibv_get_device_index(struct ibv_device *device)
{
	if (!device_is_ours(device))
		return forward(-1, ibv_get_device_index, device);
	return port_device_index(to_device(device));
}

EXPORT __be64
ibv_get_device_guid(struct ibv_device *device)
{
	if (!device_is_ours(device))
		return forward(0, ibv_get_device_guid, device);
	return htobe64(port_device_guid(to_device(device)));
}
