/* SPDX-License-Identifier: BSD-3-Clause */
#include "switch_fixture.h"

static int
request_for_qpn(
	struct switch_fixture *b, struct fixture_client *c, uint32_t type, uint32_t qpn)
{
	struct sw_request req = {.type = type, .qpn = qpn, .dest_qpn = 77};
	struct sw_reply reply;

	memcpy(req.sgid, b->addr, 16);
	memcpy(req.dgid, b->addr, 16);
	client_request(b, c, &req, &reply);
	assert_int_equal(reply.type, type);
	assert_int_equal(reply.magic, SW_PROTO_MAGIC);
	return reply.error;
}

TEST(malformed_request_is_refused)
{
	struct sw_request req = {
		.magic = SW_PROTO_MAGIC, .version = 1, .type = SW_DEVICE_INFO};
	struct sw_reply reply;
	struct switch_fixture b;

	fixture_open(&b);
	for (size_t len = 0; len < sizeof(req); len++)
		assert_false(sw_serve(b.sw, &b.device, NULL, &req, len, &reply));
	assert_false(sw_serve(b.sw, &b.device, NULL, &req, sizeof(req) + 1, &reply));
	assert_true(sw_serve(b.sw, &b.device, NULL, &req, sizeof(req), &reply));
	req.magic++;
	assert_false(sw_serve(b.sw, &b.device, NULL, &req, sizeof(req), &reply));
	fixture_close(&b);
}

TEST(version_mismatch_reports_our_version)
{
	struct sw_request req = {.magic = SW_PROTO_MAGIC,
		.version = SW_PROTO_VERSION + 1,
		.type = SW_ATTACH};
	struct sw_reply reply;
	struct switch_fixture b;

	fixture_open(&b);
	assert_true(sw_serve(b.sw, &b.device, NULL, &req, sizeof(req), &reply));
	assert_int_equal(reply.error, EPROTONOSUPPORT);
	assert_int_equal(reply.version, SW_PROTO_VERSION);
	fixture_close(&b);
}

TEST(requests_need_an_attachment)
{
	struct switch_fixture b;

	fixture_open(&b);
	assert_int_equal(request_for_qpn(&b, NULL, SW_DEVICE_INFO, 0), 0);
	assert_int_equal(request_for_qpn(&b, NULL, SW_ATTACH, 0), 0);
	assert_int_equal(request_for_qpn(&b, NULL, SW_QPN_TAKE, 0), ENOTCONN);
	assert_int_equal(request_for_qpn(&b, NULL, SW_PEER_SET, b.c[0].qpn), ENOTCONN);
	assert_int_equal(request_for_qpn(&b, &b.c[0], SW_ATTACH, 0), EALREADY);
	assert_int_equal(request_for_qpn(&b, &b.c[0], 4711, 0), EOPNOTSUPP);
	fixture_close(&b);
}

TEST(qpn_of_another_client_is_refused)
{
	static const uint32_t types[] = {
		SW_QPN_GIVE, SW_PEER_SET, SW_PEER_CLEAR, SW_GROUP_JOIN, SW_GROUP_LEAVE};
	struct switch_fixture b;

	fixture_open(&b);
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		assert_int_equal(
			request_for_qpn(&b, &b.c[0], types[i], b.c[1].qpn), EINVAL);
		assert_int_equal(request_for_qpn(&b, &b.c[0], types[i], 0), EINVAL);
		assert_int_equal(
			request_for_qpn(&b, &b.c[0], types[i], UINT32_MAX), EINVAL);
	}
	assert_int_equal(b.c[0].client->stats.refused, 15);
	assert_int_equal(request_for_qpn(&b, &b.c[0], SW_PEER_SET, b.c[0].qpn), 0);
	assert_int_equal(request_for_qpn(&b, &b.c[0], SW_QPN_GIVE, b.c[0].qpn), 0);
	assert_int_equal(request_for_qpn(&b, &b.c[0], SW_QPN_GIVE, b.c[0].qpn), EINVAL);
	assert_int_equal(b.c[0].client->qps, 0);
	fixture_close(&b);
}

TEST(invalid_peer_is_refused)
{
	static const uint32_t bad[] = {0, 1, 0xFFFFFF, 0x1000000, UINT32_MAX};
	struct sw_request req = {.type = SW_PEER_SET, .dest_qpn = 5};
	struct sw_reply reply;
	struct switch_fixture b;

	fixture_open(&b);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(
			client_set_peer(&b, &b.c[0], b.c[0].qpn, b.addr, bad[i]), EINVAL);
	req.qpn = b.c[0].qpn;
	memcpy(req.sgid, b.other, 16); /* not the switch's address */
	memcpy(req.dgid, b.addr, 16);
	client_request(&b, &b.c[0], &req, &reply);
	assert_int_equal(reply.error, EINVAL);
	fixture_close(&b);
}

TEST(groups_are_joined_and_left)
{
	struct sw_request req = {.type = SW_GROUP_JOIN};
	struct sw_reply reply;
	struct switch_fixture b;

	fixture_open(&b);
	req.qpn = b.c[0].qpn;
	assert_int_equal(gid_parse("239.9.9.9", req.dgid, NULL), 0);
	client_request(&b, &b.c[0], &req, &reply);
	assert_int_equal(reply.error, 0);
	client_request(&b, &b.c[0], &req, &reply); /* joined already */
	assert_int_equal(reply.error, 0);
	assert_int_equal(sw_group_find(b.sw, req.dgid)->count, 1);
	req.type = SW_GROUP_LEAVE;
	client_request(&b, &b.c[0], &req, &reply);
	assert_int_equal(reply.error, 0);
	client_request(&b, &b.c[0], &req, &reply);
	assert_int_equal(reply.error, EINVAL);
	req.type = SW_GROUP_JOIN;
	memcpy(req.dgid, b.other, 16); /* not a group */
	client_request(&b, &b.c[0], &req, &reply);
	assert_int_equal(reply.error, EINVAL);
	/* One more than there is room for. */
	assert_int_equal(gid_parse("ff0e::1", req.dgid, NULL), 0);
	for (unsigned i = 0; i <= SW_GROUPS; i++) {
		req.dgid[8] = (uint8_t)(i >> 8);
		req.dgid[9] = (uint8_t)i;
		client_request(&b, &b.c[0], &req, &reply);
		assert_int_equal(reply.error, i < SW_GROUPS ? 0 : ENOSPC);
	}
	fixture_close(&b);
}
