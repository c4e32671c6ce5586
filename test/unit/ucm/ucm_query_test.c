/* SPDX-License-Identifier: BSD-3-Clause */
/* Queries of an id. */
#include "ucm_fixture.h"

#include <endian.h>

#include <infiniband/ib.h>

TEST_WITH(wildcard_id_has_no_device, ucm_setup, ucm_teardown)
{
	uint32_t id = make_id(&ctx.client, RDMA_PS_TCP);
	struct rdma_ucm_query cmd = {.id = id};
	struct rdma_ucm_query_route_resp resp;
	struct sockaddr_in6 any = sockaddr_of(NULL, 5000);

	assert_int_equal(bind_id(&ctx.client, id, NULL, 5000), 0);
	assert_int_equal(COMMAND(&ctx.client, QUERY_ROUTE, &cmd, &resp), 0);
	assert_int_equal(resp.node_guid, 0);
	assert_int_equal(resp.num_paths, 0);
	assert_memory_equal(&resp.src_addr, &any, sizeof(any));
}

TEST_WITH(query_route_of_a_connection, ucm_setup, ucm_teardown)
{
	struct id_pair pair = pair_connected();
	struct rdma_ucm_query cmd = {.id = pair.passive};
	struct rdma_ucm_query_route_resp p, a;

	assert_int_equal(COMMAND(&ctx.server, QUERY_ROUTE, &cmd, &p), 0);
	cmd.id = pair.active;
	assert_int_equal(COMMAND(&ctx.client, QUERY_ROUTE, &cmd, &a), 0);
	assert_memory_equal(&p.src_addr, &a.dst_addr, sizeof(p.src_addr));
	assert_memory_equal(&p.dst_addr, &a.src_addr, sizeof(p.src_addr));
	assert_int_equal(be64toh(a.node_guid), 0x0200000000000001);
	assert_int_equal(a.num_paths, 1);
	assert_int_equal(a.port_num, 1);
	assert_int_equal(a.ibdev_index, UINT32_MAX);
	assert_int_equal(a.ib_route[0].pkey, 0xFFFF);
	assert_memory_equal(a.ib_route[0].dgid, p.ib_route[0].sgid, 16);
}

TEST_WITH(query_addresses, ucm_setup, ucm_teardown)
{
	uint32_t id = make_routed_id(RDMA_PS_TCP);
	struct rdma_ucm_query cmd = {.id = id, .option = RDMA_USER_CM_QUERY_ADDR};
	struct rdma_ucm_query_addr_resp resp;
	struct sockaddr_in6 want = sockaddr_of("192.0.2.1", LISTEN_PORT);

	assert_int_equal(COMMAND(&ctx.client, QUERY, &cmd, &resp), 0);
	assert_memory_equal(&resp.dst_addr, &want, sizeof(want));
	cmd.option = 3;
	assert_int_equal(COMMAND(&ctx.client, QUERY, &cmd, &resp), -ENOSYS);
}

TEST_WITH(query_gids, ucm_setup, ucm_teardown)
{
	struct rdma_ucm_query cmd = {
		.id = make_routed_id(RDMA_PS_TCP), .option = RDMA_USER_CM_QUERY_GID};
	struct rdma_ucm_query_addr_resp resp;
	struct sockaddr_ib sa;
	uint8_t gid[16];

	assert_int_equal(gid_parse("192.0.2.1", gid, NULL), 0);
	assert_int_equal(COMMAND(&ctx.client, QUERY, &cmd, &resp), 0);
	assert_int_equal(be64toh(resp.node_guid), 0x0200000000000001);
	assert_int_equal(resp.port_num, 1);
	assert_int_equal(resp.pkey, 0xFFFF);
	assert_int_equal(resp.dst_size, sizeof(sa));
	memcpy(&sa, &resp.dst_addr, sizeof(sa));
	assert_int_equal(sa.sib_family, AF_IB);
	assert_memory_equal(&sa.sib_addr, gid, 16);
	assert_int_equal(be64toh(sa.sib_sid), cma_service_id(CMA_PS_TCP, LISTEN_PORT));
	memcpy(&sa, &resp.src_addr, sizeof(sa));
	assert_memory_equal(&sa.sib_addr, gid, 16);
}

TEST_WITH(query_paths, ucm_setup, ucm_teardown)
{
	uint32_t id = make_id(&ctx.client, RDMA_PS_TCP);
	struct rdma_ucm_query cmd = {.id = id, .option = RDMA_USER_CM_QUERY_PATH};
	union {
		struct rdma_ucm_query_path_resp path;
		uint8_t room[UCM_MAX];
	} resp;
	const uint8_t *record = (const uint8_t *)resp.path.path_data[0].path_rec;
	uint8_t gid[16];

	assert_int_equal(COMMAND(&ctx.client, QUERY, &cmd, &resp), 0);
	assert_int_equal(resp.path.num_paths, 0);
	cmd.id = make_routed_id(RDMA_PS_TCP);
	assert_int_equal(COMMAND(&ctx.client, QUERY, &cmd, &resp), 0);
	assert_int_equal(resp.path.num_paths, 1);
	assert_int_equal(resp.path.path_data[0].flags,
		IB_PATH_GMP | IB_PATH_PRIMARY | IB_PATH_BIDIRECTIONAL);
	/* DGID, SGID, flow label and hop limit, reversible, P_Key, MTU (IBA 15.2.5.16).
	 */
	assert_int_equal(gid_parse("192.0.2.1", gid, NULL), 0);
	assert_memory_equal(record + 8, gid, 16);
	assert_memory_equal(record + 24, gid, 16);
	assert_memory_equal(record + 44, "\0\0\0\x40", 4);
	assert_int_equal(record[49], 0x81);
	assert_memory_equal(record + 50, "\xff\xff", 2);
	assert_int_equal(record[54], 2 << 6 | 5);
}
