/* SPDX-License-Identifier: BSD-3-Clause */
/* librocade-faults.so with a device of the library behind it, and with one that this library only forwards calls
 * of. The script is fault_devices.txt. */
#include <errno.h>

#include "case.h"
#include "fault_next.h"

static int
other_poll_cq(struct ibv_cq *cq, int count, struct ibv_wc *wc)
{
	(void)cq;
	(void)wc;
	return count;
}

static struct ibv_context *
other_mark(struct ibv_device *device, int cmd_fd)
{
	(void)device;
	(void)cmd_fd;
	return NULL;
}

/* Before the calls of the library's own device, so that it is seen if they count. */
TEST(calls_of_another_device_do_not_count)
{
	static struct next_device marked, unmarked;
	struct next_device *all[] = {&marked, &unmarked};

	next_device_fill(&marked, other_poll_cq, other_mark);
	next_device_fill(&unmarked, other_poll_cq, NULL);
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		struct ibv_context *context = ibv_open_device(&all[i]->device);
		struct ibv_cq cq = {.context = context};
		struct ibv_wc wc[2];

		assert_ptr_equal(context, &all[i]->context.context);
		assert_ptr_equal(ibv_alloc_pd(context), &all[i]->pd);
		assert_int_equal(ibv_poll_cq(&cq, 2, wc), 2);
	}
}

TEST(calls_of_the_librarys_device_are_refused)
{
	struct next_device *own = next_device_own();
	struct ibv_device_attr attr;
	struct ibv_context *context;
	struct ibv_cq cq;
	struct ibv_wc wc;

	errno = 0;
	assert_null(ibv_open_device(&own->device));
	assert_int_equal(errno, ENOMEM);
	context = ibv_open_device(&own->device);
	assert_ptr_equal(context, &own->context.context);
	cq.context = context;
	assert_null(ibv_alloc_pd(context));
	assert_int_equal(ibv_poll_cq(&cq, 1, &wc), -EIO);
	/* The library calls ibv_alloc_pd() then. */
	assert_int_equal(ibv_query_device(context, &attr), 0);
}
