/* SPDX-License-Identifier: BSD-3-Clause */
/* The packets that clients send. Called by sw.c. */
#ifndef ROCADE_SWITCH_SW_TX_H
#define ROCADE_SWITCH_SW_TX_H

#include "switch/sw.h"

/* Takes packets of each client of the thread in turn, and forwards them. Returns how many. */
unsigned sw_tx_serve(struct sw_thread *t, uint64_t now);

/* Forwards what the client has published, even beyond its packet rate. final: what receivers or
 * the port have no room for is lost; otherwise it stays in the client's ring, with all behind it.
 * With the lock of the client's thread, as that thread. */
void sw_tx_flush(struct sw_client *client, bool final);

#endif
