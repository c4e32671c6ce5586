/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/* The packets of a received burst, for QPs that look further than their packet: claim.h takes the
 * receives of several together, and mbuf_receive.h takes the frame. */
#ifndef ROCADE_QP_RX_BURST_H
#define ROCADE_QP_RX_BURST_H

#include <stddef.h>

#include "wire/pkt_parse.h"

struct qp;

/* A packet of a burst, and its QP. */
struct rx_packet {
	struct qp *qp; /* NULL: nothing to dispatch */
	struct pkt_view view;
};

/* The burst that is being dispatched. end NULL: none is, or no QP looks at it. */
struct rx_burst {
	bool wanted; /* the device has several engines, or an SRQ with mbufs: QPs look */
	const struct rx_packet *packets, *end;
	struct pkt *frames; /* of the packets, those that have not been dispatched */
	bool checked;       /* the ICRCs of all packets have been checked */
};

/* Returns the packet of the burst that has this view. NULL: it is another one, as a packet that was held. */
static inline const struct rx_packet *
rx_burst_packet(const struct rx_burst *burst, const struct pkt_view *v)
{
	uintptr_t at = (uintptr_t)v - offsetof(struct rx_packet, view);

	return at >= (uintptr_t)burst->packets && at < (uintptr_t)burst->end
		       ? (const struct rx_packet *)at
		       : NULL;
}

#endif
