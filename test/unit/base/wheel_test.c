/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/wheel.h"

#include "../rand.h"
#include "case.h"

#define TIMERS 48
#define TOP_SPAN_NS (WHEEL_TICK_NS << (WHEEL_LEVELS * WHEEL_SLOT_BITS))

/* A wheel, and an array of the timers' expected states. */
struct ctx {
	struct wheel wheel;
	struct wheel_timer timers[TIMERS];
	struct model {
		bool armed;
		bool late;     /* its tick had been processed when it was set */
		bool set_here; /* set by a callback of the present wheel_advance() */
		uint64_t when_ns;
	} models[TIMERS];
	uint64_t seed;
	uint64_t rand;
	uint64_t now_ns;
	uint64_t tick;
	uint64_t last_tick; /* of the timer that fired last in this wheel_advance() */
	unsigned step;
	unsigned fired;
	bool change_timers; /* callbacks set and cancel timers */
};

#define CHECK(ctx, condition)                                                            \
	do {                                                                             \
		if (!(condition))                                                        \
			fail_msg("seed %" PRIu64 ", step %u: %s", (ctx)->seed,           \
				(ctx)->step, #condition);                                \
	} while (0)

static void
ctx_init(struct ctx *ctx, uint64_t seed, uint64_t now_ns)
{
	memset(ctx, 0, sizeof(*ctx));
	ctx->seed = seed;
	ctx->rand = seed;
	ctx->now_ns = now_ns;
	ctx->tick = now_ns >> WHEEL_TICK_SHIFT;
	wheel_init(&ctx->wheel, now_ns);
	for (unsigned i = 0; i < TIMERS; i++)
		wheel_timer_init(&ctx->timers[i]);
}

static void
ctx_set(struct ctx *ctx, unsigned i, uint64_t when_ns, bool in_callback)
{
	struct model *model = &ctx->models[i];

	wheel_set(&ctx->wheel, &ctx->timers[i], when_ns);
	model->armed = true;
	model->when_ns = when_ns;
	model->late = when_ns >> WHEEL_TICK_SHIFT < ctx->tick;
	model->set_here = in_callback;
}

static void
ctx_cancel(struct ctx *ctx, unsigned i)
{
	wheel_cancel(&ctx->wheel, &ctx->timers[i]);
	ctx->models[i].armed = false;
}

/* Sets or cancels one timer: near, far, past, or beyond the last level. */
static void
ctx_change_timer(struct ctx *ctx, bool in_callback)
{
	unsigned i = rand_below(&ctx->rand, TIMERS);
	uint64_t when_ns = ctx->now_ns + rand_magnitude(&ctx->rand, 56);

	switch (rand_below(&ctx->rand, 8)) {
	case 0:
	case 1:
		ctx_cancel(ctx, i);
		return;
	case 2:
		when_ns = ctx->now_ns - rand_below(&ctx->rand, ctx->now_ns + 1);
		break;
	case 3:
		when_ns = ctx->now_ns + rand_below(&ctx->rand, 4 * WHEEL_TICK_NS);
		break;
	case 4:
		when_ns &= ~UINT64_C(0) << rand_below(&ctx->rand, 56); /* slot borders */
		break;
	}
	ctx_set(ctx, i, when_ns, in_callback);
}

static void
ctx_fire(struct wheel_timer *timer, uint64_t now_ns, void *arg)
{
	struct ctx *ctx = arg;
	struct model *model = &ctx->models[timer - ctx->timers];
	uint64_t tick = model->when_ns >> WHEEL_TICK_SHIFT;

	CHECK(ctx, !wheel_timer_armed(timer));
	CHECK(ctx, model->armed && !model->set_here);
	CHECK(ctx, now_ns == ctx->now_ns && model->when_ns < now_ns);
	CHECK(ctx, model->late || tick < ctx->tick);
	CHECK(ctx, model->late ? ctx->last_tick == 0 : tick >= ctx->last_tick);
	if (!model->late)
		ctx->last_tick = tick;
	model->armed = false;
	ctx->fired++;
	for (unsigned n = ctx->change_timers ? rand_below(&ctx->rand, 4) : 0; n > 0; n--)
		ctx_change_timer(ctx, true);
}

/* Checks wheel_next() against the earliest timer in the array. */
static void
ctx_check_next(struct ctx *ctx)
{
	uint64_t next_ns = wheel_next(&ctx->wheel);
	uint64_t earliest = UINT64_MAX;
	unsigned armed = 0;
	bool late = false;

	for (unsigned i = 0; i < TIMERS; i++) {
		struct model *model = &ctx->models[i];

		CHECK(ctx, wheel_timer_armed(&ctx->timers[i]) == model->armed);
		if (!model->armed)
			continue;
		armed++;
		late |= model->late;
		if (model->when_ns >> WHEEL_TICK_SHIFT < earliest)
			earliest = model->when_ns >> WHEEL_TICK_SHIFT;
	}
	CHECK(ctx, ctx->wheel.count == armed);
	CHECK(ctx, (next_ns == TIME_NEVER) == (armed == 0));
	if (late)
		CHECK(ctx, next_ns <= ctx->now_ns);
	else if (armed > 0)
		CHECK(ctx, next_ns > ctx->now_ns &&
				   next_ns <= (earliest + 1) << WHEEL_TICK_SHIFT);
	if (!late && armed > 0 && (earliest ^ ctx->tick) < WHEEL_SLOTS)
		CHECK(ctx, next_ns == (earliest + 1) << WHEEL_TICK_SHIFT);
}

static void
ctx_advance(struct ctx *ctx, uint64_t now_ns)
{
	ctx->now_ns = now_ns;
	ctx->tick = now_ns >> WHEEL_TICK_SHIFT;
	ctx->last_tick = 0;
	ctx->fired = 0;
	CHECK(ctx, wheel_advance(&ctx->wheel, now_ns, ctx_fire, ctx) == ctx->fired);
	for (unsigned i = 0; i < TIMERS; i++) {
		struct model *model = &ctx->models[i];

		/* Every timer that was due has fired, except those that a callback
		 * set. */
		if (model->armed && !model->set_here)
			CHECK(ctx, !model->late && model->when_ns >> WHEEL_TICK_SHIFT >=
							   ctx->tick);
		model->set_here = false;
	}
}

static void
sweep(uint64_t seed)
{
	struct ctx ctx;

	ctx_init(&ctx, seed, 0);
	ctx_init(&ctx, seed, rand_magnitude(&ctx.rand, 62));
	ctx.change_timers = true;
	for (ctx.step = 0; ctx.step < 600; ctx.step++) {
		for (unsigned n = rand_below(&ctx.rand, 6); n > 0; n--)
			ctx_change_timer(&ctx, false);
		ctx_check_next(&ctx);
		uint64_t now_ns = ctx.now_ns + rand_magnitude(&ctx.rand, 52);

		if (rand_below(&ctx.rand, 4) == 0)
			now_ns = wheel_next(&ctx.wheel) - rand_below(&ctx.rand, 2);
		if (now_ns < ctx.now_ns || now_ns >> 63 != 0)
			now_ns = ctx.now_ns;
		ctx_advance(&ctx, now_ns);
		ctx_check_next(&ctx);
	}
}

/* Random calls, checked against the array. ROCADE_SEED runs a single seed. */
TEST(random_operations_match_the_model)
{
	const char *one = getenv("ROCADE_SEED");

	if (one != NULL)
		sweep(strtoull(one, NULL, 0));
	else
		for (uint64_t seed = 1; seed <= 1000; seed++)
			sweep(seed);
}

/* Time advances in steps shorter than a tick: no timer fires more than a tick late. */
TEST(dense_time_fires_within_a_tick)
{
	struct ctx ctx;
	uint64_t now_ns = 0;

	ctx_init(&ctx, 1, 12345);
	for (unsigned i = 0; i < TIMERS; i++)
		ctx_set(&ctx, i, 12345 + rand_magnitude(&ctx.rand, 22), false);
	for (now_ns = 12345; ctx.wheel.count > 0; now_ns += 3) {
		bool was[TIMERS];

		for (unsigned i = 0; i < TIMERS; i++)
			was[i] = ctx.models[i].armed;
		ctx_advance(&ctx, now_ns);
		for (unsigned i = 0; i < TIMERS; i++)
			if (was[i] && !ctx.models[i].armed)
				CHECK(&ctx, now_ns - ctx.models[i].when_ns <=
						    WHEEL_TICK_NS + 2);
	}
	CHECK(&ctx, now_ns <= 12345 + (UINT64_C(1) << 22) + WHEEL_TICK_NS + 3);
}

TEST(every_ns_of_a_tick_fires_at_its_end)
{
	struct ctx ctx;

	for (uint64_t in = 0; in < WHEEL_TICK_NS; in++) {
		ctx_init(&ctx, in, 1000 * WHEEL_TICK_NS);
		ctx_set(&ctx, 0, 1070 * WHEEL_TICK_NS + in, false);
		ctx_advance(&ctx, 1071 * WHEEL_TICK_NS - 1);
		CHECK(&ctx, ctx.fired == 0);
		ctx_advance(&ctx, 1071 * WHEEL_TICK_NS);
		CHECK(&ctx, ctx.fired == 1);
	}
}

/* Time jumps to what wheel_next() returns, as in a simulator. */
TEST(jumping_to_next_is_exact_and_ends)
{
	for (uint64_t seed = 1; seed <= 200; seed++) {
		struct ctx ctx;
		unsigned jumps = 0;

		ctx_init(&ctx, seed, 0);
		ctx_init(&ctx, seed, rand_magnitude(&ctx.rand, 56));
		for (unsigned i = 0; i < TIMERS; i++)
			ctx_set(&ctx, i, ctx.now_ns + rand_magnitude(&ctx.rand, 50),
				false);
		for (; ctx.wheel.count > 0; ctx.step++) {
			uint64_t next_ns = wheel_next(&ctx.wheel);

			CHECK(&ctx, next_ns > ctx.now_ns);
			ctx_advance(&ctx, next_ns);
			jumps++;
			for (unsigned i = 0; i < TIMERS && ctx.fired > 0; i++)
				if (!ctx.models[i].armed && ctx.models[i].when_ns != 0) {
					CHECK(&ctx, next_ns - ctx.models[i].when_ns <=
							    WHEEL_TICK_NS);
					ctx.models[i].when_ns = 0;
				}
		}
		/* At each jump a timer fires or moves down a level. */
		CHECK(&ctx, jumps <= TIMERS * (WHEEL_LEVELS + 1));
	}
}

/* A timer set for wheel_cascade_time() is not moved before it fires, and fires in time. */
TEST(cascade_time_keeps_the_level)
{
	uint64_t rand = 11;

	for (unsigned step = 0; step < 20000; step++) {
		uint64_t now = rand_magnitude(&rand, 56);
		uint64_t when = now + rand_magnitude(&rand, 50), early;
		struct wheel_timer before;
		struct ctx ctx;

		ctx_init(&ctx, step, now);
		early = wheel_cascade_time(&ctx.wheel, when);
		CHECK(&ctx, early <= when);
		CHECK(&ctx, early == when || early >> WHEEL_TICK_SHIFT > ctx.tick);
		CHECK(&ctx, when - early < WHEEL_TICK_NS || early > now);
		ctx_set(&ctx, 0, early, false);
		before = ctx.timers[0];
		ctx_advance(&ctx, RTE_MAX(early, now + WHEEL_TICK_NS) - WHEEL_TICK_NS);
		CHECK(&ctx, ctx.timers[0].level == before.level);
		ctx_advance(&ctx, early + WHEEL_TICK_NS);
		CHECK(&ctx, ctx.fired == 1);
	}
}

/* wheel_cascade_time() of a past time is not later than that time. */
TEST(cascade_time_of_the_past_is_past)
{
	struct ctx ctx;

	ctx_init(&ctx, 0, NS_PER_SEC);
	CHECK(&ctx, wheel_cascade_time(&ctx.wheel, NS_PER_SEC) == NS_PER_SEC);
	CHECK(&ctx, wheel_cascade_time(&ctx.wheel, NS_PER_SEC - NS_PER_MS) <=
			    NS_PER_SEC - NS_PER_MS);
}

TEST(timers_beyond_the_last_level_fire_in_time)
{
	struct ctx ctx;

	ctx_init(&ctx, 0, 5 * NS_PER_SEC);
	for (unsigned i = 0; i < TIMERS; i++)
		ctx_set(&ctx, i, ctx.now_ns + i * (TOP_SPAN_NS / 2) + 1, false);
	/* A timer more than one revolution ahead whose slot is the current one. */
	ctx_set(&ctx, 0, ctx.now_ns + 40 * TOP_SPAN_NS, false);
	for (unsigned i = 1; i < TIMERS; i++) {
		ctx.step = i;
		ctx_advance(&ctx, ctx.models[i].when_ns - 1);
		CHECK(&ctx, ctx.fired == 0);
		ctx_advance(&ctx, ctx.models[i].when_ns + WHEEL_TICK_NS);
		CHECK(&ctx, ctx.fired == 1);
		ctx_check_next(&ctx);
	}
	ctx_advance(&ctx, ctx.models[0].when_ns);
	CHECK(&ctx, ctx.fired == 0);
	ctx_advance(&ctx, ctx.models[0].when_ns + WHEEL_TICK_NS);
	CHECK(&ctx, ctx.fired == 1 && ctx.wheel.count == 0);
}

TEST(one_jump_fires_all_in_order)
{
	struct ctx ctx;

	ctx_init(&ctx, 7, 0);
	for (unsigned i = 0; i < TIMERS; i++)
		ctx_set(&ctx, i, rand_magnitude(&ctx.rand, 61), false);
	ctx_advance(&ctx, UINT64_C(1) << 62);
	CHECK(&ctx, ctx.fired == TIMERS); /* ctx_fire() checks the order */
	CHECK(&ctx, wheel_next(&ctx.wheel) == TIME_NEVER);
}

TEST(passed_time_fires_at_the_next_call)
{
	struct ctx ctx;

	ctx_init(&ctx, 0, 1000000);
	ctx_set(&ctx, 3, 999000, false);
	ctx_set(&ctx, 4, 0, false);
	CHECK(&ctx, wheel_next(&ctx.wheel) <= 1000000);
	ctx_advance(&ctx, 1000000);
	CHECK(&ctx, ctx.fired == 2);
}

static void
count_fire(struct wheel_timer *timer, uint64_t now_ns, void *arg)
{
	(void)timer;
	(void)now_ns;
	++*(unsigned *)arg;
}

TEST(backward_time_loses_no_timer)
{
	struct wheel wheel;
	struct wheel_timer late, soon;
	unsigned fired = 0;

	wheel_init(&wheel, 1000000);
	wheel_timer_init(&late);
	wheel_timer_init(&soon);
	wheel_set(&wheel, &late, 999000);
	wheel_set(&wheel, &soon, 1000300);
	assert_int_equal(wheel_advance(&wheel, 5, count_fire, &fired), 1);
	assert_false(wheel_timer_armed(&late));
	wheel_set(&wheel, &late, 900000); /* still in the past */
	assert_int_equal(wheel_advance(&wheel, 6, count_fire, &fired), 1);
	assert_false(wheel_timer_armed(&late));
	assert_int_equal(wheel_advance(&wheel, 1000600, count_fire, &fired), 1);
	assert_int_equal(fired, 3);
}

struct chain {
	struct wheel wheel;
	struct wheel_timer timer;
	struct wheel_timer other;
	unsigned fired;
};

static void
chain_rearm_past(struct wheel_timer *timer, uint64_t now_ns, void *arg)
{
	struct chain *chain = arg;

	chain->fired++;
	wheel_cancel(&chain->wheel, &chain->other);
	wheel_set(&chain->wheel, timer, now_ns - 1000);
}

TEST(rearmed_for_the_past_fires_once_a_call)
{
	struct chain chain = {.fired = 0};

	wheel_init(&chain.wheel, 0);
	wheel_timer_init(&chain.timer);
	wheel_timer_init(&chain.other);
	wheel_set(&chain.wheel, &chain.timer, 100000);
	wheel_set(&chain.wheel, &chain.other, 200000); /* due, but cancelled */
	for (unsigned i = 1; i <= 5; i++) {
		assert_int_equal(
			wheel_advance(&chain.wheel, 300000, chain_rearm_past, &chain), 1);
		assert_int_equal(chain.fired, i);
	}
	assert_int_equal(chain.wheel.count, 1);
}

TEST(never_disarms)
{
	struct ctx ctx;

	ctx_init(&ctx, 0, 0);
	wheel_cancel(&ctx.wheel, &ctx.timers[0]);
	assert_int_equal(wheel_next(&ctx.wheel), TIME_NEVER);
	wheel_set(&ctx.wheel, &ctx.timers[0], 4711);
	wheel_set(&ctx.wheel, &ctx.timers[0], TIME_NEVER);
	assert_false(wheel_timer_armed(&ctx.timers[0]));
	assert_int_equal(ctx.wheel.count, 0);
	assert_int_equal(wheel_next(&ctx.wheel), TIME_NEVER);
	/* The largest time: it is never reached, and the arithmetic does not overflow. */
	wheel_set(&ctx.wheel, &ctx.timers[0], TIME_NEVER - 1);
	assert_int_equal(wheel_advance(&ctx.wheel, TIME_NEVER, ctx_fire, &ctx), 0);
	assert_int_equal(wheel_next(&ctx.wheel), TIME_NEVER);
	wheel_cancel(&ctx.wheel, &ctx.timers[0]);
	assert_int_equal(ctx.wheel.count, 0);
}

/* Advances in steps, until nothing is due. Between two, timers are changed. */
static void
ctx_advance_some(struct ctx *ctx, uint64_t now_ns)
{
	struct wheel_budget budget = {
		1 + rand_below(&ctx->rand, 8), 1 + rand_below(&ctx->rand, 4)};
	unsigned calls = 0;

	ctx->now_ns = now_ns;
	ctx->tick = now_ns >> WHEEL_TICK_SHIFT;
	ctx->last_tick = 0;
	do {
		unsigned i = rand_below(&ctx->rand, TIMERS);

		ctx->fired = 0;
		CHECK(ctx, wheel_advance_some(&ctx->wheel, now_ns, &budget, ctx_fire,
				   ctx) == ctx->fired);
		CHECK(ctx, ctx->fired <= budget.fires);
		CHECK(ctx, ++calls <= TIMERS * (WHEEL_LEVELS + 1));
		if (rand_below(&ctx->rand, 4) == 0)
			ctx_cancel(ctx, i);
		else if (rand_below(&ctx->rand, 4) == 0)
			ctx_set(ctx, i,
				now_ns + WHEEL_TICK_NS + rand_magnitude(&ctx->rand, 56),
				false);
		/* The wheel stays behind if what was left of a step is cancelled. */
	} while (wheel_next(&ctx->wheel) <= now_ns || ctx->wheel.tick != ctx->tick);
	for (unsigned i = 0; i < TIMERS; i++)
		CHECK(ctx, !ctx->models[i].armed || ctx->models[i].when_ns >>
							    WHEEL_TICK_SHIFT >=
							    ctx->tick);
}

TEST(steps_match_the_model)
{
	for (uint64_t seed = 1; seed <= 500; seed++) {
		struct ctx ctx;

		ctx_init(&ctx, seed, 0);
		ctx_init(&ctx, seed, rand_magnitude(&ctx.rand, 62));
		for (ctx.step = 0; ctx.step < 200; ctx.step++) {
			uint64_t now_ns = ctx.now_ns + rand_magnitude(&ctx.rand, 52);

			for (unsigned n = rand_below(&ctx.rand, 20); n > 0; n--)
				ctx_change_timer(&ctx, false);
			ctx_check_next(&ctx);
			if (now_ns >> 63 != 0)
				now_ns = ctx.now_ns;
			ctx_advance_some(&ctx, now_ns);
			ctx_check_next(&ctx);
		}
	}
}
