/* SPDX-License-Identifier: BSD-3-Clause */
/* Control path. */
#ifndef ROCADE_ETHDEV_ETHDEV_RSS_H
#define ROCADE_ETHDEV_ETHDEV_RSS_H

#include <rte_ethdev.h>

#include "port/rss.h"

/* Reads how a started port spreads packets over its receive queues. table_size is 0 if the PMD
 * does not tell. */
void ethdev_rss_read(uint16_t port_id, struct rss *rss);

#endif
