/* SPDX-License-Identifier: BSD-3-Clause */
/* Queries of clients: which extensions do other hosts understand (docs/protocol.md 20.3)? The
 * daemon does not forward them. Its own agent asks, once for all clients. Called by route.c
 * and sw_take.c, in thread 0. */
#ifndef ROCADE_SWITCH_SW_EXT_H
#define ROCADE_SWITCH_SW_EXT_H

#include "switch/sw.h"

/* Handles a packet that a client sends from QP 1: the first len bytes at buf, which the client
 * may change meanwhile. Counts it. If the agent knows the other host, the answer goes into the
 * client's ring. Else the agent asks, and the client has to repeat its query. */
void sw_ext_query(struct sw_client *from, const uint8_t *buf, uint32_t len);

#endif
