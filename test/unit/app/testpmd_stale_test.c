/* SPDX-License-Identifier: BSD-3-Clause */
/* `connect` while the peer closes old connections of the QPs. */
#include "testpmd_cm_fixture.h"

static void
stale_comes_for(struct conn *conn)
{
	comes(ROCADE_CM_REJECTED, conn, conn->id);
	events[n_events - 1].status = 10;
	host_cm_tick(&host, NULL);
}

/* The peer closes the old connection of B's first QP. */
static void
stale_comes(void)
{
	stale_comes_for(&conns[B][0]);
}

static void
second_passes(void)
{
	now_ns += NS_PER_SECOND;
	host_cm_tick(&host, NULL);
}

static void
stale_case(bool listens)
{
	char err[ERR_MAX];

	begin(listens, false);
	assert_int_equal(host_cm_connect(&host, "192.0.2.3", 7471, err), B);
	assert_int_equal(n_asks, 2);
	stale_comes();
	assert_int_equal(asks[0].released, 1);
	assert_null(conns[B][0].id);
	assert_int_equal(other.state, HOST_IDLE);
	/* Not at once: the peer would reject it, too. */
	host_cm_tick(&host, NULL);
	assert_int_equal(n_asks, 2);
	second_passes();
	assert_int_equal(n_asks, 3);
	assert_ptr_equal(conns[B][0].id, &asks[2]);
	second_passes();
	assert_int_equal(n_asks, 3);
}

TEST(a_request_is_sent_again_while_the_peer_closes_old_connections)
{
	for (unsigned listens = 0; listens < 2; listens++) {
		stale_case(listens != 0);
		for (unsigned i = 0; i < 2; i++)
			comes(ROCADE_CM_ESTABLISHED, &conns[B][i], conns[B][i].id);
		host_cm_tick(&host, NULL);
		assert_int_equal(host_cm_established(&host, B), 2);
	}
	/* The peer has 30 s. */
	stale_case(false);
	now_ns += 30 * NS_PER_SECOND;
	stale_comes();
	assert_string_equal(other.reason,
		"192.0.2.3 still has old connections of these QPs after 30 s");
	second_passes();
	assert_int_equal(n_asks, 3);
}

TEST(no_request_is_sent_again_after_connect_has_ended)
{
	char err[ERR_MAX];

	stale_case(false);
	stale_comes();
	host_fail(&other, "1 of 2 QPs are connected after 3 s (--wait)");
	second_passes();
	assert_int_equal(n_asks, 3);
	/* A new `connect` asks for both. */
	stale_case(false);
	stale_comes();
	assert_int_equal(host_cm_connect(&host, "192.0.2.3", 7471, err), B);
	assert_int_equal(n_asks, 5);
	second_passes();
	assert_int_equal(n_asks, 5);
	/* The peer asks itself meanwhile. */
	stale_case(true);
	stale_comes();
	request_comes(3, &ids[0]);
	host_cm_tick(&host, NULL);
	assert_int_equal(ids[0].accepted, 1);
	second_passes();
	assert_int_equal(n_asks, 3);
}

TEST(another_connect_does_not_go_on_with_one_that_has_ended)
{
	char err[ERR_MAX];

	/* That of B has failed, and A is connected. */
	stale_case(false);
	stale_comes();
	assert_int_equal(host.asks_later, 1);
	host_fail(&other, "1 of 2 QPs are connected after 3 s (--wait)");
	assert_int_equal(host_cm_connect(&host, "192.0.2.2", 7471, err), A);
	assert_int_equal(host.asks_later, 0);
	assert_int_equal(n_asks, 5);
	second_passes();
	assert_int_equal(n_asks, 5);
	/* The first request of a new one fails. */
	stale_case(false);
	stale_comes();
	stale_comes_for(&conns[B][1]);
	assert_int_equal(host.asks_later, 2);
	asks_most = n_asks;
	assert_int_equal(host_cm_connect(&host, "192.0.2.3", 7471, err), -1);
	asks_most = ASKS;
	assert_int_equal(host.asks_later, 0);
	second_passes();
	assert_int_equal(n_asks, 3);
}
