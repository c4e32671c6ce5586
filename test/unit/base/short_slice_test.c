/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernel's view of a thread that has asked for a short slice. */
#include <sched.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/short_slice.h"
#include "case.h"

/* The first members of the kernel's struct sched_attr. */
struct attr {
	uint32_t size;
	uint32_t policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime;
	uint64_t rest[2];
};

static struct attr
attr_get(void)
{
	struct attr attr = {.size = 0};

	assert_int_equal(syscall(SYS_sched_getattr, 0, &attr, sizeof(attr), 0), 0);
	return attr;
}

TEST(the_slice_is_short_and_nothing_else_changes)
{
	struct attr before, after;

	assert_int_equal(setpriority(PRIO_PROCESS, 0, 3), 0);
	before = attr_get();
	short_slice_ask();
	after = attr_get();
	/* A kernel before 6.12 has no slices of threads, and reports none. */
	assert_int_equal(after.runtime, before.runtime == 0 ? 0 : 100000);
	assert_int_equal(after.policy, SCHED_OTHER);
	assert_int_equal(after.nice, 3);
	assert_int_equal(after.flags, before.flags);
	assert_int_equal(sched_getscheduler(0), SCHED_OTHER);
}

TEST(another_policy_is_left_alone)
{
	const struct sched_param none = {.sched_priority = 0};

	assert_int_equal(sched_setscheduler(0, SCHED_IDLE, &none), 0);
	short_slice_ask();
	assert_int_equal(sched_getscheduler(0), SCHED_IDLE);
}
