/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How often the progress thread of a client with pairs looks whether the application still polls. No
 * other process sees for certain when it stops. Each look takes the core from the application if they
 * share one, so the thread looks less and less often.
 */
#ifndef ROCADE_SHM_WATCH_H
#define ROCADE_SHM_WATCH_H

#include "base/common.h"

#define WATCH_FIRST_NS (100 * NS_PER_US)
#define WATCH_LAST_NS (4 * NS_PER_MS)
/* The last while acknowledgements wait for answers or for more packets: the thread sends one if the
 * application stops. */
#define WATCH_ACKS_NS (500 * NS_PER_US)

/* ns: of the last sleep. Returns for how long to sleep before the next look. */
static inline uint64_t
watch_next(uint64_t ns, bool polled, bool acks_wait)
{
	if (!polled)
		return WATCH_FIRST_NS / 2;
	return RTE_MIN(2 * ns, acks_wait ? WATCH_ACKS_NS : WATCH_LAST_NS);
}

#endif
