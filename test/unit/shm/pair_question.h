/* SPDX-License-Identifier: BSD-3-Clause */
/* The daemon of a pair's fixture, which a client asks where the packets and answers of a QP are. */
#ifndef ROCADE_TEST_PAIR_QUESTION_H
#define ROCADE_TEST_PAIR_QUESTION_H

#include "pair_fixture.h"
#include "switch/sw_ask.h"

/* The daemon finds a question of the QP behind n packets, and takes all of them. */
static inline struct ring_desc
daemon_takes_question(struct pair_side *s, uint32_t qpn, unsigned n)
{
	struct ring_desc desc;

	assert_int_equal(daemon_finds(s), n + 1);
	desc = ring_peek(&s->d.tx, n);
	assert_int_equal(desc.flags, RING_ASK);
	assert_int_equal(desc.qpn, qpn);
	ring_release(&s->d.tx, n + 1);
	return desc;
}

static inline void
daemon_replies(
	struct pair_side *s, const struct ring_desc *ask, unsigned step, uint32_t mark)
{
	struct ring_desc reply = *ask;

	assert_true(ring_prod_refresh(&s->d.rx) && ring_room(&s->d.rx) != 0);
	reply.len = (uint16_t)(reply.len - SW_ASK_STEP(reply.len) + step);
	reply.mark = mark;
	ring_put(&s->d.rx, &reply);
	ring_publish(&s->d.rx);
	side_expect(s, 0, 0);
}

/* The QP asks the daemon, which has nothing of it. */
static inline void
daemon_has_nothing(struct pair_side *s, uint32_t qpn, struct answer_wait *wait)
{
	struct ring_desc ask;

	assert_true(side_waits(s, qpn, wait));
	ask = daemon_takes_question(s, qpn, 0);
	daemon_replies(s, &ask, SW_ASK_DONE, 0);
}

#endif
