/* SPDX-License-Identifier: BSD-3-Clause */
/* Several devices: which one an ID is bound to, and what the end of a device does. */
#include <endian.h>

#include "ucm_fixture.h"

#define SECOND_GUID UINT64_C(0x0200000000000002)

static struct ucm_device *second;

/* The fixture's device has no subnets. This one has 203.0.113.0/24, and the network behind
 * fe80::2. */
static struct ucm_device_conf
second_conf(void)
{
	struct ucm_device_conf conf = {.guid = SECOND_GUID, .index = 5, .path_mtu = 3};

	assert_int_equal(gid_parse("203.0.113.1", conf.net.addr[0].gid, NULL), 0);
	conf.net.addr[0].prefix_len = 24;
	assert_int_equal(gid_parse("fe80::2", conf.net.addr[1].gid, NULL), 0);
	conf.net.addr[1].prefix_len = 64;
	conf.net.addr_count = 2;
	return conf;
}

#define MANY 300 /* more messages than the connection manager's queue has room for */

static int
setup(void **state)
{
	struct ucm_device_conf conf = second_conf();
	struct net_conf net;

	(void)state;
	fixture_open_sized(true, MANY);
	net = ctx.device->conf.net;
	for (unsigned i = 0; i < net.addr_count; i++)
		net.addr[i].prefix_len = gid_is_ipv4(net.addr[i].gid) ? 24 : 64;
	ucm_device_set_net(ctx.device, &net);
	assert_int_equal(ucm_device_add(ctx.ucm, &conf, &second), 0);
	return 0;
}

TEST_WITH(invalid_devices_are_refused, setup, ucm_teardown)
{
	struct ucm_device_conf good = second_conf(), conf;
	struct ucm_device *device;

#define REFUSED(change)                                                                  \
	do {                                                                             \
		conf = good;                                                             \
		change;                                                                  \
		assert_int_equal(ucm_device_add(ctx.ucm, &conf, &device), -EINVAL);      \
	} while (0)
	REFUSED(conf.net.addr_count = 0);
	REFUSED(conf.net.addr_count = NET_MAX_ADDRS + 1);
	REFUSED(conf.path_mtu = 0);
	REFUSED(conf.path_mtu = 6);
#undef REFUSED
}

/* Returns the GUID of the device that the ID is bound to, or 0. The second device has an index, too. */
static uint64_t
guid_of(struct test_process *p, uint32_t id)
{
	struct rdma_ucm_query cmd = {.id = id};
	struct rdma_ucm_query_route_resp resp = {.node_guid = 0};

	assert_int_equal(COMMAND(p, QUERY_ROUTE, &cmd, &resp), 0);
	assert_int_equal(resp.ibdev_index,
		be64toh(resp.node_guid) == SECOND_GUID ? 5 : UCM_NO_INDEX);
	return be64toh(resp.node_guid);
}

TEST_WITH(bound_address_names_the_device, setup, ucm_teardown)
{
	uint32_t one = make_id(&ctx.client, RDMA_PS_TCP);
	uint32_t two = make_id(&ctx.client, RDMA_PS_TCP);

	assert_int_equal(bind_id(&ctx.client, one, "198.51.100.1", 0), 0);
	assert_int_equal(bind_id(&ctx.client, two, "203.0.113.1", 0), 0);
	assert_true(guid_of(&ctx.client, one) == ctx.device->conf.guid);
	assert_true(guid_of(&ctx.client, two) == SECOND_GUID);
}

static uint64_t
guid_towards(const char *peer)
{
	uint32_t id = make_id(&ctx.client, RDMA_PS_TCP);
	uint64_t guid;

	assert_int_equal(resolve_addr(&ctx.client, id, peer, LISTEN_PORT), 0);
	expect_event(&ctx.client, UCM_EVENT_ADDR_RESOLVED);
	guid = guid_of(&ctx.client, id);
	assert_int_equal(destroy_id(&ctx.client, id, NULL), 0);
	return guid;
}

TEST_WITH(destination_chooses_the_device, setup, ucm_teardown)
{
	struct net_conf net = second->conf.net;

	assert_true(guid_towards("192.0.2.77") == ctx.device->conf.guid);
	assert_true(guid_towards("203.0.113.77") == SECOND_GUID);
	/* local addresses */
	assert_true(guid_towards("203.0.113.1") == SECOND_GUID);
	assert_true(guid_towards("fe80::2") == SECOND_GUID);
	/* the first device is the default, until the other has a gateway */
	assert_true(guid_towards("10.9.9.9") == ctx.device->conf.guid);
	assert_int_equal(gid_parse("203.0.113.254", net.gateway4, NULL), 0);
	ucm_device_set_net(second, &net);
	assert_true(guid_towards("10.9.9.9") == SECOND_GUID);
}

/* Between two devices of the program the request goes over the network, as between hosts. It
 * names the device's GUID and path MTU. */
TEST_WITH(request_to_the_other_device_leaves, setup, ucm_teardown)
{
	uint32_t id = make_id(&ctx.client, RDMA_PS_TCP);
	struct rdma_ucm_resolve_ip cmd = {.id = id,
		.timeout_ms = 2000,
		.src_addr = sockaddr_of("203.0.113.1", 0),
		.dst_addr = sockaddr_of("192.0.2.1", LISTEN_PORT)};

	make_listener(RDMA_PS_TCP);
	assert_int_equal(COMMAND(&ctx.client, RESOLVE_IP, &cmd, NULL), 0);
	connect_resolving(&ctx.client, id, CLIENT_QPN);
	assert_int_equal(ctx.sent_count, 1);
	assert_int_equal(mad_attr_of(&ctx.sent), MAD_REQ);
	assert_true(mad_get(&ctx.sent, MAD_REQ_ca_guid) == SECOND_GUID);
	assert_int_equal(mad_get(&ctx.sent, MAD_REQ_path_mtu), 3);
	expect_no_event(&ctx.server);
}

TEST_WITH(wildcard_listens_on_all_devices, setup, ucm_teardown)
{
	uint32_t listener = make_listener(RDMA_PS_TCP), id;

	for (unsigned i = 0; i < 2; i++) {
		id = make_id(&ctx.client, RDMA_PS_TCP);
		assert_int_equal(
			resolve_addr(&ctx.client, id,
				i == 0 ? "192.0.2.1" : "203.0.113.1", LISTEN_PORT),
			0);
		connect_resolving(&ctx.client, id, CLIENT_QPN + i);
		id = expect_event(&ctx.server, UCM_EVENT_CONNECT_REQUEST).id;
		assert_true(guid_of(&ctx.server, id) ==
			    (i == 0 ? ctx.device->conf.guid : SECOND_GUID));
	}
	assert_true(guid_of(&ctx.server, listener) == 0);
}

TEST_WITH(removal_ends_what_is_bound_to_the_device, setup, ucm_teardown)
{
	struct id_pair pair = pair_connected();
	uint32_t other = make_id(&ctx.client, RDMA_PS_TCP);
	uint32_t ud = make_id(&ctx.client, RDMA_PS_UDP);
	struct rdma_ucm_join_ip_mcast join = {
		.id = ud, .uid = 7, .addr = sockaddr_of("239.1.1.1", 0)};
	struct rdma_ucm_create_id_resp group;
	struct rdma_ucm_init_qp_attr query = {.id = pair.active, .qp_state = IBV_QPS_RTR};

	assert_int_equal(bind_id(&ctx.client, other, "203.0.113.1", 0), 0);
	assert_int_equal(bind_id(&ctx.client, ud, "192.0.2.1", 0), 0);
	assert_int_equal(COMMAND(&ctx.client, JOIN_IP_MCAST, &join, &group), 0);
	expect_event(&ctx.client, UCM_EVENT_MULTICAST_JOIN);
	ucm_device_remove(ctx.device, ctx.now);
	for (unsigned i = 0; i < 2; i++) {
		uint32_t id = expect_event(&ctx.client, UCM_EVENT_DEVICE_REMOVAL).id;

		assert_true(id == pair.active || id == ud);
	}
	expect_no_event(&ctx.client);
	assert_int_equal(
		expect_event(&ctx.server, UCM_EVENT_DEVICE_REMOVAL).id, pair.passive);
	expect_no_event(&ctx.server); /* the wildcard listener has lost nothing */
	assert_int_equal(COMMAND(&ctx.client, INIT_QP_ATTR, &query, NULL), -EINVAL);
	assert_true(guid_of(&ctx.client, other) == SECOND_GUID);
	assert_true(guid_of(&ctx.client, pair.active) == 0);
	assert_int_equal(
		bind_id(&ctx.client, make_id(&ctx.client, RDMA_PS_TCP), "192.0.2.1", 0),
		-EADDRNOTAVAIL);
	assert_int_equal(destroy_id(&ctx.client, pair.active, NULL), 0);
	assert_int_equal(destroy_id(&ctx.client, ud, NULL), 0);
}

TEST_WITH(removal_drops_unseen_requests_and_stops_later_ones, setup, ucm_teardown)
{
	uint32_t routed = make_routed_id(RDMA_PS_TCP), id = make_routed_id(RDMA_PS_TCP);

	make_listener(RDMA_PS_TCP);
	assert_int_equal(connect_id(&ctx.client, id, CLIENT_QPN, "x"), 0);
	assert_true(ctx.server.woken != 0);
	ucm_device_remove(ctx.device, ctx.now);
	expect_no_event(&ctx.server);
	expect_event(&ctx.client, UCM_EVENT_DEVICE_REMOVAL);
	expect_event(&ctx.client, UCM_EVENT_DEVICE_REMOVAL);
	assert_int_equal(connect_id(&ctx.client, routed, CLIENT_QPN, "x"), -ENODEV);
}

/* An ID whose device was removed does not move to another one. */
TEST_WITH(removal_leaves_ids_without_a_device, setup, ucm_teardown)
{
	uint32_t bound = make_id(&ctx.client, RDMA_PS_TCP);
	uint32_t waiting = make_id(&ctx.client, RDMA_PS_TCP);
	uint32_t resolved = make_id(&ctx.client, RDMA_PS_TCP);
	uint32_t ud = make_routed_id(RDMA_PS_UDP);

	assert_int_equal(bind_id(&ctx.client, bound, "192.0.2.1", 0), 0);
	assert_int_equal(bind_id(&ctx.client, waiting, "192.0.2.1", 0), 0);
	assert_int_equal(resolve_addr(&ctx.client, resolved, "192.0.2.7", 1), 0);
	expect_event(&ctx.client, UCM_EVENT_ADDR_RESOLVED);
	ucm_device_remove(ctx.device, ctx.now);
	for (unsigned i = 0; i < 4; i++)
		expect_event(&ctx.client, UCM_EVENT_DEVICE_REMOVAL);
	assert_int_equal(resolve_addr(&ctx.client, bound, "203.0.113.7", 1), -ENODEV);
	assert_int_equal(listen_id(&ctx.client, waiting, 1), -ENODEV);
	assert_int_equal(resolve_route(&ctx.client, resolved), -ENODEV);
	assert_int_equal(connect_id(&ctx.client, ud, CLIENT_QPN, "x"), -ENODEV);
	expect_no_event(&ctx.client);
}

TEST_WITH(no_device_is_an_error_of_the_address, setup, ucm_teardown)
{
	uint32_t id = make_id(&ctx.client, RDMA_PS_TCP);

	ucm_device_remove(ctx.device, ctx.now);
	ucm_device_remove(second, ctx.now);
	assert_int_equal(bind_id(&ctx.client, id, "192.0.2.1", 0), -EADDRNOTAVAIL);
	assert_int_equal(resolve_addr(&ctx.client, id, NULL, 1), 0);
	assert_int_equal((int)expect_event(&ctx.client, UCM_EVENT_ADDR_ERROR).status,
		-EADDRNOTAVAIL);
	assert_int_equal(resolve_addr(&ctx.client, id, "127.0.0.1", 1), 0);
	expect_event(&ctx.client, UCM_EVENT_ADDR_ERROR);
}

/* Each peer gets the last message. A call sends no more than its caller has room for. */
TEST_WITH(removal_sends_all_last_messages, setup, ucm_teardown)
{
	static struct test_process many = {.base = 0x300};
	unsigned calls = 1;

	ctx.ucm->conf.limits.ids = MANY;
	assert_int_equal(ucm_session_create(ctx.ucm, &many, &many.session), 0);
	assert_int_equal(
		ucm_channel_open(many.session, &many, &many.channel, &many.number), 0);
	for (unsigned i = 0; i < MANY; i++) {
		uint32_t id = make_id(&many, RDMA_PS_TCP);

		assert_int_equal(resolve_addr(&many, id, "192.0.2.77", LISTEN_PORT), 0);
		connect_resolving(&many, id, many.base);
	}
	assert_int_equal(ctx.sent_count, MANY);
	ctx.sent_count = 0;
	while (ucm_device_shrink(ctx.device, ctx.now)) {
		assert_int_equal(ctx.sent_count, UCM_DEVICE_BATCH * calls);
		calls++;
	}
	assert_int_equal(calls, MANY / UCM_DEVICE_BATCH + 1);
	assert_int_equal(ctx.sent_count, MANY);
	assert_int_equal(mad_attr_of(&ctx.sent), MAD_REJ);
	assert_int_equal(ucm_stats(ctx.ucm)->tx_full, 0);
	for (unsigned i = 0; i < MANY; i++)
		expect_event(&many, UCM_EVENT_DEVICE_REMOVAL);
	ucm_session_destroy(many.session, ctx.now);
}
