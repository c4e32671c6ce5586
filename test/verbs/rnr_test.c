/* SPDX-License-Identifier: BSD-3-Clause */
/* RNR timers on the real clock: never early, and soon after expiry (IBA 9.7.5.2.8). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "verbs_pair.h"

#define ROUNDS 20
/* lateness allowed in the best round; in others the machine may be busy */
#define LATE_NS 1000000

/* Upper bound of the time between two RNR NAKs: from before the poll that brings the
 * first to after the poll that brings the second. */
static uint64_t
gap_ns(struct verbs_pair *p, uint64_t naks)
{
	uint64_t first = 0, before;

	for (;;) {
		uint64_t now;

		before = pair_clock_ns();
		pair_poll(p);
		now = pair_stat(&p->a, "rnr_nak_received");
		if (now == naks + 1 && first == 0)
			first = before;
		if (now >= naks + 2)
			return pair_clock_ns() - first;
	}
}

static void
wait_of(unsigned code, uint64_t timer_ns)
{
	struct verbs_pair_conf conf = {.srq_wr = 4, .rnr_timer = code};
	uint64_t best = UINT64_MAX, naks = 0;
	struct verbs_pair pair;
	struct ibv_wc wc;

	pair_open(&pair, &conf);
	assert_int_equal(pair_send(&pair.a, 0, 1, 0, 64, IBV_SEND_SIGNALED), 0);
	for (unsigned i = 0; i < ROUNDS; i++) {
		uint64_t gap = gap_ns(&pair, naks);

		if (gap < timer_ns)
			fail_msg("code %u: sent again after %lu ns, not %lu", code,
				(unsigned long)gap, (unsigned long)timer_ns);
		best = gap < best ? gap : best;
		naks = pair_stat(&pair.a, "rnr_nak_received");
	}
	assert_true(best < timer_ns + LATE_NS);
	assert_int_equal(pair_post_srq(&pair.b, 5, 0, 64), 0);
	pair_poll_cq(&pair, pair.a.send_cq, &wc, 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	pair_poll_cq(&pair, pair.b.recv_cq, &wc, 1);
	assert_int_equal(wc.wr_id, 5);
	pair_close(&pair);
}

static void
rnr_wait_matches_timer(void **state)
{
	static const struct {
		unsigned code;
		uint64_t us;
	} timers[] = {{1, 10}, {2, 20}, {5, 60}, {8, 160}, {12, 640}, {14, 1280},
		{18, 5120}, {21, 15360}};

	for (unsigned i = 0; i < sizeof(timers) / sizeof(timers[0]); i++)
		wait_of(timers[i].code, timers[i].us * 1000);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rnr_wait_matches_timer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
