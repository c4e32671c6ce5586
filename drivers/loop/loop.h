/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two ports joined in one process: what one sends the other receives, complete frames, queue i
 * to queue i. No EAL, no root, no hugepages.
 */
#ifndef ROCADE_LOOP_H
#define ROCADE_LOOP_H

#include "base/alloc.h"
#include "port/port.h"

/* queues per side, frames of up to max_frame bytes, ring slots per queue (a power of two) and
 * as many buffers and some bursts more. Fills both ports (MACs 02:00:00:00:00:0[12] + serial).
 * What is sent to a closed end, or while either has its link down, is lost; closing both (port->ops->close) frees everything.
 * -EINVAL, -ENOMEM. */
int loop_open(unsigned queues, uint32_t max_frame, uint32_t ring_size, const struct alloc *mem,
	struct port *a, struct port *b);

#endif
