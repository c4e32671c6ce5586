/* SPDX-License-Identifier: BSD-3-Clause */
/* The parts of the network alone: clock, queues with their limits and marks, ECMP,
 * policer, and what is computed from samples. */
#include <math.h>
#include <string.h>

#include <rte_ip.h>

#include "case.h"
#include "numbers.h"
#include "random.h"
#include "switch.h"

#define LEN 1000 /* of a frame */
#define RATE UINT64_C(80)
#define DELAY (2 * PS_PER_US)
#define WIRE ((LEN + FRAME_L1_BYTES) * RATE)

uint64_t random_state;

static struct frame *
frame_make(unsigned src, unsigned dst, uint16_t sport, uint8_t ecn)
{
	struct frame *f = frame_get();
	struct rte_ipv4_hdr *ip = (struct rte_ipv4_hdr *)(f->data + 14);

	memset(f->data, 0, LEN);
	f->len = LEN;
	host_mac(dst, f->data);
	host_mac(src, f->data + 6);
	f->data[12] = 0x08;
	ip->version_ihl = 0x45;
	ip->type_of_service = ecn;
	ip->next_proto_id = 17;
	ip->hdr_checksum = rte_ipv4_cksum(ip);
	f->data[34] = (uint8_t)(sport >> 8);
	f->data[35] = (uint8_t)sport;
	f->data[36] = 4791 >> 8;
	f->data[37] = 4791 & 0xff;
	assert_true(frame_classify(f));
	return f;
}

/* ---- Clock ---- */

struct note {
	struct event event;
	uint64_t ran;
	unsigned order;
};

static unsigned notes;

static void
note_run(struct event *event)
{
	struct note *note = container_of(event, struct note, event);

	note->ran = clock_ps;
	note->order = ++notes;
}

TEST(events_run_in_order_of_time)
{
	struct note note[100] = {0};

	clock_reset(0);
	notes = 0;
	for (unsigned i = 0; i < 100; i++) {
		note[i].event.run = note_run;
		event_at(&note[i].event, 1000 - 10 * (i / 2));
	}
	event_cancel(&note[7].event);
	event_at(&note[8].event, 2000); /* moved */
	events_run(1000);
	for (unsigned i = 0; i < 100; i++) {
		if (i == 7 || i == 8)
			assert_int_equal(note[i].order, 0);
		else
			assert_int_equal(note[i].ran, 1000 - 10 * (i / 2));
	}
	assert_int_equal(note[99].order, note[98].order + 1); /* of the same time */
	assert_int_equal(note[98].order, 1);
	events_run(1999);
	assert_int_equal(note[8].order, 0);
	events_run(2000);
	assert_int_equal(note[8].order, 99);
}

TEST(event_in_the_past_runs_now)
{
	struct note note = {.event.run = note_run};

	clock_reset(500);
	event_at(&note.event, 100);
	events_run(500);
	assert_int_equal(note.ran, 500);
}

/* ---- Queues ---- */

struct sink {
	unsigned count, marked;
	uint64_t last;
};

static void
sink_take(void *to, struct frame *f)
{
	struct sink *sink = to;
	const struct rte_ipv4_hdr *ip = (const struct rte_ipv4_hdr *)(f->data + 14);

	sink->count++;
	sink->last = clock_ps;
	sink->marked += (ip->type_of_service & 3) == 3;
	/* The checksum of a header with its checksum is 0. */
	assert_int_equal(rte_raw_cksum(ip, sizeof(*ip)), 0xffff);
	frame_put(f);
}

static struct outq_conf
conf_to(struct sink *sink)
{
	*sink = (struct sink){0};
	clock_reset(0);
	random_state = 1;
	return (struct outq_conf){
		.ps_per_byte = RATE, .delay = DELAY, .deliver = sink_take, .to = sink};
}

TEST(queue_sends_at_its_rate)
{
	struct sink sink;
	struct outq_conf conf = conf_to(&sink);
	struct outq q;

	outq_init(&q, &conf);
	for (unsigned i = 0; i < 10; i++)
		assert_true(outq_send(&q, frame_make(1, 0, 5, 0)));
	assert_int_equal(q.bytes, 10 * LEN);
	events_run(WIRE + DELAY - 1);
	assert_int_equal(sink.count, 0);
	events_run(WIRE + DELAY);
	assert_int_equal(sink.count, 1);
	events_run(PS_PER_MS);
	assert_int_equal(sink.count, 10);
	assert_int_equal(sink.last, 10 * WIRE + DELAY);
	assert_int_equal(q.bytes, 0);
	assert_int_equal(q.sent_bytes, 10 * (LEN + FRAME_L1_BYTES));
	outq_fini(&q);
	assert_int_equal(frames_in_use(), 0);
}

TEST(queue_drops_behind_its_limit)
{
	struct sink sink;
	struct outq_conf conf = conf_to(&sink);
	struct outq q;

	conf.limit = 4 * LEN + 999;
	outq_init(&q, &conf);
	for (unsigned i = 0; i < 10; i++)
		assert_int_equal(outq_send(&q, frame_make(1, 0, 5, 0)), i < 4);
	assert_int_equal(q.offered, 10);
	assert_int_equal(q.dropped, 6);
	events_run(WIRE); /* one has left */
	assert_true(outq_send(&q, frame_make(1, 0, 5, 0)));
	assert_false(outq_send(&q, frame_make(1, 0, 5, 0)));
	outq_fini(&q);
	assert_int_equal(frames_in_use(), 0);
}

TEST(dead_link_loses_everything)
{
	struct sink sink;
	struct outq_conf conf = conf_to(&sink);
	struct outq q;

	outq_init(&q, &conf);
	q.dead = true;
	assert_false(outq_send(&q, frame_make(1, 0, 5, 0)));
	assert_int_equal(q.dropped, 1);
	outq_fini(&q);
	assert_int_equal(frames_in_use(), 0);
}

/* With alpha 1 one queue gets half of the memory, and two get a third each. */
TEST(shared_buffer_has_a_dynamic_threshold)
{
	struct buffer buffer = {.size = 60 * LEN, .alpha = 1};
	struct sink sink;
	struct outq_conf conf = conf_to(&sink);
	struct outq a, b;
	unsigned taken = 0;

	conf.buffer = &buffer;
	outq_init(&a, &conf);
	outq_init(&b, &conf);
	for (unsigned i = 0; i < 100; i++)
		outq_send(&a, frame_make(1, 0, 5, 0));
	assert_int_equal(a.count, 30);
	for (unsigned i = 0; i < 100; i++)
		taken += outq_send(&b, frame_make(1, 0, 5, 0));
	assert_int_equal(taken, 15); /* of the 30 that were free */
	for (unsigned i = 0; i < 20000; i++) {
		events_run(clock_ps + WIRE / 20);
		outq_send(&a, frame_make(1, 0, 5, 0));
		outq_send(&b, frame_make(1, 0, 5, 0));
	}
	assert_in_range(a.count, 19, 21);
	assert_in_range(b.count, 19, 21);
	events_run(clock_ps + PS_PER_MS);
	assert_int_equal(buffer.used, 0);
	outq_fini(&a);
	outq_fini(&b);
	assert_int_equal(frames_in_use(), 0);
}

TEST(red_probability_rises)
{
	struct red red = {.kmin = 1000, .kmax = 3000, .pmax = 0.2}, off = {0};

	assert_true(red_probability(&off, 1u << 30) == 0);
	assert_true(red_probability(&red, 0) == 0);
	assert_true(red_probability(&red, 1000) == 0);
	assert_true(fabs(red_probability(&red, 2000) - 0.1) < 1e-9);
	assert_true(fabs(red_probability(&red, 2999) - 0.2) < 1e-3);
	assert_true(red_probability(&red, 3000) == 1);
}

/* Holds the queue at 20 frames, where the probability is 0.1. */
static unsigned
marked_of_10000(uint8_t ecn)
{
	struct sink sink;
	struct outq_conf conf = conf_to(&sink);
	struct outq q;

	conf.red = (struct red){.kmin = 10 * LEN, .kmax = 30 * LEN, .pmax = 0.2};
	outq_init(&q, &conf);
	for (unsigned sent = 0; sent < 10000; sent++) {
		while (q.count > 20)
			events_run(clock_ps + WIRE);
		outq_send(&q, frame_make(1, 0, 5, ecn));
	}
	events_run(clock_ps + PS_PER_MS);
	assert_int_equal(sink.count, 10000);
	assert_int_equal(sink.marked, q.marked);
	outq_fini(&q);
	return sink.marked;
}

TEST(red_marks_capable_packets_only)
{
	assert_int_equal(marked_of_10000(0), 0);
	assert_in_range(marked_of_10000(2), 900, 1100);
	assert_int_equal(frames_in_use(), 0);
}

/* ---- Paths ---- */

TEST(ecmp_keeps_flows_and_spreads_them)
{
	unsigned count[4] = {0}, moved = 0;

	for (unsigned i = 0; i < 4000; i++) {
		struct frame *f = frame_make(1, 2, (uint16_t)(0xC000 + i), 0);
		unsigned path = ecmp_choose(f, 4, 77);

		assert_in_range(path, 0, 3);
		assert_int_equal(ecmp_choose(f, 4, 77), path);
		moved += ecmp_choose(f, 4, 78) != path;
		count[path]++;
		frame_put(f);
	}
	for (unsigned i = 0; i < 4; i++)
		assert_in_range(count[i], 850, 1150);
	assert_in_range(moved, 2700, 3300); /* another switch chooses anew */
}

TEST(policer_lets_the_rate_and_a_burst_pass)
{
	static struct policer p;
	struct frame *a = frame_make(1, 2, 0xC000, 0), *b = frame_make(1, 2, 0xC001, 0);
	unsigned passed = 0;

	policer_init(&p, 8000, 10 * LEN); /* a frame each microsecond */
	for (unsigned i = 0; i < 100; i++)
		passed += policer_pass(&p, a, PS_PER_US);
	assert_int_equal(passed, 10);
	assert_true(policer_pass(&p, b, PS_PER_US)); /* another flow */
	passed = 0;
	for (unsigned i = 1; i <= 1000; i++) /* four times the rate */
		passed += policer_pass(&p, a, PS_PER_US + i * PS_PER_US / 4);
	assert_in_range(passed, 249, 250);
	assert_int_equal(p.dropped, 90 + 1000 - passed);
	passed = 0;
	for (unsigned i = 0; i < 100; i++) /* rest fills the bucket, and no more */
		passed += policer_pass(&p, a, PS_PER_MS * 1000);
	assert_int_equal(passed, 10);
	policer_init(&p, 0, 0);
	assert_true(policer_pass(&p, a, 0));
	frame_put(a);
	frame_put(b);
}

TEST(switch_routes_and_loses)
{
	struct sink sink;
	struct outq_conf conf = conf_to(&sink);
	struct sw s;

	sw_init(&s, 2, 2, 1);
	for (uint16_t i = 0; i < 2; i++) {
		outq_init(&s.queues[i], &conf);
		s.routes[i] = (struct route){i, 1};
	}
	for (unsigned i = 0; i < 100; i++)
		sw_rx(&s, frame_make(0, 1, 0xC000, 0));
	assert_int_equal(s.queues[1].offered, 100);
	s.loss = 100000;
	for (unsigned i = 0; i < 1000; i++)
		sw_rx(&s, frame_make(1, 0, 0xC000, 0));
	assert_in_range(s.lost, 70, 130);
	assert_int_equal(s.queues[0].offered, 1000 - s.lost);
	sw_fini(&s);
	assert_int_equal(frames_in_use(), 0);
}

/* ---- Numbers ---- */

TEST(numbers_of_samples)
{
	double even[4] = {3, 3, 3, 3}, one[4] = {5, 0, 0, 0}, none[2] = {0};
	double samples[101];

	assert_true(jain_index(even, 4) == 1);
	assert_true(jain_index(one, 4) == 0.25);
	assert_true(jain_index(none, 2) == 0);
	for (unsigned i = 0; i <= 100; i++)
		samples[i] = 100 - i;
	assert_true(percentile(samples, 101, 0.99) == 99);
	assert_true(percentile(samples, 101, 0.5) == 50);
	assert_true(isnan(percentile(samples, 0, 0.5)));
}
