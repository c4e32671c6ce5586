/* SPDX-License-Identifier: BSD-3-Clause */
/* QP attributes of both sides of a connection. */
#include "ucm_fixture.h"
#include "ucm/id.h"

#include <infiniband/verbs.h>

TEST_WITH(both_ends_match, ucm_setup, ucm_teardown)
{
	struct id_pair pair = pair_connected();
	struct ib_uverbs_qp_attr a = qp_attr_of(&ctx.client, pair.active, IBV_QPS_RTR);
	struct ib_uverbs_qp_attr p = qp_attr_of(&ctx.server, pair.passive, IBV_QPS_RTR);
	struct ib_uverbs_qp_attr as = qp_attr_of(&ctx.client, pair.active, IBV_QPS_RTS);
	struct ib_uverbs_qp_attr ps = qp_attr_of(&ctx.server, pair.passive, IBV_QPS_RTS);

	assert_int_equal(a.dest_qp_num, SERVER_QPN);
	assert_int_equal(p.dest_qp_num, CLIENT_QPN);
	assert_int_equal(a.rq_psn, ps.sq_psn);
	assert_int_equal(p.rq_psn, as.sq_psn);
	assert_int_not_equal(as.sq_psn, ps.sq_psn);
	assert_int_equal(a.path_mtu, IBV_MTU_4096);
	assert_int_equal(p.path_mtu, IBV_MTU_4096);
	assert_int_equal(p.max_dest_rd_atomic, 2);
	/* The client asks for 4 and the server answers 2; the server asks for 1 of 3. */
	assert_int_equal(as.max_rd_atomic, 2);
	assert_int_equal(ps.max_rd_atomic, 1);
	assert_int_equal(as.retry_cnt, 6);
	assert_int_equal(ps.retry_cnt, 6);
	assert_int_equal(as.rnr_retry, 7);
	assert_int_equal(ps.rnr_retry, 5);
	assert_int_equal(a.qp_attr_mask,
		IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
			IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	assert_int_equal(as.qp_attr_mask, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT |
						  IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
						  IBV_QP_MAX_QP_RD_ATOMIC);
}

TEST_WITH(init_attributes, ucm_setup, ucm_teardown)
{
	uint32_t id = make_routed_id(RDMA_PS_TCP), ud = make_routed_id(RDMA_PS_UDP);
	struct ib_uverbs_qp_attr attr = qp_attr_of(&ctx.client, id, IBV_QPS_INIT);

	assert_int_equal(attr.qp_attr_mask,
		IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	assert_int_equal(attr.port_num, 1);
	assert_int_equal(attr.qp_access_flags, 0);
	make_listener(RDMA_PS_TCP);
	assert_int_equal(connect_id(&ctx.client, id, CLIENT_QPN, ""), 0);
	attr = qp_attr_of(&ctx.client, id, IBV_QPS_INIT);
	assert_int_equal(attr.qp_access_flags, IBV_ACCESS_REMOTE_WRITE |
						       IBV_ACCESS_REMOTE_READ |
						       IBV_ACCESS_REMOTE_ATOMIC);
	attr = qp_attr_of(&ctx.client, ud, IBV_QPS_INIT);
	assert_int_equal(attr.qp_attr_mask,
		IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
	assert_int_equal(attr.qkey, UCM_QKEY);
	assert_int_equal(
		qp_attr_of(&ctx.client, ud, IBV_QPS_RTR).qp_attr_mask, IBV_QP_STATE);
	expect_event(&ctx.server, UCM_EVENT_CONNECT_REQUEST);
}

/* No connection uses an address that was removed meanwhile. */
TEST_WITH(removed_address_fails, ucm_setup, ucm_teardown)
{
	struct id_pair pair = pair_requested(RDMA_PS_TCP),
		       ud = pair_requested(RDMA_PS_UDP);
	struct rdma_ucm_init_qp_attr cmd = {.id = pair.passive, .qp_state = IBV_QPS_RTR};
	struct rdma_ucm_join_ip_mcast join = {
		.id = ud.active, .addr = sockaddr_of("239.1.2.3", 0)};
	struct net_conf net = ctx.device->conf.net;
	uint32_t late = make_routed_id(RDMA_PS_TCP);

	assert_int_equal(gid_parse("192.0.2.77", net.addr[0].gid, NULL), 0);
	ucm_device_set_net(ctx.device, &net);
	assert_int_equal(COMMAND(&ctx.server, INIT_QP_ATTR, &cmd, NULL), -EADDRNOTAVAIL);
	assert_int_equal(
		connect_id(&ctx.client, late, CLIENT_QPN + 1, ""), -EADDRNOTAVAIL);
	assert_int_equal(
		COMMAND(&ctx.client, JOIN_IP_MCAST, &join, NULL), -EADDRNOTAVAIL);
	expect_no_event(&ctx.client);
}

/* The reply to a datagram id whose address was removed meanwhile. */
TEST_WITH(removed_address_before_sidr_reply, ucm_setup, ucm_teardown)
{
	struct id_pair ud = pair_requested(RDMA_PS_UDP);
	struct ucm_addr *src =
		&((struct ucm_id *)ucm_table_find(&ctx.client.session->ids, ud.active))
			 ->src;

	/* Only this id's copy changes: messages still arrive. */
	assert_int_equal(gid_parse("192.0.2.99", src->gid, NULL), 0);
	assert_int_equal(accept_id(&ctx.server, ud.passive, 1, SERVER_QPN), 0);
	assert_int_equal((int)expect_event(&ctx.client, UCM_EVENT_UNREACHABLE).status,
		-EADDRNOTAVAIL);
}

/* Port space IB takes any type of QP. The two ends of XRC need different attributes. */
TEST_WITH(xrc_attributes, ucm_setup, ucm_teardown)
{
	struct rdma_ucm_create_id cmd = {.ps = RDMA_PS_IB, .qp_type = IBV_QPT_XRC_RECV};
	struct rdma_ucm_create_id_resp server, client;
	struct ib_uverbs_qp_attr attr;
	uint32_t passive;

	assert_int_equal(COMMAND(&ctx.server, CREATE_ID, &cmd, &server), 0);
	assert_int_equal(bind_id(&ctx.server, server.id, NULL, LISTEN_PORT), 0);
	assert_int_equal(listen_id(&ctx.server, server.id, 1), 0);
	cmd.qp_type = IBV_QPT_XRC_SEND;
	assert_int_equal(COMMAND(&ctx.client, CREATE_ID, &cmd, &client), 0);
	assert_int_equal(
		resolve_addr(&ctx.client, client.id, "192.0.2.1", LISTEN_PORT), 0);
	assert_int_equal(resolve_route(&ctx.client, client.id), 0);
	assert_int_equal(connect_id(&ctx.client, client.id, CLIENT_QPN, ""), 0);
	passive = expect_event(&ctx.server, UCM_EVENT_CONNECT_REQUEST).id;
	attr = qp_attr_of(&ctx.server, passive, IBV_QPS_RTR);
	assert_true(attr.qp_attr_mask & IBV_QP_MAX_DEST_RD_ATOMIC);
	attr = qp_attr_of(&ctx.server, passive, IBV_QPS_RTS);
	assert_int_equal(
		attr.qp_attr_mask, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT);
	assert_int_equal(accept_id(&ctx.server, passive, 1, SERVER_QPN), 0);
	attr = qp_attr_of(&ctx.client, client.id, IBV_QPS_RTR);
	assert_false(attr.qp_attr_mask & IBV_QP_MAX_DEST_RD_ATOMIC);
	attr = qp_attr_of(&ctx.client, client.id, IBV_QPS_RTS);
	assert_true(attr.qp_attr_mask & IBV_QP_RETRY_CNT);
}

/* The longest timer where RNR retries are counted, else a short one. */
TEST_WITH(min_rnr_timer_follows_rnr_retry, ucm_setup, ucm_teardown)
{
	struct id_pair pair = pair_connected();

	assert_int_equal(
		qp_attr_of(&ctx.client, pair.active, IBV_QPS_RTR).min_rnr_timer, 0);
	assert_int_equal(
		qp_attr_of(&ctx.server, pair.passive, IBV_QPS_RTR).min_rnr_timer, 12);
}

TEST_WITH(attributes_in_wrong_states_fail, ucm_setup, ucm_teardown)
{
	uint32_t id = make_id(&ctx.client, RDMA_PS_TCP);
	struct rdma_ucm_init_qp_attr cmd = {.id = id, .qp_state = IBV_QPS_INIT};

	assert_int_equal(COMMAND(&ctx.client, INIT_QP_ATTR, &cmd, NULL), -EINVAL);
	cmd.id = make_routed_id(RDMA_PS_TCP);
	cmd.qp_state = IBV_QPS_RTR;
	assert_int_equal(COMMAND(&ctx.client, INIT_QP_ATTR, &cmd, NULL), -EINVAL);
	cmd.qp_state = IBV_QPS_RTS;
	assert_int_equal(COMMAND(&ctx.client, INIT_QP_ATTR, &cmd, NULL), -EINVAL);
	cmd.qp_state = IBV_QPS_SQD;
	assert_int_equal(COMMAND(&ctx.client, INIT_QP_ATTR, &cmd, NULL), -EINVAL);
}
