/* SPDX-License-Identifier: BSD-3-Clause */
/* Unsupported calls fail as their man pages say, and the device does not advertise
 * them. */
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "case.h"
#include "verbs_pair.h"

static struct verbs_pair pair;

static int
setup(void **state)
{
	struct verbs_pair_conf conf = {.srq_wr = 4};

	pair_open(&pair, &conf);
	return 0;
}

static int
teardown(void **state)
{
	pair_close(&pair);
	return 0;
}

static void
expect_null_unsupported(const void *object)
{
	assert_null(object);
	assert_int_equal(errno, EOPNOTSUPP);
	errno = 0;
}

TEST_WITH(flows_and_counters_are_unsupported, setup, teardown)
{
	struct ibv_flow_attr flow = {.type = IBV_FLOW_ATTR_NORMAL, .port = 1};
	struct ibv_flow_action_esp_attr esp = {0};
	struct ibv_counters_init_attr counters = {0};

	errno = 0;
	expect_null_unsupported(ibv_create_flow(pair.a.qp[0], &flow));
	expect_null_unsupported(ibv_create_flow_action_esp(pair.a.context, &esp));
	expect_null_unsupported(ibv_create_counters(pair.a.context, &counters));
}

TEST_WITH(work_queues_are_unsupported, setup, teardown)
{
	struct ibv_wq_init_attr wq = {.wq_type = IBV_WQT_RQ,
		.max_wr = 1,
		.max_sge = 1,
		.pd = pair.a.pd,
		.cq = pair.a.recv_cq};
	struct ibv_rwq_ind_table_init_attr table = {0};

	errno = 0;
	expect_null_unsupported(ibv_create_wq(pair.a.context, &wq));
	expect_null_unsupported(ibv_create_rwq_ind_table(pair.a.context, &table));
}

TEST_WITH(memory_extensions_are_unsupported, setup, teardown)
{
	errno = 0;
	expect_null_unsupported(ibv_alloc_null_mr(pair.a.pd));
	assert_int_equal(
		ibv_advise_mr(pair.a.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, NULL, 0),
		EOPNOTSUPP);
}

TEST_WITH(rate_limit_and_srq_ops_are_unsupported, setup, teardown)
{
	struct ibv_qp_rate_limit_attr rate = {.rate_limit = 1000};
	struct ibv_ops_wr op = {.opcode = IBV_WR_TAG_SYNC}, *bad = NULL;

	assert_int_equal(ibv_modify_qp_rate_limit(pair.a.qp[0], &rate), EOPNOTSUPP);
	assert_int_equal(ibv_post_srq_ops(pair.b.srq, &op, &bad), EOPNOTSUPP);
	assert_ptr_equal(bad, &op);
}

/* Supported features are advertised in every place that shows them. */
TEST_WITH(supported_features_are_advertised, setup, teardown)
{
	static const unsigned there =
		IBV_DEVICE_CURR_QP_STATE_MOD | IBV_DEVICE_SYS_IMAGE_GUID |
		IBV_DEVICE_RC_RNR_NAK_GEN | IBV_DEVICE_SRQ_RESIZE |
		IBV_DEVICE_PORT_ACTIVE_EVENT | IBV_DEVICE_BAD_PKEY_CNTR |
		IBV_DEVICE_BAD_QKEY_CNTR | IBV_DEVICE_UD_AV_PORT_ENFORCE;
	struct ibv_ah_attr ah = {.is_global = 1, .port_num = 2};
	struct ibv_device_attr attr;

	assert_int_equal(ibv_query_device(pair.a.context, &attr), 0);
	assert_int_equal(attr.device_cap_flags & there, there);
	ah.grh.dgid = pair.b.gid;
	errno = 0;
	assert_null(ibv_create_ah(pair.a.pd, &ah));
	assert_int_equal(errno, EINVAL);
}

/* Unsupported features are not advertised (ibv_query_device_ex(3)). */
TEST_WITH(unsupported_features_are_not_advertised, setup, teardown)
{
	static const unsigned absent =
		IBV_DEVICE_RESIZE_MAX_WR | IBV_DEVICE_RAW_MULTI |
		IBV_DEVICE_AUTO_PATH_MIG | IBV_DEVICE_CHANGE_PHY_PORT |
		IBV_DEVICE_SHUTDOWN_PORT | IBV_DEVICE_INIT_TYPE | IBV_DEVICE_N_NOTIFY_CQ |
		IBV_DEVICE_UD_IP_CSUM | IBV_DEVICE_RC_IP_CSUM | IBV_DEVICE_RAW_IP_CSUM |
		IBV_DEVICE_MANAGED_FLOW_STEERING;
	struct ibv_device_attr_ex attr;

	assert_int_equal(ibv_query_device_ex(pair.a.context, NULL, &attr), 0);
	assert_int_equal(attr.orig_attr.device_cap_flags & absent, 0);
	/* FLUSH for global visibility, and ATOMIC_WRITE; bit 39 would be FLUSH for persistence. */
	assert_true(attr.device_cap_flags_ex ==
		    (attr.orig_attr.device_cap_flags | UINT64_C(1) << 38 |
			    UINT64_C(1) << 40));
	assert_int_equal(attr.raw_packet_caps, 0);
	assert_int_equal(attr.tso_caps.max_tso, 0);
	assert_int_equal(attr.rss_caps.max_rwq_indirection_tables, 0);
	assert_int_equal(attr.packet_pacing_caps.qp_rate_limit_max, 0);
	assert_int_equal(attr.tm_caps.max_num_tags, 0);
	assert_int_equal(attr.odp_caps.general_caps, 0);
}

TEST_WITH(other_qp_types_and_flags_are_unsupported, setup, teardown)
{
	static const enum ibv_qp_type types[] = {IBV_QPT_RAW_PACKET, IBV_QPT_DRIVER};
	static const uint32_t flags[] = {IBV_QP_CREATE_BLOCK_SELF_MCAST_LB,
		IBV_QP_CREATE_SCATTER_FCS, IBV_QP_CREATE_CVLAN_STRIPPING,
		IBV_QP_CREATE_SOURCE_QPN, IBV_QP_CREATE_PCI_WRITE_END_PADDING};
	struct ibv_qp_init_attr attr = {.send_cq = pair.a.send_cq,
		.recv_cq = pair.a.recv_cq,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1}};
	struct ibv_qp_init_attr_ex ex = {.send_cq = pair.a.send_cq,
		.recv_cq = pair.a.recv_cq,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1},
		.qp_type = IBV_QPT_RC,
		.pd = pair.a.pd,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS};

	errno = 0;
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		attr.qp_type = types[i];
		expect_null_unsupported(ibv_create_qp(pair.a.pd, &attr));
	}
	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		ex.create_flags = flags[i];
		expect_null_unsupported(ibv_create_qp_ex(pair.a.context, &ex));
	}
}
