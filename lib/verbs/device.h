/* SPDX-License-Identifier: BSD-3-Clause */
/* Our devices as a list, and the references that keep an entry of one in memory. */
#ifndef ROCADE_VERBS_DEVICE_H
#define ROCADE_VERBS_DEVICE_H

#include "verbs/port.h"

unsigned device_count(void);

/* Up to max devices, each with a reference that device_put() gives back. */
unsigned device_get_all(struct ibv_device **list, unsigned max);
void device_put(struct ibv_device *device);

/* Counts a context of the device's port, which then cannot be closed; NULL: it has been. */
struct rocade_port *device_hold(struct ibv_device *device);
void device_release(struct rocade_port *port);

uint64_t device_guid(struct ibv_device *device); /* host order */

#endif
