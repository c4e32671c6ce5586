/* SPDX-License-Identifier: BSD-3-Clause */
/* The MTU that a PMD reports, and whether it means it. */
#ifndef ROCADE_ETHDEV_MTU_H
#define ROCADE_ETHDEV_MTU_H

#include <stdbool.h>
#include <stdint.h>

#include <rte_ethdev.h>

/* Returns the maximum IP MTU that the PMD reports. Some report less than they carry: net_memif 1518
 * bytes a frame, although it carries what its bsize= holds. So it limits only what is requested of the
 * PMD, unless it is strict. */
uint32_t ethdev_mtu_max(const struct rte_eth_dev_info *info);
/* Whether no longer frames are carried. */
bool ethdev_mtu_is_strict(const struct rte_eth_dev_info *info);

#endif
