/* SPDX-License-Identifier: BSD-3-Clause */
/* Congestion control of a port: struct rocade_cc_conf. */
#include <errno.h>

#include "verbs/verbs_port.h"

static const struct conf_kind *const cc_kind =
	CONF_KIND_WITHIN("cc: ", struct rocade_cc_conf, loss_permille);

static int
cc_range_check(const char *name, uint32_t value, uint32_t most)
{
	return value <= most ? 0
			     : rocade_fail(EINVAL, "cc: %s: %u is not in 1..%u", name,
				       value, most);
}

int
port_cc_read(const struct rocade_cc_conf *given, struct cc_conf *out)
{
	struct rocade_cc_conf cc;
	int err;

	if (given == NULL)
		return 0;
	err = conf_take(cc_kind, &cc, given, given->size);
	if (err == 0 && cc.algorithm != ROCADE_CC_SWIFT && cc.algorithm != ROCADE_CC_OFF)
		err = rocade_fail(EINVAL, "cc: algorithm: no congestion control %d",
			(int)cc.algorithm);
	if (err == 0)
		err = cc_range_check("target_us", cc.target_us, CC_TARGET_US_MAX);
	if (err == 0)
		err = cc_range_check("window", cc.window, CC_WINDOW_MAX);
	if (err == 0)
		err = cc_range_check("loss_permille", cc.loss_permille, CC_LOSS_MAX);
	if (err != 0)
		return err;
	out->on = cc.algorithm == ROCADE_CC_SWIFT;
	out->target_us = (uint16_t)cc.target_us;
	out->window = (uint16_t)cc.window;
	out->loss = (uint16_t)cc.loss_permille;
	return 0;
}

EXPORT int
rocade_cc_parse_sized(const char *text, struct rocade_cc_conf *cc, size_t size)
{
	struct cc_conf conf = {.on = true};
	char why[160];
	int err;

	if (cc == NULL)
		return rocade_fail(EINVAL, "no struct rocade_cc_conf given");
	/* Otherwise the port that gets it would refuse it. */
	err = conf_size_check(cc_kind, size);
	if (err != 0)
		return err;
	if (text != NULL &&
		cc_text_read("congestion control", text, &conf, why, sizeof(why)) != 0)
		return rocade_fail(EINVAL, "%s", why);
	out_give(cc, size,
		&(struct rocade_cc_conf){.size = size,
			.algorithm = conf.on ? ROCADE_CC_SWIFT : ROCADE_CC_OFF,
			.target_us = conf.target_us,
			.window = conf.window,
			.loss_permille = conf.loss},
		sizeof(*cc));
	return 0;
}
