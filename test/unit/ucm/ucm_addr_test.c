/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses and ports, and the owners of ports. */
#include "ucm_fixture.h"
#include "ucm/id.h"

TEST_WITH(port_has_one_owner, ucm_setup, ucm_teardown)
{
	uint32_t a = make_id(&ctx.server, RDMA_PS_TCP),
		 b = make_id(&ctx.client, RDMA_PS_TCP);
	uint32_t c = make_id(&ctx.client, RDMA_PS_UDP),
		 d = make_id(&ctx.client, RDMA_PS_TCP);

	assert_int_equal(bind_id(&ctx.server, a, "192.0.2.1", 5000), 0);
	assert_int_equal(bind_id(&ctx.client, b, "192.0.2.1", 5000), -EADDRINUSE);
	assert_int_equal(bind_id(&ctx.client, b, NULL, 5000), -EADDRINUSE);
	/* Another address or another port space is another port. */
	assert_int_equal(bind_id(&ctx.client, b, "198.51.100.1", 5000), 0);
	assert_int_equal(bind_id(&ctx.client, c, "192.0.2.1", 5000), 0);
	/* An id is bound once. */
	assert_int_equal(bind_id(&ctx.client, b, "198.51.100.1", 5001), -EINVAL);
	assert_int_equal(destroy_id(&ctx.server, a, NULL), 0);
	assert_int_equal(bind_id(&ctx.client, d, "192.0.2.1", 5000), 0);
}

static int
set_reuse(struct test_process *p, uint32_t id)
{
	struct ucm_set_option option = {
		.head = {.id = id, .optname = RDMA_OPTION_ID_REUSEADDR, .optlen = 4},
		.value = {1}};

	return COMMAND(p, SET_OPTION, &option, NULL);
}

/* As with Linux: two IDs share the port as long as none listens, and one that is alone
 * may listen. */
TEST_WITH(port_is_shared_with_reuseaddr, ucm_setup, ucm_teardown)
{
	uint32_t a = make_id(&ctx.server, RDMA_PS_TCP),
		 b = make_id(&ctx.client, RDMA_PS_TCP);

	assert_int_equal(set_reuse(&ctx.server, a), 0);
	assert_int_equal(bind_id(&ctx.server, a, NULL, 5000), 0);
	assert_int_equal(bind_id(&ctx.client, b, NULL, 5000), -EADDRINUSE);
	assert_int_equal(set_reuse(&ctx.client, b), 0);
	assert_int_equal(bind_id(&ctx.client, b, NULL, 5000), 0);
	assert_int_equal(listen_id(&ctx.server, a, 1), -EADDRINUSE);
	assert_int_equal(listen_id(&ctx.client, b, 1), -EADDRINUSE);
	assert_int_equal(destroy_id(&ctx.client, b, NULL), 0);
	assert_int_equal(listen_id(&ctx.server, a, 1), 0);
	b = make_id(&ctx.client, RDMA_PS_TCP);
	assert_int_equal(set_reuse(&ctx.client, b), 0);
	assert_int_equal(bind_id(&ctx.client, b, NULL, 5000), -EADDRINUSE);
	assert_int_equal(bind_id(&ctx.client, b, "192.0.2.1", 5000), -EADDRINUSE);
}

/* A command looks at all IDs that share a port. */
TEST_WITH(few_ids_share_a_port, ucm_setup, ucm_teardown)
{
	struct test_process many = {.base = 0x300};
	uint32_t last = 0;

	ctx.ucm->conf.limits.ids = UCM_PORT_IDS + 2;
	assert_int_equal(ucm_session_create(ctx.ucm, &many, &many.session), 0);
	assert_int_equal(
		ucm_channel_open(many.session, &many, &many.channel, &many.number), 0);
	for (unsigned i = 0; i < UCM_PORT_IDS; i++) {
		last = make_id(&many, RDMA_PS_TCP);
		assert_int_equal(set_reuse(&many, last), 0);
		assert_int_equal(bind_id(&many, last, "192.0.2.1", 5000), 0);
	}
	assert_int_equal(destroy_id(&many, last, NULL), 0);
	last = make_id(&many, RDMA_PS_TCP);
	assert_int_equal(set_reuse(&many, last), 0);
	assert_int_equal(bind_id(&many, last, "192.0.2.1", 5000), 0);
	last = make_id(&many, RDMA_PS_TCP);
	assert_int_equal(set_reuse(&many, last), 0);
	assert_int_equal(bind_id(&many, last, "192.0.2.1", 5000), -EADDRINUSE);
	/* Other ports are not concerned, also not one of the same bucket. */
	assert_int_equal(bind_id(&many, last, "192.0.2.1", 5001), 0);
	last = make_id(&ctx.client, RDMA_PS_TCP);
	assert_int_equal(
		bind_id(&ctx.client, last, "192.0.2.1", 5000 + UCM_PORT_BUCKETS), 0);
	ucm_session_destroy(many.session, ctx.now);
}

/* A user tries to share a port with a program of another user, to listen on a closer
 * address. */
static uint16_t
chosen_port(struct test_process *p, uint32_t id, const char *text)
{
	assert_int_equal(bind_id(p, id, text, 0), 0);
	return ((struct ucm_id *)ucm_table_find(&p->session->ids, id))->port;
}

/* An ID that asks for any port does not share one, as with Linux: it would get another
 * one's requests, or could not listen. */
TEST_WITH(chosen_port_is_not_shared, ucm_setup, ucm_teardown)
{
	uint32_t a = make_id(&ctx.server, RDMA_PS_TCP),
		 b = make_id(&ctx.client, RDMA_PS_TCP);
	struct random_numbers before = ctx.ucm->port_choices;
	uint16_t port;

	assert_int_equal(set_reuse(&ctx.server, a), 0);
	assert_int_equal(set_reuse(&ctx.client, b), 0);
	port = chosen_port(&ctx.server, a, NULL);
	ctx.ucm->port_choices = before; /* the same choice */
	assert_int_not_equal(chosen_port(&ctx.client, b, "192.0.2.1"), port);
	assert_int_equal(listen_id(&ctx.server, a, 1), 0);
	assert_int_equal(listen_id(&ctx.client, b, 1), 0);
}

TEST_WITH(users_do_not_share_ports, ucm_setup, ucm_teardown)
{
	uint32_t a = make_id(&ctx.server, RDMA_PS_TCP),
		 b = make_id(&ctx.client, RDMA_PS_TCP),
		 c = make_id(&ctx.client, RDMA_PS_TCP);

	ucm_session_set_user(ctx.server.session, 1001, false);
	ucm_session_set_user(ctx.client.session, 1002, false);
	assert_int_equal(set_reuse(&ctx.server, a), 0);
	assert_int_equal(set_reuse(&ctx.client, b), 0);
	assert_int_equal(set_reuse(&ctx.client, c), 0);
	/* The first one has the port. */
	assert_int_equal(bind_id(&ctx.client, b, "192.0.2.1", 5000), 0);
	assert_int_equal(bind_id(&ctx.server, a, NULL, 5000), -EADDRINUSE);
	assert_int_equal(bind_id(&ctx.server, a, NULL, 5001), 0);
	assert_int_equal(bind_id(&ctx.client, c, "192.0.2.1", 5001), -EADDRINUSE);
	assert_int_equal(listen_id(&ctx.server, a, 1), 0);
	/* A user's own IDs share it. */
	assert_int_equal(bind_id(&ctx.client, c, "192.0.2.1", 5000), 0);
}

/* Nor do programs that have one uid, where several users may have it. */
TEST_WITH(users_with_one_uid_do_not_share_ports, ucm_setup, ucm_teardown)
{
	uint32_t a = make_id(&ctx.server, RDMA_PS_TCP),
		 b = make_id(&ctx.client, RDMA_PS_TCP),
		 c = make_id(&ctx.client, RDMA_PS_TCP);

	for (unsigned i = 0; i < 2; i++) {
		struct ucm_session *s = i == 0 ? ctx.server.session : ctx.client.session;

		ucm_session_set_user(s, 65534, false);
		ucm_session_set_shared_uid(s);
	}
	assert_int_equal(set_reuse(&ctx.server, a), 0);
	assert_int_equal(set_reuse(&ctx.client, b), 0);
	assert_int_equal(set_reuse(&ctx.client, c), 0);
	assert_int_equal(bind_id(&ctx.client, b, "192.0.2.1", 5000), 0);
	assert_int_equal(bind_id(&ctx.server, a, NULL, 5000), -EADDRINUSE);
	/* A program's own IDs share it. */
	assert_int_equal(bind_id(&ctx.client, c, "192.0.2.1", 5000), 0);
}

/* The same within a user: of two bound IDs, the one with the closer address does not
 * take the requests of the other. */
TEST_WITH(closer_address_takes_no_requests, ucm_setup, ucm_teardown)
{
	uint32_t a = make_id(&ctx.server, RDMA_PS_TCP),
		 b = make_id(&ctx.client, RDMA_PS_TCP);

	assert_int_equal(set_reuse(&ctx.server, a), 0);
	assert_int_equal(set_reuse(&ctx.client, b), 0);
	assert_int_equal(bind_id(&ctx.client, b, "192.0.2.1", 5000), 0);
	assert_int_equal(bind_id(&ctx.server, a, NULL, 5000), 0);
	assert_int_equal(listen_id(&ctx.client, b, 1), -EADDRINUSE);
	assert_int_equal(listen_id(&ctx.server, a, 1), -EADDRINUSE);
}

TEST_WITH(low_ports_need_privilege, ucm_setup, ucm_teardown)
{
	uint32_t a = make_id(&ctx.server, RDMA_PS_TCP),
		 b = make_id(&ctx.client, RDMA_PS_TCP);
	struct rdma_ucm_resolve_ip resolve = {.id = b,
		.src_addr = sockaddr_of("192.0.2.1", 1023),
		.dst_addr = sockaddr_of("192.0.2.1", LISTEN_PORT)};

	assert_int_equal(bind_id(&ctx.client, b, NULL, 1), -EACCES);
	assert_int_equal(bind_id(&ctx.client, b, NULL, 1023), -EACCES);
	assert_int_equal(COMMAND(&ctx.client, RESOLVE_IP, &resolve, NULL), -EACCES);
	assert_int_equal(bind_id(&ctx.client, b, NULL, 1024), 0);
	ucm_session_set_user(ctx.server.session, 0, true);
	assert_int_equal(bind_id(&ctx.server, a, NULL, 1023), 0);
	assert_int_equal(listen_id(&ctx.server, a, 1), 0);
}

static int
set_afonly(struct test_process *p, uint32_t id, uint8_t value)
{
	struct ucm_set_option option = {
		.head = {.id = id, .optname = RDMA_OPTION_ID_AFONLY, .optlen = 4},
		.value = {value}};

	return COMMAND(p, SET_OPTION, &option, NULL);
}

/* Connects to port 5000 at an address. Returns whether a listener gets the request. */
static bool
listener_gets_request(const char *address)
{
	uint32_t id = make_id(&ctx.client, RDMA_PS_TCP);
	struct rdma_ucm_get_event cmd = {0};
	bool heard;

	assert_int_equal(resolve_addr(&ctx.client, id, address, 5000), 0);
	expect_event(&ctx.client, UCM_EVENT_ADDR_RESOLVED);
	assert_int_equal(resolve_route(&ctx.client, id), 0);
	expect_event(&ctx.client, UCM_EVENT_ROUTE_RESOLVED);
	assert_int_equal(connect_id(&ctx.client, id, CLIENT_QPN, ""), 0);
	deferral_end();
	heard = COMMAND(&ctx.server, GET_EVENT, &cmd, NULL) == 0;
	if (!heard)
		assert_int_equal(expect_event(&ctx.client, UCM_EVENT_REJECTED).status,
			CM_REJ_NO_SERVICE);
	assert_int_equal(destroy_id(&ctx.client, id, NULL), 0);
	return heard;
}

/* As with sockets: 0.0.0.0 is of IPv4, :: of both families unless the program sets
 * AFONLY. */
TEST_WITH(wildcards_cover_their_families, ucm_setup, ucm_teardown)
{
	uint32_t a = make_id(&ctx.server, RDMA_PS_TCP),
		 b = make_id(&ctx.server, RDMA_PS_TCP);

	assert_int_equal(bind_id(&ctx.server, a, NULL, 5000), 0);
	assert_int_equal(bind_id(&ctx.server, b, "::", 5000), -EADDRINUSE);
	assert_int_equal(set_afonly(&ctx.server, b, 1), 0);
	assert_int_equal(bind_id(&ctx.server, b, "::", 5000), 0);
	assert_int_equal(listen_id(&ctx.server, a, 4), 0);
	assert_true(listener_gets_request("192.0.2.1"));
	assert_int_equal(listen_id(&ctx.server, b, 4), 0);
	assert_int_equal(set_afonly(&ctx.server, b, 0), -EINVAL);
	assert_true(listener_gets_request("2001:db8::1"));
	assert_int_equal(destroy_id(&ctx.server, a, NULL), 0);
	assert_false(listener_gets_request("192.0.2.1"));
	assert_int_equal(destroy_id(&ctx.server, b, NULL), 0);
	a = make_id(&ctx.server, RDMA_PS_TCP);
	assert_int_equal(bind_id(&ctx.server, a, "::", 5000), 0);
	assert_int_equal(listen_id(&ctx.server, a, 4), 0);
	assert_true(listener_gets_request("192.0.2.1"));
	assert_true(listener_gets_request("2001:db8::1"));
	assert_int_equal(destroy_id(&ctx.server, a, NULL), 0);
	a = make_id(&ctx.server, RDMA_PS_TCP);
	assert_int_equal(bind_id(&ctx.server, a, NULL, 5000), 0);
	assert_int_equal(listen_id(&ctx.server, a, 4), 0);
	assert_false(listener_gets_request("2001:db8::1"));
	assert_int_equal(destroy_id(&ctx.server, a, NULL), 0);
}

/* Each ephemeral port of an address is given once. */
TEST_WITH(ephemeral_ports_run_out, ucm_setup, ucm_teardown)
{
	struct ucm_limits *limits = &ctx.ucm->conf.limits;
	struct rdma_ucm_create_id create = {.ps = RDMA_PS_TCP};
	struct rdma_ucm_create_id_resp id = {0};
	struct test_process many = {.base = 0x300};
	const struct ucm_id *last;
	unsigned given = 0;
	uint16_t port;

	limits->ids = 30000;
	assert_int_equal(ucm_session_create(ctx.ucm, &many, &many.session), 0);
	assert_int_equal(
		ucm_channel_open(many.session, &many, &many.channel, &many.number), 0);
	do {
		assert_int_equal(COMMAND(&many, CREATE_ID, &create, &id), 0);
	} while (bind_id(&many, id.id, "192.0.2.1", 0) == 0 && ++given);
	assert_int_equal(given, 28232);
	assert_int_equal(bind_id(&many, id.id, "192.0.2.1", 0), -EADDRINUSE);
	/* A port that is given back is given again. */
	last = ucm_table_find(&many.session->ids, id.id - 1);
	port = last->port;
	assert_int_equal(destroy_id(&many, id.id - 1, NULL), 0);
	assert_int_equal(bind_id(&many, id.id, "192.0.2.1", 0), 0);
	last = ucm_table_find(&many.session->ids, id.id);
	assert_int_equal(last->port, port);
	/* Nor is one that another address has: the first that is looked at. */
	assert_int_equal(COMMAND(&many, CREATE_ID, &create, &id), 0);
	assert_int_equal(bind_id(&many, id.id, "198.51.100.1", 0), 0);
	/* A port that only the other address has is one of 28232. The search does not look at each of them. */
	last = ucm_table_find(&many.session->ids, id.id);
	port = last->port;
	for (uint32_t i = 1; i < id.id; i++) {
		last = ucm_table_find(&many.session->ids, i);
		if (last != NULL && last->port == port)
			assert_int_equal(destroy_id(&many, i, NULL), 0);
	}
	assert_int_equal(COMMAND(&many, CREATE_ID, &create, &id), 0);
	assert_int_equal(bind_id(&many, id.id, "192.0.2.1", 0), -EADDRINUSE);
	ucm_session_destroy(many.session, ctx.now);
}

TEST_WITH(only_local_addresses_can_be_bound, ucm_setup, ucm_teardown)
{
	uint32_t id = make_id(&ctx.client, RDMA_PS_TCP);
	struct rdma_ucm_bind bind = {.id = id, .addr_size = sizeof(struct sockaddr_in6)};
	struct sockaddr_in6 sa = sockaddr_of("192.0.2.1", 1);

	assert_int_equal(bind_id(&ctx.client, id, "192.0.2.77", 0), -EADDRNOTAVAIL);
	sa.sin6_family = 27; /* AF_IB: libraries probe for it */
	memcpy(&bind.addr, &sa, sizeof(sa));
	assert_int_equal(COMMAND(&ctx.client, BIND, &bind, NULL), -EAFNOSUPPORT);
	sa = sockaddr_of("2001:db8::1", 9009);
	memcpy(&bind.addr, &sa, sizeof(sa));
	assert_int_equal(COMMAND(&ctx.client, BIND, &bind, NULL), 0);
}

TEST_WITH(changed_addresses_can_be_bound, ucm_setup, ucm_teardown)
{
	uint32_t id = make_id(&ctx.client, RDMA_PS_TCP);
	struct net_conf net = ctx.device->conf.net;

	assert_int_equal(gid_parse("192.0.2.77", net.addr[0].gid, NULL), 0);
	ucm_device_set_net(ctx.device, &net);
	assert_int_equal(bind_id(&ctx.client, id, "192.0.2.1", 0), -EADDRNOTAVAIL);
	assert_int_equal(bind_id(&ctx.client, id, "192.0.2.77", 0), 0);
}

TEST_WITH(gid_index_of_address, ucm_setup, ucm_teardown)
{
	static const struct {
		const char *addr;
		uint8_t index;
	} rows[] = {{"192.0.2.1", 0}, {"198.51.100.1", 1}, {"2001:db8::1", 2},
		{"fe80::1", 4}};

	for (unsigned i = 0; i < RTE_DIM(rows); i++) {
		struct ucm_id id = {.channel = ctx.client.channel, .device = ctx.device};
		struct ib_uverbs_ah_attr ah;

		assert_int_equal(gid_parse(rows[i].addr, id.src.gid, NULL), 0);
		assert_int_equal(ucm_ah_fill(&id, &ah), 0);
		assert_int_equal(ah.grh.sgid_index, rows[i].index);
	}
}
