/* SPDX-License-Identifier: BSD-3-Clause */
/* Ports whose listener has ended, on virtual time. The server and the client are programs
 * of two users. */
#include <stdlib.h>

#include "ucm/id.h"
#include "ucm_fixture.h"

#define SERVER_UID 1001
#define CLIENT_UID 1002
#define PORT 5000

static unsigned memory_left = UINT_MAX; /* allocations that succeed */

/* alloc_plain takes memory from here. */
void *
aligned_alloc(size_t align, size_t len)
{
	void *mem;

	if (memory_left == 0)
		return NULL;
	memory_left -= memory_left != UINT_MAX;
	return posix_memalign(&mem, align, len) == 0 ? mem : NULL;
}

static int
users_setup(void **state)
{
	fixture_open(false);
	ucm_session_set_user(ctx.server.session, SERVER_UID, false);
	ucm_session_set_user(ctx.client.session, CLIENT_UID, false);
	return 0;
}

/* Listens, and ends. text: as for bind_id(). */
static void
listen_and_end(struct test_process *p, const char *text, uint16_t port)
{
	uint32_t id = make_id(p, RDMA_PS_TCP);

	assert_int_equal(bind_id(p, id, text, port), 0);
	assert_int_equal(listen_id(p, id, 1), 0);
	assert_int_equal(destroy_id(p, id, NULL), 0);
}

/* Binds a new ID and destroys it again. Returns the error of the binding. */
static int
bind_try(struct test_process *p, uint16_t ps, const char *text, uint16_t port)
{
	uint32_t id = make_id(p, ps);
	int rc = bind_id(p, id, text, port);

	assert_int_equal(destroy_id(p, id, NULL), 0);
	return rc;
}

TEST_WITH(port_waits_for_its_user, users_setup, ucm_teardown)
{
	listen_and_end(&ctx.server, NULL, PORT);
	assert_int_equal(bind_try(&ctx.client, RDMA_PS_TCP, NULL, PORT), -EADDRINUSE);
	assert_int_equal(
		bind_try(&ctx.client, RDMA_PS_TCP, "192.0.2.1", PORT), -EADDRINUSE);
	/* Another port space, and another port. */
	assert_int_equal(bind_try(&ctx.client, RDMA_PS_UDP, NULL, PORT), 0);
	assert_int_equal(bind_try(&ctx.client, RDMA_PS_TCP, NULL, PORT + 1), 0);
	/* Its user starts again at once, and the time begins anew. */
	ctx.now += PORT_WAIT_NS / 2;
	listen_and_end(&ctx.server, NULL, PORT);
	ctx.now += PORT_WAIT_NS - 1;
	assert_int_equal(bind_try(&ctx.client, RDMA_PS_TCP, NULL, PORT), -EADDRINUSE);
	ctx.now += 1;
	assert_int_equal(bind_try(&ctx.client, RDMA_PS_TCP, NULL, PORT), 0);
}

/* Its program gets it again, and no other one of the uid. */
TEST_WITH(port_waits_for_its_program_where_users_share_a_uid, users_setup, ucm_teardown)
{
	ucm_session_set_user(ctx.client.session, SERVER_UID, false);
	ucm_session_set_shared_uid(ctx.server.session);
	ucm_session_set_shared_uid(ctx.client.session);
	listen_and_end(&ctx.server, NULL, PORT);
	assert_int_equal(bind_try(&ctx.client, RDMA_PS_TCP, NULL, PORT), -EADDRINUSE);
	assert_int_equal(bind_try(&ctx.server, RDMA_PS_TCP, NULL, PORT), 0);
	ctx.now += PORT_WAIT_NS;
	assert_int_equal(bind_try(&ctx.client, RDMA_PS_TCP, NULL, PORT), 0);
}

/* Of users with one uid those with few ports keep them. */
TEST_WITH(ports_of_others_with_the_uid_stay, users_setup, ucm_teardown)
{
	const uint64_t alice = UINT64_C(1) << 32 | 65534, bob = UINT64_C(2) << 32 | 65534,
		       carol = UINT64_C(3) << 32 | 65534;
	struct port_waits *t = &ctx.ucm->port_waits;
	struct ucm_addr addr = {.any = true};
	struct ucm_binding b = {.addr = &addr, .ps = RDMA_PS_TCP, .port = PORT};

	port_wait_begin(t, &b, alice, ctx.now);
	for (unsigned i = 1; i <= 2 * PORT_WAITS_USER; i++) {
		b.port = (uint16_t)(PORT + i);
		port_wait_begin(t, &b, i == 9 ? carol : bob, ctx.now);
	}
	assert_int_equal(t->count, PORT_WAITS_USER);
	/* So do those that come with new numbers each time. */
	for (unsigned i = 0; i < 2 * PORT_WAITS_USER; i++) {
		b.port = (uint16_t)(20000 + i);
		port_wait_begin(t, &b, carol + ((i + 1ull) << 32), ctx.now);
	}
	assert_int_equal(t->count, PORT_WAITS_USER);
	b.port = PORT;
	assert_true(port_waits_for_other(t, &b, bob, ctx.now));
	assert_false(port_waits_for_other(t, &b, alice, ctx.now));
	b.port = PORT + 9;
	assert_true(port_waits_for_other(t, &b, bob, ctx.now));
}

/* Ports whose time is over take no place from those that wait. */
TEST_WITH(ports_whose_time_is_over_do_not_count, users_setup, ucm_teardown)
{
	const uint64_t alice = UINT64_C(1) << 32 | 65534, bob = UINT64_C(2) << 32 | 65534;
	struct port_waits *t = &ctx.ucm->port_waits;
	struct ucm_addr addr = {.any = true};
	struct ucm_binding b = {.addr = &addr, .ps = RDMA_PS_TCP};

	for (unsigned i = 0; i < PORT_WAITS_USER; i++) {
		b.port = (uint16_t)(PORT + i);
		port_wait_begin(t, &b, i < 100 ? alice : bob,
			i < 100 ? ctx.now : ctx.now + PORT_WAIT_NS / 2);
	}
	assert_int_equal(t->count, PORT_WAITS_USER);
	ctx.now += PORT_WAIT_NS;
	b.port = 20000;
	port_wait_begin(t, &b, alice, ctx.now);
	assert_int_equal(t->count, PORT_WAITS_USER - 100 + 1);
	b.port = PORT + 100; /* the oldest one of the user with the most */
	assert_true(port_waits_for_other(t, &b, alice, ctx.now));
}

/* A port that gets no place takes none from another one. */
TEST_WITH(without_memory_all_ports_stay, users_setup, ucm_teardown)
{
	const uint64_t alice = UINT64_C(1) << 32 | 65534, bob = UINT64_C(2) << 32 | 65534;
	struct port_waits *t = &ctx.ucm->port_waits;
	struct ucm_addr addr = {.any = true};
	struct ucm_binding b = {.addr = &addr, .ps = RDMA_PS_TCP};

	for (unsigned i = 0; i < PORT_WAITS_USER; i++) {
		b.port = (uint16_t)(PORT + i);
		port_wait_begin(t, &b, alice, ctx.now);
	}
	for (unsigned left = 0; left < 2; left++) {
		memory_left = left;
		b.port = 20000;
		port_wait_begin(t, &b, bob, ctx.now);
		memory_left = UINT_MAX;
		assert_int_equal(t->count, PORT_WAITS_USER);
		assert_false(port_waits_for_other(t, &b, alice, ctx.now));
		b.port = PORT;
		assert_true(port_waits_for_other(t, &b, bob, ctx.now));
	}
	b.port = 20000;
	port_wait_begin(t, &b, bob, ctx.now);
	assert_int_equal(t->count, PORT_WAITS_USER);
	assert_true(port_waits_for_other(t, &b, alice, ctx.now));
}

TEST_WITH(port_waits_at_its_address, users_setup, ucm_teardown)
{
	listen_and_end(&ctx.server, "192.0.2.1", PORT);
	assert_int_equal(
		bind_try(&ctx.client, RDMA_PS_TCP, "192.0.2.1", PORT), -EADDRINUSE);
	assert_int_equal(bind_try(&ctx.client, RDMA_PS_TCP, NULL, PORT), -EADDRINUSE);
	assert_int_equal(bind_try(&ctx.client, RDMA_PS_TCP, "198.51.100.1", PORT), 0);
}

/* A program that dies does not give its port to another user either. */
TEST_WITH(port_of_an_ended_process_waits, users_setup, ucm_teardown)
{
	struct test_process dying = {.base = 0x300};
	uint32_t id;

	assert_int_equal(ucm_session_create(ctx.ucm, &dying, &dying.session), 0);
	ucm_session_set_user(dying.session, SERVER_UID, false);
	assert_int_equal(
		ucm_channel_open(dying.session, &dying, &dying.channel, &dying.number),
		0);
	id = make_id(&dying, RDMA_PS_TCP);
	assert_int_equal(bind_id(&dying, id, NULL, PORT), 0);
	assert_int_equal(listen_id(&dying, id, 1), 0);
	ucm_session_destroy(dying.session, ctx.now);
	assert_int_equal(bind_try(&ctx.client, RDMA_PS_TCP, NULL, PORT), -EADDRINUSE);
	assert_int_equal(bind_try(&ctx.server, RDMA_PS_TCP, NULL, PORT), 0);
}

/* No peer has a reason to send requests to a port without a listener. */
TEST_WITH(port_without_a_listener_does_not_wait, users_setup, ucm_teardown)
{
	assert_int_equal(bind_try(&ctx.server, RDMA_PS_TCP, NULL, PORT), 0);
	assert_int_equal(bind_try(&ctx.client, RDMA_PS_TCP, NULL, PORT), 0);
}

/* A user who ends many listeners loses its own ports, not those of another user. */
TEST_WITH(ports_of_a_user_are_limited, users_setup, ucm_teardown)
{
	listen_and_end(&ctx.server, NULL, PORT);
	for (uint16_t i = 0; i < PORT_WAITS_USER; i++)
		listen_and_end(&ctx.client, NULL, 6000 + i);
	assert_int_equal(ctx.ucm->port_waits.count, PORT_WAITS_USER + 1);
	assert_int_equal(bind_try(&ctx.server, RDMA_PS_TCP, NULL, 6000), -EADDRINUSE);
	listen_and_end(&ctx.client, NULL, 7000);
	assert_int_equal(ctx.ucm->port_waits.count, PORT_WAITS_USER + 1);
	assert_int_equal(bind_try(&ctx.server, RDMA_PS_TCP, NULL, 6000), 0);
	assert_int_equal(bind_try(&ctx.server, RDMA_PS_TCP, NULL, 6001), -EADDRINUSE);
	assert_int_equal(bind_try(&ctx.client, RDMA_PS_TCP, NULL, PORT), -EADDRINUSE);
}

/* Of all users together there is a limit too, at which the oldest port goes. A port that
 * the daemon chooses is one that does not wait. */
TEST_WITH(ports_of_all_users_are_limited, users_setup, ucm_teardown)
{
	struct ucm_addr any = {.any = true, .sa = {.sin6_family = AF_INET}};
	struct ucm_binding b = {.addr = &any, .ps = RDMA_PS_TCP, .afonly = true};
	struct port_waits *t = &ctx.ucm->port_waits;

	b.port = 60999;
	port_wait_begin(t, &b, 1, ctx.now);
	for (uint32_t i = 0; i < PORT_WAITS_ALL; i++) {
		b.port = (uint16_t)(32768 + i);
		port_wait_begin(t, &b, 2000 + i % 64, ctx.now);
	}
	assert_int_equal(t->count, PORT_WAITS_ALL);
	assert_true(port_waits_for_other(t, &b, 1, ctx.now));
	b.port = 60999;
	assert_false(port_waits_for_other(t, &b, 2, ctx.now));
	for (unsigned i = 0; i < 500; i++) {
		uint32_t id = make_id(&ctx.client, RDMA_PS_TCP);
		const struct ucm_id *made = ucm_table_find(&ctx.client.session->ids, id);

		assert_int_equal(bind_id(&ctx.client, id, NULL, 0), 0);
		assert_true(made->port >= 32768 + PORT_WAITS_ALL);
		assert_int_equal(destroy_id(&ctx.client, id, NULL), 0);
	}
	/* They are freed when their time is over and another one begins. */
	port_wait_begin(t, &b, 1, ctx.now + PORT_WAIT_NS);
	assert_int_equal(t->count, 1);
}
