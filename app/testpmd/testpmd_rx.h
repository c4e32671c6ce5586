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

/* UC and UD, at the end of a run: notes that as many messages as missing, of those before end, are
 * lost. */
void rx_lost(struct host *host, struct conn *conn, uint64_t end, uint64_t missing);

/* rx_op.c: a message of a run with another mix than SENDs only on RC QPs. Returns false if it is not
 * counted as received. */
bool rx_op_take(struct host *host, struct conn *conn, const struct ibv_wc *wc,
	const uint8_t *data);
void rx_len_check(struct host *host, const struct conn *conn, uint64_t msg, uint32_t len,
	uint64_t want);

#endif
