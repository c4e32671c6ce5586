/* SPDX-License-Identifier: BSD-3-Clause */
/* cm.h between ports with different MTUs: the QPs use the smaller path MTU. */
#include <stdint.h>
#include <string.h>

#include "case.h"
#include "verbs/verbs_cm.h"

#include "cm_fixture.h"

static int
setup(void **state)
{
	cm_pair_listen(1);
	return 0;
}

static void
expect_mtu(struct ibv_qp *qp, enum ibv_mtu mtu)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	assert_int_equal(ibv_query_qp(qp, &attr, 0, &init), 0);
	assert_int_equal(attr.qp_state, IBV_QPS_RTS);
	assert_int_equal(attr.path_mtu, mtu);
}

TEST_WITH(qps_use_the_smaller_mtu, setup, cm_pair_close)
{
	struct rocade_cm_param p = {
		.size = sizeof(p), .private_data = "hello", .private_len = 5};
	struct rocade_cm_id *a, *b;
	struct rocade_cm_event e;

	to_ctx(pair.b.context)->dev->active_mtu = IBV_MTU_1024;
	assert_int_equal(
		rocade_cm_connect(cm_a, pair.a.qp[0], &pair.b.gid, CM_PORT, &p, "a", &a),
		0);
	/* The first request is rejected without the application, the second one asks for
	 * the path MTU that the REJ names. */
	while (cm_stat(cm_b, "rejects_sent") == 0) {
		assert_int_not_equal(rocade_cm_next_event(cm_b, &e), 0);
		pair_poll(&pair);
	}
	pair_drain(&pair);
	assert_int_not_equal(rocade_cm_next_event(cm_a, &e), 0);
	e = cm_expect_event(cm_b, ROCADE_CM_REQUEST);
	assert_memory_equal(e.private_data, "hello", 6);
	b = e.id;
	assert_int_equal(rocade_cm_accept(b, pair.b.qp[0], NULL, "b"), 0);
	assert_ptr_equal(cm_expect_event(cm_a, ROCADE_CM_ESTABLISHED).id, a);
	assert_ptr_equal(cm_expect_event(cm_b, ROCADE_CM_ESTABLISHED).id, b);
	expect_mtu(pair.a.qp[0], IBV_MTU_1024);
	expect_mtu(pair.b.qp[0], IBV_MTU_1024);
	assert_int_equal(cm_stat(cm_b, "rejects_sent"), 1);
	rocade_cm_release(a);
	cm_expect_event(cm_b, ROCADE_CM_DISCONNECTED);
	rocade_cm_release(b);
	cm_expect_no_event();
}
