/* SPDX-License-Identifier: BSD-3-Clause */
/* QPs of clients, as the switch knows them: they come, have a peer, and go. */
#ifndef ROCADE_SWITCH_SW_QP_H
#define ROCADE_SWITCH_SW_QP_H

#include "switch/sw.h"

/* Returns whether two local QPs have registered each other, and not earlier QPs of the same
 * QPNs. */
static inline bool
sw_qp_is_connected(const struct sw_qp *a, const struct sw_qp *b)
{
	return a->peer_local && b->peer_local && a->dest_serial == b->serial &&
	       b->dest_serial == a->serial;
}

/* Called by proto.c. */

/* Returns 0, -ENOMEM (the client has as many as it may) or -ENOSPC. */
int sw_qp_create(struct sw_client *client, uint32_t *qpn);
/* Registers the peer in the place of the former one. sgid is an address of the device.
 * Returns 0, -ENOMEM, or -EADDRINUSE: a QP of another host that is registered by another
 * user. */
int sw_qp_set_peer(struct sw_qp *qp, const uint8_t sgid[16], const uint8_t dgid[16],
	uint32_t dest_qpn);

/* Called by proto.c and sw.c. */

/* The QP can send no more to its peer. */
void sw_qp_clear_peer(struct sw_qp *qp);
/* Frees the QPN. Multicast groups have forgotten the QP. */
void sw_qp_destroy(struct sw_qp *qp);

#endif
