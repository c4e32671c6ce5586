/* SPDX-License-Identifier: BSD-3-Clause */
/* The end of a program, or of a channel, with many IDs: it is spread over calls. */
#include "ucm_fixture.h"

#define IDS 200
#define IN_A_CALL 32

static struct accounts all;
static struct test_process ending;

static int
ended_setup(void **state)
{
	fixture_open(true);
	accounts_init(&all);
	ctx.ucm->conf.limits.ids = IDS + 1;
	ending = (struct test_process){.base = CLIENT_QPN};
	assert_int_equal(ucm_session_create(ctx.ucm, &ending, &ending.session), 0);
	ucm_session_charge(ending.session, account_open(&all, 1, 0));
	assert_int_equal(ucm_channel_open(ending.session, &ending, &ending.channel,
				 &ending.number),
		0);
	return 0;
}

static int
ended_teardown(void **state)
{
	fixture_close();
	accounts_fini(&all); /* asserts that no account has a holder */
	return 0;
}

static void
ids_make(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		make_id(&ending, RDMA_PS_TCP);
}

/* Runs until the IDs are destroyed, and checks that no call destroys many. */
static void
ids_end_in_several_calls(void)
{
	const struct account *account = TAILQ_FIRST(&all.users);
	unsigned before = IDS, now_left;

	for (;; before = now_left) {
		now_left = ucm_ids(ctx.ucm);
		assert_int_equal(account->held[ACCOUNT_cm_ids], now_left);
		assert_true(before - now_left <= IN_A_CALL);
		if (now_left == 0)
			break;
		assert_true(now_left < before);
		assert_int_equal(ucm_deadline(ctx.ucm), 0);
		ucm_run(ctx.ucm, ctx.now);
	}
}

TEST_WITH(ended_process, ended_setup, ended_teardown)
{
	struct account *account = ending.session->account;

	ids_make(IDS);
	ucm_session_destroy(ending.session, ctx.now);
	account_close(account); /* the session still has it */
	ids_end_in_several_calls();
	ucm_run(ctx.ucm, ctx.now);
	assert_int_equal(account->holders, 0);
	assert_int_equal(ucm_deadline(ctx.ucm), TIME_NEVER);
}

/* The program goes on, and has another channel. */
TEST_WITH(closed_channel, ended_setup, ended_teardown)
{
	struct account *account = ending.session->account;
	uint32_t number;

	ids_make(IDS);
	number = ending.number;
	ucm_channel_close(ending.channel, ctx.now);
	assert_int_equal(bind_id(&ending, 1, NULL, 5000), -EBADF);
	assert_int_equal(ucm_channel_open(ending.session, &ending, &ending.channel,
				 &ending.number),
		0);
	assert_int_not_equal(ending.number, number);
	/* The last ID is not destroyed yet, but not the new channel's either. */
	assert_int_equal(destroy_id(&ending, 1, NULL), -ENOENT);
	ids_end_in_several_calls();
	assert_int_equal(destroy_id(&ending, make_id(&ending, RDMA_PS_TCP), NULL), 0);
	ucm_session_destroy(ending.session, ctx.now);
	account_close(account);
}

/* A listener that waits for its end gets no requests, and its program is not woken. */
TEST_WITH(closed_listener_rejects, ended_setup, ended_teardown)
{
	struct account *account = ending.session->account;
	uint32_t listener = make_id(&ending, RDMA_PS_TCP), asker = 0;
	unsigned woken;

	assert_int_equal(bind_id(&ending, listener, NULL, LISTEN_PORT), 0);
	assert_int_equal(listen_id(&ending, listener, 4), 0);
	ids_make(IDS - 1); /* destroyed before it: the last one goes first */
	asker = make_routed_id(RDMA_PS_TCP);
	woken = ending.woken;
	ucm_channel_close(ending.channel, ctx.now);
	assert_int_equal(ucm_listeners(ctx.ucm), 1);
	assert_int_equal(connect_id(&ctx.client, asker, CLIENT_QPN, ""), 0);
	assert_int_equal(
		expect_event(&ctx.client, UCM_EVENT_REJECTED).status, CM_REJ_NO_SERVICE);
	assert_int_equal(destroy_id(&ctx.client, asker, NULL), 0);
	assert_int_equal(ending.woken, woken);
	ids_end_in_several_calls();
	assert_int_equal(ucm_listeners(ctx.ucm), 0);
	ucm_session_destroy(ending.session, ctx.now);
	account_close(account);
}

/* One command destroys an ID of many groups, each with an unread event. */
TEST_WITH(id_of_many_groups, ended_setup, ended_teardown)
{
	struct account *account = ending.session->account;
	uint32_t id = make_id(&ending, RDMA_PS_UDP), next;

	assert_int_equal(bind_id(&ending, id, "192.0.2.1", LISTEN_PORT), 0);
	for (unsigned i = 0; i < IDS - 1; i++) {
		struct rdma_ucm_join_mcast join = {
			.id = id, .addr_size = sizeof(struct sockaddr_in6)};
		struct rdma_ucm_create_id_resp resp;
		struct sockaddr_in6 group = sockaddr_of("224.1.2.0", 0);

		((struct sockaddr_in *)&group)->sin_addr.s_addr += htonl(i);
		memcpy(&join.addr, &group, sizeof(group));
		assert_int_equal(COMMAND(&ending, JOIN_MCAST, &join, &resp), 0);
	}
	assert_int_equal(ucm_ids(ctx.ucm), IDS);
	assert_int_equal(destroy_id(&ending, id, NULL), 0);
	expect_no_event(&ending);
	assert_int_equal(destroy_id(&ending, id, NULL), -ENOENT);
	/* The program may use the port for another ID at once. */
	next = make_id(&ending, RDMA_PS_UDP);
	assert_int_equal(bind_id(&ending, next, "192.0.2.1", LISTEN_PORT), 0);
	assert_int_equal(destroy_id(&ending, next, NULL), 0);
	assert_int_equal(ucm_ids(ctx.ucm), IDS);
	ucm_run(ctx.ucm, ctx.now);
	ids_end_in_several_calls();
	ucm_session_destroy(ending.session, ctx.now);
	account_close(account);
}
