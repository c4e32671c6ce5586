/* SPDX-License-Identifier: BSD-3-Clause */
/* Control path. */
#include <sched.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/common.h"
#include "base/short_slice.h"

#define SLICE_NS (100 * NS_PER_US) /* the least that Linux takes */

/* struct sched_attr of <linux/sched/types.h>, which does not go with the <sched.h> of glibc 2.41. */
struct slice_attr {
	uint32_t size;
	uint32_t policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime; /* of SCHED_OTHER and SCHED_BATCH: the slice */
	uint64_t deadline;
	uint64_t period;
};

void
short_slice_ask(void)
{
	struct slice_attr attr = {.size = 0};

	if (syscall(SYS_sched_getattr, 0, &attr, sizeof(attr), 0) != 0 ||
		(attr.policy != SCHED_OTHER && attr.policy != SCHED_BATCH))
		return;
	attr.runtime = SLICE_NS;
	/* Refused: it is as before. */
	(void)syscall(SYS_sched_setattr, 0, &attr, 0);
}
