/* SPDX-License-Identifier: BSD-3-Clause */
/* What the engine notes of how long send requests have been there, when no call asks. */
#include "engine/engine_state.h"
#include "engine_link.h"
#include "qp/send_age.h"

static struct engine_link fixture;
static struct link_qp a, b;

static struct send_ages
ages(void)
{
	struct send_ages got;

	send_ages(a.qp, fixture.now, &got);
	return got;
}

static void
init(void)
{
	engine_link_init(&fixture, NULL);
	link_qps_create(&fixture, &a, &b, 1, &(struct link_qp_conf){.timeout = 10});
}

/* Unsignaled requests hold their slots after they are acknowledged. The timer that was set for them
 * fires within an ACK timeout (4.2 ms). */
TEST(timer_notes_unsignaled_requests)
{
	uint64_t start;

	init();
	link_qp_message(&a, &b, 0);
	engine_link_drain(&fixture);
	link_qp_expect_message(&a, &b, 0);
	engine_link_advance(&fixture, NS_PER_SEC);
	start = fixture.now;
	assert_int_equal(link_qp_recv(&b, 1, 0, 8), 0);
	assert_int_equal(link_qp_send(&a, 1, 0, 8, 0), 0);
	engine_link_advance(&fixture, NS_PER_SEC);
	link_qp_expect_received(&b, 1, 1);
	assert_in_range(ages().unsignaled_ns, fixture.now - start - 5 * NS_PER_MS,
		fixture.now - start);
	assert_int_equal(ages().unacked_ns, 0);
	link_qp_message(&a, &b, 2);
	engine_link_drain(&fixture);
	link_qp_expect_message(&a, &b, 2);
	assert_int_equal(ages().unsignaled_ns, 0);
	link_qps_fini(&fixture, &a, &b, 1);
}

/* No packet of the QP leaves while the next hop is being resolved. */
TEST(request_that_waits_for_the_next_hop_ages)
{
	init();
	fixture.a.deaf = fixture.b.deaf = true;
	link_qp_message(&a, &b, 0);
	engine_link_advance(&fixture, 500 * NS_PER_MS);
	assert_true(a.qp->sched.on_unresolved);
	assert_int_equal(fixture.b.roce_frames, 0);
	assert_in_range(ages().unacked_ns, 499 * NS_PER_MS, 500 * NS_PER_MS);
	fixture.a.deaf = fixture.b.deaf = false;
	engine_link_advance(&fixture, NS_PER_SEC);
	link_qp_expect_message(&a, &b, 0);
	assert_int_equal(ages().unacked_ns, 0);
	link_qps_fini(&fixture, &a, &b, 1);
}
