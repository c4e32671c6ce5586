/* SPDX-License-Identifier: BSD-3-Clause */
/* The end of a client that has many QPs and group memberships: it is spread over passes. */
#include "switch_fixture.h"

#define MANY_QPNS 512
#define QPS 300
#define IN_A_PASS 32 /* QPs that a pass frees */
#define SCANNED 2048 /* members that a pass looks at, and no more than a group beyond */
#define GROUPS 20
#define MEMBERS 200

static struct switch_fixture f;
static struct accounts all;

/* The fixture's switch has few QPNs: another one takes its place. */
static int
ended_setup(void **state)
{
	struct sw_conf conf;

	fixture_open(&f);
	for (unsigned i = 0; i < CLIENTS; i++)
		client_detach(&f.c[i]);
	conf = f.sw->conf;
	sw_destroy(f.sw);
	conf.qpn_count = MANY_QPNS;
	conf.limits.qps = MANY_QPNS;
	assert_int_equal(sw_create(&conf, client_wake, &f.sw), 0);
	accounts_init(&all);
	for (unsigned i = 0; i < 2; i++) {
		client_attach(&f, &f.c[i]); /* takes a QPN */
		f.c[i].client->account = account_open(&all, i, 0);
		assert_true(account_take(f.c[i].client->account, ACCOUNT_qps, 1));
	}
	return 0;
}

static int
ended_teardown(void **state)
{
	struct account *account = f.c[1].client->account;

	client_detach(&f.c[1]);
	sw_ended_free(f.sw);
	account_close(account);
	accounts_fini(&all); /* asserts that no account has a holder */
	assert_int_equal(qpns_free_count(&f.sw->qpns), MANY_QPNS);
	sw_destroy(f.sw);
	return 0;
}

/* Ends client 0, and with it its memory and the user's only connection. */
static struct account *
client_end(void)
{
	struct account *account = f.c[0].client->account;

	client_detach(&f.c[0]);
	account_close(account);
	return account;
}

TEST_WITH(qps_are_freed_in_several_passes, ended_setup, ended_teardown)
{
	uint32_t qpn = f.c[0].qpn, left = QPS, free_before;
	struct frame_spec spec = {
		.opcode = OPCODE_UD_SEND_ONLY, .dest_qpn = qpn, .deth_qpn = f.c[1].qpn};
	const struct account *account;

	memcpy(spec.sgid, f.addr, 16);
	memcpy(spec.dgid, f.addr, 16);
	for (unsigned i = 1; i < QPS; i++)
		client_take_qpn(&f, &f.c[0]);
	free_before = qpns_free_count(&f.sw->qpns);
	account = client_end();
	assert_int_equal(f.sw->client_count, 1);
	for (unsigned passes = 0; left != 0; passes++) {
		left -= RTE_MIN(left, (uint32_t)IN_A_PASS);
		assert_int_equal(qpns_free_count(&f.sw->qpns), free_before + QPS - left);
		if (left == 0)
			break;
		/* Until then they are charged to the user, and lose their packets. */
		assert_int_equal(account->held[ACCOUNT_qps], left);
		assert_false(sw_sleep(f.sw));
		assert_true(passes < QPS);
		client_send(&f, &f.c[1], f.c[1].qpn, &spec); /* makes a pass */
	}
	assert_int_equal(account->held[ACCOUNT_qps], 0);
	assert_int_equal(account->holders, 0);
	assert_int_equal(f.c[0].woken, 0);
	assert_false(f.c[1].client->corrupt);
	assert_true(sw_sleep(f.sw));
	sw_awake(f.sw);
}

static uint32_t
members_count(void)
{
	uint32_t count = 0;

	for (unsigned i = 0; i < SW_GROUPS; i++)
		count += f.sw->groups[i].count;
	return count;
}

TEST_WITH(groups_are_left_in_several_passes, ended_setup, ended_teardown)
{
	uint32_t qpns[MEMBERS], last, now_left;
	uint8_t gid[16];

	assert_int_equal(gid_parse("239.1.2.3", gid, NULL), 0);
	for (unsigned i = 0; i < MEMBERS; i++)
		qpns[i] = client_take_qpn(&f, &f.c[0]);
	for (unsigned g = 0; g < GROUPS; g++) {
		gid[15] = (uint8_t)g;
		assert_int_equal(sw_group_join(f.sw, f.c[1].qpn, gid), 0);
		for (unsigned i = 0; i < MEMBERS; i++)
			assert_int_equal(sw_group_join(f.sw, qpns[i], gid), 0);
	}
	assert_int_equal(f.c[0].client->memberships, GROUPS * MEMBERS);
	client_end();
	for (last = GROUPS * (MEMBERS + 1);; last = now_left) {
		now_left = members_count();
		assert_true(last - now_left <= SCANNED + MEMBERS + 1);
		assert_true(now_left < last);
		if (now_left == GROUPS)
			break;
		/* A QP is freed only when no group has it. */
		assert_int_equal(qpns_free_count(&f.sw->qpns), MANY_QPNS - MEMBERS - 2);
		sw_run(f.sw, f.now);
	}
	sw_ended_free(f.sw);
	/* The other client's QP is still a member of each. */
	assert_int_equal(f.c[1].client->memberships, GROUPS);
	assert_int_equal(members_count(), GROUPS);
}
