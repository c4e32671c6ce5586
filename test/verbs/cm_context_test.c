/* SPDX-License-Identifier: BSD-3-Clause */
/* The connection manager of a device connects the QPs of all its contexts. */
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "case.h"
#include "cm_fixture.h"

/* Another context of the same device. */
static struct {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
} other;

static void
other_open(struct ibv_device *device)
{
	struct ibv_qp_init_attr init = {
		.cap = {.max_send_wr = 4,
			.max_send_sge = 1,
			.max_recv_wr = 4,
			.max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
	};

	other.context = ibv_open_device(device);
	assert_non_null(other.context);
	other.pd = ibv_alloc_pd(other.context);
	other.cq = ibv_create_cq(other.context, 8, NULL, NULL, 0);
	assert_non_null(other.pd);
	assert_non_null(other.cq);
	init.send_cq = init.recv_cq = other.cq;
	other.qp = ibv_create_qp(other.pd, &init);
	assert_non_null(other.qp);
	pair_to_init(other.qp);
}

static void
other_close(void)
{
	assert_int_equal(ibv_destroy_qp(other.qp), 0);
	assert_int_equal(ibv_destroy_cq(other.cq), 0);
	assert_int_equal(ibv_dealloc_pd(other.pd), 0);
	assert_int_equal(ibv_close_device(other.context), 0);
}

static int
setup(void **state)
{
	cm_pair_listen(1);
	return 0;
}

/* A QP of the first side's device requests; then one of the second side's device accepts. */
static void
connects(struct ibv_qp *asks, struct ibv_qp *accepts)
{
	struct rocade_cm_param p = {.size = sizeof(p)};
	struct rocade_cm_id *a, *b;

	assert_int_equal(
		rocade_cm_connect(cm_a, asks, &pair.b.gid, CM_PORT, &p, "a", &a), 0);
	b = cm_expect_event(cm_b, ROCADE_CM_REQUEST).id;
	assert_int_equal(rocade_cm_accept(b, asks, NULL, "b"), EINVAL);
	assert_int_equal(rocade_cm_accept(b, accepts, NULL, "b"), 0);
	assert_ptr_equal(cm_expect_event(cm_a, ROCADE_CM_ESTABLISHED).id, a);
	assert_ptr_equal(cm_expect_event(cm_b, ROCADE_CM_ESTABLISHED).id, b);
	assert_int_equal(asks->state, IBV_QPS_RTS);
	assert_int_equal(accepts->state, IBV_QPS_RTS);
	rocade_cm_release(a);
	cm_expect_event(cm_b, ROCADE_CM_DISCONNECTED);
	rocade_cm_release(b);
	cm_expect_no_event();
}

TEST_WITH(another_context_requests, setup, cm_pair_close)
{
	other_open(pair.a.context->device);
	connects(other.qp, pair.b.qp[0]);
	other_close();
}

TEST_WITH(another_context_accepts, setup, cm_pair_close)
{
	other_open(pair.b.context->device);
	connects(pair.a.qp[0], other.qp);
	other_close();
}

TEST_WITH(another_device_is_refused, setup, cm_pair_close)
{
	struct rocade_cm_param p = {.size = sizeof(p)};
	struct rocade_cm_id *id;

	other_open(pair.b.context->device);
	assert_int_equal(
		rocade_cm_connect(cm_a, other.qp, &pair.b.gid, CM_PORT, &p, "a", &id),
		EINVAL);
	assert_non_null(strstr(rocade_error(), "of this device"));
	other_close();
}
