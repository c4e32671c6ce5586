/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests of other operations than SEND: how they are built, and what is verified when they are
 * acknowledged. */
#ifndef TESTPMD_TX_OP_H
#define TESTPMD_TX_OP_H

#include "host.h"

/* At `start`. */
void tx_op_start(struct host *host);
/* Builds the request of the QP's next message, and fills buf. Sets the length of its SGE, and of its
 * flags whether it is inline. Returns true if it has to be signaled: it fills the ring, and no later
 * one is posted before the receiver has checked it. */
bool tx_op_build(struct host *host, struct conn *conn, struct ibv_send_wr *wr,
	uint8_t *buf, uint64_t msg, uint32_t *len, unsigned *flags);
/* The QP's messages before end are acknowledged: verifies what they have returned. Returns their
 * bytes. */
uint64_t tx_op_acked(struct host *host, struct conn *conn, uint64_t end);

/* How many messages the QP may post: WRITEs, before the receiver has checked more of them, and SENDs with
 * invalidate, before it has bound more windows. A message of another kind counts as one of these. */
static inline uint64_t
tx_op_room(const struct host *host, const struct conn *conn)
{
	const struct exchange *ex = &host->exchange;
	uint64_t room = UINT64_MAX;

	if (ex->ring)
		room = ex->peer.slots - (conn->ring.posted - conn->ring.checked);
	if (ex->mws && mws_room(host, conn) < room)
		room = mws_room(host, conn);
	return room;
}

#endif
