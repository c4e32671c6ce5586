/* SPDX-License-Identifier: BSD-3-Clause */
/* The texts of the files of sysfs.def that differ by device or by time. */
#ifndef ROCADE_VERBS_SYSFS_TEXTS_H
#define ROCADE_VERBS_SYSFS_TEXTS_H

#include "verbs/device_facts.h"

#define SYSFS_TEXT_MAX 4096

/* index: of the GID, in a row with '#'. */
typedef void sysfs_text_fn(
	const struct device_facts *facts, unsigned index, char text[SYSFS_TEXT_MAX]);

sysfs_text_fn cpu_mask_text, cpu_list_text, guid_text, version_text, state_text,
	phys_state_text, gid_text, gid_type_text, gid_ndev_text, xmit_data_text,
	rcv_data_text, xmit_packets_text, rcv_packets_text;

#endif
