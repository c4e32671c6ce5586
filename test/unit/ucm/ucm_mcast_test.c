/* SPDX-License-Identifier: BSD-3-Clause */
/* Multicast groups: join and leave. */
#include "ucm_fixture.h"

TEST_WITH(join_and_leave, ucm_setup, ucm_teardown)
{
	uint32_t id = make_id(&ctx.client, RDMA_PS_UDP);
	struct rdma_ucm_join_ip_mcast cmd = {
		.id = id, .uid = 0x77, .addr = sockaddr_of("239.1.2.3", 0)};
	struct rdma_ucm_create_id_resp resp;
	struct rdma_ucm_destroy_id leave = {0};
	struct rdma_ucm_destroy_id_resp left = {0};
	struct rdma_ucm_event_resp event;
	struct ucm_addr group;

	assert_int_equal(COMMAND(&ctx.client, JOIN_IP_MCAST, &cmd, NULL), -EINVAL);
	assert_int_equal(resolve_addr(&ctx.client, id, "239.1.2.3", 0), 0);
	expect_event(&ctx.client, UCM_EVENT_ADDR_RESOLVED);
	assert_int_equal(COMMAND(&ctx.client, JOIN_IP_MCAST, &cmd, &resp), 0);
	event = expect_event(&ctx.client, UCM_EVENT_MULTICAST_JOIN);
	assert_int_equal(event.uid, 0x77);
	assert_int_equal(event.id, resp.id);
	assert_int_equal(event.param.ud.qp_num, 0xFFFFFF);
	assert_int_equal(event.param.ud.qkey, UCM_QKEY);
	assert_int_equal(ucm_addr_read(ctx.ucm, &cmd.addr, sizeof(cmd.addr), &group), 0);
	assert_memory_equal(event.param.ud.ah_attr.grh.dgid, group.gid, 16);
	assert_int_equal(COMMAND(&ctx.client, JOIN_IP_MCAST, &cmd, NULL), -EADDRINUSE);
	/* The group's id serves no other command. */
	assert_int_equal(destroy_id(&ctx.client, resp.id, NULL), -ENOENT);
	leave.id = id;
	assert_int_equal(COMMAND(&ctx.client, LEAVE_MCAST, &leave, &left), -ENOENT);
	leave.id = resp.id;
	assert_int_equal(COMMAND(&ctx.client, LEAVE_MCAST, &leave, &left), 0);
	assert_int_equal(left.events_reported, 1);
	assert_int_equal(COMMAND(&ctx.client, LEAVE_MCAST, &leave, &left), -ENOENT);
}

/* librdmacm counts the acknowledgement of a group's event for the group and for the ID that
 * has joined: rdma_leave_multicast() waits for the first, rdma_destroy_id() for both. */
TEST_WITH(joins_count_for_the_member, ucm_setup, ucm_teardown)
{
	uint32_t id = make_routed_id(RDMA_PS_UDP), events;
	struct rdma_ucm_join_ip_mcast cmd = {
		.id = id, .addr = sockaddr_of("239.1.2.3", 0)};
	struct rdma_ucm_destroy_id leave = {0};
	struct rdma_ucm_destroy_id_resp left = {0};

	assert_int_equal(COMMAND(&ctx.client, JOIN_IP_MCAST, &cmd, NULL), 0);
	leave.id = expect_event(&ctx.client, UCM_EVENT_MULTICAST_JOIN).id;
	assert_int_equal(COMMAND(&ctx.client, LEAVE_MCAST, &leave, &left), 0);
	assert_int_equal(left.events_reported, 1);
	assert_int_equal(COMMAND(&ctx.client, JOIN_IP_MCAST, &cmd, NULL), 0);
	expect_event(&ctx.client, UCM_EVENT_MULTICAST_JOIN);
	/* Besides the events of two resolutions. The last join's is fetched, but its group
	 * still exists. */
	assert_int_equal(destroy_id(&ctx.client, id, &events), 0);
	assert_int_equal(events, 4);
}

TEST_WITH(destroyed_id_leaves_its_groups, ucm_setup, ucm_teardown)
{
	uint32_t id = make_routed_id(RDMA_PS_UDP);
	struct rdma_ucm_join_mcast cmd = {
		.id = id, .addr_size = sizeof(struct sockaddr_in)};
	struct sockaddr_in6 sa = sockaddr_of("239.1.2.3", 0);

	memcpy(&cmd.addr, &sa, sizeof(sa));
	assert_int_equal(COMMAND(&ctx.client, JOIN_MCAST, &cmd, NULL), 0);
	cmd.join_flags = RDMA_MC_JOIN_FLAG_RESERVED;
	assert_int_equal(COMMAND(&ctx.client, JOIN_MCAST, &cmd, NULL), -EINVAL);
	assert_int_equal(ucm_session_ids(ctx.client.session), 2);
	assert_int_equal(destroy_id(&ctx.client, id, NULL), 0);
	assert_int_equal(ucm_session_ids(ctx.client.session), 0);
	expect_no_event(&ctx.client);
}

TEST_WITH(invalid_groups_are_refused, ucm_setup, ucm_teardown)
{
	uint32_t ud = make_routed_id(RDMA_PS_UDP), rc = make_routed_id(RDMA_PS_TCP);
	struct rdma_ucm_join_ip_mcast cmd = {
		.id = ud, .addr = sockaddr_of("192.0.2.9", 0)};

	assert_int_equal(COMMAND(&ctx.client, JOIN_IP_MCAST, &cmd, NULL), -EINVAL);
	cmd.addr = sockaddr_of("ff15::1", 0);
	assert_int_equal(COMMAND(&ctx.client, JOIN_IP_MCAST, &cmd, NULL), -EINVAL);
	cmd.addr = sockaddr_of("239.1.1.1", 0);
	cmd.id = rc;
	assert_int_equal(COMMAND(&ctx.client, JOIN_IP_MCAST, &cmd, NULL), -EINVAL);
}
