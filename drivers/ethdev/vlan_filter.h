/* SPDX-License-Identifier: BSD-3-Clause */
/* Control path. Which VLAN's frames a started ethdev port receives. */
#ifndef ROCADE_ETHDEV_VLAN_FILTER_H
#define ROCADE_ETHDEV_VLAN_FILTER_H

#include <stdint.h>

/* Replaces the VLAN that the filter of the port admits; 0: none, and then there is no filter. Does
 * nothing if the PMD has no filter. name: of the port, for the log. */
void vlan_filter_set(uint16_t port_id, const char *name, uint16_t old, uint16_t vlan);

#endif
