/* SPDX-License-Identifier: BSD-3-Clause */
/* The texts of a device's files, for those who have no use for the files (sysfs.def). */
#ifndef ROCADE_VERBS_SYSFS_VALUES_H
#define ROCADE_VERBS_SYSFS_VALUES_H

#include <stdbool.h>

#include "verbs/device_facts.h"
#include "verbs/sysfs_texts.h"

/* file: its path behind the device's directory, as "ports/1/state"; '#' stands for the index. Returns whether
 * there is such a file. */
bool sysfs_value(const struct device_facts *facts, const char *file, unsigned index,
	char text[SYSFS_TEXT_MAX]);
/* Returns the path of the file with this number in a directory, which ends in a slash. NULL: there is
 * none. */
const char *sysfs_value_file(const char *folder, unsigned number);

#endif
