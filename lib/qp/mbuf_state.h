/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/* Of an engine, for mbuf_receive.h: which frames may be given away. */
#ifndef ROCADE_QP_MBUF_STATE_H
#define ROCADE_QP_MBUF_STATE_H

#include "mem/mbuf_ops.h"
#include "qp/claim.h"

/* The frames of the burst that is being dispatched, or was last, and its packets. All zero: there was
 * none. */
struct rx_frames {
	const struct rx_packet *parsed, *end;
	struct pkt *pkts;
};

struct mbuf_state {
	struct rx_frames rx;
	const struct mbuf_ops *ops; /* NULL: the frames of the port are no mbufs */
	const struct rte_mempool *own_pool, *frame_pool; /* see port/port.h */
	const struct rte_mempool *pool;                  /* that spare is of */
	uint32_t
		spare; /* buffers of it that may be given away before it is counted again */
	uint32_t reserve; /* buffers of it that are not given away */
	bool copies;      /* switched off: all payload is copied */
	/* For mbuf_send.h: the port sends mbufs with other holders; and the packets that are being
	 * built do not leave by it. */
	bool sends, diverted;
	/* Frames that were allocated for packets which leave in mbufs of the application instead. The
	 * engine takes them back when these are sent. */
	uint32_t displaced_count;
	struct pkt displaced[PKT_BURST];
};

#endif
