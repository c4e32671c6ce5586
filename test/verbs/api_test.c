/* SPDX-License-Identifier: BSD-3-Clause */
/* Devices and contexts, their attributes, CQs, and unsupported calls: results and errors
 * of the man pages. */
#include <endian.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "api_fixture.h"
#include "case.h"

TEST(test_version)
{
	assert_string_equal(rocade_version(), "0.1.0");
}

TEST_WITH(test_device_list, api_setup, api_teardown)
{
	struct ibv_device **list, **again;
	int n;

	list = ibv_get_device_list(&n);
	assert_non_null(list);
	assert_true(n >= 2);
	/* Rocade's devices come first; the pointers are the same in every list. */
	assert_ptr_equal(list[0], rocade_port_device(pair.a.port));
	assert_ptr_equal(list[1], rocade_port_device(pair.b.port));
	assert_null(list[n]);
	again = ibv_get_device_list(NULL);
	assert_ptr_equal(again[0], list[0]);
	assert_string_equal(ibv_get_device_name(list[0]), "rocade0");
	assert_int_equal(list[0]->node_type, IBV_NODE_CA);
	assert_int_equal(list[0]->transport_type, IBV_TRANSPORT_IB);
	assert_true(ibv_get_device_guid(list[0]) != 0);
	assert_true(ibv_get_device_guid(list[0]) != ibv_get_device_guid(list[1]));
	assert_true(ibv_get_device_index(list[0]) >= 0);
	assert_int_not_equal(
		ibv_get_device_index(list[0]), ibv_get_device_index(list[1]));
	/* Programs read private members behind struct ibv_device; they are zero. */
	for (size_t i = 0; i < 1024; i++)
		assert_int_equal(((uint8_t *)list[0])[sizeof(struct ibv_device) + i], 0);
	ibv_free_device_list(again);
	free(list); /* as qperf does: the list is plain memory */
}

TEST_WITH(open_objects_keep_port_and_device, api_setup, api_teardown)
{
	assert_int_equal(rocade_close_port(pair.a.port), EBUSY);
	assert_non_null(strstr(rocade_error(), "rocade0"));
	errno = 0;
	assert_int_equal(ibv_close_device(pair.a.context), -1);
	assert_int_equal(errno, EBUSY);
}

TEST_WITH(context_members, api_setup, api_teardown)
{
	struct ibv_context *c = ibv_open_device(rocade_port_device(pair.a.port));

	assert_non_null(c);
	assert_ptr_not_equal(c, pair.a.context);
	assert_ptr_equal(c->device, rocade_port_device(pair.a.port));
	assert_ptr_equal(c->abi_compat, __VERBS_ABI_IS_EXTENDED);
	assert_int_equal(verbs_get_ctx(c)->sz, sizeof(struct verbs_context));
	assert_null(verbs_get_ctx(c)->priv);
	assert_true(c->async_fd >= 0 && c->cmd_fd >= 0);
	assert_int_equal(c->num_comp_vectors, 1);
	assert_int_equal(rocade_context_set_engine(c, 1), EINVAL);
	assert_int_equal(rocade_context_set_engine(c, -2), EINVAL);
	assert_int_equal(rocade_context_set_engine(c, 0), 0);
	assert_int_equal(ibv_close_device(c), 0);
}

TEST_WITH(test_query_device, api_setup, api_teardown)
{
	struct ibv_device_attr attr;
	struct ibv_device_attr_ex ex;
	struct ibv_query_device_ex_input input = {.comp_mask = 1};

	memset(&attr, 0xFF, sizeof(attr));
	assert_int_equal(ibv_query_device(pair.a.context, &attr), 0);
	assert_string_equal(attr.fw_ver, rocade_version());
	assert_true(attr.vendor_id != 0 && attr.vendor_id < 0xFFFFFF);
	assert_true(
		attr.node_guid == ibv_get_device_guid(rocade_port_device(pair.a.port)));
	assert_true(attr.device_cap_flags & IBV_DEVICE_SRQ_RESIZE);
	assert_true(attr.device_cap_flags & IBV_DEVICE_RC_RNR_NAK_GEN);
	assert_int_equal(attr.atomic_cap, IBV_ATOMIC_HCA);
	assert_int_equal(attr.max_qp_rd_atom, 16);
	assert_int_equal(attr.max_qp_init_rd_atom, 16);
	assert_int_equal(attr.max_qp, 1024);
	assert_true(attr.max_cqe >= 4000000);
	assert_int_equal(attr.phys_port_cnt, 1);
	assert_int_equal(attr.max_pkeys, 1);

	memset(&ex, 0xFF, sizeof(ex));
	assert_int_equal(ibv_query_device_ex(pair.a.context, NULL, &ex), 0);
	assert_memory_equal(&ex.orig_attr, &attr, sizeof(attr));
	assert_int_equal(ex.phys_port_cnt_ex, 1);
	assert_int_equal(ex.odp_caps.general_caps, 0);
	assert_int_equal(ibv_query_device_ex(pair.a.context, &input, &ex), EINVAL);
}

TEST_WITH(test_query_port, api_setup, api_teardown)
{
	struct ibv_port_attr attr, compat;

	memset(&attr, 0xFF, sizeof(attr));
	assert_int_equal(ibv_query_port(pair.a.context, 1, &attr), 0);
	assert_int_equal(attr.state, IBV_PORT_ACTIVE);
	assert_int_equal(attr.phys_state, 5);
	assert_int_equal(attr.link_layer, IBV_LINK_LAYER_ETHERNET);
	assert_int_equal(attr.max_mtu, IBV_MTU_4096);
	assert_int_equal(attr.active_mtu, IBV_MTU_4096);
	assert_int_equal(attr.gid_tbl_len, 16);
	assert_int_equal(attr.pkey_tbl_len, 1);
	assert_true(attr.max_msg_sz == 1u << 31);
	assert_int_equal(attr.flags, IBV_QPF_GRH_REQUIRED);
	assert_int_equal(ibv_query_port(pair.a.context, 0, &attr), EINVAL);
	assert_int_equal(ibv_query_port(pair.a.context, 2, &attr), EINVAL);

	/* The exported function writes only the first 48 bytes. */
	assert_int_equal(ibv_query_port(pair.a.context, 1, &attr), 0);
	memset(&compat, 0xA5, sizeof(compat));
	assert_int_equal((ibv_query_port)(pair.a.context, 1,
				 (struct _compat_ibv_port_attr *)&compat),
		0);
	assert_memory_equal(&compat, &attr, 48);
	assert_int_equal(compat.port_cap_flags2, 0xA5A5);
}

TEST_WITH(test_gids, api_setup, api_teardown)
{
	static const uint8_t ipv4[16] = {[10] = 0xFF, [11] = 0xFF, 192, 0, 2, 1};
	static const uint8_t zero[16];
	struct ibv_gid_entry entry, table[16];
	union ibv_gid gid;
	uint8_t small[24];
	ssize_t n;

	assert_int_equal(ibv_query_gid(pair.a.context, 1, 0, &gid), 0);
	assert_memory_equal(gid.raw, ipv4, 16);
	/* An empty entry reads as zeros. */
	assert_int_equal(ibv_query_gid(pair.a.context, 1, 15, &gid), 0);
	assert_memory_equal(gid.raw, zero, 16);
	errno = 0;
	assert_int_equal(ibv_query_gid(pair.a.context, 1, 16, &gid), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(ibv_query_gid(pair.a.context, 1, -1, &gid), -1);
	assert_int_equal(ibv_query_gid(pair.a.context, 2, 0, &gid), -1);

	assert_int_equal(ibv_query_gid_ex(pair.a.context, 1, 0, &entry, 0), 0);
	assert_memory_equal(entry.gid.raw, ipv4, 16);
	assert_int_equal(entry.gid_type, IBV_GID_TYPE_ROCE_V2);
	assert_int_equal(entry.gid_index, 0);
	assert_int_equal(entry.port_num, 1);
	assert_int_equal(ibv_query_gid_ex(pair.a.context, 1, 15, &entry, 0), ENODATA);
	assert_int_equal(ibv_query_gid_ex(pair.a.context, 1, 16, &entry, 0), EINVAL);
	assert_int_equal(ibv_query_gid_ex(pair.a.context, 2, 0, &entry, 0), EINVAL);
	assert_int_equal(ibv_query_gid_ex(pair.a.context, 1, 0, &entry, 1), EOPNOTSUPP);

	/* A caller with a shorter structure. */
	memset(small, 0xA5, sizeof(small));
	assert_int_equal(_ibv_query_gid_ex(pair.a.context, 1, 0,
				 (struct ibv_gid_entry *)small, 0, 20),
		0);
	assert_memory_equal(small, ipv4, 16);
	assert_int_equal(small[20], 0xA5);

	n = ibv_query_gid_table(pair.a.context, table, 16, 0);
	assert_true(n >= 2); /* the IPv4 and the link-local address */
	assert_memory_equal(table[0].gid.raw, ipv4, 16);
	for (ssize_t i = 0; i < n; i++)
		assert_memory_not_equal(table[i].gid.raw, zero, 16);
	assert_int_equal(ibv_query_gid_table(pair.a.context, table, 1, 0), -EINVAL);
	assert_int_equal(ibv_query_gid_table(pair.a.context, table, 0, 0), -EINVAL);
	assert_int_equal(ibv_query_gid_table(pair.a.context, table, 16, 1), -EOPNOTSUPP);
}

/* Private to rdma-core; ibv_devinfo calls it. */
int ibv_query_gid_type(
	struct ibv_context *context, uint8_t port_num, unsigned int index, int *type);

TEST_WITH(test_gid_type_and_pkeys, api_setup, api_teardown)
{
	__be16 pkey = 0;
	int type = -1;

	assert_int_equal(ibv_query_gid_type(pair.a.context, 1, 0, &type), 0);
	assert_int_equal(type, 1);
	assert_int_equal(ibv_query_gid_type(pair.a.context, 1, 16, &type), -1);
	assert_int_equal(ibv_query_pkey(pair.a.context, 1, 0, &pkey), 0);
	assert_int_equal(pkey, 0xFFFF);
	assert_int_equal(ibv_query_pkey(pair.a.context, 1, 1, &pkey), -1);
	assert_int_equal(ibv_query_pkey(pair.a.context, 2, 0, &pkey), -1);
	assert_int_equal(ibv_get_pkey_index(pair.a.context, 1, 0xFFFF), 0);
	assert_int_equal(ibv_get_pkey_index(pair.a.context, 1, htobe16(0x8001)), -1);
}

TEST_WITH(cq_create_resize_destroy, api_setup, api_teardown)
{
	struct ibv_cq *cq;

	errno = 0;
	assert_null(ibv_create_cq(pair.a.context, 0, NULL, NULL, 0));
	assert_int_equal(errno, EINVAL);
	assert_null(ibv_create_cq(pair.a.context, -1, NULL, NULL, 0));
	assert_null(ibv_create_cq(pair.a.context, 1 << 22, NULL, NULL, 0));
	assert_int_equal(errno, EINVAL);
	assert_null(ibv_create_cq(pair.a.context, 10, NULL, NULL, 1));
	assert_int_equal(errno, EINVAL);
	assert_null(ibv_create_cq(pair.a.context, 10, NULL, NULL, -1));
	cq = ibv_create_cq(pair.a.context, 100, &pair, NULL, 0);
	assert_non_null(cq);
	assert_true(cq->cqe >= 100);
	assert_ptr_equal(cq->cq_context, &pair);
	assert_ptr_equal(cq->context, pair.a.context);
	assert_int_equal(ibv_resize_cq(cq, 200), 0);
	assert_int_equal(cq->cqe, 256);
	assert_int_equal(ibv_resize_cq(cq, 0), EINVAL);
	assert_int_equal(ibv_resize_cq(cq, -1), EINVAL);
	assert_int_equal(ibv_resize_cq(cq, 1 << 22), EINVAL);
	assert_int_equal(cq->cqe, 256);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_int_equal(ibv_destroy_cq(pair.a.send_cq), EBUSY); /* QPs use it */
	cq = ibv_create_cq(pair.a.context, (1 << 22) - 1, NULL, NULL, 0);
	assert_non_null(cq);
	assert_int_equal(ibv_destroy_cq(cq), 0);
}

TEST_WITH(cq_moderation_is_checked, api_setup, api_teardown)
{
	struct ibv_modify_cq_attr attr = {.moderate = {.cq_count = 7, .cq_period = 9}};
	struct ibv_device_attr_ex device;

	assert_int_equal(ibv_query_device_ex(pair.a.context, NULL, &device), 0);
	assert_int_equal(device.cq_mod_caps.max_cq_count, UINT16_MAX);
	assert_int_equal(device.cq_mod_caps.max_cq_period, UINT16_MAX);
	assert_int_equal(ibv_modify_cq(pair.a.send_cq, &attr), EINVAL);
	attr.attr_mask = IBV_CQ_ATTR_RESERVED;
	assert_int_equal(ibv_modify_cq(pair.a.send_cq, &attr), EOPNOTSUPP);
	attr.attr_mask |= IBV_CQ_ATTR_MODERATE;
	assert_int_equal(ibv_modify_cq(pair.a.send_cq, &attr), EOPNOTSUPP);
	/* The CQ has no channel: nothing to moderate. */
	attr.attr_mask = IBV_CQ_ATTR_MODERATE;
	assert_int_equal(ibv_modify_cq(pair.a.send_cq, &attr), 0);
}

TEST_WITH(nothing_is_promised, api_setup, api_teardown)
{
	assert_null(ibv_qp_to_qp_ex(pair.a.qp[0]));
	assert_int_equal(ibv_query_qp_data_in_order(pair.a.qp[0], IBV_WR_SEND, 0), 0);
}
