/* SPDX-License-Identifier: BSD-3-Clause */
/* Which objects are Rocade's, and which the real libibverbs'. An object is Rocade's if the
 * operations of its context are. */
#ifndef ROCADE_VERBS_OURS_H
#define ROCADE_VERBS_OURS_H

#include <stdbool.h>

#include "verbs/context_ops.h"

static inline bool
context_is_ours(const struct ibv_context *context)
{
	return context->ops.poll_cq == verbs_poll_cq;
}

/* Marks a device as Rocade's by a function pointer that is never called. */
static inline void
device_mark(struct ibv_device *device)
{
	device->_ops._dummy1 = (struct ibv_context * (*)(struct ibv_device *, int))(
		void (*)(void))verbs_poll_cq;
}

static inline bool
device_is_ours(const struct ibv_device *device)
{
	return (void (*)(void))device->_ops._dummy1 == (void (*)(void))verbs_poll_cq;
}

#endif
