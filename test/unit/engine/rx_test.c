/* SPDX-License-Identifier: BSD-3-Clause */
/* Received packets: dispatch to QPs, drops, and the hand-off to another engine. */
#include <stdlib.h>
#include <string.h>

#include "engine/pass.h"
#include "engine_link.h"

#define QPS 4

static struct engine_link fixture;
static struct link_qp a[QPS], b[QPS];

static const struct link_qp_conf plain = {.engine = -1};

/* b has one or two engines, its QPs alternate between them; all its frames arrive at the
 * first. */
static void
init(unsigned engines_b)
{
	struct engine_link_conf conf = {.engines = {1, engines_b}};

	engine_link_init(&fixture, &conf);
	link_qps_create(&fixture, a, b, QPS, &plain);
	for (unsigned i = 0; i < QPS; i++)
		assert_int_equal(engine_index(b[i].qp->sched.engine), i % engines_b);
}

static void
messages_post(unsigned n, uint32_t len)
{
	for (unsigned i = 0; i < QPS; i++) {
		for (unsigned k = 0; k < n; k++) {
			assert_int_equal(link_qp_recv(&b[i], k, 0, len), 0);
			assert_int_equal(
				link_qp_send(&a[i], k, 0, len, IBV_SEND_SIGNALED), 0);
		}
	}
}

static void
expect_messages(unsigned n)
{
	for (unsigned i = 0; i < QPS; i++) {
		link_qp_expect_sent(&a[i], 0, n, IBV_WC_SUCCESS);
		link_qp_expect_received(&b[i], 0, n);
	}
}

/* Packets for the other engine's QPs cross its ring once and in order, whichever queue
 * they arrive at. */
TEST(handoff_is_once_and_in_order)
{
	for (unsigned queue = 0; queue < 2; queue++) {
		const struct port_stats *stats;

		init(2);
		fixture.b.queue = queue;
		messages_post(100, 3000);
		engine_link_drain(&fixture);
		expect_messages(100);
		stats = engine_stats(fixture.b.dev->engines[queue]);
		assert_int_equal(stats->rx_handoff, QPS / 2 * 100 * 3);
		assert_int_equal(
			engine_stats(fixture.b.dev->engines[1 - queue])->rx_handoff, 0);
		assert_int_equal(
			engine_stats(fixture.a.dev->engines[0])->retransmitted, 0);
		link_qps_fini(&fixture, a, b, QPS);
	}
}

/* While the other engine does not run, its ring fills up: further packets are dropped and
 * counted, and its deadline is 0. Later traffic recovers. */
TEST(packets_beyond_handoff_ring_are_dropped)
{
	struct engine *first, *second;

	init(2);
	first = fixture.b.dev->engines[0];
	second = fixture.b.dev->engines[1];
	messages_post(1, 8); /* resolves the neighbours */
	engine_link_drain(&fixture);
	expect_messages(1);
	for (unsigned i = 0; i < HANDOFF_ENTRIES + 50; i++) {
		struct link_qp *q = &b[1];
		struct path_hdr hdr = a[1].qp->hdr;
		uint8_t room[256];
		struct pkt pkt = {.data = room, .room = sizeof(room)};
		struct bth_fields bth = {.dest_qpn = q->qp->qpn,
			.psn = 0x800001 + i, /* old PSN: dropped by the QP */
			.pkey = 0xFFFF,
			.opcode = OPCODE_RC_SEND_ONLY};

		frame_begin(&hdr, &pkt, &bth, 0);
		frame_end(&hdr, &pkt, 0);
		assert_true(fake_arrive(&fixture.b.port, 0, &pkt));
	}
	while (engine_run(first, fixture.now) != 0)
		;
	assert_int_equal(first->stats.drop[DROP_handoff_full], 50);
	assert_int_equal(engine_deadline(second), 0);
	engine_link_drain(&fixture);
	assert_int_not_equal(engine_deadline(second), 0);
	messages_post(50, 100);
	engine_link_advance(&fixture, NS_PER_SEC);
	expect_messages(50);
	link_qps_fini(&fixture, a, b, QPS);
}

/* Packets in the ring go back to the port when the device is destroyed;
 * engine_link_fini() counts them. */
TEST(destroy_returns_handed_off_frames)
{
	init(2);
	messages_post(10, 100);
	for (unsigned i = 0; i < 20; i++) {
		engine_run(fixture.a.dev->engines[0], fixture.now);
		engine_run(fixture.b.dev->engines[0], fixture.now);
		engine_link_deliver(&fixture);
	}
	assert_int_equal(engine_deadline(fixture.b.dev->engines[1]), 0);
	link_qps_fini(&fixture, a, b, QPS);
}

/* ---- Threads ---- */

static bool stop;

static void *
engine_thread(void *arg)
{
	while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE))
		engine_poll(arg);
	return NULL;
}

/* Each engine of b runs in a thread. The QPs share no CQ and no SRQ. Every QP receives
 * its messages in order. */
TEST(engines_in_threads_keep_order)
{
	pthread_t threads[2];
	unsigned sent[QPS] = {0}, received[QPS] = {0}, done = 0;
	const unsigned n = 300;

	init(2);
	stop = false;
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, engine_thread,
					 fixture.b.dev->engines[i]),
			0);
	while (done != QPS * n) {
		done = 0;
		for (unsigned i = 0; i < QPS; i++) {
			struct cqe cqe;

			while (sent[i] < n && sent[i] - received[i] < 64) {
				/* Each QP writes to its own part of memory. */
				assert_int_equal(
					link_qp_recv(&b[i], sent[i], i * 128, 100), 0);
				assert_int_equal(link_qp_send(&a[i], sent[i], 0, 100,
							 IBV_SEND_SIGNALED),
					0);
				sent[i]++;
			}
			while (link_qp_poll_recv(&b[i], &cqe)) {
				assert_int_equal(cqe.status, IBV_WC_SUCCESS);
				assert_int_equal(cqe.wr_id, received[i]);
				received[i]++;
			}
			while (link_qp_poll_send(&a[i], &cqe))
				assert_int_equal(cqe.status, IBV_WC_SUCCESS);
			done += received[i];
		}
		engine_poll(fixture.a.dev->engines[0]);
		fixture.b.queue = (fixture.b.queue + 1) % 2;
		engine_link_deliver(&fixture);
	}
	__atomic_store_n(&stop, true, __ATOMIC_RELEASE);
	for (unsigned i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	for (unsigned i = 0; i < QPS; i++) {
		struct cqe cqe;

		while (link_qp_poll_send(&a[i], &cqe))
			;
	}
	link_qps_fini(&fixture, a, b, QPS);
}

/* ---- Dispatch ---- */

static void
frame_arrive(struct path_hdr *hdr, uint8_t opcode, uint32_t qpn, int flip)
{
	uint8_t room[256];
	struct pkt pkt = {.data = room, .room = sizeof(room)};
	struct bth_fields bth = {.dest_qpn = qpn, .pkey = 0xFFFF, .opcode = opcode};

	memset(frame_begin(hdr, &pkt, &bth, 0), 0, op_rows[opcode].ext_len);
	frame_end(hdr, &pkt, 0);
	if (flip >= 0)
		pkt.data[flip] ^= 1;
	assert_true(fake_arrive(&fixture.b.port, 0, &pkt));
}

/* Rows 1 to 3 of docs/protocol.md 8.2: a packet that reaches no QP is counted by its
 * reason. */
TEST(undelivered_packets_are_counted_by_reason)
{
	const struct port_stats *stats;
	struct path_hdr hdr;
	unsigned drops = 0;

	init(1);
	stats = engine_stats(fixture.b.dev->engines[0]);
	hdr = a[0].qp->hdr;
	frame_arrive(&hdr, OPCODE_RC_SEND_ONLY, b[0].qp->qpn, 50); /* ICRC */
	frame_arrive(&hdr, OPCODE_RC_SEND_ONLY, b[0].qp->qpn + 40, -1);
	frame_arrive(&hdr, OPCODE_RC_SEND_ONLY, 0xFFFFFF, -1);
	frame_arrive(&hdr, OPCODE_RC_SEND_ONLY, 0, -1);
	frame_arrive(&hdr, OPCODE_CNP, 0xFFFFFF, -1);
	frame_arrive(&hdr, OPCODE_CNP, b[0].qp->qpn, -1);
	frame_arrive(&hdr, OPCODE_UD_SEND_ONLY, b[0].qp->qpn, -1);
	frame_arrive(&hdr, OPCODE_RC_SEND_ONLY, b[0].qp->qpn, 13); /* EtherType 0x0801 */
	engine_link_drain(&fixture);
	assert_int_equal(stats->drop[DROP_icrc], 1);
	assert_int_equal(stats->drop[DROP_qpn], 2);
	assert_int_equal(stats->drop[DROP_group], 1);
	assert_int_equal(stats->drop[DROP_cnp], 1);
	assert_int_equal(stats->cnp_received, 1);
	assert_int_equal(stats->drop[DROP_qp_type], 1);
	assert_int_equal(stats->drop[DROP_ethertype], 1);
	for (unsigned i = 0; i < DROP_COUNT; i++)
		drops += (unsigned)stats->drop[i];
	assert_int_equal(drops, 7);
	assert_int_equal(stats->rx_roce, 0);
	/* A stopped QP is not found even before it is freed. */
	dev_qp_stop(fixture.b.dev, b[3].qp, fixture.now);
	frame_arrive(&hdr, OPCODE_RC_SEND_ONLY, b[3].qp->qpn, -1);
	engine_link_drain(&fixture);
	assert_int_equal(stats->drop[DROP_qpn], 3);
	dev_qp_fini(fixture.b.dev, b[3].qp);
	cq_fini(&b[3].send_cq);
	cq_fini(&b[3].recv_cq);
	link_qp_create(&fixture.b, &b[3], &plain);
	link_qps_fini(&fixture, a, b, QPS);
}

/* A burst is acknowledged at its end: one ACK for 32 packets. */
TEST(burst_is_acknowledged_once)
{
	const struct port_stats *stats;

	init(1);
	messages_post(1, 8);
	engine_link_drain(&fixture);
	expect_messages(1);
	stats = engine_stats(fixture.a.dev->engines[0]);
	for (unsigned k = 0; k < 32; k++) {
		assert_int_equal(link_qp_recv(&b[0], k, 0, 8), 0);
		assert_int_equal(link_qp_send(&a[0], k, 0, 8, IBV_SEND_SIGNALED), 0);
	}
	{
		uint64_t before = stats->rx_roce;

		engine_run(fixture.a.dev->engines[0], fixture.now);
		engine_link_deliver(&fixture);
		engine_run(fixture.b.dev->engines[0], fixture.now);
		assert_int_equal(fake_sent_count(&fixture.b.port), 1);
		engine_link_drain(&fixture);
		assert_int_equal(stats->rx_roce, before + 1);
	}
	link_qp_expect_sent(&a[0], 0, 32, IBV_WC_SUCCESS);
	link_qp_expect_received(&b[0], 0, 32);
	link_qps_fini(&fixture, a, b, QPS);
}

/* ---- Release of frames ---- */

/* Number of received frames that b has not released. */
static unsigned
unreleased(void)
{
	return fixture.b.port.live - fixture.b.dev->engines[0]->io.cache_count;
}

static void
frames_arrive(struct path_hdr *hdr, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		frame_arrive(hdr, OPCODE_RC_SEND_ONLY, 0, -1); /* no such QPN */
}

/* Frames of a burst of four or fewer are released in the next pass, those of a larger
 * burst at once. */
TEST(small_bursts_are_released_in_next_pass)
{
	struct engine *e;
	struct path_hdr hdr;

	init(1);
	e = fixture.b.dev->engines[0];
	hdr = a[0].qp->hdr;
	for (unsigned n = 1; n <= PKT_BURST; n++) {
		frames_arrive(&hdr, n);
		assert_int_equal(engine_run(e, fixture.now), n);
		assert_int_equal(unreleased(), n <= 4 ? n : 0);
		/* The earlier frames are released before the next burst is received. */
		frames_arrive(&hdr, 2);
		assert_int_equal(engine_run(e, fixture.now), 2);
		assert_int_equal(unreleased(), 2);
		assert_int_equal(engine_run(e, fixture.now), 0);
		assert_int_equal(unreleased(), 0);
		assert_int_equal(engine_run(e, fixture.now), 0);
		assert_int_equal(unreleased(), 0);
	}
	/* The remainder of a larger backlog is a burst of four. */
	frames_arrive(&hdr, PKT_BURST + 4);
	assert_int_equal(engine_run(e, fixture.now), PKT_BURST);
	assert_int_equal(unreleased(), 0);
	assert_int_equal(engine_run(e, fixture.now), 4);
	assert_int_equal(unreleased(), 4);
	link_qps_fini(&fixture, a, b,
		QPS); /* releases these frames too: engine_link_fini() counts */
}

/* An engine releases the frames that were handed to it. */
TEST(receiving_engine_releases_handed_off_frames)
{
	struct path_hdr hdr;

	init(2);
	hdr = a[0].qp->hdr;
	for (unsigned i = 0; i < 3; i++)
		frame_arrive(&hdr, OPCODE_UD_SEND_ONLY, b[i].qp->qpn, -1);
	assert_int_equal(engine_run(fixture.b.dev->engines[0], fixture.now), 3);
	assert_int_equal(unreleased(), 3);
	assert_int_equal(fixture.b.dev->engines[0]->unreleased_count, 2);
	assert_int_equal(engine_run(fixture.b.dev->engines[1], fixture.now), 1);
	assert_int_equal(unreleased(), 2);
	assert_int_equal(engine_run(fixture.b.dev->engines[0], fixture.now), 0);
	assert_int_equal(unreleased(), 0);
	link_qps_fini(&fixture, a, b, QPS);
}
