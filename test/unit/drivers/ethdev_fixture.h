/* SPDX-License-Identifier: BSD-3-Clause */
/* Virtual PMDs, without root or hugepages: net_ring gives back what was sent, net_memif
 * joins two ports of this process, net_null is bare. */
#ifndef ROCADE_TEST_DRIVERS_ETHDEV_FIXTURE_H
#define ROCADE_TEST_DRIVERS_ETHDEV_FIXTURE_H

#include <rte_ethdev.h>

#include "ethdev/ethdev.h"

extern char warning[200]; /* the driver's last warning */
extern struct port ring;  /* over net_ring0, open for all tests */

uint16_t ethdev_port_of(const char *name);
struct port ethdev_open_port(const char *name, uint32_t mtu);
/* Buffers in use. */
unsigned ethdev_pool_used(const char *name);
/* Fill a frame by its number and length, and compare it. */
void frame_fill(struct pkt *pkt, uint32_t number, uint16_t len);
bool frame_is(const struct pkt *pkt, uint32_t number, uint16_t len);
/* Of the group: starts EAL with the PMDs of the tests, and opens net_ring0. */
int ethdev_start(void **state);

#endif
