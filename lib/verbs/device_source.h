/* SPDX-License-Identifier: BSD-3-Clause */
/* A device that is listed before its port is open. A driver sets the source and offers the
 * device; device.c lists it. */
#ifndef ROCADE_VERBS_DEVICE_SOURCE_H
#define ROCADE_VERBS_DEVICE_SOURCE_H

#include "verbs/verbs_port.h"

/* The first context opens the port, and closing the last one closes it. */
struct device_source {
	/* Finds out whether the device exists, and reports that with device_source_offer() or
	 * device_source_withdraw(). Returns 0, or -errno that says why there is none. */
	int (*refresh)(void);
	/* Finds out the state of the device; the counters only if they are wanted. Returns 0 or -errno. */
	int (*facts)(bool counters, struct device_facts *out);
	/* Returns 0 or an errno value, ENODEV if the device does not exist now. port_wrap() makes the
	 * port. */
	int (*open)(struct rocade_port **port);
	/* Destroys the device (dev_destroy()) and all that belongs to it. The caller
	 * frees the port. */
	void (*close)(struct dev *dev);
};

/* ---- For drivers ---- */

/* Control path, before the first device list is requested. */
void device_source_set(const struct device_source *source);
/* Lists the device of the source, in place of one with another index. index: that of
 * ibv_get_device_index(). The structure of a device is never freed. */
void device_source_offer(const char *name, uint64_t guid, int index);
/* The device does not exist now. */
void device_source_withdraw(void);
/* Returns the name of that device; NULL: there is none. Takes no lock; any thread. */
const char *device_source_name(void);
/* The links of these devices are not those of the daemon, and not those of a process that has called this before and forked
 * this one. */
void device_source_own_links(void);
/* Returns another number after each such call, and 0 before the first one. */
unsigned device_source_links(void);
/* Takes the links of the ports of these devices down or up, see port_link_cut(). */
void device_source_link_cut(bool cut);
/* Returns whether there is a device, and its state. Any thread. */
bool device_source_facts(bool counters, struct device_facts *out);

/* Called around fork(), so that no thread is changing the list meanwhile. In the child,
 * the device of the source gets a new port at its next context. Open contexts keep the
 * parent's port, which does not work in the child. */
void devices_fork_prepare(void);
void devices_fork_done(bool child);

/* ---- For device.c ---- */

/* Returns 0, or -errno that says why there is no device: -ENOENT or -ECONNREFUSED if nothing that
 * could have one is there. */
int device_source_refresh(void);
/* Returns the number of devices of the source: 0 or 1. */
unsigned device_source_count(void);
/* Stores the device, if there is one, and returns that number. */
unsigned device_source_get(struct ibv_device **list);
/* Returns 0 or an errno value. */
int device_source_context_add(struct verbs_device *device, struct rocade_port **port);
void device_source_context_remove(struct rocade_port *port);

#endif
