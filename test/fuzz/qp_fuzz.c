/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two connected QPs. The input is a configuration and then steps: work requests, changes
 * to frames in flight, packets of a hostile peer, time, state changes. Only memory of
 * receives, READs and the granted zone may be written, only granted memory may be sent,
 * and nothing may be left at the end.
 */
#include "qp_world.h"

#define STEPS 300
#define CHECK_EVERY 16

static struct world world;

static struct step
step_take(struct input *in)
{
	struct step s = {.op = take8(in), .a = take8(in), .b = take8(in), .c = take8(in)};

	s.x = take16(in);
	s.y = take16(in);
	return s;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, size};
	struct step s = step_take(&in);

	/* A failed cmocka assertion of test/lib aborts instead of exiting: libFuzzer
	 * keeps the input. */
	setenv("CMOCKA_TEST_ABORT", "1", 1);
	world_init(&world, &s);
	for (unsigned i = 0; i < STEPS && in.left != 0; i++) {
		s = step_take(&in);
		world_step(&world, &s, &in);
		if (i % CHECK_EVERY == 0)
			world_check(&world);
	}
	world_fini(&world);
	return 0;
}
