/* SPDX-License-Identifier: BSD-3-Clause */
/* The setting of congestion control (lib/qp/cc_conf.c). */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "case.h"
#include "qp/cc.h"

TEST(settings_are_read)
{
	static const struct {
		const char *text;
		int rc;
		struct cc_conf conf;
	} rows[] = {{"off", 0, {0}}, {"swift", 0, {.on = true}},
		{"swift,target=50", 0, {.on = true, .target_us = 50}},
		{"swift,target=1000,window=65535,loss=1000", 0,
			{.on = true, .target_us = 1000, .window = 65535, .loss = 1000}},
		{"swift,window=1", 0, {.on = true, .window = 1}},
		{"swift,loss=5", 0, {.on = true, .loss = 5}}, {"", -EINVAL, {0}},
		{"on", -EINVAL, {0}}, {"swiftly", -EINVAL, {0}}, {"swift,", -EINVAL, {0}},
		{"off,target", -EINVAL, {0}}, {"swift,target=", -EINVAL, {0}},
		{"swift,target=0", -EINVAL, {0}}, {"swift,target=1001", -EINVAL, {0}},
		{"swift,target=-1", -EINVAL, {0}}, {"swift,window=65536", -EINVAL, {0}},
		{"swift,loss=1001", -EINVAL, {0}}, {"swift,target=50us", -EINVAL, {0}},
		{"swift target=50", -EINVAL, {0}}};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct cc_conf conf = {.window = 77};
		char why[160] = "";

		assert_int_equal(
			cc_text_read("cc", rows[i].text, &conf, why, sizeof(why)),
			rows[i].rc);
		if (rows[i].rc != 0) {
			assert_ptr_equal(strstr(why, "cc: "), why);
			assert_int_equal(conf.window, 77);
			assert_non_null(strstr(why, rows[i].text));
			continue;
		}
		assert_int_equal(conf.on, rows[i].conf.on);
		assert_int_equal(conf.target_us, rows[i].conf.target_us);
		assert_int_equal(conf.window, rows[i].conf.window);
		assert_int_equal(conf.loss, rows[i].conf.loss);
	}
}

/* ROCADE_CC overrides the setting of the port; a wrong one is refused by its name. */
TEST(environment_overrides_the_setting)
{
	static const struct {
		const char *env;
		int rc;
		struct cc_conf conf;
	} rows[] = {{NULL, 0, {.window = 3}}, {"swift", 0, {.on = true}}, {"off", 0, {0}},
		{"swift,loss=4", 0, {.on = true, .loss = 4}},
		{"fast", -EINVAL, {.window = 3}}};

	for (unsigned i = 0; i < RTE_DIM(rows); i++) {
		struct cc_conf conf = {.window = 3, .delay_unknown = true};
		char why[160] = "";

		if (rows[i].env != NULL)
			setenv("ROCADE_CC", rows[i].env, 1);
		else
			unsetenv("ROCADE_CC");
		assert_int_equal(cc_env_read(&conf, why, sizeof(why)), rows[i].rc);
		assert_int_equal(conf.on, rows[i].conf.on);
		assert_int_equal(conf.window, rows[i].conf.window);
		assert_int_equal(conf.loss, rows[i].conf.loss);
		assert_true(conf.delay_unknown); /* no setting changes it */
		if (rows[i].rc != 0)
			assert_ptr_equal(
				strstr(why, "ROCADE_CC: fast: expected off"), why);
	}
	unsetenv("ROCADE_CC");
}
