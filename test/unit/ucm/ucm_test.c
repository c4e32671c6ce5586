/* SPDX-License-Identifier: BSD-3-Clause */
/* The instance: configuration, sessions, deadline. */
#include "ucm_fixture.h"

TEST_WITH(invalid_configuration_is_refused, ucm_setup, ucm_teardown)
{
	struct ucm_conf good = ctx.ucm->conf, conf;
	struct ucm *ucm;

	assert_int_equal(ucm_create(&good, 0, &ucm), 0);
	ucm_destroy(ucm);
#define REFUSED(change)                                                                  \
	do {                                                                             \
		conf = good;                                                             \
		change;                                                                  \
		assert_int_equal(ucm_create(&conf, 0, &ucm), -EINVAL);                   \
	} while (0)
	REFUSED(conf.limits.ids = 0);
	REFUSED(conf.limits.channels = 0);
	REFUSED(conf.cm.max_conns = 0);
#undef REFUSED
}

TEST_WITH(idle_instance_has_no_deadline, ucm_setup, ucm_teardown)
{
	assert_true(ucm_deadline(ctx.ucm) == TIME_NEVER);
	pair_connected();
	assert_int_equal(ucm_stats(ctx.ucm)->established, 2);
}

TEST_WITH(invalid_mads_are_dropped, ucm_setup, ucm_teardown)
{
	static const uint8_t none[MAD_LEN];
	struct cm_path path = {.local = false};

	ucm_rx(ctx.ucm, none, 10, &path, ctx.now);
	ucm_rx(ctx.ucm, none, sizeof(none), &path, ctx.now);
	assert_int_equal(ucm_ids(ctx.ucm), 0);
}
