/* SPDX-License-Identifier: BSD-3-Clause */
/* Shows the state of a peer, and reduces impossible values. */
#include <string.h>

#include "case.h"
#include "qp/peer_info.h"
#include "qp/qp.h"

#define WINDOW 100

static const uint8_t address[16] = {0xfe, 0x80, [15] = 7};

static struct peer *
peer_make(struct peers *peers, bool cc)
{
	struct peer *peer;

	assert_int_equal(peers_init(peers, &alloc_plain, WINDOW,
				 &(struct cc_conf){.on = cc, .window = 8}),
		0);
	peer = peer_get(peers, address, false);
	assert_non_null(peer);
	return peer;
}

TEST(shows_a_peer)
{
	struct qp qp[2] = {{.untimed = 1}, {.untimed = 1}};
	struct peer_info info;
	struct peers peers;
	struct peer *peer = peer_make(&peers, false);

	assert_ptr_equal(peer_get(&peers, address, false), peer);
	peer_charge(&peer->send, 0, 3);
	peer_charge(&peer->read, 0, 4);
	peer->srtt_ns = 1234;
	for (unsigned i = 0; i < 2; i++) {
		qp[i].peer = peer;
		peer_block(&peers, &qp[i], i == 0 ? &peer->send : &peer->read);
	}
	peer_block(&peers, &qp[0], &peer->send); /* it is blocked already */
	peer_info_fill(&info, peer, 5);
	assert_memory_equal(info.gid, address, 16);
	assert_int_equal(info.engine, 5);
	assert_int_equal(info.qps, 2);
	assert_int_equal(info.send.qps_blocked, 1);
	assert_int_equal(info.read.qps_blocked, 1);
	assert_int_equal(info.send.inflight, 3);
	assert_int_equal(info.read.inflight, 4);
	assert_int_equal(info.send.window, WINDOW);
	assert_int_equal(info.read.window, WINDOW);
	assert_int_equal(info.cap, WINDOW);
	assert_int_equal(info.srtt_ns, 1234);
	assert_false(peer_info_cc_is_on(&info));
	assert_false(peer_info_is_paced(&info.send) || peer_info_is_paced(&info.read));
	peer_unblock(&peers, &qp[0]);
	peer_unblock(&peers, &qp[0]); /* it is not blocked any more */
	peer_info_fill(&info, peer, 0);
	assert_int_equal(info.send.qps_blocked, 0);
	assert_int_equal(info.read.qps_blocked, 1);
	peer_unblock(&peers, &qp[1]);
	peer_info_fill(&info, peer, 0);
	assert_int_equal(info.read.qps_blocked, 0);
	peer_charge(&peer->send, 3, 0);
	peer_charge(&peer->read, 4, 0);
	peer_put(&peers, peer);
	peer_put(&peers, peer);
	peers_fini(&peers);
}

TEST(shows_congestion_control)
{
	struct peer_info info;
	struct peers peers;
	struct peer *peer = peer_make(&peers, true);

	peer->read_cc.cwnd = 9 * CC_ONE;
	peer_info_fill(&info, peer, 0);
	assert_true(peer_info_cc_is_on(&info));
	assert_false(peer_info_is_paced(&info.send));
	assert_int_equal(info.send.cc_window, 8 * CC_ONE);
	assert_int_equal(info.read.cc_window, 9 * CC_ONE);
	assert_int_equal(info.send.window, 8);
	assert_int_equal(info.cap, WINDOW);
	assert_int_equal(info.send.cc_delay_ns, peer->send_cc.delay_ns);
	assert_int_equal(info.send.cc_target_ns, cc_target_ns(&peer->send_cc));
	assert_int_equal(info.read.cc_target_ns, cc_target_ns(&peer->read_cc));
	peer->send_cc.cwnd = CC_ONE;
	peer_info_fill(&info, peer, 0);
	assert_false(peer_info_is_paced(&info.send));
	peer->send_cc.cwnd = CC_ONE - 1;
	peer_info_fill(&info, peer, 0);
	assert_true(peer_info_is_paced(&info.send));
	assert_false(peer_info_is_paced(&info.read));
	assert_true(cc_is_paced(peer->send.cc));
	peer_put(&peers, peer);
	peers_fini(&peers);
}

TEST(possible_values_stay)
{
	struct peer_info info = {.gid = {0xfe, 0x80, [15] = 7},
		.engine = 1,
		.qps = 4,
		.cap = WINDOW,
		.srtt_ns = UINT32_MAX,
		.send = {.qps_blocked = 4,
			.inflight = WINDOW + 50,
			.window = WINDOW,
			.cc_window = WINDOW * CC_ONE,
			.cc_delay_ns = UINT32_MAX,
			.cc_target_ns = 25000}};
	struct peer_info before;

	info.read = info.send;
	before = info;
	peer_info_clamp(&info, 4);
	assert_memory_equal(&info, &before, sizeof(info));
}

static void
window_is(const struct peer_window_info *w, uint32_t qps, uint32_t inflight, uint32_t cap)
{
	assert_int_equal(w->qps_blocked, qps);
	assert_int_equal(w->inflight, inflight);
	assert_int_equal(w->window, cap);
	assert_int_equal(w->cc_window, cap * CC_ONE);
}

TEST(impossible_values_are_reduced)
{
	struct peer_info info;

	memset(&info, 0xff, sizeof(info));
	peer_info_clamp(&info, 4);
	assert_int_equal(info.qps, 4);
	assert_int_equal(info.cap, CC_CAP_MAX);
	window_is(&info.send, 4, 4 * 0xFFFFFF, CC_CAP_MAX);
	window_is(&info.read, 4, 4 * 0xFFFFFF, CC_CAP_MAX);
	info.qps = 2;
	info.cap = WINDOW;
	peer_info_clamp(&info, 4);
	assert_int_equal(info.qps, 2);
	window_is(&info.send, 2, 2 * 0xFFFFFF, WINDOW);
	window_is(&info.read, 2, 2 * 0xFFFFFF, WINDOW);
	/* 1000 ranges of PSNs do not fit into 32 bits. */
	memset(&info, 0xff, sizeof(info));
	peer_info_clamp(&info, 1000);
	assert_int_equal(info.send.inflight, UINT32_MAX);
	peer_info_clamp(&info, 0);
	assert_int_equal(info.qps, 0);
	assert_int_equal(info.send.inflight, 0);
}
