/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/splitmix64.h"
#include "case.h"

/* The numbers of the published generator for the seed 1234567. */
TEST(test_reference_numbers)
{
	static const uint64_t expected[] = {UINT64_C(6457827717110365317),
		UINT64_C(3203168211198807973), UINT64_C(9817491932198370423),
		UINT64_C(4593380528125082431), UINT64_C(16408922859458223821)};
	uint64_t seed = 1234567;

	for (unsigned i = 0; i < sizeof(expected) / sizeof(expected[0]); i++)
		assert_int_equal(splitmix64(&seed), expected[i]);
}
