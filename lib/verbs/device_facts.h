/* SPDX-License-Identifier: BSD-3-Clause */
/* The state of a device that programs read in sysfs. */
#ifndef ROCADE_VERBS_DEVICE_FACTS_H
#define ROCADE_VERBS_DEVICE_FACTS_H

#include "engine/dev.h"

struct device_facts {
	char name[64];
	uint64_t guid;     /* in host order */
	uint32_t instance; /* another one for each daemon */
	uint32_t index;    /* ibv_get_device_index(); not known to every asker */
	char socket
		[128]; /* the absolute path of the daemon's; "": this process has the device */
	bool link_up;
	uint8_t gids[DEV_GIDS][16];
	uint64_t tx_packets, tx_bytes, rx_packets, rx_bytes;
	uint64_t qps,
		cm_ids; /* with the counters: of programs that the asker may see; of all */
};

#endif
