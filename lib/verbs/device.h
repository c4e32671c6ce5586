/* SPDX-License-Identifier: BSD-3-Clause */
/* The list of Rocade's devices, and the references that keep an entry in memory. */
#ifndef ROCADE_VERBS_DEVICE_H
#define ROCADE_VERBS_DEVICE_H

#include "verbs/verbs_port.h"

struct verbs_device;

unsigned device_count(void);

/* Returns up to max devices, each with a reference that device_put() releases. */
unsigned device_get_all(struct ibv_device **list, unsigned max);
void device_put(struct ibv_device *device);

/* Counts a context of the device's port, which then cannot be closed. Returns NULL if the
 * port is closed. */
struct rocade_port *device_context_add(struct ibv_device *device);
void device_context_remove(struct rocade_port *port);

/* A device that is listed before its port is open: the first context opens the port, and
 * closing the last one closes it. */
struct device_source {
	/* Finds out whether the device exists, and reports it with device_source_offer(). */
	void (*refresh)(void);
	/* Returns 0 or an errno value. port_wrap() makes the port. */
	int (*open)(struct rocade_port **port);
	/* Destroys the device (dev_destroy()) and all that belongs to it. The caller
	 * frees the port. */
	void (*close)(struct dev *dev);
};

/* Control path, before the first device list is requested. */
void device_source_set(const struct device_source *source);
void device_source_refresh(void);
/* Lists the device of the source. name: NULL if it does not exist now. The structure of
 * the device is never freed. */
void device_source_offer(const char *name, uint64_t guid);
/* Makes a port without an entry in the device list; NULL: no memory. */
struct rocade_port *port_wrap(struct dev *dev);

/* device_source.c, for verbs_port.c: the number of devices of the source, 0 or 1. */
unsigned device_source_count(void);
/* Returns the name of that device; NULL: there is none. Takes no lock; any thread. */
const char *device_source_name(void);
unsigned device_source_get(struct ibv_device **list);
struct rocade_port *device_source_context_add(struct verbs_device *device);
void device_source_context_remove(struct rocade_port *port);
/* Makes an entry that is in no list. */
struct verbs_device *device_create_unlisted(const char *name);

/* Called around fork(), so that no thread is changing the list meanwhile. In the child,
 * the device of the source gets a new port at its next context. Open contexts keep the
 * parent's port, which does not work in the child. */
void devices_fork_prepare(void);
void devices_fork_done(bool child);

uint64_t device_guid(struct ibv_device *device); /* host order */

#endif
