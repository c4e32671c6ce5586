/* SPDX-License-Identifier: BSD-3-Clause */
/* Our devices as a list, and the references that keep an entry of one in memory. */
#ifndef ROCADE_VERBS_DEVICE_H
#define ROCADE_VERBS_DEVICE_H

#include "verbs/port.h"

struct verbs_device;

unsigned device_count(void);

/* Up to max devices, each with a reference that device_put() gives back. */
unsigned device_get_all(struct ibv_device **list, unsigned max);
void device_put(struct ibv_device *device);

/* Counts a context of the device's port, which then cannot be closed; NULL: it has been. */
struct rocade_port *device_hold(struct ibv_device *device);
void device_release(struct rocade_port *port);

/*
 * A device that is in the list before its port is open: the port is opened with the first context
 * and closed with the last.
 */
struct device_source {
	/* Looks whether the device is there, and says so with device_offer(). */
	void (*refresh)(void);
	/* 0 or an errno value; the port is made by port_wrap(). */
	int (*open)(struct rocade_port **port);
	/* dev_destroy() and what goes with it; port is port_unwrap()ped by the caller. */
	void (*close)(struct dev *dev);
};

/* Control path, before the first list is asked for. */
void device_source_set(const struct device_source *source);
void device_source_refresh(void);
/* NULL: it is not there now. Keeps the structure that it has once had. */
void device_offer(const char *name, uint64_t guid);
/* A port without an entry of its own; NULL. */
struct rocade_port *port_wrap(struct dev *dev);

/* source.c, for port.c: the device of the source, 0 or 1 of them. */
unsigned device_source_count(void);
/* What it is called; NULL: there is none. No lock, from anywhere. */
const char *device_source_name(void);
unsigned device_source_get(struct ibv_device **list);
struct rocade_port *device_source_hold(struct verbs_device *device);
void device_source_release(struct rocade_port *port);
/* An entry that is in no list. */
struct verbs_device *device_new(const char *name);

/* Around fork(): no thread is half-way through the list. In the child a device with a source
 * begins anew; contexts that are open keep their dead port. */
void devices_fork_prepare(void);
void devices_fork_done(bool child);

uint64_t device_guid(struct ibv_device *device); /* host order */

#endif
