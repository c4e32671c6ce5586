/* SPDX-License-Identifier: BSD-3-Clause */
/* `listen` and `connect` with several peers: whose events are whose. */
#include "testpmd_cm_fixture.h"

static void
expect_passes(unsigned min, unsigned max)
{
	if (passes < min || passes > max)
		fail_msg("%u passes, expected %u to %u", passes, min, max);
}

/* ---- `connect` waits for A's QPs, and events of all come ---- */

static void
b_ends_first(void)
{
	comes(ROCADE_CM_DISCONNECTED, &conns[B][0], &ids[2]);
	comes(ROCADE_CM_DISCONNECTED, &conns[A][0], &ids[0]);
	comes(ROCADE_CM_TIMEWAIT_EXIT, &conns[A][0], &ids[0]);
	comes(ROCADE_CM_TIMEWAIT_EXIT, &conns[B][1], &ids[3]);
	comes(ROCADE_CM_ESTABLISHED, &conns[A][1], &ids[1]);
	comes(ROCADE_CM_DISCONNECTED, &conns[A][1], &ids[1]);
}

TEST(a_peer_that_disconnects_while_another_one_is_connected_again_is_answered)
{
	char err[ERR_MAX];

	begin(false, true);
	in_pass = b_ends_first;
	assert_int_equal(host_cm_connect(&host, "192.0.2.2", 7471, err), A);
	assert_int_equal(ids[2].released, 1);
	assert_null(conns[B][0].id);
	assert_int_equal(host_cm_established(&host, B), 1);
	assert_int_equal(ids[3].released, 0);
	/* A's second QP has not ended: its time is over. */
	expect_passes(40, 41);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(ids[i].disconnected, 1);
		assert_int_equal(ids[i].released, 1);
		assert_ptr_equal(conns[A][i].id, &asks[i]);
	}
	assert_int_equal(host_cm_established(&host, A), 0);
	assert_int_equal(host.closing, CLOSING_NOT);
	/* `start` says so. */
	assert_int_equal(host_cm_renew(&host, err), -1);
	assert_non_null(strstr(err, "connections to 192.0.2.3 are lost"));
}

static void
a_ends(void)
{
	for (unsigned i = 0; i < 2; i++) {
		comes(ROCADE_CM_DISCONNECTED, &conns[A][i], &ids[i]);
		comes(ROCADE_CM_TIMEWAIT_EXIT, &conns[A][i], &ids[i]);
	}
	comes(ROCADE_CM_TIMEWAIT_EXIT, &conns[B][0], &ids[2]);
}

TEST(the_wait_ends_with_the_last_qp_of_the_peer)
{
	char err[ERR_MAX];

	begin(false, true);
	in_pass = a_ends;
	assert_int_equal(host_cm_connect(&host, "192.0.2.2", 7471, err), A);
	expect_passes(3, 3);
	assert_int_equal(host_cm_established(&host, B), 2);
}

static void
b_and_a_ask(void)
{
	a_ends();
	request_comes(2, &ids[2]);
	request_comes(3, &ids[3]);
}

TEST(requests_of_other_peers_are_accepted_meanwhile)
{
	char err[ERR_MAX];

	begin(true, true);
	conns[B][0].id = conns[B][1].id = NULL;
	in_pass = b_and_a_ask;
	assert_int_equal(host_cm_connect(&host, "192.0.2.2", 7471, err), A);
	assert_int_equal(ids[3].accepted, 1);
	assert_ptr_equal(conns[B][0].id, &ids[3]);
	/* A's would be dropped by the request of this end. */
	assert_int_equal(ids[2].accepted, 0);
	assert_int_equal(ids[2].released, 1);
}

TEST(a_listener_waits_for_the_confirmation_only)
{
	char err[ERR_MAX];

	begin(true, true);
	host_cm_outdate(&host);
	for (unsigned i = 0; i < 4; i++)
		comes(ROCADE_CM_DISCONNECTED, &conns[i / 2][i % 2], &ids[i]);
	assert_int_equal(host_cm_renew(&host, err), 0);
	expect_passes(1, 1);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(ids[i].released, 1);
}

/* ---- The own request of an end that also listens ---- */

TEST(a_listening_end_tells_what_became_of_its_own_request)
{
	char err[ERR_MAX];

	begin(true, false);
	assert_int_equal(host_cm_connect(&host, "192.0.2.3", 7471, err), B);
	assert_int_equal(n_asks, 2);
	comes(ROCADE_CM_REJECTED, &conns[B][0], &asks[0]);
	events[0].status = 8;
	host_cm_tick(&host, NULL);
	assert_string_equal(other.reason, "no listener on this port of 192.0.2.3");
	assert_int_equal(asks[0].released, 1);
	assert_int_equal(host.state, HOST_IDLE);
	assert_int_equal(host_cm_connect(&host, "192.0.2.2", 7471, err), A);
	comes(ROCADE_CM_UNREACHABLE, &conns[A][1], conns[A][1].id);
	host_cm_tick(&host, NULL);
	assert_string_equal(host.reason, "192.0.2.2 does not answer");
}

TEST(a_listening_end_goes_on_when_an_accepted_connection_ends)
{
	begin(true, false);
	request_comes(3, &ids[0]);
	comes(ROCADE_CM_ESTABLISHED, &conns[B][0], &ids[0]);
	host_cm_tick(&host, NULL);
	assert_int_equal(host_cm_established(&host, B), 1);
	comes(ROCADE_CM_DISCONNECTED, &conns[B][0], &ids[0]);
	request_comes(3, &ids[1]);
	host_cm_tick(&host, NULL);
	assert_int_equal(other.state, HOST_IDLE);
	assert_int_equal(ids[0].released, 1);
	assert_ptr_equal(conns[B][0].id, &ids[1]);
	/* A restarted peer asks again. */
	request_comes(3, &ids[2]);
	host_cm_tick(&host, NULL);
	assert_int_equal(ids[1].released, 1);
	assert_ptr_equal(conns[B][0].id, &ids[2]);
}

/* Both ends ask at the same time. */
TEST(a_request_does_not_replace_that_of_this_end)
{
	char err[ERR_MAX];

	begin(true, false);
	assert_int_equal(host_cm_connect(&host, "192.0.2.3", 7471, err), B);
	request_comes(3, &ids[0]);
	host_cm_tick(&host, NULL);
	assert_int_equal(ids[0].accepted, 0);
	assert_int_equal(ids[0].released, 1);
	assert_ptr_equal(conns[B][0].id, &asks[0]);
}

/* ---- The only peer of a listener ---- */

TEST(a_request_that_is_not_accepted_does_not_replace_the_peer)
{
	begin(true, false);
	peers_replace(pc, "192.0.2.2");
	host.n_hosts = 1;
	conf.qps = 2;
	request_comes(9, &ids[0]);
	host_cm_tick(&host, NULL);
	assert_int_equal(ids[0].accepted, 1);
	assert_string_equal(pc->peers[0].addr, "192.0.2.9");
	conns[A][0].established = true;
	request_comes(7, &ids[1]);
	host_cm_tick(&host, NULL);
	assert_int_equal(ids[1].accepted, 0);
	assert_string_equal(pc->peers[0].addr, "192.0.2.9");
}
