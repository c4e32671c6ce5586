/* SPDX-License-Identifier: BSD-3-Clause */
/* Ends with different path MTUs agree on the smaller one: only the REQ has a path MTU, so the
 * passive side rejects one that it cannot do (IBA 12.6.7.2), and the active side asks again. */
#include "ucm_fixture.h"

#include <infiniband/verbs.h>

static int
setup(void **state)
{
	fixture_open(true);
	return 0;
}

/* info: the path MTU in the REJ. len: 0: it has none. */
static void
reject_mtu(uint8_t info, unsigned len)
{
	uint8_t bytes[72] = {info};
	struct mad rej;

	mad_init(&rej, MAD_REJ, ctx.sent.tid);
	mad_put(&rej, MAD_REJ_remote_id, mad_get(&ctx.sent, MAD_REQ_local_id));
	mad_put(&rej, MAD_REJ_reason, CM_REJ_MTU);
	mad_put(&rej, MAD_REJ_info_len, len);
	mad_put_bytes(&rej, MAD_REJ_info, bytes);
	ucm_rx(ctx.ucm, (const uint8_t *)&rej, sizeof(rej), &ctx.sent_path, ctx.now);
}

/* Returns an ID of the client that asks another host. */
static uint32_t
asker(void)
{
	uint32_t id = make_id(&ctx.client, RDMA_PS_TCP);

	assert_int_equal(resolve_addr(&ctx.client, id, "203.0.113.9", LISTEN_PORT), 0);
	connect_resolving(&ctx.client, id, CLIENT_QPN);
	assert_int_equal(mad_attr_of(&ctx.sent), MAD_REQ);
	assert_int_equal(mad_get(&ctx.sent, MAD_REQ_path_mtu), IBV_MTU_4096);
	return id;
}

TEST_WITH(smaller_mtu_is_asked_for, setup, ucm_teardown)
{
	uint32_t id = asker();
	uint64_t local_id = mad_get(&ctx.sent, MAD_REQ_local_id);
	struct mad rep;

	reject_mtu(IBV_MTU_1024, 1);
	expect_no_event(&ctx.client);
	assert_int_equal(ctx.sent_count, 2);
	assert_int_equal(mad_attr_of(&ctx.sent), MAD_REQ);
	assert_int_equal(mad_get(&ctx.sent, MAD_REQ_path_mtu), IBV_MTU_1024);
	assert_int_equal(mad_get(&ctx.sent, MAD_REQ_local_qpn), CLIENT_QPN);
	assert_int_not_equal(mad_get(&ctx.sent, MAD_REQ_local_id), local_id);
	assert_int_equal(cm_in_use(ctx.ucm->cm), 1); /* the rejected one is freed */
	mad_init(&rep, MAD_REP, ctx.sent.tid);
	mad_put(&rep, MAD_REP_local_id, 77);
	mad_put(&rep, MAD_REP_remote_id, mad_get(&ctx.sent, MAD_REQ_local_id));
	mad_put(&rep, MAD_REP_local_qpn, 0x999);
	ucm_rx(ctx.ucm, (const uint8_t *)&rep, sizeof(rep), &ctx.sent_path, ctx.now);
	expect_event(&ctx.client, UCM_EVENT_CONNECT_RESPONSE);
	assert_int_equal(qp_attr_of(&ctx.client, id, IBV_QPS_RTR).path_mtu, IBV_MTU_1024);
}

/* The program learns of a rejection that a smaller path MTU does not help against. */
TEST_WITH(other_rejections_are_reported, setup, ucm_teardown)
{
	static const struct {
		uint8_t info;
		unsigned len;
	} rows[] = {{IBV_MTU_4096, 1}, {IBV_MTU_1024, 0}, {0, 1}, {200, 1}};

	for (unsigned i = 0; i < RTE_DIM(rows); i++) {
		uint32_t id = asker();

		ctx.sent_count = 0;
		reject_mtu(rows[i].info, rows[i].len);
		assert_int_equal(ctx.sent_count, 0);
		assert_int_equal(
			expect_event(&ctx.client, UCM_EVENT_REJECTED).status, CM_REJ_MTU);
		assert_int_equal(destroy_id(&ctx.client, id, NULL), 0);
	}
}

/* A peer that rejects each REQ: each asks for less, so there are few. */
TEST_WITH(requests_end, setup, ucm_teardown)
{
	uint32_t id = asker();

	for (unsigned mtu = IBV_MTU_2048; mtu >= IBV_MTU_256; mtu--)
		reject_mtu((uint8_t)mtu, 1);
	assert_int_equal(mad_get(&ctx.sent, MAD_REQ_path_mtu), IBV_MTU_256);
	expect_no_event(&ctx.client);
	reject_mtu(IBV_MTU_256, 1);
	assert_int_equal(
		expect_event(&ctx.client, UCM_EVENT_REJECTED).status, CM_REJ_MTU);
	assert_int_equal(destroy_id(&ctx.client, id, NULL), 0);
	assert_int_equal(cm_in_use(ctx.ucm->cm), 0);
}

/* The user has no place for a second connection: the first rejection is reported. */
TEST_WITH(request_without_room_is_not_repeated, setup, ucm_teardown)
{
	struct accounts all;
	struct account *user;
	uint32_t id;

	accounts_init(&all);
	user = account_open(&all, 1, 0);
	ucm_session_charge(ctx.client.session, user);
	accounts_limit(&all, ACCOUNT_cm_connections, 1, false);
	id = asker();
	reject_mtu(IBV_MTU_1024, 1);
	assert_int_equal(
		expect_event(&ctx.client, UCM_EVENT_REJECTED).status, CM_REJ_MTU);
	assert_int_equal(user->held[ACCOUNT_cm_connections], 0);
	assert_int_equal(destroy_id(&ctx.client, id, NULL), 0);
	accounts_limit(&all, ACCOUNT_cm_connections, 2, false);
	id = asker();
	reject_mtu(IBV_MTU_1024, 1);
	assert_int_equal(user->held[ACCOUNT_cm_connections], 1);
	assert_int_equal(destroy_id(&ctx.client, id, NULL), 0);
	assert_int_equal(user->held[ACCOUNT_cm_connections], 0);
	ucm_session_charge(ctx.client.session, NULL);
	account_close(user);
	accounts_fini(&all);
}

/* A REQ with this path MTU to the server's listener. */
static void
request_arrive(uint8_t mtu, uint32_t local_id)
{
	struct cm_path path = {.local = false};
	struct cma_hdr hdr = {.sport = 1};
	struct mad req;

	memcpy(path.sgid, ctx.device->conf.net.addr[0].gid, 16);
	assert_int_equal(gid_parse("203.0.113.9", path.dgid, NULL), 0);
	mad_init(&req, MAD_REQ, 1);
	mad_put(&req, MAD_REQ_local_id, local_id);
	mad_put(&req, MAD_REQ_service_id, cma_service_id(CMA_PS_TCP, LISTEN_PORT));
	mad_put(&req, MAD_REQ_local_qpn, 0x999);
	mad_put(&req, MAD_REQ_path_mtu, mtu);
	mad_put_bytes(&req, MAD_REQ_primary_local_gid, path.dgid);
	mad_put_bytes(&req, MAD_REQ_primary_remote_gid, path.sgid);
	memcpy(hdr.src, path.dgid, 16);
	memcpy(hdr.dst, path.sgid, 16);
	cma_put(&req, &hdr);
	ucm_rx(ctx.ucm, (const uint8_t *)&req, sizeof(req), &path, ctx.now);
}

TEST_WITH(larger_mtu_is_rejected, setup, ucm_teardown)
{
	uint32_t id;

	ctx.device->conf.path_mtu = IBV_MTU_1024;
	make_listener(RDMA_PS_TCP);
	request_arrive(IBV_MTU_2048, 5);
	expect_no_event(&ctx.server);
	assert_int_equal(ctx.sent_count, 1);
	assert_int_equal(mad_attr_of(&ctx.sent), MAD_REJ);
	assert_int_equal(mad_get(&ctx.sent, MAD_REJ_reason), CM_REJ_MTU);
	assert_int_equal(mad_get(&ctx.sent, MAD_REJ_info_len), 1);
	assert_int_equal(*mad_bytes(&ctx.sent, MAD_REJ_info), IBV_MTU_1024);
	/* The same QP asks for what this end can do, then for less. */
	request_arrive(IBV_MTU_1024, 6);
	id = expect_event(&ctx.server, UCM_EVENT_CONNECT_REQUEST).id;
	assert_int_equal(qp_attr_of(&ctx.server, id, IBV_QPS_RTR).path_mtu, IBV_MTU_1024);
	assert_int_equal(destroy_id(&ctx.server, id, NULL), 0);
	request_arrive(IBV_MTU_512, 7);
	id = expect_event(&ctx.server, UCM_EVENT_CONNECT_REQUEST).id;
	assert_int_equal(qp_attr_of(&ctx.server, id, IBV_QPS_RTR).path_mtu, IBV_MTU_512);
}
