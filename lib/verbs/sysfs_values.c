/* SPDX-License-Identifier: BSD-3-Clause */
/* Control path. */
#include <stdio.h>
#include <string.h>

#include "verbs/sysfs_values.h"

#define DEVICE "/@N/" /* the end of the device's directory */

static const struct value {
	const char *path;
	const char *text;
	sysfs_text_fn *function;
} values[] = {
#define SYSFS_TEXT(path, text) {path, text, NULL},
#define SYSFS_MADE(path, function) {path, NULL, function},
#define SYSFS_LIVE(path, function) {path, NULL, function},
#include "verbs/sysfs.def"
};

/* Returns the path behind the device's directory. NULL: the file is in another one. */
static const char *
value_file(const struct value *value)
{
	const char *device = strstr(value->path, DEVICE);

	return device != NULL ? device + strlen(DEVICE) : NULL;
}

bool
sysfs_value(const struct device_facts *facts, const char *file, unsigned index,
	char text[SYSFS_TEXT_MAX])
{
	for (unsigned i = 0; i < RTE_DIM(values); i++) {
		const char *own = value_file(&values[i]);

		if (own == NULL || strcmp(own, file) != 0)
			continue;
		if (values[i].function != NULL)
			values[i].function(facts, index, text);
		else
			snprintf(text, SYSFS_TEXT_MAX, "%s", values[i].text);
		return true;
	}
	return false;
}

const char *
sysfs_value_file(const char *folder, unsigned number)
{
	for (unsigned i = 0; i < RTE_DIM(values); i++) {
		const char *own = value_file(&values[i]);

		if (own != NULL && strncmp(own, folder, strlen(folder)) == 0 &&
			strchr(own + strlen(folder), '/') == NULL && number-- == 0)
			return own;
	}
	return NULL;
}
