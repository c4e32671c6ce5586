/* SPDX-License-Identifier: BSD-3-Clause */
/* The route of a client's packet. */
#ifndef ROCADE_SWITCH_ROUTE_H
#define ROCADE_SWITCH_ROUTE_H

#include "switch/sw_packet.h"

/* Called by sw_tx.c, in the client's thread. Checks and forwards the packet. Returns false if it is
 * to be offered again later. */
bool sw_forward(struct sw_client *from, const struct ring_desc *desc);

/* Called by sw_take.c, in thread 0: sends a packet that a client's thread has checked, and handed
 * over because it does not know the next hop. */
enum sw_sent sw_send_for(struct sw_client *from, const uint8_t *bytes, uint32_t len);

#endif
