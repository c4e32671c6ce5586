/* SPDX-License-Identifier: BSD-3-Clause */
/* Direct placement (lib/qp/direct_place.c): MIDDLE packets whose payload is in its
 * destination before their ICRC has been checked. Here and in struct pkt_view such a
 * payload is "placed". direct_place_excluded_test.c has the packets that are not. */
#include <stdlib.h>
#include <string.h>

#include "direct_place_fixture.h"

static bool
is_middle(unsigned i)
{
	return i != 0 && i != PACKETS - 1;
}

/* Checks the packets of the message one at a time, and then delivers them. */
static void
message_in_order(enum way way)
{
	for (unsigned i = 0; i < PACKETS; i++) {
		struct check_result result = frame_check(&from->wire[0]);
		uint32_t at = i * mtu;

		assert_true(result.icrc_ok);
		assert_int_equal(
			result.payload_placed, is_middle(i) && icrc_copy_min <= mtu);
		if (result.payload_placed)
			assert_memory_equal(
				to->mem + AT + at, from->mem + FROM + at, mtu);
		expect_changed(at, result.payload_placed ? mtu : 0);
		wire_deliver(from, 0);
		expect_changed(at, RTE_MIN(mtu, len - at));
	}
	/* checked above, and by wire_deliver() */
	assert_int_equal(
		to->stats.direct_placed, icrc_copy_min <= mtu ? 2 * (PACKETS - 2) : 0);
	assert_int_equal(to->stats.direct_place_missed, 0);
	direct_finish(way);
}

TEST_BOTH_WAYS(middle_packets_are_delivered_directly)
{
	for (unsigned i = 0; i < WAYS * 2; i++) {
		for (int code = IBV_MTU_256; code <= IBV_MTU_4096; code++) {
			struct qp_link_conf conf = qp_link_defaults_rdma();
			uint32_t bytes = mtu_bytes((enum ibv_mtu)code);

			conf.mtu = (enum ibv_mtu)code;
			conf.ipv6 = i % 2;
			direct_open(
				(enum way)(i / 2), &conf, (PACKETS - 1) * bytes + 100, 0);
			message_in_order((enum way)(i / 2));
		}
	}
}

TEST_BOTH_WAYS(switched_off_places_nothing)
{
	for (enum way way = 0; way < WAYS; way++) {
		direct_open_default(way);
		to->shared.direct_place_off = true;
		for (unsigned i = 0; i < PACKETS; i++) {
			struct check_result result = frame_check(&from->wire[0]);

			assert_true(result.icrc_ok);
			assert_false(result.payload_placed);
			wire_deliver(from, 0);
		}
		assert_int_equal(to->stats.direct_placed, 0);
		direct_finish(way);
	}
}

/* Receives the next frame. If its payload was placed directly, the frame's copy is
 * overwritten first. */
static void
receive_overwritten_frame(void)
{
	struct frame *frame = &from->wire[0];
	struct pkt pkt = {.data = frame->data,
		.len = (uint16_t)frame->len,
		.room = (uint16_t)frame->len};
	struct pkt_view view;

	assert_int_equal(pkt_parse_headers(&pkt, 0, &view), DROP_none);
	assert_true(qp_icrc_check(&to->qp, &view));
	if (view.payload_placed)
		memset(frame->data + frame->len - ICRC_LEN - mtu, 0x5A, mtu);
	qp_rx(&to->qp, &view, p.now);
	wire_drop(from, 0);
}

/* The payload is copied once: the bytes that the ICRC covered stay in memory. */
TEST_BOTH_WAYS(payload_is_copied_once)
{
	for (enum way way = 0; way < WAYS; way++) {
		direct_open_default(way);
		for (unsigned i = 0; i < PACKETS; i++)
			receive_overwritten_frame();
		assert_int_equal(to->qp.stats.rx_packets, PACKETS);
		direct_finish(way);
	}
}

/* ---- Damaged ---- */

/* Offset from the end of the BTH; a negative one lies inside the BTH. */
static const int damages[] = {-4 /* AckReq */, -1 /* PSN */, 0, 500, 1023, 1024, 1027};

/* Flips a bit of the next frame, which has MTU 1024. */
static void
damage(int where)
{
	struct frame *frame = &from->wire[0];
	int behind_bth = (int)frame->len - ICRC_LEN - 1024;

	frame->data[behind_bth + where] ^= where == -4 ? 0x80 : 0x10;
}

/* Packet i arrives damaged. Only its own bytes of the message change, and the QP does
 * not. The packets behind it are dropped. Then it is sent again. */
static void
damaged_packet_run(enum way way, unsigned i, int where)
{
	/* A damaged PSN is not the expected one. */
	bool payload_placed = where != -1 && icrc_copy_min <= mtu;
	static struct qp before;
	struct check_result result;

	for (unsigned k = 0; k < i; k++)
		wire_deliver(from, 0);
	expect_changed(0, i * mtu);
	damage(where);
	result = frame_check(&from->wire[0]);
	assert_false(result.icrc_ok);
	assert_int_equal(result.payload_placed, payload_placed);
	expect_changed(i * mtu, payload_placed ? mtu : 0);
	memcpy(&before, &to->qp, sizeof(before));
	wire_deliver(from, 0);
	assert_memory_equal(&before, &to->qp, sizeof(before));
	assert_int_equal(to->stats.drop[DROP_icrc], 1);
	expect_changed(i * mtu, payload_placed ? mtu : 0);
	wire_deliver_all(from);
	expect_changed(0, 0);
	direct_finish(way);
	assert_int_equal(to->stats.drop[DROP_icrc], 1);
}

TEST_BOTH_WAYS(damaged_packet_changes_only_its_bytes)
{
	for (enum way way = 0; way < WAYS; way++) {
		for (unsigned i = 1; i < PACKETS - 1; i++) {
			for (unsigned k = 0; k < RTE_DIM(damages); k++) {
				direct_open_default(way);
				damaged_packet_run(way, i, damages[k]);
			}
		}
	}
}

/* Advances time until packet PSN_A + 1 is the next one. The packets before it, such as a
 * tail-loss probe or the start of a resent message, are placed. */
static void
second_packet_resend(enum way way)
{
	while (from->wire_count == 0 || wire_view(from, 0).psn != psn_add(PSN_A, 1)) {
		if (from->wire_count != 0) {
			wire_deliver(from, 0);
			continue;
		}
		wire_deliver_all(to);
		qp_link_advance(&p, NS_PER_MS);
		host_pull(&p.a, PULL_ALL);
		if (way == WAY_READ) {
			wire_deliver_all(&p.a);
			host_pull(&p.b, PULL_ALL);
		}
	}
}

/* The same packet arrives damaged several times, and the packets behind it are lost. */
TEST_BOTH_WAYS(packet_damaged_repeatedly)
{
	for (enum way way = 0; way < WAYS; way++) {
		direct_open_default(way);
		wire_deliver(from, 0);
		expect_changed(0, mtu);
		for (unsigned times = 1; times <= 3; times++) {
			second_packet_resend(way);
			damage(500);
			wire_deliver(from, 0);
			wire_drop_all(from);
			assert_int_equal(to->stats.drop[DROP_icrc], times);
			expect_changed(mtu, icrc_copy_min <= mtu ? mtu : 0);
		}
		direct_finish(way);
	}
}

TEST_GROUP(direct_on, NULL)
