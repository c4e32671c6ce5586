/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames of 1024 bytes and more: their ICRC check is deferred to the dispatch. */
#include <stdlib.h>
#include <string.h>

#include "engine/engine_state.h"
#include "engine_link.h"

#define QPS 2
#define PACKETS 8
#define LEN (PACKETS * 1024)
#define FRAMES (QPS * PACKETS)
#define NONE UINT32_MAX

static struct engine_link fixture;
static struct link_qp a[QPS], b[QPS];

static const struct link_qp_conf plain = {.engine = -1};

/* b has one or two engines; all its frames arrive at the first. */
static void
init(unsigned engines_b)
{
	struct engine_link_conf conf = {.engines = {1, engines_b}};

	engine_link_init(&fixture, &conf);
	link_qps_create(&fixture, a, b, QPS, &plain);
	for (unsigned i = 0; i < QPS; i++) {
		/* Resolves the neighbours and gets the first exchange of each QP over. */
		assert_int_equal(link_qp_recv(&b[i], 1, 0, 8), 0);
		assert_int_equal(link_qp_send(&a[i], 1, 0, 8, IBV_SEND_SIGNALED), 0);
	}
	engine_link_advance(&fixture, NS_PER_SEC);
	for (unsigned i = 0; i < QPS; i++) {
		link_qp_expect_sent(&a[i], 1, 1, IBV_WC_SUCCESS);
		link_qp_expect_received(&b[i], 1, 1);
	}
}

static uint64_t
drop_count(enum drop_reason why)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < fixture.b.dev->engine_count; i++)
		n += engine_stats(fixture.b.dev->engines[i])->drop[why];
	return n;
}

static void
message_post(unsigned i, uint64_t wr_id, uint32_t offset, uint32_t len)
{
	assert_int_equal(link_qp_recv(&b[i], wr_id, offset, len), 0);
	assert_int_equal(link_qp_send(&a[i], wr_id, offset, len, IBV_SEND_SIGNALED), 0);
}

/* Sends a message to each QP of b. Frame number `wrong` of the burst (NONE: none) is
 * corrupted. small: the burst begins with a small frame. The engine then checks the ICRC
 * of every frame before it dispatches the first one. */
static void
burst_arrive(unsigned wrong, bool small)
{
	struct pkt frame;
	unsigned n = 0;

	memset(fixture.b.mem, 0, (QPS + 1) * LEN);
	if (small)
		message_post(0, 2, QPS * LEN, 8);
	for (unsigned i = 0; i < QPS; i++) {
		bytes_fill(fixture.a.mem + i * LEN, LEN, i);
		message_post(i, 3, i * LEN, LEN);
	}
	while (engine_run(fixture.a.dev->engines[0], fixture.now) != 0)
		;
	assert_int_equal(fake_sent_count(&fixture.a.port), FRAMES + small);
	for (; fake_sent(&fixture.a.port, &frame); n++) {
		assert_int_equal(frame.len < 1024, small && n == 0);
		if (n == wrong)
			frame.data[frame.len - 8] ^= 1;
		assert_true(fake_arrive(&fixture.b.port, 0, &frame));
		free(frame.data);
	}
}

static void
expect_messages(bool small)
{
	if (small) {
		link_qp_expect_sent(&a[0], 2, 1, IBV_WC_SUCCESS);
		link_qp_expect_received(&b[0], 2, 1);
	}
	for (unsigned i = 0; i < QPS; i++) {
		link_qp_expect_sent(&a[i], 3, 1, IBV_WC_SUCCESS);
		link_qp_expect_received(&b[i], 3, 1);
		assert_true(bytes_match(fixture.b.mem + i * LEN, LEN, i));
	}
	for (unsigned i = QPS * LEN; i < (QPS + 1) * LEN; i++)
		assert_int_equal(fixture.b.mem[i], 0);
}

/* A corrupted frame is counted once, by the engine of its QP, and is retransmitted. */
static void
corrupted_frame_case(unsigned engines, unsigned wrong, bool small)
{
	init(engines);
	burst_arrive(wrong, small);
	for (unsigned i = 0; i < engines; i++) {
		while (engine_run(fixture.b.dev->engines[i], fixture.now) != 0)
			;
	}
	assert_int_equal(drop_count(DROP_icrc), 1);
	engine_link_advance(&fixture, NS_PER_SEC);
	assert_int_equal(drop_count(DROP_icrc), 1);
	assert_int_not_equal(engine_stats(fixture.a.dev->engines[0])->retransmitted, 0);
	expect_messages(small);
	link_qps_fini(&fixture, a, b, QPS);
}

TEST(corrupted_frame_is_counted_once_and_resent)
{
	for (unsigned i = 0; i < 4 * FRAMES; i++)
		corrupted_frame_case(1 + i % 2, i / 4, i / 2 % 2);
}

/* An intact burst is received without drops or retransmissions. */
TEST(intact_burst_has_no_drops)
{
	for (unsigned i = 0; i < 4; i++) {
		init(1 + i / 2);
		burst_arrive(NONE, i % 2);
		engine_link_advance(&fixture, NS_PER_SEC);
		for (unsigned why = 0; why < DROP_COUNT; why++)
			assert_int_equal(drop_count((enum drop_reason)why), 0);
		assert_int_equal(
			engine_stats(fixture.a.dev->engines[0])->retransmitted, 0);
		expect_messages(i % 2);
		link_qps_fini(&fixture, a, b, QPS);
	}
}

/* ---- Frames without a QP ---- */

static void
frame_arrive(uint8_t opcode, uint32_t qpn, bool right)
{
	static uint8_t room[2048];
	struct pkt pkt = {.data = room, .room = sizeof(room)};
	struct bth_fields bth = {.dest_qpn = qpn, .pkey = PKEY_DEFAULT, .opcode = opcode};
	struct path_hdr hdr = a[0].qp->hdr;

	memset(frame_begin(&hdr, &pkt, &bth, 1024), 0, op_rows[opcode].ext_len);
	memset(frame_payload(&hdr, &pkt, opcode), 7, 1024);
	frame_end(&hdr, &pkt, 1024);
	if (!right)
		pkt.data[pkt.len - 100] ^= 1;
	assert_true(fake_arrive(&fixture.b.port, 0, &pkt));
}

/* The ICRC is checked first: a corrupted frame is not counted by its destination. */
TEST(icrc_is_checked_before_destination)
{
	static const struct {
		uint8_t opcode;
		uint32_t qpn;
		enum drop_reason why;
	} rows[] = {
		{OPCODE_RC_SEND_MIDDLE, 0x9999, DROP_qpn},
		{OPCODE_UD_SEND_ONLY, 0x9999, DROP_qpn},
		{OPCODE_UD_SEND_ONLY, 0xFFFFFF, DROP_group},
	};

	init(1);
	for (unsigned i = 0; i < RTE_DIM(rows); i++) {
		uint64_t icrc = drop_count(DROP_icrc), why = drop_count(rows[i].why);

		frame_arrive(rows[i].opcode, rows[i].qpn, false);
		engine_link_drain(&fixture);
		assert_int_equal(drop_count(DROP_icrc), icrc + 1);
		assert_int_equal(drop_count(rows[i].why), why);
		frame_arrive(rows[i].opcode, rows[i].qpn, true);
		engine_link_drain(&fixture);
		assert_int_equal(drop_count(DROP_icrc), icrc + 1);
		assert_int_equal(drop_count(rows[i].why), why + 1);
	}
	link_qps_fini(&fixture, a, b, QPS);
}
