/* SPDX-License-Identifier: BSD-3-Clause */
/* Control path. */
/* Reads the setting of congestion control. */
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
		.delay_unknown = out->delay_unknown};
	const char *at;

	if (!conf.on && strncmp(text, "off", strlen("off")) != 0)
		return -EINVAL;
	at = text + strlen(conf.on ? "swift" : "off");
	while (*at == ',') {
		const char *from = at + 1;

		at = number_read(from, "target=", 1000, &conf.target_us);
		if (at == NULL)
			at = number_read(from, "window=", 65535, &conf.window);
		if (at == NULL)
			at = number_read(from, "loss=", 1000, &conf.loss);
		if (at == NULL)
			return -EINVAL;
	}
	if (*at != '\0')
		return -EINVAL;
	*out = conf;
	return 0;
}

int
cc_conf_read(const char *text, struct cc_conf *out, char *why, size_t size)
{
	const char *env = getenv("ROCADE_CC");
	const struct {
		const char *name, *text;
	} settings[] = {{"cc", text}, {"ROCADE_CC", env}};
	struct cc_conf conf = *out;

	for (unsigned i = 0; i < RTE_DIM(settings); i++) {
		if (settings[i].text == NULL || conf_read(settings[i].text, &conf) == 0)
			continue;
		snprintf(why, size,
			"%s: %s: expected off, or swift with ,target=1..1000 "
			",window=1..65535 ,loss=1..1000 behind it",
			settings[i].name, settings[i].text);
		return -EINVAL;
	}
	*out = conf;
	return 0;
}
