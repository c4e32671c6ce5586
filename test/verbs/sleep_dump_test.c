/* SPDX-License-Identifier: BSD-3-Clause */
/* A dump that ends while the engine sleeps. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "await.h"
#include "case.h"
#include "shared_pair.h"

TEST(dump_ends_while_the_engine_sleeps)
{
	char path[] = "/tmp/rocade-test-XXXXXX";
	struct rocade_port_dump_conf conf = {.size = sizeof(conf), .file = path};
	struct side *s = &sides[0];
	struct rocade_engine *engine = rocade_port_engine(s->port, 0);
	int file = mkstemp(path), fd;

	assert_true(file >= 0);
	assert_int_equal(rocade_engine_fd(engine, &fd), 0);
	for (unsigned i = 0; i < 20; i++) {
		assert_int_equal(rocade_port_dump(s->port, &conf), 0);
		await_by(side_pass(s, HOW_FRAMES), rocade_engine_arm(engine) != EAGAIN);
		assert_int_equal(rocade_port_dump_stop(s->port, NULL), 0);
		rocade_engine_disarm(engine);
	}
	close(file);
	assert_int_equal(unlink(path), 0);
}

static int
group_open(void **state)
{
	app_start(state);
	side_open(&sides[0], HOW_FRAMES);
	return 0;
}

static int
group_close(void **state)
{
	side_close(&sides[0]);
	return app_end(state);
}

TEST_GROUP(group_open, group_close)
