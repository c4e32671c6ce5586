/* SPDX-License-Identifier: BSD-3-Clause */
/* The mean of how long a cache line takes from the core of a partner. */
#include <stdint.h>

#include "case.h"
#include "shm/line_time.h"

#define NEAR_NS 40
#define FAR_NS 200

static uint32_t
mean_after(uint32_t mean, uint64_t took_ns, unsigned samples)
{
	while (samples-- != 0)
		mean = line_time_mean(mean, took_ns);
	return mean;
}

TEST(partner_is_near_until_it_was_measured)
{
	assert_false(line_time_is_far(0));
	/* One sample alone may be that of an interrupted thread. */
	assert_false(line_time_is_far(line_time_mean(0, UINT64_MAX)));
}

TEST(mean_follows_the_samples)
{
	uint32_t mean = mean_after(0, NEAR_NS, 1);

	assert_in_range(mean, NEAR_NS, NEAR_NS + 1);
	mean = mean_after(mean, FAR_NS, 2);
	assert_false(line_time_is_far(mean));
	mean = mean_after(mean, FAR_NS, 6);
	assert_true(line_time_is_far(mean));
	mean = mean_after(mean, FAR_NS, 100);
	assert_in_range(mean, FAR_NS - LINE_SAMPLES, FAR_NS);
	mean = mean_after(mean, NEAR_NS, 16);
	assert_false(line_time_is_far(mean));
	mean = mean_after(mean, 0, 1000);
	assert_in_range(mean, 1, LINE_SAMPLES);
}

TEST(interruption_does_not_make_it_far)
{
	uint32_t mean = mean_after(0, NEAR_NS, 20);

	for (unsigned i = 0; i < 100; i++) {
		mean = line_time_mean(mean, NS_PER_SEC);
		assert_false(line_time_is_far(mean));
		mean = mean_after(mean, NEAR_NS, 20);
	}
}
