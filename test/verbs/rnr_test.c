/* SPDX-License-Identifier: BSD-3-Clause */
/* RNR timers on the real clock: never early, and soon after expiry (IBA 9.7.5.2.8). How soon is
 * counted in polls: a loaded machine may delay these, but not the first one after expiry. */
#include <stdint.h>

#include "case.h"
#include "verbs_pair.h"

#define ROUNDS 20
/* A timer may be late by a tick of the wheel, 256 ns, and the two clocks drift apart. */
#define LATE_NS 16000
/* Polls that may begin after expiry until the second NAK is there: one that finds the timer
 * expired, one each in which the packet and the NAK arrive. */
#define LATE_POLLS 3

struct gap {
	uint64_t
		ns; /* upper bound: from before the poll that brings the first NAK to after the
		      * poll that brings the second */
	unsigned late_polls; /* that began after expiry */
};

/* Measures the time between two RNR NAKs. */
static struct gap
gap_measure(struct verbs_pair *p, uint64_t naks, uint64_t timer_ns)
{
	uint64_t before = 0, begin, expired = 0, now;
	struct gap gap = {0};

	for (;;) {
		begin = pair_clock_ns();
		gap.late_polls += expired != 0 && begin >= expired;
		pair_poll(p);
		now = pair_stat(&p->a, "rnr_nak_received");
		if (now >= naks + 1 && before == 0) {
			before = begin;
			expired = pair_clock_ns() + timer_ns + LATE_NS;
		}
		if (now >= naks + 2)
			break;
	}
	gap.ns = pair_clock_ns() - before;
	return gap;
}

static void
wait_of(unsigned code, uint64_t timer_ns)
{
	struct verbs_pair_conf conf = {.srq_wr = 4, .rnr_timer = code};
	struct verbs_pair pair;
	uint64_t naks = 0;
	struct ibv_wc wc;

	pair_open(&pair, &conf);
	assert_int_equal(pair_send(&pair.a, 0, 1, 0, 64, IBV_SEND_SIGNALED), 0);
	for (unsigned i = 0; i < ROUNDS; i++) {
		struct gap gap = gap_measure(&pair, naks, timer_ns);

		if (gap.ns < timer_ns)
			fail_msg("code %u: sent again after %lu ns, not %lu", code,
				(unsigned long)gap.ns, (unsigned long)timer_ns);
		if (gap.late_polls > LATE_POLLS)
			fail_msg("code %u: %u polls after expiry", code, gap.late_polls);
		naks = pair_stat(&pair.a, "rnr_nak_received");
	}
	assert_int_equal(pair_post_srq(&pair.b, 5, 0, 64), 0);
	pair_poll_cq(&pair, pair.a.send_cq, &wc, 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	pair_poll_cq(&pair, pair.b.recv_cq, &wc, 1);
	assert_int_equal(wc.wr_id, 5);
	pair_close(&pair);
}

TEST(rnr_wait_matches_timer)
{
	static const struct {
		unsigned code;
		uint64_t us;
	} timers[] = {{1, 10}, {2, 20}, {5, 60}, {8, 160}, {12, 640}, {14, 1280},
		{18, 5120}, {21, 15360}};

	for (unsigned i = 0; i < sizeof(timers) / sizeof(timers[0]); i++)
		wait_of(timers[i].code, timers[i].us * 1000);
}
