/* SPDX-License-Identifier: BSD-3-Clause */
/* Contexts of Rocade's devices, for context.c. */
#ifndef ROCADE_VERBS_DEVICE_H
#define ROCADE_VERBS_DEVICE_H

#include "verbs/verbs_port.h"

/* Counts a context of the device's port, which then cannot be closed. Returns NULL if the
 * port is closed. */
struct rocade_port *device_context_add(struct ibv_device *device);
void device_context_remove(struct rocade_port *port);

#endif
