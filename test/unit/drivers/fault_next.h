/* SPDX-License-Identifier: BSD-3-Clause */
/* A library in place of librocade-verbs.so, behind librocade-faults.so: it opens its own device, and forwards calls
 * on another one. */
#ifndef ROCADE_TEST_FAULT_NEXT_H
#define ROCADE_TEST_FAULT_NEXT_H

#include <infiniband/verbs.h>

/* A device and its only context. */
struct next_device {
	struct ibv_device device;
	struct verbs_context context;
	struct ibv_pd pd;
};

/* The context gets this function. mark: of the device. */
void next_device_fill(struct next_device *d,
	int (*poll_cq)(struct ibv_cq *, int, struct ibv_wc *),
	struct ibv_context *(*mark)(struct ibv_device *device, int cmd_fd));
/* The device of this library. */
struct next_device *next_device_own(void);

#endif
