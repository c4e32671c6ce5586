/* SPDX-License-Identifier: BSD-3-Clause */
/* Control path. */
/* Reads a setting of congestion control. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qp/cc.h"

/* Reads the number behind name, up to most. */
static const char *
number_read(const char *text, const char *name, unsigned long most, uint16_t *out)
{
	size_t len = strlen(name);
	unsigned long value;
	char *end;

	if (strncmp(text, name, len) != 0 || text[len] < '0' || text[len] > '9')
		return NULL;
	value = strtoul(text + len, &end, 10);
	if (value == 0 || value > most)
		return NULL;
	*out = (uint16_t)value;
	return end;
}

static int
conf_read(const char *text, struct cc_conf *out)
{
	struct cc_conf conf = {.on = strncmp(text, "swift", strlen("swift")) == 0,
		.delay_unknown = out->delay_unknown,
		.memory_link = out->memory_link};
	const char *at;

	if (!conf.on && strncmp(text, "off", strlen("off")) != 0)
		return -EINVAL;
	at = text + strlen(conf.on ? "swift" : "off");
	while (*at == ',') {
		const char *from = at + 1;

		at = number_read(from, "target=", CC_TARGET_US_MAX, &conf.target_us);
		if (at == NULL)
			at = number_read(from, "window=", CC_WINDOW_MAX, &conf.window);
		if (at == NULL)
			at = number_read(from, "loss=", CC_LOSS_MAX, &conf.loss);
		if (at == NULL)
			return -EINVAL;
	}
	if (*at != '\0')
		return -EINVAL;
	*out = conf;
	return 0;
}

int
cc_text_read(
	const char *name, const char *text, struct cc_conf *out, char *why, size_t size)
{
	if (conf_read(text, out) == 0)
		return 0;
	snprintf(why, size,
		"%s: %s: expected off, or swift with ,target=1..%d ,window=1..%d "
		",loss=1..%d behind it",
		name, text, CC_TARGET_US_MAX, CC_WINDOW_MAX, CC_LOSS_MAX);
	return -EINVAL;
}

int
cc_env_read(struct cc_conf *out, char *why, size_t size)
{
	const char *text = getenv("ROCADE_CC");

	return text == NULL ? 0 : cc_text_read("ROCADE_CC", text, out, why, size);
}
