/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether packets or requests of a QP are predicted to go on. */
#include <stdint.h>

#include "case.h"
#include "engine/stream.h"

#define BEGIN NS_PER_SEC

static uint8_t two[2];
#define QP ((const struct qp *)&two[0])
#define OTHER_QP ((const struct qp *)&two[1])

static struct stream
stream_new(void)
{
	return (struct stream){.needed = STREAM_NEEDED_FIRST};
}

/* Runs the stream until it is on. Returns the time of the last pass. */
static uint64_t
stream_run(struct stream *s, uint64_t now)
{
	uint32_t needed = s->needed;

	assert_false(stream_go_on(s, QP, 1, now));
	for (uint32_t n = 1; n < needed; n++) {
		now += STREAM_GAP_NS - 1;
		assert_false(stream_go_on(s, QP, 1, now));
		assert_false(s->is_on);
	}
	now += STREAM_GAP_NS - 1;
	assert_true(stream_go_on(s, QP, 1, now));
	assert_true(s->is_on);
	return now;
}

TEST(is_on_after_enough_without_a_gap)
{
	struct stream s = stream_new();

	stream_run(&s, BEGIN);
}

TEST(several_in_a_pass_count)
{
	struct stream s = stream_new();

	assert_false(stream_go_on(&s, QP, 3, BEGIN)); /* it begins */
	assert_false(stream_go_on(&s, QP, STREAM_NEEDED_FIRST - 1, BEGIN));
	assert_true(stream_go_on(&s, QP, 1, BEGIN));
	/* The count does not wrap around to 0. */
	assert_true(stream_go_on(&s, QP, UINT32_C(1) << 31, BEGIN));
	assert_true(
		stream_go_on(&s, QP, (UINT32_C(1) << 31) - STREAM_NEEDED_FIRST, BEGIN));
}

TEST(gap_begins_it_anew)
{
	struct stream s = stream_new();
	uint64_t now = stream_run(&s, BEGIN);

	assert_false(stream_has_gap(&s, now + STREAM_GAP_NS - 1));
	assert_true(stream_has_gap(&s, now + STREAM_GAP_NS));
	stream_run(&s, now + STREAM_GAP_NS);
	assert_int_equal(s.needed, STREAM_NEEDED_FIRST);
}

TEST(other_qp_begins_it_anew)
{
	struct stream s = stream_new();
	uint64_t now = stream_run(&s, BEGIN);

	assert_false(stream_go_on(&s, OTHER_QP, 1, now));
	stream_run(&s, now);
	stream_forget(&s, OTHER_QP);
	assert_true(s.is_on);
	stream_forget(&s, QP);
	assert_false(s.is_on);
	assert_null(s.qp);
}

TEST(failures_need_more_up_to_a_limit)
{
	static const struct {
		uint64_t after_ns;
		uint32_t most;
	} kinds[] = {{STREAM_LATE_NS - 1, STREAM_NEEDED_GAP},
		{STREAM_LATE_NS, STREAM_NEEDED_LATE}};

	for (unsigned i = 0; i < RTE_DIM(kinds); i++) {
		struct stream s = stream_new();
		uint64_t now = BEGIN;

		for (uint32_t needed = STREAM_NEEDED_FIRST; needed < kinds[i].most;
			needed *= STREAM_BACKOFF) {
			assert_int_equal(s.needed, needed);
			now = stream_run(&s, now) + kinds[i].after_ns;
			stream_failed(&s, now);
			assert_false(s.is_on);
		}
		for (unsigned again = 0; again < 2; again++) {
			assert_int_equal(s.needed, kinds[i].most);
			stream_failed(&s, now);
		}
	}
}

/* A gap in time leaves what late passes have brought about. */
TEST(limits_do_not_lower)
{
	struct stream s = stream_new();

	s.needed = STREAM_NEEDED_LATE / 2;
	s.last_ns = BEGIN;
	stream_failed(&s, BEGIN + STREAM_LATE_NS - 1);
	assert_int_equal(s.needed, STREAM_NEEDED_LATE / 2);
}

TEST(successes_need_less)
{
	struct stream s = stream_new();
	unsigned n = 0;

	stream_succeeded(&s);
	assert_int_equal(s.needed, STREAM_NEEDED_FIRST);
	s.needed = STREAM_NEEDED_GAP;
	for (uint32_t last = s.needed; s.needed != STREAM_NEEDED_FIRST; last = s.needed) {
		stream_succeeded(&s);
		assert_true(s.needed < last);
		n++;
	}
	assert_in_range(n, 32, 128);
	/* From where late passes have led it comes back slowly. */
	s.needed = STREAM_NEEDED_LATE;
	for (n = 0; n < STREAM_NEEDED_LATE / 2; n++)
		stream_succeeded(&s);
	assert_int_equal(s.needed, STREAM_NEEDED_LATE / 2);
}
