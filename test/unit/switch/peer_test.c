/* SPDX-License-Identifier: BSD-3-Clause */
/* QPs of other hosts as peers: each belongs to one user at a time. */
#include "switch_fixture.h"

#define ALICE 1000
#define BOB 1001
#define REMOTE_QPN 77

/* Clients 0 and 1 are Alice's, client 2 is Bob's. */
static void
users_open(struct switch_fixture *b)
{
	fixture_open_users(b, (const uint32_t[CLIENTS]){ALICE, ALICE, BOB});
	b->now = NS_PER_SEC;
	sw_run(b->sw, b->now);
}

static int
register_remote(struct switch_fixture *b, unsigned client)
{
	return client_set_peer(b, &b->c[client], b->c[client].qpn, b->other, REMOTE_QPN);
}

static int
qp_request(struct switch_fixture *b, unsigned client, uint32_t type)
{
	struct sw_request req = {.type = type, .qpn = b->c[client].qpn};
	struct sw_reply reply;

	client_request(b, &b->c[client], &req, &reply);
	return reply.error;
}

static void
time_pass(struct switch_fixture *b, uint64_t ns)
{
	b->now += ns;
	sw_run(b->sw, b->now);
}

/* Bob cannot send into a connection of Alice's. */
TEST(remote_qp_belongs_to_one_user)
{
	struct switch_fixture b;
	struct frame_spec f;

	users_open(&b);
	assert_int_equal(register_remote(&b, 0), 0);
	assert_int_equal(register_remote(&b, 2), EADDRINUSE);
	assert_int_equal(b.c[2].client->stats.peer_taken, 1);
	assert_int_equal(b.c[2].client->stats.refused, 1);
	f = frame_spec_valid(&b);
	memcpy(f.dgid, b.other, 16);
	f.dest_qpn = REMOTE_QPN;
	client_send(&b, &b.c[2], b.c[2].qpn, &f);
	assert_int_equal(b.c[2].client->stats.drop_peer, 1);
	/* Another QP, another address, and Alice's other client are not concerned. */
	assert_int_equal(
		client_set_peer(&b, &b.c[2], b.c[2].qpn, b.other, REMOTE_QPN + 1), 0);
	assert_int_equal(client_set_peer(&b, &b.c[2], b.c[2].qpn, b.addr, REMOTE_QPN), 0);
	assert_int_equal(register_remote(&b, 1), 0);
	assert_int_equal(b.c[2].client->stats.peer_taken, 1);
	fixture_close(&b);
}

/* Where several users may have one uid, a client shares a remote QP with no other one. */
TEST(remote_qp_belongs_to_one_client_of_a_shared_uid)
{
	struct switch_fixture b;

	users_open(&b);
	b.c[0].client->shares_uid = b.c[1].client->shares_uid = true;
	assert_int_equal(register_remote(&b, 0), 0);
	assert_int_equal(register_remote(&b, 1), EADDRINUSE);
	assert_int_equal(register_remote(&b, 0), 0);
	assert_int_equal(qp_request(&b, 0, SW_PEER_CLEAR), 0);
	assert_int_equal(register_remote(&b, 1), EADDRINUSE);
	time_pass(&b, SW_REMOTE_WAIT_NS);
	assert_int_equal(register_remote(&b, 1), 0);
	fixture_close(&b);
}

/* A congestion notification goes to the registered peer only. */
TEST(cnp_goes_to_the_registered_peer)
{
	struct switch_fixture b;
	struct frame_spec f;

	fixture_open(&b);
	f = frame_spec_valid(&b);
	f.opcode = OPCODE_CNP;
	f.payload = CNP_PAYLOAD;
	client_send(&b, &b.c[2], b.c[2].qpn, &f);
	assert_int_equal(b.c[2].client->stats.drop_peer, 1); /* no peer */
	assert_int_equal(client_set_peer(&b, &b.c[2], b.c[2].qpn, b.addr, b.c[1].qpn), 0);
	client_send(&b, &b.c[2], b.c[2].qpn, &f);
	assert_int_equal(b.c[2].client->stats.drop_not_connected, 1);
	assert_false(client_received(&b.c[1], NULL));
	client_send(&b, &b.c[0], b.c[0].qpn, &f);
	assert_true(client_received(&b.c[1], &f));
	/* The QPN and the address of another. */
	f.dest_qpn = b.c[2].qpn;
	client_send(&b, &b.c[0], b.c[0].qpn, &f);
	f.dest_qpn = b.c[1].qpn;
	memcpy(f.dgid, b.other, 16);
	client_send(&b, &b.c[0], b.c[0].qpn, &f);
	assert_int_equal(b.c[0].client->stats.drop_peer, 2);
	memcpy(f.dgid, b.addr, 16);
	memcpy(f.sgid, b.other, 16);
	client_send(&b, &b.c[0], b.c[0].qpn, &f);
	assert_int_equal(b.c[0].client->stats.drop_source_address, 1);
	assert_false(client_received(&b.c[1], NULL));
	assert_false(client_received(&b.c[2], NULL));
	fixture_close(&b);
}

/* A refused registration leaves the former one. */
TEST(refused_registration_changes_nothing)
{
	struct switch_fixture b;
	struct frame_spec f;

	users_open(&b);
	assert_int_equal(register_remote(&b, 2), 0);
	assert_int_equal(register_remote(&b, 0), EADDRINUSE);
	f = frame_spec_valid(&b);
	client_send(&b, &b.c[0], b.c[0].qpn, &f);
	assert_true(client_received(&b.c[1], &f));
	fixture_close(&b);
}

enum release {
	BY_CLEAR,
	BY_DESTROY,
	BY_OTHER_PEER,
	BY_END_OF_CLIENT,
	BY_ADDRESS,
	RELEASES,
};

static void
release(struct switch_fixture *b, enum release how)
{
	struct net_conf net = b->sw->conf.net;

	switch (how) {
	case BY_CLEAR:
		assert_int_equal(qp_request(b, 0, SW_PEER_CLEAR), 0);
		break;
	case BY_DESTROY:
		assert_int_equal(qp_request(b, 0, SW_QPN_GIVE), 0);
		b->c[0].qpn = client_take_qpn(b, &b->c[0]);
		break;
	case BY_OTHER_PEER:
		assert_int_equal(
			client_set_peer(b, &b->c[0], b->c[0].qpn, b->other, 5), 0);
		break;
	case BY_END_OF_CLIENT:
		client_detach(&b->c[0]);
		client_attach(b, &b->c[0]);
		break;
	default:
		/* The address becomes one of the device's, and ceases to be. */
		memcpy(net.addr[1].gid, b->other, 16);
		net.addr_count = 2;
		sw_set_net(b->sw, &net);
		net.addr_count = 1;
		sw_set_net(b->sw, &net);
		break;
	}
}

/* After its last registration a remote QP stays its user's for a while, who need not wait
 * for it. Then another user may register it. */
TEST(released_remote_qp_waits)
{
	for (unsigned how = 0; how < RELEASES; how++) {
		struct switch_fixture b;

		users_open(&b);
		assert_int_equal(register_remote(&b, 0), 0);
		assert_int_equal(register_remote(&b, 1), 0);
		release(&b, how);
		if (how != BY_ADDRESS)
			assert_int_equal(qp_request(&b, 1, SW_PEER_CLEAR), 0);
		assert_int_equal(register_remote(&b, 2), EADDRINUSE);
		assert_int_equal(register_remote(&b, 0), 0);
		time_pass(&b, 2 * SW_REMOTE_WAIT_NS);
		assert_int_equal(register_remote(&b, 2), EADDRINUSE);
		release(&b, how);
		time_pass(&b, SW_REMOTE_WAIT_NS - 1);
		assert_int_equal(register_remote(&b, 2), EADDRINUSE);
		time_pass(&b, 1);
		assert_int_equal(register_remote(&b, 2), 0);
		assert_int_equal(register_remote(&b, 0), EADDRINUSE);
		fixture_close(&b);
	}
}

/* A client that attaches anew, and again, keeps nothing from other users for ever. */
TEST(user_without_clients_keeps_its_remote_qps)
{
	struct switch_fixture b;

	users_open(&b);
	assert_int_equal(register_remote(&b, 2), 0);
	client_detach(&b.c[2]);
	assert_int_equal(register_remote(&b, 0), EADDRINUSE);
	client_attach(&b, &b.c[2]);
	assert_int_equal(register_remote(&b, 2), 0);
	client_detach(&b.c[2]);
	time_pass(&b, SW_REMOTE_WAIT_NS);
	assert_int_equal(register_remote(&b, 0), 0);
	fixture_close(&b);
}

/* Packets that the client sent before the end of the registration still arrive. */
TEST(clearing_the_peer_forwards_first)
{
	struct switch_fixture b;
	struct frame_spec f;

	users_open(&b);
	f = frame_spec_valid(&b);
	client_post(&b.c[0], 0, b.c[0].qpn,
		frame_spec_build(region_tx_buf(&b.c[0].region, 0), &f));
	assert_int_equal(qp_request(&b, 0, SW_PEER_CLEAR), 0);
	sw_run(b.sw, b.now);
	assert_true(client_received(&b.c[1], &f));
	client_send(&b, &b.c[0], b.c[0].qpn, &f);
	assert_int_equal(b.c[0].client->stats.drop_peer, 1);
	assert_false(client_received(&b.c[1], NULL));
	fixture_close(&b);
}

/* Of users with one uid, who have one share, those of one do not push out another's. */
TEST(waiting_remote_qps_of_others_with_the_uid_stay)
{
	const struct random_key key = {{1, 2}};
	struct sw_remote_owner owner;
	struct sw_remote *remote;
	struct sw_remotes t;
	uint8_t gid[16] = {1};

	assert_int_equal(sw_remotes_init(&t, &key), 0);
	sw_remote_owner_init(&owner);
	assert_int_equal(sw_remote_get(&t, &owner, 1, gid, 0xFFFFFF, 0, &remote), 0);
	sw_remote_put(&t, remote, 0);
	for (uint32_t qpn = 0; qpn < SW_REMOTES_WAITING + 9; qpn++) {
		assert_int_equal(sw_remote_get(&t, &owner, 2, gid, qpn, 0, &remote), 0);
		sw_remote_put(&t, remote, 0);
	}
	assert_int_equal(t.waiting_count, SW_REMOTES_WAITING);
	assert_int_equal(
		sw_remote_get(&t, &owner, 2, gid, 0xFFFFFF, 0, &remote), -EADDRINUSE);
	sw_remote_owner_fini(&t, &owner);
	sw_remotes_fini(&t);
}

/* One user's waiting remote QPs do not push out another's. */
TEST(waiting_remote_qps_are_limited)
{
	const struct random_key key = {{1, 2}};
	struct sw_remote_owner many, few;
	struct sw_remote *remote;
	struct sw_remotes t;
	uint8_t gid[16] = {1};

	assert_int_equal(sw_remotes_init(&t, &key), 0);
	sw_remote_owner_init(&many);
	sw_remote_owner_init(&few);
	assert_int_equal(sw_remote_get(&t, &few, 0, gid, 0xFFFFFF, 0, &remote), 0);
	sw_remote_put(&t, remote, 0);
	for (uint32_t qpn = 0; qpn < SW_REMOTES_WAITING + 9; qpn++) {
		assert_int_equal(sw_remote_get(&t, &many, 0, gid, qpn, 0, &remote), 0);
		sw_remote_put(&t, remote, 0);
	}
	assert_int_equal(t.waiting_count, SW_REMOTES_WAITING);
	assert_int_equal(
		sw_remote_get(&t, &many, 0, gid, 0xFFFFFF, 0, &remote), -EADDRINUSE);
	assert_int_equal(sw_remote_get(&t, &few, 0, gid, 10, 0, &remote), -EADDRINUSE);
	assert_int_equal(sw_remote_get(&t, &few, 0, gid, 9, 0, &remote), 0);
	sw_remote_put(&t, remote, 0);
	/* The next one that is released frees all whose time is over. */
	assert_int_equal(
		sw_remote_get(&t, &many, 0, gid, 11, SW_REMOTE_WAIT_NS, &remote), 0);
	sw_remote_put(&t, remote, SW_REMOTE_WAIT_NS);
	assert_int_equal(many.waiting_count, 1);
	sw_remote_owner_fini(&t, &many);
	sw_remote_owner_fini(&t, &few);
	sw_remotes_fini(&t);
}
