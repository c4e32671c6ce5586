/* SPDX-License-Identifier: BSD-3-Clause */
/* Two ports of one process that are connected: queue i of one receives the frames sent by
 * queue i of the other. No EAL, no root, no hugepages. */
#ifndef ROCADE_LOOP_H
#define ROCADE_LOOP_H

#include "base/base_alloc.h"
#include "port/port.h"

/* Opens both ports and fills in a and b. queues: per side. max_frame: bytes. ring_size:
 * slots of each queue, a power of two; each queue has this many buffers and some bursts
 * more. The MAC addresses are 02:00 and a number that is unique in this process. Frames
 * sent to a closed side, or while the link of either side is down, are lost. Closing both
 * sides (port->ops->close) frees everything. Returns 0, -EINVAL or -ENOMEM. */
int loop_open(unsigned queues, uint32_t max_frame, uint32_t ring_size,
	const struct alloc *mem, struct port *a, struct port *b);

#endif
