/* SPDX-License-Identifier: BSD-3-Clause */
/* Receiving messages: verification, counting, reposting. */
#ifndef TESTPMD_RX_H
#define TESTPMD_RX_H

#include "host.h"

/* Polls the receive CQ, and calls taken (may be NULL) for each message. Returns the
 * number of CQEs. */
unsigned rx_reap(struct host *host, void (*taken)(struct host *host, struct conn *conn));
/* Polls what has completed so far, by the mode's reap(). While messages arrive as fast as they are
 * taken, the CQ is never empty. */
void rx_drain(struct host *host);
/* At `start`: posts receives and arms the limit. */
void rx_start(struct host *host);

#endif
