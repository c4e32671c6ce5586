/* SPDX-License-Identifier: BSD-3-Clause */
/* Taking in messages: verification, counting, and the receive posted again. */
#ifndef TESTPMD_RX_H
#define TESTPMD_RX_H

#include "host.h"

/* Polls the receive CQ; calls taken (may be NULL) for each message. Returns how many
 * CQEs. */
unsigned rx_reap(struct host *host, void (*taken)(struct host *host, struct flow *flow));
/* At `start`: receives are posted, the limit is armed. */
void rx_start(struct host *host);

#endif
