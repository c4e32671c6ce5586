/* SPDX-License-Identifier: BSD-3-Clause */
/* The packets that clients send. Called by sw.c. */
#ifndef ROCADE_SWITCH_SW_TX_H
#define ROCADE_SWITCH_SW_TX_H

#include "switch/sw.h"

/* Takes packets of each client of the thread in turn, and forwards them. Returns how many. */
unsigned sw_tx_serve(struct sw_thread *t, uint64_t now);

/* As sw_client_flush(), with the lock of the client's thread, as that thread. */
void sw_tx_flush(struct sw_client *client);

#endif
