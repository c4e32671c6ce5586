/* SPDX-License-Identifier: BSD-3-Clause */
/* Verbs that libibverbs has since rdma-core 59: no call with an object of Rocade gets to the real
 * library, and every other one does. fake/newer.c stands in for that. */
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "case.h"
#include "fake/fake.h"
#include "verbs/newer.h"
#include <rocade/rocade.h>

static struct rocade_port *ports[2];
static struct ibv_context *ours;
static struct ibv_pd *our_pd;
/* Of another device. */
static struct ibv_context theirs;
static struct ibv_pd their_pd = {.context = &theirs};
/* Objects whose first member is their context. */
static struct ibv_context *their_object[8] = {&theirs};
static uintptr_t their_buf[8] = {0x1000};

static int
setup(void **state)
{
	struct rocade_port_conf conf[2] = {
		{.size = sizeof(conf[0]), .addresses = "192.0.2.1/24"},
		{.size = sizeof(conf[0]), .addresses = "192.0.2.2/24"},
	};

	assert_int_equal(rocade_open_loop(conf, ports), 0);
	ours = ibv_open_device(rocade_port_device(ports[0]));
	assert_non_null(ours);
	our_pd = ibv_alloc_pd(ours);
	assert_non_null(our_pd);
	memset(&fake, 0, sizeof(fake));
	errno = 0;
	return 0;
}

static int
teardown(void **state)
{
	assert_int_equal(ibv_dealloc_pd(our_pd), 0);
	assert_int_equal(ibv_close_device(ours), 0);
	assert_int_equal(rocade_close_port(ports[0]), 0);
	assert_int_equal(rocade_close_port(ports[1]), 0);
	return 0;
}

/* The call reached the real library once and returned its value. */
#define expect_forwarded(call)                                                           \
	do {                                                                             \
		fake.newer = 0;                                                          \
		assert_int_equal((uintptr_t)(call), 77);                                 \
		assert_int_equal(fake.newer, 1);                                         \
	} while (0)

/* The call failed with the error, and did not reach the real library. */
#define expect_errno(call, value, err)                                                   \
	do {                                                                             \
		errno = 0;                                                               \
		assert_true((call) == (value));                                          \
		assert_int_equal(errno, err);                                            \
		assert_int_equal(fake.newer, 0);                                         \
	} while (0)
#define expect_error(call, err)                                                          \
	do {                                                                             \
		assert_int_equal(call, err);                                             \
		assert_int_equal(fake.newer, 0);                                         \
	} while (0)

TEST_WITH(calls_on_other_objects_are_forwarded, setup, teardown)
{
	struct mr_init_attr attr = {.comp_mask = MR_INIT_ADDR};
	struct comp_cntr_head head = {.context = &theirs};
	struct ibv_comp_cntr *counter = (struct ibv_comp_cntr *)&head;
	struct ibv_buf *buf = (struct ibv_buf *)their_buf;
	struct ibv_dm dm = {.context = &theirs};
	struct ibv_qp qp = {.context = &theirs};
	uint64_t value;

	expect_forwarded(ibv_alloc_dmah(&theirs, NULL));
	expect_forwarded(ibv_dealloc_dmah((struct ibv_dmah *)their_object));
	expect_forwarded(ibv_reg_mr_ex(&their_pd, (struct ibv_mr_init_attr *)&attr));
	expect_forwarded(ibv_dm_export_dmabuf_fd(&dm));
	expect_forwarded(ibv_query_port_speed(&theirs, 1, &value));
	expect_forwarded(ibv_alloc_buf(&their_pd, 1, &buf));
	expect_forwarded(ibv_reg_buf_mr(&their_pd, buf, NULL, 1, 0));
	expect_forwarded(ibv_export_buf_dmabuf_fd(buf));
	fake.newer = 0;
	ibv_free_buf(buf);
	assert_int_equal(fake.newer, 1);
	expect_forwarded(_ibv_query_comp_cntr_caps(&theirs, NULL, 16));
	expect_forwarded(ibv_create_comp_cntr(&theirs, NULL));
	expect_forwarded(ibv_destroy_comp_cntr(counter));
	expect_forwarded(ibv_set_comp_cntr(counter, 1));
	expect_forwarded(ibv_set_err_comp_cntr(counter, 1));
	expect_forwarded(ibv_inc_comp_cntr(counter, 1));
	expect_forwarded(ibv_inc_err_comp_cntr(counter, 1));
	expect_forwarded(ibv_read_comp_cntr(counter, &value));
	expect_forwarded(ibv_read_err_comp_cntr(counter, &value));
	expect_forwarded(ibv_qp_attach_comp_cntr(&qp, counter, NULL));
}

TEST_WITH(absent_calls_fail, setup, teardown)
{
	expect_errno(ibv_alloc_dmah(ours, NULL), NULL, EOPNOTSUPP);
}

/* In units of 100 Mb/s: what ibv_query_port(3) says in its own units, 1X of 25 Gb/s. */
TEST_WITH(the_speed_of_the_port_is_reported, setup, teardown)
{
	uint64_t speed = 0;

	expect_error(ibv_query_port_speed(ours, 1, &speed), 0);
	assert_int_equal(speed, 250);
	expect_error(ibv_query_port_speed(ours, 2, &speed), EINVAL);
	expect_error(ibv_query_port_speed(ours, 0, &speed), EINVAL);
}

/* A buffer of one library on a PD of the other is refused, and neither takes it for its own. */
TEST_WITH(buffers_are_told_apart, setup, teardown)
{
	struct mr_init_attr attr = {.length = 1, .comp_mask = MR_INIT_ADDR | MR_INIT_BUF};
	struct ibv_buf *buf, *other = (struct ibv_buf *)their_buf;
	void *mem = ibv_alloc_buf(our_pd, 64, &buf);

	assert_non_null(mem);
	attr.addr = mem;
	attr.buf = buf;
	expect_errno(
		ibv_reg_mr_ex(&their_pd, (struct ibv_mr_init_attr *)&attr), NULL, EINVAL);
	expect_errno(ibv_reg_buf_mr(&their_pd, buf, mem, 1, 0), NULL, EINVAL);
	attr.buf = other;
	expect_errno(
		ibv_reg_mr_ex(our_pd, (struct ibv_mr_init_attr *)&attr), NULL, EINVAL);
	expect_errno(ibv_reg_buf_mr(our_pd, other, mem, 1, 0), NULL, EINVAL);
	expect_errno(ibv_export_buf_dmabuf_fd(buf), -1, ENODATA);
	ibv_free_buf(buf);
	assert_int_equal(fake.newer, 0);
}
